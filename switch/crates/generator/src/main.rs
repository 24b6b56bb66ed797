// SPDX-License-Identifier: Apache-2.0
//! The binary fairlane-traffic: applications of flows in real time, and the sink that discards and counts.
//!
//! | module | idea |
//! |---|---|
//! | `options` | the command line |
//! | `send` | the sending end: the applications of crate `flows`, on connections of this host |
//! | `sink` | the receiving end |
//! | `records` | JSON lines |

mod options;
mod records;
mod send;
mod sink;

use clap::Parser;
use options::{End, Options};
use rustix::process::{getrlimit, setrlimit, Resource, Rlimit};
use std::process::ExitCode;

fn main() -> ExitCode {
    let options = Options::parse();
    let limit = getrlimit(Resource::Nofile);
    let all = Rlimit {
        current: limit.maximum,
        ..limit
    };
    let _ = setrlimit(Resource::Nofile, all); // a connection needs one: else there are the fewer
    let done = match options.end {
        End::Sink(options) => sink::run(&options).map(|()| true),
        source => source.plan().and_then(|plan| send::run(&plan)),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(message) => {
            eprintln!("fairlane-traffic: {message}");
            ExitCode::from(2)
        }
    }
}
