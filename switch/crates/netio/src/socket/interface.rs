// SPDX-License-Identifier: Apache-2.0
//! A network interface of this namespace: its name resolved to an index and an MTU.

use crate::link_state::{ask, index_of, link_flags};
use std::io;

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
