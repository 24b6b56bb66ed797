// SPDX-License-Identifier: Apache-2.0
//! Waiting for descriptors or for an instant: epoll with a time limit in nanoseconds.

use crate::clock::Nanos;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// What a descriptor is watched for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interest {
    Read,
    ReadWrite,
}

impl Interest {
    fn bits(self) -> u32 {
        (match self {
            Self::Read => libc::EPOLLIN,
            Self::ReadWrite => libc::EPOLLIN | libc::EPOLLOUT,
        }) as u32
    }
}

/// Something that a descriptor is ready for.
#[derive(Debug, Clone, Copy)]
pub struct Ready {
    /// The token that the descriptor was added with.
    pub token: u64,
    pub readable: bool,
    pub writable: bool,
    /// An error or a hang-up is pending; for a packet socket: the interface went down.
    pub error: bool,
}

/// A set of watched descriptors (level-triggered).
pub struct Poller {
    epoll: OwnedFd,
    events: Vec<libc::epoll_event>,
}

impl Poller {
    /// # Errors
    /// The system's error, as when there are too many open files.
    pub fn new() -> io::Result<Self> {
        // SAFETY: plain system call; the new descriptor is owned by nobody else.
        let epoll = unsafe {
            let fd = libc::epoll_create1(libc::EPOLL_CLOEXEC);
            if fd < 0 {
                return Err(io::Error::last_os_error());
            }
            OwnedFd::from_raw_fd(fd)
        };
        Ok(Self {
            epoll,
            events: vec![libc::epoll_event { events: 0, u64: 0 }; 256],
        })
    }

    fn control(
        &self,
        op: i32,
        fd: BorrowedFd<'_>,
        token: u64,
        interest: Interest,
    ) -> io::Result<()> {
        let mut event = libc::epoll_event {
            events: interest.bits(),
            u64: token,
        };
        // SAFETY: both descriptors are open and the event lives over the call.
        let rc = unsafe { libc::epoll_ctl(self.epoll.as_raw_fd(), op, fd.as_raw_fd(), &mut event) };
        if rc == 0 {
            Ok(())
        } else {
            Err(io::Error::last_os_error())
        }
    }

    /// # Errors
    /// The system's error, as when the descriptor is there already.
    pub fn add(&self, fd: BorrowedFd<'_>, token: u64, interest: Interest) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_ADD, fd, token, interest)
    }

    /// # Errors
    /// The system's error, as when the descriptor was never added.
    pub fn modify(&self, fd: BorrowedFd<'_>, token: u64, interest: Interest) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_MOD, fd, token, interest)
    }

    /// # Errors
    /// The system's error, as when the descriptor was never added.
    pub fn remove(&self, fd: BorrowedFd<'_>) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_DEL, fd, 0, Interest::Read)
    }

    /// Waits until something is ready, or for `timeout` nanoseconds (None: without limit, Some(0): only look).
    /// A signal ends the wait with nothing ready.
    ///
    /// # Errors
    /// The system's error; ENOSYS on kernels before 5.11, which have no `epoll_pwait2`.
    pub fn wait(&mut self, timeout: Option<Nanos>) -> io::Result<impl Iterator<Item = Ready> + '_> {
        let limit = timeout.map(|ns| libc::timespec {
            tv_sec: (ns / 1_000_000_000) as libc::time_t,
            tv_nsec: (ns % 1_000_000_000) as libc::c_long,
        });
        let limit_ptr = limit
            .as_ref()
            .map_or(std::ptr::null(), |t| t as *const libc::timespec);
        // SAFETY: the event buffer and the time limit live over the call; no signal mask is passed.
        let rc = unsafe {
            libc::syscall(
                libc::SYS_epoll_pwait2,
                self.epoll.as_raw_fd(),
                self.events.as_mut_ptr(),
                self.events.len() as libc::c_int,
                limit_ptr,
                std::ptr::null::<libc::sigset_t>(),
                0usize,
            )
        };
        let count = if rc < 0 {
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::Interrupted {
                return Err(error);
            }
            0
        } else {
            rc as usize
        };
        Ok(self.events[..count].iter().map(|event| Ready {
            token: event.u64,
            readable: event.events & libc::EPOLLIN as u32 != 0,
            writable: event.events & libc::EPOLLOUT as u32 != 0,
            error: event.events & (libc::EPOLLERR | libc::EPOLLHUP) as u32 != 0,
        }))
    }
}
