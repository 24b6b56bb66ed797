// SPDX-License-Identifier: Apache-2.0
//! The process as a whole: how many files and sockets it may have open, and what it does at a panic.

use rustix::process::{getrlimit, setrlimit, Resource, Rlimit};
use std::io;

/// Raises the limit as far as this process may do it by itself; returns the limit then.
///
/// # Errors
/// The system's error.
pub fn raise_limit() -> io::Result<u64> {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    let limit = Rlimit {
        current: maximum,
        maximum,
    };
    setrlimit(Resource::Nofile, limit)?;
    Ok(maximum.unwrap_or(u64::MAX))
}

/// From now on a panic on any thread is reported and ends the process: one that is half dead would be worse than one that
/// is gone. One in the loading of a program is only reported: it leaves nothing half done. For binaries only; what is
/// linked into another program must not do it.
pub fn end_at_a_panic() {
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        report(panic);
        if !v1model::error::is_contained() {
            std::process::abort();
        }
    }));
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_limit_is_raised_to_the_hard_one() {
        let limit = super::raise_limit().unwrap();
        assert!(limit > 0);
        assert_eq!(super::raise_limit().unwrap(), limit);
    }
}
