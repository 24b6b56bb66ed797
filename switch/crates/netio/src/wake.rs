// SPDX-License-Identifier: Apache-2.0
//! An event descriptor: ends a poller's wait from another thread.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// An eventfd.
pub struct WakeFd(OwnedFd);

impl WakeFd {
    /// # Errors
    /// The system's error, as when there are too many open files.
    pub fn new() -> io::Result<WakeFd> {
        // SAFETY: plain system call; the new descriptor is owned by nobody else.
        unsafe {
            let fd = libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK);
            if fd < 0 {
                return Err(io::Error::last_os_error());
            }
            Ok(WakeFd(OwnedFd::from_raw_fd(fd)))
        }
    }

    /// Makes the descriptor readable. A counter that is full is readable already, so no error matters.
    pub fn wake(&self) {
        let one = 1u64;
        // SAFETY: writes eight bytes that live over the call.
        unsafe { libc::write(self.0.as_raw_fd(), (&raw const one).cast(), 8) };
    }

    /// Makes it unreadable again.
    pub fn clear(&self) {
        let mut count = 0u64;
        // SAFETY: reads at most eight bytes into a value that lives over the call.
        unsafe { libc::read(self.0.as_raw_fd(), (&raw mut count).cast(), 8) };
    }
}

impl AsFd for WakeFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
