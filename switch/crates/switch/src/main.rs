// SPDX-License-Identifier: Apache-2.0
//! The binary fairlane-switch: options, start-up, signals.
//!
//! Exit codes: 0 stopped by SIGTERM or SIGINT, 1 failed while running, 2 could not start.

mod control;
mod options;
mod port_options;
mod port_report;
mod run;
mod serve;

use clap::Parser;
use options::{LogFormat, NetworkOptions, Options};
use serve::Failure;
use std::io::IsTerminal;
use std::process::ExitCode;

/// A message of P4Runtime is made of many small allocations, which glibc's allocator takes longer for.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// One switch; or, as `network`, those of a topology.
#[derive(Parser)]
#[command(
    name = "fairlane-switch",
    version,
    about = "A v1model switch on Linux interfaces, controlled by P4Runtime",
    args_conflicts_with_subcommands = true
)]
struct Command {
    #[command(subcommand)]
    network: Option<Several>,
    #[command(flatten)]
    one: Options,
}

#[derive(clap::Subcommand)]
enum Several {
    Network(NetworkOptions),
}

fn main() -> ExitCode {
    netio::process::end_at_a_panic();
    let command = Command::parse();
    let network = command.network.as_ref().map(|Several::Network(it)| it);
    let process = network.map_or(&command.one.process, |it| &it.process);
    let log = tracing_subscriber::fmt()
        .with_max_level(process.log_level)
        .with_thread_names(network.is_some())
        .with_writer(std::io::stderr);
    match process.log_format {
        LogFormat::Text => log.with_ansi(std::io::stderr().is_terminal()).init(),
        LogFormat::Json => log.json().flatten_event(true).init(),
    }
    if let (None, Some(engine)) = (network, command.one.engine) {
        engine.choose();
    }
    match run::run(network, command.one) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Start(message)) => {
            eprintln!("fairlane-switch: {message}");
            ExitCode::from(2)
        }
        Err(Failure::Running(message)) => {
            eprintln!("fairlane-switch: {message}");
            ExitCode::from(1)
        }
    }
}
