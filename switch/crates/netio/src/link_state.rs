// SPDX-License-Identifier: Apache-2.0
//! An interface's flags, read and set by name: administratively up, and running.

use std::io;
use std::os::fd::AsRawFd;
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
}
