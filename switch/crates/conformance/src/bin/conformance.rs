// SPDX-License-Identifier: Apache-2.0
//! fairlane-conformance: packet tests of v1model programs through the embedded switch.

#![forbid(unsafe_code)]

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;
use conformance::options::{exit, Common, Verdict, NOT_COMPILED};
use conformance::{corpus, run, stf};

/// Runs the STF tests of v1model programs through the embedded switch.
#[derive(Parser)]
struct Options {
    /// p4c's source tree (testdata/p4_16_samples and p4_14_samples are read), or any folder of STF files and programs.
    folder: PathBuf,
    #[command(flatten)]
    common: Common,
}

/// Tests of p4c's that cannot pass, and why: they do not make the run a failure.
const EXPLAINED: [(&str, &str); 2] = [
    (
        "p4_16_samples/extern-funcs-bmv2",
        "calls a C++ extern of its own",
    ),
    (
        "p4_14_samples/counter3",
        "counts 4 bytes a packet that are not in it; p4c's driver does not look at counters, BMv2 counts what we do",
    ),
];

const PASSED: &str = "passed";
/// Fails as [`EXPLAINED`] says.
const KNOWN: &str = "explained";
const FAILED: &str = "FAILED";

fn test(test: &corpus::Test, json: &[u8]) -> Verdict {
    let run = || stf::read(test.stf.as_deref()).and_then(|all| run::run(json, &all));
    let explained = EXPLAINED.iter().find(|(name, _)| *name == test.name);
    match (std::panic::catch_unwind(run), explained) {
        (Ok(Ok(())), _) => (PASSED, String::new()),
        (Ok(Err(_)), Some((_, why))) => (KNOWN, why.to_string()),
        (Ok(Err(error)), None) => (FAILED, format!("{error:#}")),
        (Err(_), _) => (FAILED, "the switch panicked".to_string()),
    }
}

fn main() -> ExitCode {
    exit("fairlane-conformance", tested(&Options::parse()))
}

/// Runs the tests and reports; the number of those that failed.
fn tested(Options { folder, common }: &Options) -> Result<usize> {
    let found = corpus::find(folder, &common.programs, false)?;
    let mut verdicts = common.judge(found.tests, test)?;
    let orphans = found.orphans.iter();
    let orphans = orphans.map(|name| format!("  {:13} {name}.stf", "no program"));
    verdicts.lines.extend(orphans);
    let count = [PASSED, FAILED, KNOWN, NOT_COMPILED].map(|word| verdicts.count(word));
    let (total, [passed, failed, known, not_compiled]) = (count.iter().sum::<usize>(), count);
    let summary = format!(
        "{passed} of {total} passed, {failed} failed, {known} cannot pass, {not_compiled} are not compiled by p4c"
    );
    common.report(verdicts, &summary)?;
    Ok(failed)
}
