// SPDX-License-Identifier: Apache-2.0
//! `make fuzz`: runs each target in a process of its own, says what it did, and keeps the input of a finding.

use std::process::{Command, ExitCode};
use std::time::Duration;

use clap::builder::PossibleValuesParser;
use clap::Parser;
use fuzz::campaign::{self, Options};
use fuzz::guard::{self, Counting, Limits, EXIT_HANG};
use fuzz::targets;

#[global_allocator]
static MEMORY: Counting = Counting;

/// Mutated inputs through the switch's own code, until the first finding of each target.
#[derive(Parser)]
#[command(name = "fuzz")]
struct Arguments {
    /// Targets; all when none is named
    #[arg(value_parser = PossibleValuesParser::new(targets::names()))]
    target: Vec<String>,
    /// For each target so long
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// For each target at most so many executions
    #[arg(long, default_value_t = u64::MAX)]
    executions: u64,
    /// Where the sequence of inputs begins
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Keep inputs that reach something new, and go on from them the next time
    #[arg(long)]
    grow: bool,
    /// An input may take so long
    #[arg(long, default_value_t = 20)]
    limit_seconds: u64,
    /// And so much memory
    #[arg(long, default_value_t = 1024)]
    limit_mebibytes: usize,
    /// This process runs the target itself
    #[arg(long, hide = true)]
    worker: bool,
}

/// The exit code after a finding that is told.
const EXIT_FOUND: i32 = 1;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let is_good = match arguments.worker {
        true => work(&arguments),
        false => {
            println!("seed {}", arguments.seed);
            let is_chosen = |name: &&str| {
                arguments.target.is_empty() || arguments.target.iter().any(|t| t == name)
            };
            let chosen = targets::names().into_iter().filter(is_chosen);
            let findings = chosen.filter(|name| !supervise(name, &arguments));
            findings.count() == 0
        }
    };
    match is_good {
        true => ExitCode::SUCCESS,
        false => ExitCode::from(EXIT_FOUND as u8),
    }
}

/// Runs the one target that is named, and prints the report or the finding; false after a finding.
fn work(arguments: &Arguments) -> bool {
    let name = &arguments.target[0];
    let limits = Limits {
        time: Duration::from_secs(arguments.limit_seconds),
        memory_bytes: arguments.limit_mebibytes << 20,
    };
    let options = Options {
        seed: arguments.seed,
        executions: arguments.executions,
        time: Duration::from_secs(arguments.seconds),
        limits,
        grow: arguments.grow,
    };
    guard::watch(limits);
    let result = campaign::run(name, &options);
    match &result {
        Ok(report) => println!("{name}: {report}"),
        Err(finding) => println!("{name}: {finding}"),
    }
    result.is_ok()
}

/// Runs a target in a process of its own; false after a finding.
fn supervise(name: &str, arguments: &Arguments) -> bool {
    let own = std::env::current_exe().expect("a process has a program");
    let options = std::env::args().skip(1);
    let options = options.filter(|a| !arguments.target.contains(a));
    let mut worker = Command::new(own);
    worker.args(options).args(["--worker", name]);
    let status = worker.status().expect("this program starts");
    let what = match status.code() {
        Some(0 | EXIT_FOUND) => return status.success(),
        Some(EXIT_HANG) => format!("it took more than {} s", arguments.limit_seconds),
        _ => format!("the process ended: {status}"),
    };
    // It ended at the input that it had begun.
    let input = std::fs::read(campaign::current(name)).ok();
    let input = input.and_then(|text| serde_json::from_slice(&text).ok());
    let found = input.map(|input| campaign::found(name, &what, input));
    println!("{name}: {}", found.unwrap_or(what));
    false
}
