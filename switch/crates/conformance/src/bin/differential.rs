// SPDX-License-Identifier: Apache-2.0
//! fairlane-differential: the same programs, entries and packets through the embedded switch and through BMv2.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{bail, Result};
use clap::Parser;
use conformance::differ::{differ, steps, Difference, Step};
use conformance::options::{exit, first_line, Common, Verdict, NOT_COMPILED};
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

/// No difference.
const SAME: &str = "same";
/// No difference either, though one is explained.
const NOT_SEEN: &str = "not seen";
const KNOWN: &str = "explained";
const DIFFERS: &str = "DIFFERS";
/// No comparison: the STF parser or BMv2 says why.
const NOT_RUN: &str = "not run";

/// A difference is made sure of by as many runs in which every packet is watched on its own.
const CONFIRM: usize = 2;

/// Packets, and the difference that is found again when every packet is watched.
fn compared(
    test: &corpus::Test,
    json: &[u8],
    options: &Options,
) -> Result<(usize, Option<Difference>)> {
    let statements = stf::read(test.stf.as_deref())?;
    let more = mutate::packets(&test.name, &statements, options.seed, options.packets);
    let steps = steps(&statements, more);
    let is_packet = |step: &&Step| matches!(step, Step::Packet(_));
    let count = steps.iter().filter(is_packet).count();
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

/// Compares and reports; the number of programs that differ.
fn compare(options: &Options) -> Result<usize> {
    if let Some(name) = bmv2::missing() {
        bail!("{name} is not on the PATH: a comparison with BMv2 needs simple_switch and simple_switch_CLI (docs/bmv2.md)");
    }
    let (common, mut tests) = (&options.common, Vec::new());
    for folder in &options.folders {
        tests.extend(corpus::find(folder, &common.programs, options.untested)?.tests);
    }
    let packets = AtomicUsize::new(0);
    let program = |test: &corpus::Test, json: &[u8]| -> Verdict {
        let explained = explained::reason(&test.name);
        match (compared(test, json, options), explained) {
            (Ok((count, None)), _) => {
                packets.fetch_add(count, Ordering::Relaxed);
                match explained {
                    None => (SAME, String::new()),
                    Some(_) => (NOT_SEEN, "no difference with these packets; switch/crates/conformance/differences.md explains one".to_string()),
                }
            }
            (_, Some(why)) => (KNOWN, why.to_string()),
            (Ok((_, Some(difference))), None) => (DIFFERS, difference.text),
            (Err(why), None) => (NOT_RUN, first_line(&why)),
        }
    };
    let verdicts = common.judge(tests, program)?;
    let count = |word| verdicts.count(word);
    let (same, differ) = (count(SAME) + count(NOT_SEEN), count(DIFFERS));
    let summary = format!(
        "{same} programs with {} packets (seed {}) as on BMv2, {differ} differ, {} differ as switch/crates/conformance/differences.md explains, \
         {} not run, {} not compiled by p4c",
        packets.into_inner(),
        options.seed,
        count(KNOWN),
        count(NOT_RUN),
        count(NOT_COMPILED)
    );
    common.report(verdicts, &summary)?;
    Ok(differ)
}

fn main() -> ExitCode {
    exit("fairlane-differential", compare(&Options::parse()))
}
