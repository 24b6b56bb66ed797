// SPDX-License-Identifier: Apache-2.0
//! How many files and sockets the process may have open.

use std::io;

/// Raises the limit as far as this process may do it by itself; returns the limit then.
///
/// # Errors
/// The system's error.
pub fn raise_limit() -> io::Result<u64> {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: `limit` is a valid place for the answer.
    if unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) } != 0 {
        return Err(io::Error::last_os_error());
    }
    limit.rlim_cur = limit.rlim_max;
    // SAFETY: `limit` is a valid limit, and lives through the call.
    if unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &limit) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(limit.rlim_cur)
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
