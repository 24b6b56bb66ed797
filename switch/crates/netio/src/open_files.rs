// SPDX-License-Identifier: Apache-2.0
//! How many files and sockets the process may have open.

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

#[cfg(test)]
mod tests {
    #[test]
    fn the_limit_is_raised_to_the_hard_one() {
        let limit = super::raise_limit().unwrap();
        assert!(limit > 0);
        assert_eq!(super::raise_limit().unwrap(), limit);
    }
}
