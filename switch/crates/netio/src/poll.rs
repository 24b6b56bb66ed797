// SPDX-License-Identifier: Apache-2.0
//! Waiting for descriptors or for an instant: epoll with a time limit in nanoseconds.

use crate::clock::{timespec, Nanos};
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::io::Errno;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};

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
