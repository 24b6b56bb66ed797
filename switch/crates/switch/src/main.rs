// SPDX-License-Identifier: Apache-2.0
//! The binary fairlane-switch: options, start-up, signals.
//!
//! Exit codes: 0 stopped by SIGTERM or SIGINT, 1 failed while running, 2 could not start.

mod control;
mod options;
mod port_options;
mod port_report;
mod quantity;
mod ready;
mod run;
mod security;
mod stats_log;

use clap::Parser;
use options::LogFormat;
use std::io::IsTerminal;
use std::process::ExitCode;

fn main() -> ExitCode {
    netio::panics::end_at_a_panic();
    let options = match options::Options::try_parse() {
        Ok(options) => options,
        Err(error) => error.exit(),
    };
    let log = tracing_subscriber::fmt()
        .with_max_level(options.log_level)
        .with_writer(std::io::stderr);
    match options.log_format {
        LogFormat::Text => log.with_ansi(std::io::stderr().is_terminal()).init(),
        LogFormat::Json => log.json().flatten_event(true).init(),
    }
    if let Some(engine) = options.engine {
        engine.choose();
    }
    match run::run(options) {
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
