// SPDX-License-Identifier: Apache-2.0
//! What went wrong with a machine.

use crate::Nanos;
use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Duration;

/// Why a machine did not start, or stopped.
#[derive(Debug, thiserror::Error)]
pub enum MachineError {
    /// The kernel's file is not there.
    #[error("no kernel at {}: `make kernel` builds it", .0.display())]
    NoKernel(PathBuf),
    /// The kernel ended before it was told to; its console says why.
    #[error("the kernel stopped at {at_s:.3} s of virtual time ({how}); the end of its console:\n{console}")]
    Stopped {
        at_s: f64,
        /// Exit status, or signal.
        how: String,
        console: String,
    },
    /// It was not ready in time.
    #[error("the kernel did not boot within {limit_s} s (boot_limit_s); the end of its console:\n{console}")]
    NoBoot { limit_s: u64, console: String },
    /// A signal asked this process to stop.
    #[error("interrupted")]
    Interrupted,
    /// Nothing came from the kernel for so long, by the wall clock.
    #[error("the kernel has not answered for {waited_s} s at {at_s:.3} s of virtual time; the end of its console:\n{console}")]
    Hangs {
        waited_s: u64,
        at_s: f64,
        console: String,
    },
    /// The kernel said something that the protocol does not allow.
    #[error("the kernel broke the protocol: {0}")]
    Protocol(String),
    /// The network took less time than the turn's lookahead said.
    #[error("a frame arrives at {at_ns} ns, in the past of a host: the machine has run until {reached_ns} ns")]
    Past { at_ns: Nanos, reached_ns: Nanos },
    /// The operating system refused.
    #[error("{what}: {error}")]
    System {
        what: &'static str,
        error: io::Error,
    },
}

impl MachineError {
    pub(crate) fn stopped(at: Nanos, status: ExitStatus, console: String) -> MachineError {
        MachineError::Stopped {
            at_s: at as f64 / 1e9,
            how: status.to_string(),
            console,
        }
    }

    pub(crate) fn no_boot(limit: Duration, console: String) -> MachineError {
        MachineError::NoBoot {
            limit_s: limit.as_secs(),
            console,
        }
    }
}

/// Names what the operating system refused.
pub(crate) fn system<E: Into<io::Error>>(what: &'static str) -> impl FnOnce(E) -> MachineError {
    move |error| MachineError::System {
        what,
        error: error.into(),
    }
}
