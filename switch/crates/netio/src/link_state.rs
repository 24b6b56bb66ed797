// SPDX-License-Identifier: Apache-2.0
//! An interface's flags, read and set by name: administratively up, and running.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

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
    let flags = read(&socket()?, &mut request(interface)?)?;
    Ok(LinkFlags {
        up: flags & libc::IFF_UP != 0,
        running: flags & libc::IFF_RUNNING != 0,
    })
}

/// Takes an interface up or down; needs CAP_NET_ADMIN.
///
/// # Errors
/// The system's error.
pub fn set_link_up(interface: &str, up: bool) -> io::Result<()> {
    let socket = socket()?;
    let mut request = request(interface)?;
    let flags = read(&socket, &mut request)?;
    let wanted = match up {
        true => flags | libc::IFF_UP,
        false => flags & !libc::IFF_UP,
    };
    if wanted == flags {
        return Ok(());
    }
    request.ifr_ifru.ifru_flags = wanted as libc::c_short;
    // SAFETY: the request names an interface and holds its flags.
    match unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS as _, &mut request) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

pub(crate) fn socket() -> io::Result<OwnedFd> {
    // SAFETY: a plain system call; the descriptor is owned from here on.
    unsafe {
        let fd = libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0);
        match fd {
            0.. => Ok(OwnedFd::from_raw_fd(fd)),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

pub(crate) fn request(interface: &str) -> io::Result<libc::ifreq> {
    // SAFETY: all-zero is a valid ifreq.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    if interface.is_empty() || interface.len() >= request.ifr_name.len() {
        return Err(io::Error::from_raw_os_error(libc::ENODEV));
    }
    for (to, from) in request.ifr_name.iter_mut().zip(interface.bytes()) {
        *to = from as libc::c_char;
    }
    Ok(request)
}

fn read(socket: &OwnedFd, request: &mut libc::ifreq) -> io::Result<i32> {
    // SAFETY: the call fills the flags of the request, which are read after it.
    unsafe {
        match libc::ioctl(
            socket.as_raw_fd(),
            libc::SIOCGIFFLAGS as _,
            &raw mut *request,
        ) {
            0 => Ok(i32::from(request.ifr_ifru.ifru_flags)),
            _ => Err(io::Error::last_os_error()),
        }
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
