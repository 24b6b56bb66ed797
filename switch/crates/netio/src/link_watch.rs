// SPDX-License-Identifier: Apache-2.0
//! The kernel's word that an interface came, went or changed: a netlink socket in group RTNLGRP_LINK.
//! What changed is not read from the messages; the reader looks its interfaces up again.

use rustix::io::Errno;
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{bind, recv, socket_with, AddressFamily, RecvFlags, SocketFlags, SocketType};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};

/// Bytes before the `ifinfomsg` of a message, and in that before the index.
const NLMSG_HEADER: usize = 16;
const IFINFO_INDEX: usize = 4;

/// Becomes readable when any interface of the namespace changed.
pub struct LinkWatch(OwnedFd);

impl LinkWatch {
    /// # Errors
    /// The system's error.
    pub fn open() -> io::Result<LinkWatch> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let fd = socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, None)?;
        bind(&fd, &SocketAddrNetlink::new(0, libc::RTMGRP_LINK as u32))?;
        Ok(LinkWatch(fd))
    }

    /// Throws the waiting messages away; also after an overrun, which is one more reason to look.
    ///
    /// # Errors
    /// The system's error: nothing will be heard here any more.
    pub fn drain(&self) -> io::Result<()> {
        self.each(|_| ())
    }

    /// Reads the waiting messages; `each` gets the index of each interface that changed, and None where messages were lost,
    /// so that every one may have.
    ///
    /// # Errors
    /// As `drain`.
    pub fn each(&self, mut each: impl FnMut(Option<i32>)) -> io::Result<()> {
        let mut buffer = [0u8; 8192];
        for _ in 0..1_000 {
            match recv(&self.0, &mut buffer, RecvFlags::DONTWAIT) {
                Ok((0, _)) => return Err(io::Error::from(io::ErrorKind::UnexpectedEof)),
                Ok((n, _)) => indexes(&buffer[..n]).for_each(|index| each(Some(index))),
                Err(Errno::NOBUFS) => each(None),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

/// The interfaces of a buffer of messages about links (`nlmsghdr`, then `ifinfomsg`; rtnetlink(7)).
fn indexes(messages: &[u8]) -> impl Iterator<Item = i32> + '_ {
    let word = |at: usize| {
        let bytes = messages.get(at..at + 4)?;
        Some(u32::from_ne_bytes(bytes.try_into().ok()?))
    };
    let mut at = 0;
    std::iter::from_fn(move || {
        let (len, index) = (word(at)? as usize, word(at + NLMSG_HEADER + IFINFO_INDEX)?);
        // A length that cannot be would keep us here.
        at += len.max(NLMSG_HEADER).next_multiple_of(4);
        Some(index as i32)
    })
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

#[cfg(test)]
mod tests {
    use super::*;

    fn message(len: u32, index: u32) -> Vec<u8> {
        let mut bytes = len.to_ne_bytes().to_vec();
        bytes.resize(NLMSG_HEADER + IFINFO_INDEX, 0);
        bytes.extend(index.to_ne_bytes());
        bytes.resize((len as usize).next_multiple_of(4).max(bytes.len()), 0);
        bytes
    }

    #[test]
    fn interfaces_are_read_from_each_message() {
        let both = [message(33, 7), message(40, 9)].concat();
        assert_eq!(indexes(&both).collect::<Vec<_>>(), [7, 9]);
        assert_eq!(indexes(&both[..30]).collect::<Vec<_>>(), [7]);
        assert_eq!(indexes(&message(0, 3)).take(5).collect::<Vec<_>>(), [3]);
        assert_eq!(indexes(&[]).count(), 0);
    }
}
