// SPDX-License-Identifier: Apache-2.0
//! fairlane-differential: the same programs, entries and packets through the embedded switch and through BMv2.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use conformance::differ::{differ, steps, Difference, Step};
use conformance::options::{first_line, Common};
use conformance::{bmv2, corpus, explained, mutate, stf};

/// Runs v1model programs on the embedded switch and on BMv2's simple_switch, and compares packet by packet what leaves.
#[derive(Parser)]
struct Options {
    /// p4c's source trees, or any folders of STF files and programs.
    #[arg(required = true)]
    folders: Vec<PathBuf>,
    /// P4 programs without an STF file as well: no entries but the program's own.
    #[arg(long)]
    untested: bool,
    /// Packets a program, besides those of its test.
    #[arg(long, default_value_t = 60)]
    packets: usize,
    /// Another number makes other packets.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    common: Common,
}

/// How a program went.
enum Outcome {
    /// So many packets, and no difference.
    Same(usize),
    Explained(&'static str),
    Differs(String),
    /// p4c says why.
    NotCompiled(String),
    /// No comparison: the STF parser or BMv2 says why.
    NotRun(String),
}

/// A difference is made sure of by as many runs in which every packet is watched on its own.
const CONFIRM: usize = 2;

fn program(test: &corpus::Test, options: &Options) -> Outcome {
    let json = match options.common.compile(test) {
        Ok(json) => json,
        Err(why) => return Outcome::NotCompiled(why),
    };
    match (
        compared(test, &json, options),
        explained::reason(&test.name),
    ) {
        (Ok((count, None)), _) => Outcome::Same(count),
        (_, Some(why)) => Outcome::Explained(why),
        (Ok((_, Some(difference))), None) => Outcome::Differs(difference.text),
        (Err(why), None) => Outcome::NotRun(first_line(&why)),
    }
}

/// Packets, and the difference that is found again when every packet is watched.
fn compared(
    test: &corpus::Test,
    json: &[u8],
    options: &Options,
) -> Result<(usize, Option<Difference>), String> {
    let statements = stf::read(test.stf.as_deref())?;
    let more = mutate::packets(&test.name, &statements, options.seed, options.packets);
    let steps = steps(&statements, more);
    let count = steps
        .iter()
        .filter(|s| matches!(s, Step::Packet(_)))
        .count();
    let Some(first) = differ(json, &steps, false)? else {
        return Ok((count, None));
    };
    // One that came late shows at a later packet: the same steps again, each with time of its own.
    let until = (first.step + 1).min(steps.len());
    for _ in 0..CONFIRM {
        if let Some(found) = differ(json, &steps[..until], true)? {
            return Ok((count, Some(found)));
        }
    }
    Ok((count, None))
}

fn find(options: &Options) -> Result<Vec<corpus::Test>, String> {
    let mut all = Vec::new();
    for folder in &options.folders {
        all.extend(corpus::find(folder, &options.common.programs, options.untested)?.tests);
    }
    options.common.choose(all)
}

/// Compares and reports; the number of programs that differ.
fn compare(options: &Options) -> Result<usize, String> {
    let tests = find(options)?;
    let outcomes = options
        .common
        .run_all(&tests, |test| program(test, options));
    let (mut same, mut packets, mut known, mut differ) = (0, 0, 0, 0);
    let (mut not_run, mut not_compiled) = (0, 0);
    let mut lines = Vec::new();
    for (test, outcome) in tests.iter().zip(&outcomes) {
        let name = &test.name;
        match outcome {
            Outcome::Same(count) => {
                same += 1;
                packets += count;
                if explained::reason(name).is_some() {
                    lines.push(format!(
                        "  not seen    {name}: no difference with these packets; switch/crates/conformance/differences.md explains one"
                    ));
                }
            }
            Outcome::Explained(why) => {
                known += 1;
                lines.push(format!("  explained   {name}: {why}"));
            }
            Outcome::Differs(text) => {
                differ += 1;
                lines.push(format!("  DIFFERS     {name}: {text}"));
            }
            Outcome::NotCompiled(why) => {
                not_compiled += 1;
                if test.stf.is_some() {
                    lines.push(format!("  not compiled {name}: {why}"));
                }
            }
            Outcome::NotRun(why) => {
                not_run += 1;
                lines.push(format!("  not run     {name}: {why}"));
            }
        }
    }
    let summary = format!(
        "{same} programs with {packets} packets (seed {}) as on BMv2, {differ} differ, {known} differ as switch/crates/conformance/differences.md explains, \
         {not_run} not run, {not_compiled} not compiled by p4c",
        options.seed
    );
    options.common.report(lines, summary)?;
    Ok(differ)
}

fn main() -> ExitCode {
    let options = Options::parse();
    let result = match bmv2::missing() {
        Some(name) => Err(format!(
            "{name} is not on the PATH: a comparison with BMv2 needs simple_switch and simple_switch_CLI (docs/bmv2.md)"
        )),
        None => compare(&options),
    };
    match result {
        Ok(differ) => ExitCode::from(u8::from(differ > 0)),
        Err(error) => {
            eprintln!("fairlane-differential: {error}");
            ExitCode::from(2)
        }
    }
}
