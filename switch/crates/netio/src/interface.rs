// SPDX-License-Identifier: Apache-2.0
//! Network interfaces of this namespace: what one is by its name, its flags, and the kernel's word that one changed.

use rustix::io::Errno;
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{bind, recv, socket_with, AddressFamily, RecvFlags, SocketFlags, SocketType};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::net::UnixDatagram;

/// The flags that matter to a switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinkFlags {
    /// IFF_UP: administratively up.
    pub up: bool,
    /// IFF_RUNNING: it has a carrier.
    pub running: bool,
}

/// # Errors
/// The system's error; ENODEV when there is no such interface.
pub fn link_flags(interface: &str) -> io::Result<LinkFlags> {
    let flags = flags(interface)?;
    Ok(LinkFlags {
        up: flags & libc::IFF_UP != 0,
        running: flags & libc::IFF_RUNNING != 0,
    })
}

fn flags(interface: &str) -> io::Result<i32> {
    let answer = ask(interface, libc::SIOCGIFFLAGS, |_| ())?;
    // SAFETY: the call has filled the flags.
    Ok(i32::from(unsafe { answer.ifr_ifru.ifru_flags }))
}

/// Takes an interface up or down; needs CAP_NET_ADMIN.
///
/// # Errors
/// The system's error.
pub fn set_link_up(interface: &str, up: bool) -> io::Result<()> {
    let flags = flags(interface)?;
    let wanted = match up {
        true => flags | libc::IFF_UP,
        false => flags & !libc::IFF_UP,
    };
    if wanted != flags {
        ask(interface, libc::SIOCSIFFLAGS, |request| {
            request.ifr_ifru.ifru_flags = wanted as libc::c_short;
        })?;
    }
    Ok(())
}

/// The kernel's number of an interface.
pub(crate) fn index_of(interface: &str) -> io::Result<i32> {
    let answer = ask(interface, libc::SIOCGIFINDEX, |_| ())?;
    // SAFETY: the call has filled the index.
    Ok(unsafe { answer.ifr_ifru.ifru_ifindex })
}

/// Has the kernel carry out a request about an interface, netdevice(7), which `prepare` completes; returns it with the answer.
///
/// # Errors
/// The system's error; ENODEV when there is no such interface.
pub(crate) fn ask(
    interface: &str,
    code: libc::c_ulong,
    prepare: impl FnOnce(&mut libc::ifreq),
) -> io::Result<libc::ifreq> {
    // SAFETY: all-zero is a valid ifreq.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    if interface.is_empty() || interface.len() >= request.ifr_name.len() {
        return Err(io::Error::from_raw_os_error(libc::ENODEV));
    }
    for (to, from) in request.ifr_name.iter_mut().zip(interface.bytes()) {
        *to = from as libc::c_char;
    }
    prepare(&mut request);
    // Any socket will do, but to close a packet socket takes the kernel tens of milliseconds, in which the caller, mostly the
    // packet thread, forwards nothing.
    let socket = UnixDatagram::unbound()?;
    // SAFETY: the request names an interface, and what it points to lives in the caller until after the call.
    match unsafe { libc::ioctl(socket.as_raw_fd(), code as _, &raw mut request) } {
        0 => Ok(request),
        _ => Err(io::Error::last_os_error()),
    }
}

/// A network interface as it was when looked up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interface {
    pub name: String,
    pub index: i32,
    /// Largest packet behind the Ethernet header, bytes.
    pub mtu: u32,
    /// Administratively up.
    pub up: bool,
}

/// Why an interface cannot be used; the text is one sentence for the user.
#[derive(Debug, thiserror::Error)]
pub enum InterfaceError {
    #[error("interface \"{0}\" does not exist in this network namespace")]
    Missing(String),
    #[error("interface name \"{0}\" is not valid: 1 to 15 characters, no '/', no white space")]
    BadName(String),
    #[error("interface \"{name}\": {action} failed: {source}")]
    Io {
        name: String,
        action: &'static str,
        source: io::Error,
    },
}

impl Interface {
    /// Looks an interface up by name.
    ///
    /// # Errors
    /// [`InterfaceError::Missing`] when there is none of that name, [`InterfaceError::BadName`] when there cannot be one.
    pub fn find(name: &str) -> Result<Self, InterfaceError> {
        let valid = (1..=15).contains(&name.len())
            && !name.contains(|c: char| c == '/' || c == '\0' || c.is_whitespace());
        if !valid {
            return Err(InterfaceError::BadName(name.to_owned()));
        }
        let fail = |action| {
            move |source: io::Error| match source.raw_os_error() {
                Some(libc::ENODEV) => InterfaceError::Missing(name.to_owned()),
                _ => InterfaceError::Io {
                    name: name.to_owned(),
                    action,
                    source,
                },
            }
        };
        let mtu = ask(name, libc::SIOCGIFMTU, |_| ()).map_err(fail("reading the MTU"))?;
        Ok(Self {
            name: name.to_owned(),
            index: index_of(name).map_err(fail("reading the index"))?,
            // SAFETY: the call has filled the MTU.
            mtu: unsafe { mtu.ifr_ifru.ifru_mtu } as u32,
            up: link_flags(name).map_err(fail("reading the flags"))?.up,
        })
    }
}

/// Bytes before the `ifinfomsg` of a message, and in that before the index.
const NLMSG_HEADER: usize = 16;
const IFINFO_INDEX: usize = 4;

/// The kernel's word that an interface came, went or changed: a netlink socket in group RTNLGRP_LINK, which becomes readable.
/// What changed is not read from the messages; the reader looks its interfaces up again.
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

    #[test]
    fn loopback_is_there_and_others_are_told_missing() {
        assert!(link_flags("lo").is_ok());
        for name in ["nosuchif0", "", "a-name-that-is-too-long"] {
            let error = link_flags(name).unwrap_err();
            assert_eq!(error.raw_os_error(), Some(libc::ENODEV), "{name}");
        }
    }

    #[test]
    fn a_missing_interface_is_named() {
        let error = Interface::find("nosuchif0").unwrap_err();
        assert_eq!(
            error.to_string(),
            "interface \"nosuchif0\" does not exist in this network namespace"
        );
    }

    #[test]
    fn an_impossible_name_is_refused() {
        for name in ["", "a-name-that-is-too-long", "a/b", "a b", "a\0b"] {
            assert!(matches!(
                Interface::find(name),
                Err(InterfaceError::BadName(_))
            ));
        }
    }

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
