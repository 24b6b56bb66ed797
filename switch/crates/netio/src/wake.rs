// SPDX-License-Identifier: Apache-2.0
//! An event descriptor: ends a poller's wait from another thread.

use rustix::event::{eventfd, EventfdFlags};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// An eventfd.
pub struct WakeFd(OwnedFd);

impl WakeFd {
    /// # Errors
    /// The system's error, as when there are too many open files.
    pub fn new() -> io::Result<WakeFd> {
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        Ok(WakeFd(eventfd(0, flags)?))
    }

    /// Makes the descriptor readable. A counter that is full is readable already, so no error matters.
    pub fn wake(&self) {
        let _ = rustix::io::write(&self.0, &1u64.to_ne_bytes());
    }

    /// Makes it unreadable again.
    pub fn clear(&self) {
        let _ = rustix::io::read(&self.0, &mut [0u8; 8]);
    }
}

impl AsFd for WakeFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
