// SPDX-License-Identifier: Apache-2.0
//! fairlane-differential: the same programs, entries and packets through the embedded switch and through BMv2.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Mutex;

use clap::Parser;
use conformance::differ::{differ, steps, Difference, Step};
use conformance::{bmv2, compile, corpus, explained, mutate, stf};

/// Runs v1model programs on the embedded switch and on BMv2's simple_switch, and compares packet by packet what leaves.
#[derive(Parser)]
struct Options {
    /// p4c's source trees, or any folders of STF files and programs.
    #[arg(required = true)]
    folders: Vec<PathBuf>,
    /// Also looks here for the program of an STF file.
    #[arg(long)]
    programs: Vec<PathBuf>,
    /// P4 programs without an STF file as well: no entries but the program's own.
    #[arg(long)]
    untested: bool,
    /// Only programs whose name contains this.
    #[arg(long, default_value = "")]
    filter: String,
    /// Packets a program, besides those of its test.
    #[arg(long, default_value_t = 60)]
    packets: usize,
    /// Another number makes other packets.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The compiler.
    #[arg(long, default_value = "p4c-bm2-ss")]
    p4c_bm2_ss: PathBuf,
    /// Programs at a time.
    #[arg(short, default_value_t = 2)]
    jobs: usize,
    /// Where compiled programs are kept.
    #[arg(long, default_value = "/tmp/conformance-cache")]
    cache: PathBuf,
    /// Also writes the report here.
    #[arg(long)]
    report: Option<PathBuf>,
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
    let json = match compile::compile(test, &options.p4c_bm2_ss, &options.cache) {
        Ok(json) => json,
        Err(why) => return Outcome::NotCompiled(first_line(&why)),
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

fn first_line(text: &str) -> String {
    let mut lines = text.lines();
    let line = lines.find(|l| !l.trim().is_empty());
    line.unwrap_or("no message").to_string()
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
        all.extend(corpus::find(folder, &options.programs, options.untested)?.tests);
    }
    all.retain(|t| t.name.contains(&options.filter));
    if all.is_empty() {
        return Err(format!("no test has `{}` in its name", options.filter));
    }
    Ok(all)
}

fn run_all(tests: &[corpus::Test], options: &Options) -> Vec<Outcome> {
    let next = AtomicUsize::new(0);
    let outcomes: Mutex<Vec<Option<Outcome>>> = Mutex::new(tests.iter().map(|_| None).collect());
    std::thread::scope(|scope| {
        for _ in 0..options.jobs.max(1) {
            scope.spawn(|| loop {
                let index = next.fetch_add(1, Ordering::Relaxed);
                let Some(test) = tests.get(index) else {
                    break;
                };
                let outcome = program(test, options);
                outcomes.lock().expect("no panic")[index] = Some(outcome);
            });
        }
    });
    let outcomes = outcomes.into_inner().expect("no panic");
    outcomes.into_iter().flatten().collect()
}

fn report(tests: &[corpus::Test], outcomes: &[Outcome], seed: u64) -> (String, usize) {
    let (mut same, mut packets, mut known, mut differ) = (0, 0, 0, 0);
    let (mut not_run, mut not_compiled) = (0, 0);
    let mut lines = Vec::new();
    for (test, outcome) in tests.iter().zip(outcomes) {
        let name = &test.name;
        match outcome {
            Outcome::Same(count) => {
                same += 1;
                packets += count;
                if explained::reason(name).is_some() {
                    lines.push(format!(
                        "  not seen    {name}: no difference with these packets; docs/differential.md explains one"
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
    lines.sort();
    lines.push(format!(
        "{same} programs with {packets} packets (seed {seed}) as on BMv2, {differ} differ, {known} differ as docs/differential.md explains, \
         {not_run} not run, {not_compiled} not compiled by p4c"
    ));
    (lines.join("\n") + "\n", differ)
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    std::fs::write(path, text).map_err(|e| format!("{}: {e}", path.display()))
}

fn main() -> ExitCode {
    let options = Options::parse();
    if let Some(name) = bmv2::missing() {
        eprintln!(
            "fairlane-differential: {name} is not on the PATH: a comparison with BMv2 needs simple_switch and simple_switch_CLI \
             (docs/bmv2.md)"
        );
        return ExitCode::from(2);
    }
    let fail = |error: String| {
        eprintln!("fairlane-differential: {error}");
        ExitCode::from(2)
    };
    let tests = match find(&options) {
        Ok(tests) => tests,
        Err(error) => return fail(error),
    };
    let outcomes = run_all(&tests, &options);
    let (text, differ) = report(&tests, &outcomes, options.seed);
    print!("{text}");
    if let Some(Err(error)) = options.report.as_deref().map(|path| write(path, &text)) {
        return fail(error);
    }
    ExitCode::from(u8::from(differ > 0))
}
