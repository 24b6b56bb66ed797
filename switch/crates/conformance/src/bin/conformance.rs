// SPDX-License-Identifier: Apache-2.0
//! fairlane-conformance: packet tests of v1model programs through the embedded switch.

#![forbid(unsafe_code)]

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use conformance::options::Common;
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

/// How a test went.
#[derive(Clone, Debug)]
enum Outcome {
    Passed,
    /// p4c does not compile it: says nothing about the switch.
    NotCompiled(String),
    /// Fails as [`EXPLAINED`] says.
    Explained(&'static str),
    Failed(String),
}

fn test(test: &corpus::Test, options: &Options) -> Outcome {
    let json = match options.common.compile(test) {
        Ok(json) => json,
        Err(error) => return Outcome::NotCompiled(error),
    };
    let run = || stf::read(test.stf.as_deref()).and_then(|all| run::run(&json, &all));
    let explained = EXPLAINED.iter().find(|(name, _)| *name == test.name);
    match (std::panic::catch_unwind(run), explained) {
        (Ok(Ok(())), _) => Outcome::Passed,
        (Ok(Err(_)), Some((_, why))) => Outcome::Explained(why),
        (Ok(Err(error)), None) => Outcome::Failed(error),
        (Err(_), _) => Outcome::Failed("the switch panicked".to_string()),
    }
}

fn main() -> ExitCode {
    match tested(&Options::parse()) {
        Ok(failed) => ExitCode::from(u8::from(failed > 0)),
        Err(error) => {
            eprintln!("fairlane-conformance: {error}");
            ExitCode::from(2)
        }
    }
}

/// Runs the tests and reports; the number of those that failed.
fn tested(options: &Options) -> Result<usize, String> {
    let common = &options.common;
    let found = corpus::find(&options.folder, &common.programs, false)?;
    let chosen = common.choose(found.tests)?;
    let outcomes = common.run_all(&chosen, |one| test(one, options));
    let mut lines = Vec::new();
    let (mut passed, mut failed, mut explained, mut not_compiled) = (0, 0, 0, 0);
    for (test, outcome) in chosen.iter().zip(outcomes) {
        let (count, why) = match outcome {
            Outcome::Passed => {
                passed += 1;
                continue;
            }
            Outcome::NotCompiled(why) => (
                &mut not_compiled,
                format!("not compiled  {}: {why}", test.name),
            ),
            Outcome::Explained(why) => (
                &mut explained,
                format!("explained     {}: {why}", test.name),
            ),
            Outcome::Failed(why) => (&mut failed, format!("FAILED        {}: {why}", test.name)),
        };
        *count += 1;
        lines.push(format!("  {why}"));
    }
    for name in &found.orphans {
        lines.push(format!("  no program    {name}.stf"));
    }
    let total = chosen.len();
    let summary = format!(
        "{passed} of {total} passed, {failed} failed, {explained} cannot pass, {not_compiled} are not compiled by p4c"
    );
    common.report(lines, summary)?;
    Ok(failed)
}
