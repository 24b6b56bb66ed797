// SPDX-License-Identifier: Apache-2.0
//! The binary fairlane-traffic: applications of flows in real time, and the sink that discards and counts.
//!
//! | module | idea |
//! |---|---|
//! | `options` | the command line |
//! | `send` | the sending end: the applications of crate `flows`, on connections of this host |
//! | `sink` | the receiving end |
//!
//! JSON lines: one record a line, written as they come.

mod options;
mod send;
mod sink;

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::net::SocketAddr;
use std::process::ExitCode;

use clap::Parser;
use options::{End, Options};
use rustix::fd::OwnedFd;
use rustix::net::getsockname;
use rustix::process::{getrlimit, setrlimit, Resource, Rlimit};
use serde_json::{json, Value};

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

const BUFFER_BYTES: usize = 1 << 16;

/// Writes records to a file, or to standard output.
pub struct Writer {
    to: BufWriter<Box<dyn Write>>,
    is_file: bool,
}

impl Writer {
    /// `out`: a path, or `-`. An error is a sentence.
    pub fn new(out: &str) -> Result<Writer, String> {
        let is_file = out != "-";
        let to: Box<dyn Write> = match is_file {
            false => Box::new(io::stdout()),
            true => {
                let file = File::create(out);
                Box::new(file.map_err(|error| format!("cannot write --out {out}: {error}"))?)
            }
        };
        let to = BufWriter::with_capacity(BUFFER_BYTES, to);
        Ok(Writer { to, is_file })
    }

    pub fn write(&mut self, record: &Value) -> io::Result<()> {
        serde_json::to_writer(&mut self.to, record)?;
        self.to.write_all(b"\n")
    }

    /// The last record; also on standard output.
    pub fn summary(&mut self, summary: Value) -> io::Result<()> {
        let record = json!({ "summary": summary });
        self.write(&record)?;
        self.to.flush()?;
        if self.is_file {
            println!("{record}");
        }
        Ok(())
    }
}

/// `address:port`.
pub fn name_of(address: SocketAddr) -> String {
    format!("{}:{}", address.ip(), address.port())
}

/// Of our end of a socket.
pub fn local_name(socket: &OwnedFd) -> io::Result<String> {
    Ok(name_of(SocketAddr::try_from(getsockname(socket)?)?))
}

/// The instant of the next sample: one that is missed is left out.
pub fn next_sample(due_ns: u64, now_ns: u64, period_ms: u64) -> u64 {
    let period_ns = period_ms * 1_000_000;
    due_ns + period_ns * (now_ns.saturating_sub(due_ns) / period_ns + 1)
}
