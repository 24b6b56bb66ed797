// SPDX-License-Identifier: Apache-2.0
//! fairlane-conformance: packet tests of v1model programs through the embedded switch.

#![forbid(unsafe_code)]

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Mutex;

use clap::Parser;
use conformance::{compile, corpus, run, stf};

/// Runs the STF tests of v1model programs through the embedded switch.
#[derive(Parser)]
struct Options {
    /// p4c's source tree (testdata/p4_16_samples and p4_14_samples are read), or any folder of STF files and programs.
    folder: PathBuf,
    /// Also looks here for the program of an STF file (P4Testgen writes its tests into a folder of their own).
    #[arg(long)]
    programs: Vec<PathBuf>,
    /// Only tests whose name contains this.
    #[arg(long, default_value = "")]
    filter: String,
    /// The compiler.
    #[arg(long, default_value = "p4c-bm2-ss")]
    p4c_bm2_ss: PathBuf,
    /// Tests at a time.
    #[arg(short, default_value_t = 2)]
    jobs: usize,
    /// Where compiled programs are kept.
    #[arg(long, default_value = "/tmp/conformance-cache")]
    cache: PathBuf,
    /// Also writes the report here.
    #[arg(long)]
    report: Option<PathBuf>,
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

fn first_line(text: &str) -> String {
    text.lines()
        .find(|l| !l.trim().is_empty())
        .unwrap_or("(no message)")
        .to_string()
}

fn test(test: &corpus::Test, options: &Options) -> Outcome {
    let json = match compile::compile(test, &options.p4c_bm2_ss, &options.cache) {
        Ok(json) => json,
        Err(error) => return Outcome::NotCompiled(first_line(&error)),
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
    let options = Options::parse();
    let found = match corpus::find(&options.folder, &options.programs, false) {
        Ok(found) => found,
        Err(error) => {
            eprintln!("fairlane-conformance: {error}");
            return ExitCode::from(2);
        }
    };
    let chosen: Vec<&corpus::Test> = found
        .tests
        .iter()
        .filter(|t| t.name.contains(&options.filter))
        .collect();
    if chosen.is_empty() {
        eprintln!(
            "fairlane-conformance: no test has `{}` in its name",
            options.filter
        );
        return ExitCode::from(2);
    }
    let (next, outcomes) = (AtomicUsize::new(0), Mutex::new(vec![None; chosen.len()]));
    std::thread::scope(|scope| {
        for _ in 0..options.jobs.max(1) {
            scope.spawn(|| loop {
                let index = next.fetch_add(1, Ordering::Relaxed);
                let Some(chosen) = chosen.get(index) else {
                    break;
                };
                let outcome = test(chosen, &options);
                outcomes.lock().expect("no panic")[index] = Some(outcome);
            });
        }
    });
    let outcomes = outcomes.into_inner().expect("no panic");
    let mut lines = Vec::new();
    let (mut passed, mut failed, mut explained, mut not_compiled) = (0, 0, 0, 0);
    for (test, outcome) in chosen.iter().zip(outcomes) {
        match outcome {
            Some(Outcome::Passed) => passed += 1,
            Some(Outcome::NotCompiled(why)) => {
                not_compiled += 1;
                lines.push(format!("  not compiled  {}: {why}", test.name));
            }
            Some(Outcome::Explained(why)) => {
                explained += 1;
                lines.push(format!("  explained     {}: {why}", test.name));
            }
            Some(Outcome::Failed(why)) => {
                failed += 1;
                lines.push(format!("  FAILED        {}: {why}", test.name));
            }
            None => unreachable!("every test has run"),
        }
    }
    for name in &found.orphans {
        lines.push(format!("  no program    {name}.stf"));
    }
    lines.sort();
    let total = chosen.len();
    lines.push(format!(
        "{passed} of {total} passed, {failed} failed, {explained} cannot pass, {not_compiled} are not compiled by p4c"
    ));
    let report = lines.join("\n") + "\n";
    print!("{report}");
    if let Some(path) = &options.report {
        if let Err(error) = std::fs::write(path, &report) {
            eprintln!("fairlane-conformance: {}: {error}", path.display());
            return ExitCode::from(2);
        }
    }
    ExitCode::from(u8::from(failed > 0))
}
