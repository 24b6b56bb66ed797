// SPDX-License-Identifier: Apache-2.0
//! The binary fairlane-switch: options, start-up, signals.
//!
//! Exit codes: 0 stopped by SIGTERM or SIGINT, 1 failed while running, 2 could not start.

mod control;
mod network;
mod options;
mod port_options;
mod port_report;
mod quantity;
mod ready;
mod run;
mod security;
mod stats_log;

use clap::Parser;
use options::{LogFormat, Options};
use std::io::IsTerminal;
use std::process::ExitCode;

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
    Network(network::NetworkOptions),
}

fn main() -> ExitCode {
    netio::panics::end_at_a_panic();
    let command = Command::parse();
    let (level, format) = match &command.network {
        Some(Several::Network(options)) => (options.log_level, options.log_format),
        None => (command.one.log_level, command.one.log_format),
    };
    let log = tracing_subscriber::fmt()
        .with_max_level(level)
        .with_thread_names(command.network.is_some())
        .with_writer(std::io::stderr);
    match format {
        LogFormat::Text => log.with_ansi(std::io::stderr().is_terminal()).init(),
        LogFormat::Json => log.json().flatten_event(true).init(),
    }
    let result = match command.network {
        Some(Several::Network(options)) => network::run(&options),
        None => {
            if let Some(engine) = command.one.engine {
                engine.choose();
            }
            run::run(command.one)
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(run::Failure::Start(message)) => {
            eprintln!("fairlane-switch: {message}");
            ExitCode::from(2)
        }
        Err(run::Failure::Running(message)) => {
            eprintln!("fairlane-switch: {message}");
            ExitCode::from(1)
        }
    }
}
