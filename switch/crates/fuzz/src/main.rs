// SPDX-License-Identifier: Apache-2.0
//! `make fuzz`: runs each target in a process of its own, says what it did, and keeps the input of a finding.

use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use clap::Parser;
use fuzz::campaign::{self, Options, Report};
use fuzz::guard::{self, Counting, Limits, EXIT_HANG};
use fuzz::input::Input;
use fuzz::targets;

#[global_allocator]
static MEMORY: Counting = Counting;

/// Mutated inputs through the switch's own code, until the first finding of each target.
#[derive(Parser, Clone)]
#[command(name = "fuzz")]
struct Arguments {
    /// Targets; all when none is named
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

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let names: Vec<&str> = targets::ALL.iter().map(|(name, _)| *name).collect();
    let mut given = arguments.target.iter().map(String::as_str);
    if let Some(unknown) = given.find(|target| !names.contains(target)) {
        let names = names.join(", ");
        eprintln!("there is no target {unknown}; targets: {names}");
        return ExitCode::from(2);
    }
    if arguments.worker {
        return work(&arguments);
    }
    let chosen = names
        .iter()
        .filter(|name| arguments.target.is_empty() || arguments.target.iter().any(|t| t == *name));
    println!("seed {}", arguments.seed);
    let findings = chosen.filter(|name| !supervise(name, &arguments)).count();
    match findings {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}

/// Runs the one target that is named, and prints the report or the finding as JSON.
fn work(arguments: &Arguments) -> ExitCode {
    let name = &arguments.target[0];
    let make = targets::ALL.iter().find(|(known, _)| known == name);
    let mut target = make.expect("checked by the caller").1();
    let limits = Limits {
        time: Duration::from_secs(arguments.limit_seconds),
        memory_bytes: arguments.limit_mebibytes << 20,
    };
    let folder = campaign::workplace(name);
    let options = Options {
        seed: arguments.seed,
        executions: arguments.executions,
        time: Duration::from_secs(arguments.seconds),
        limits,
        current: folder.join("current"),
        grown: arguments.grow.then(|| folder.join("grown")),
    };
    guard::watch(limits);
    let result = campaign::run(name, &mut target, &options).map_err(|input| *input);
    println!("{}", serde_json::to_string(&result).unwrap_or_default());
    ExitCode::SUCCESS
}

/// Runs a target in a process of its own; false after a finding.
fn supervise(name: &str, arguments: &Arguments) -> bool {
    let own = std::env::current_exe().expect("a process has a program");
    let options = std::env::args().skip(1);
    let options = options.filter(|a| !arguments.target.contains(a));
    let worker = Command::new(own)
        .args(options)
        .args(["--worker", name])
        .stdout(Stdio::piped())
        .output()
        .expect("this program starts");
    eprint!("{}", String::from_utf8_lossy(&worker.stderr));
    let input = match serde_json::from_slice::<Result<Report, Input>>(&worker.stdout) {
        Ok(Ok(report)) => {
            println!("{name}: {report}");
            return true;
        }
        Ok(Err(input)) => Some(input),
        // It ended at the input that it had begun.
        Err(_) => {
            let current = std::fs::read(campaign::workplace(name).join("current"));
            let input = serde_json::from_slice(&current.unwrap_or_default()).ok();
            let what = match worker.status.code() {
                Some(EXIT_HANG) => format!("it took more than {} s", arguments.limit_seconds),
                _ => format!("the process ended: {}", worker.status),
            };
            input.map(|input| Input {
                finding: Some(what),
                ..input
            })
        }
    };
    match input {
        Some(input) => {
            let path = campaign::keep(&campaign::corpus(name), &input);
            let finding = input.finding.as_deref().unwrap_or("something");
            println!("{name}: FOUND {finding}\n  input: {}", path.display());
        }
        None => println!("{name}: the process ended: {}", worker.status),
    }
    false
}
