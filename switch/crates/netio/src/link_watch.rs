// SPDX-License-Identifier: Apache-2.0
//! The kernel's word that an interface came, went or changed: a netlink socket in group RTNLGRP_LINK.
//! What changed is not read from the messages; the reader looks its interfaces up again.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

/// Becomes readable when any interface of the namespace changed.
pub struct LinkWatch(OwnedFd);

impl LinkWatch {
    /// # Errors
    /// The system's error.
    pub fn open() -> io::Result<LinkWatch> {
        // SAFETY: plain system calls; the address is a zeroed sockaddr_nl of the stated size with two fields set.
        unsafe {
            let fd = libc::socket(
                libc::AF_NETLINK,
                libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK,
                libc::NETLINK_ROUTE,
            );
            if fd < 0 {
                return Err(io::Error::last_os_error());
            }
            let fd = OwnedFd::from_raw_fd(fd);
            let mut address: libc::sockaddr_nl = std::mem::zeroed();
            address.nl_family = libc::AF_NETLINK as u16;
            address.nl_groups = libc::RTMGRP_LINK as u32;
            let rc = libc::bind(
                fd.as_raw_fd(),
                (&raw const address).cast(),
                size_of::<libc::sockaddr_nl>() as u32,
            );
            if rc < 0 {
                return Err(io::Error::last_os_error());
            }
            Ok(LinkWatch(fd))
        }
    }

    /// Throws the waiting messages away; also after an overrun, which is one more reason to look.
    ///
    /// # Errors
    /// The system's error: nothing will be heard here any more.
    pub fn drain(&self) -> io::Result<()> {
        let mut buffer = [0u8; 8192];
        for _ in 0..1_000 {
            // SAFETY: receives at most the buffer's length.
            let n = unsafe {
                libc::recv(
                    self.0.as_raw_fd(),
                    buffer.as_mut_ptr().cast(),
                    buffer.len(),
                    libc::MSG_DONTWAIT,
                )
            };
            if n > 0 {
                continue;
            }
            if n == 0 {
                return Err(io::Error::from(io::ErrorKind::UnexpectedEof));
            }
            let error = io::Error::last_os_error();
            match error.raw_os_error() {
                Some(libc::ENOBUFS | libc::EINTR) => {}
                Some(libc::EAGAIN) => return Ok(()),
                _ => return Err(error),
            }
        }
        Ok(())
    }
}

impl AsFd for LinkWatch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl AsRawFd for LinkWatch {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}
