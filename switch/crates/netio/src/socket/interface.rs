// SPDX-License-Identifier: Apache-2.0
//! A network interface of this namespace: its name resolved to an index and an MTU.

use std::ffi::CString;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixDatagram;

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
        let text = match CString::new(name) {
            Ok(text) if valid => text,
            _ => return Err(InterfaceError::BadName(name.to_owned())),
        };
        // SAFETY: text is a NUL-terminated string.
        let index = unsafe { libc::if_nametoindex(text.as_ptr()) };
        if index == 0 {
            return Err(InterfaceError::Missing(name.to_owned()));
        }
        let io_error = |action, source| InterfaceError::Io {
            name: name.to_owned(),
            action,
            source,
        };
        // Any socket will do, but to close a packet socket takes the kernel tens of milliseconds, in which the caller, mostly
        // the packet thread, forwards nothing.
        let socket = UnixDatagram::unbound().map_err(|e| io_error("opening a socket", e))?;
        // SAFETY: all-zero is a valid ifreq; the name fits with its NUL (checked above); each request fills the
        // member of the union that is read after it.
        let (mtu, flags) = unsafe {
            let mut request: libc::ifreq = std::mem::zeroed();
            for (to, from) in request.ifr_name.iter_mut().zip(text.as_bytes()) {
                *to = *from as libc::c_char;
            }
            if libc::ioctl(socket.as_raw_fd(), libc::SIOCGIFMTU as _, &mut request) < 0 {
                return Err(io_error("reading the MTU", io::Error::last_os_error()));
            }
            let mtu = request.ifr_ifru.ifru_mtu;
            if libc::ioctl(socket.as_raw_fd(), libc::SIOCGIFFLAGS as _, &mut request) < 0 {
                return Err(io_error("reading the flags", io::Error::last_os_error()));
            }
            (mtu, request.ifr_ifru.ifru_flags)
        };
        Ok(Self {
            name: name.to_owned(),
            index: index as i32,
            mtu: mtu as u32,
            up: i32::from(flags) & libc::IFF_UP != 0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
