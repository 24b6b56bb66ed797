// SPDX-License-Identifier: Apache-2.0
//! Waiting for descriptors or for an instant: epoll with a time limit in nanoseconds, and an event descriptor that ends the
//! wait from another thread.

use crate::clock::{timespec, Nanos};
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::event::{eventfd, EventfdFlags};
use rustix::io::Errno;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

/// Events taken in one wait.
const EVENTS: usize = 256;

/// A descriptor that has something to read, or an error.
#[derive(Debug, Clone, Copy)]
pub struct Ready {
    /// The token that the descriptor was added with.
    pub token: u64,
    /// An error or a hang-up is pending; for a packet socket: the interface went down.
    pub error: bool,
}

/// A set of watched descriptors (level-triggered).
pub struct Poller {
    epoll: OwnedFd,
    ready: Vec<Ready>,
}

impl Poller {
    /// # Errors
    /// The system's error, as when there are too many open files.
    pub fn new() -> io::Result<Self> {
        Ok(Self {
            epoll: epoll::create(CreateFlags::CLOEXEC)?,
            ready: Vec::with_capacity(EVENTS),
        })
    }

    /// Watches whether there is something to read.
    ///
    /// # Errors
    /// The system's error, as when the descriptor is there already.
    pub fn add(&self, fd: BorrowedFd<'_>, token: u64) -> io::Result<()> {
        Ok(epoll::add(
            &self.epoll,
            fd,
            EventData::new_u64(token),
            EventFlags::IN,
        )?)
    }

    /// Waits until something is ready, or for `timeout` nanoseconds (None: without limit, Some(0): only poll).
    /// A signal ends the wait with nothing ready.
    ///
    /// # Errors
    /// The system's error; ENOSYS on kernels before 5.11, which have no `epoll_pwait2`.
    pub fn wait(&mut self, timeout: Option<Nanos>) -> io::Result<impl Iterator<Item = Ready> + '_> {
        let limit = timeout.map(timespec);
        let mut buffer = [const { MaybeUninit::<Event>::uninit() }; EVENTS];
        let events = match epoll::wait(&self.epoll, &mut buffer, limit.as_ref()) {
            Ok((events, _)) => events,
            Err(Errno::INTR) => &mut [],
            Err(error) => return Err(error.into()),
        };
        // Not the events themselves, which may hold pointers and so do not go from thread to thread.
        self.ready.clear();
        self.ready.extend(events.iter().map(|event| {
            let (data, flags) = (event.data, event.flags);
            Ready {
                token: data.u64(),
                error: flags.intersects(EventFlags::ERR | EventFlags::HUP),
            }
        }));
        Ok(self.ready.iter().copied())
    }
}

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
