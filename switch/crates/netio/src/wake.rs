// SPDX-License-Identifier: Apache-2.0
//! An event descriptor: ends a poller's wait from another thread.

use rustix::event::{eventfd, EventfdFlags};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

/// An eventfd, and whether it was written since it was last asked.
pub struct WakeFd {
    fd: OwnedFd,
    is_wanted: AtomicBool,
}

impl WakeFd {
    /// # Errors
    /// The system's error, as when there are too many open files.
    pub fn new() -> io::Result<WakeFd> {
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        Ok(WakeFd {
            fd: eventfd(0, flags)?,
            is_wanted: AtomicBool::new(false),
        })
    }

    /// Makes the descriptor readable, unless nobody has asked since it was. A counter that is full is readable already, so no
    /// error matters.
    pub fn wake(&self) {
        if !self.is_wanted.swap(true, Ordering::AcqRel) {
            let _ = rustix::io::write(&self.fd, &1u64.to_ne_bytes());
        }
    }

    /// Whether someone has called `wake` since the last time; what was done before that call is seen after this one.
    #[inline]
    pub fn take(&self) -> bool {
        self.is_wanted.load(Ordering::Relaxed) && self.is_wanted.swap(false, Ordering::AcqRel)
    }

    /// Makes the descriptor unreadable again; `take` still tells of it.
    pub fn clear(&self) {
        let _ = rustix::io::read(&self.fd, &mut [0u8; 8]);
    }
}

impl AsFd for WakeFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
