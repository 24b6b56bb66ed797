// SPDX-License-Identifier: Apache-2.0
//! fairlane-conformance: p4c's corpus of v1model packet tests through the embedded switch.
//!
//! | file | idea |
//! |---|---|
//! | `compile` | finds the tests, compiles their programs once |
//! | `stf` | the packet-test language |
//! | `tables` | its names and values as table entries |
//! | `run` | one test against a `Device` in virtual time |

mod compile;
mod run;
mod stf;
mod tables;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Mutex;

use clap::Parser;

/// Runs p4c's STF tests of v1model programs through the embedded switch.
#[derive(Parser)]
struct Options {
    /// A source tree of p4c (its testdata/p4_16_samples is read).
    #[arg(long)]
    p4c_tree: PathBuf,
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
    /// Fewest tests that must pass.
    #[arg(long, default_value_t = 0)]
    at_least: usize,
}

/// How a test went.
#[derive(Clone, Debug)]
enum Outcome {
    Passed,
    /// p4c does not compile it: says nothing about the switch.
    NotCompiled(String),
    Failed(String),
}

fn first_line(text: &str) -> String {
    text.lines()
        .find(|l| !l.trim().is_empty())
        .unwrap_or("(no message)")
        .to_string()
}

fn test(test: &compile::Test, options: &Options) -> Outcome {
    let json = match compile::compile(test, &options.p4c_bm2_ss, &options.cache) {
        Ok(json) => json,
        Err(error) => return Outcome::NotCompiled(first_line(&error)),
    };
    let text = match std::fs::read_to_string(&test.stf) {
        Ok(text) => text,
        Err(error) => return Outcome::Failed(error.to_string()),
    };
    let run = || stf::parse(&text).and_then(|statements| run::run(&json, &statements));
    match std::panic::catch_unwind(run) {
        Ok(Ok(())) => Outcome::Passed,
        Ok(Err(error)) => Outcome::Failed(error),
        Err(_) => Outcome::Failed("the switch panicked".to_string()),
    }
}

fn main() -> ExitCode {
    let options = Options::parse();
    let all = match compile::tests(&options.p4c_tree) {
        Ok(all) => all,
        Err(error) => {
            eprintln!("fairlane-conformance: {error}");
            return ExitCode::from(2);
        }
    };
    let chosen: Vec<&compile::Test> = all
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
    let (mut passed, mut failed, mut not_compiled) = (0, 0, 0);
    for (test, outcome) in chosen.iter().zip(outcomes) {
        match outcome {
            Some(Outcome::Passed) => passed += 1,
            Some(Outcome::NotCompiled(why)) => {
                not_compiled += 1;
                lines.push(format!("  not compiled  {}: {why}", test.name));
            }
            Some(Outcome::Failed(why)) => {
                failed += 1;
                lines.push(format!("  FAILED        {}: {why}", test.name));
            }
            None => unreachable!("every test has run"),
        }
    }
    lines.sort();
    let total = chosen.len();
    lines.push(format!(
        "{passed} of {total} passed, {failed} failed, {not_compiled} are not compiled by p4c"
    ));
    let report = lines.join("\n") + "\n";
    print!("{report}");
    if let Some(path) = &options.report {
        if let Err(error) = std::fs::write(path, &report) {
            eprintln!("fairlane-conformance: {}: {error}", path.display());
            return ExitCode::from(2);
        }
    }
    let enough = if options.at_least > 0 {
        passed >= options.at_least
    } else {
        failed == 0
    };
    ExitCode::from(u8::from(!enough))
}
