// SPDX-License-Identifier: Apache-2.0
//! What went wrong with a machine.

use std::io;
use std::path::PathBuf;

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
    /// Nothing came from the kernel for so long, by the machine's clock.
    #[error("the kernel has not answered for {waited_s} s at {at_s:.3} s of virtual time; the end of its console:\n{console}")]
    Hangs {
        waited_s: u64,
        at_s: f64,
        console: String,
    },
    /// The kernel said something that the protocol does not allow.
    #[error("the kernel broke the protocol: {0}")]
    Protocol(String),
    /// The operating system refused.
    #[error("{what}: {error}")]
    System {
        what: &'static str,
        error: io::Error,
    },
}

/// Names what the operating system refused.
pub(crate) fn system<E: Into<io::Error>>(what: &'static str) -> impl FnOnce(E) -> MachineError {
    move |error| MachineError::System {
        what,
        error: error.into(),
    }
}
