// SPDX-License-Identifier: Apache-2.0
//! TCP_INFO of connections that are somebody else's: sock_diag(7) of a namespace.

use rustix::fd::OwnedFd;
use rustix::net::{recv, send, AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};
use std::io;
use std::net::{IpAddr, SocketAddr};

const AF_INET6: u8 = libc::AF_INET6 as u8;
const NETLINK_SOCK_DIAG: u32 = 4;
const SOCK_DIAG_BY_FAMILY: u16 = 20;
const REQUEST_AND_DUMP: u16 = 0x301;
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
const INET_DIAG_INFO: u16 = 2;
const NLMSGHDR_BYTES: usize = 16;
const INET_DIAG_MSG_BYTES: usize = 72;
const ALL_STATES: u32 = u32::MAX;

/// A connection of a namespace.
pub struct Found {
    pub remote: SocketAddr,
    /// Of the socket: none that comes later has it.
    pub cookie: u64,
    pub tcp_info: Vec<u8>,
}

/// All TCP connections of a version of IP of the current namespace.
pub fn connections(ipv6: bool) -> io::Result<Vec<Found>> {
    let protocol =
        std::num::NonZeroU32::new(NETLINK_SOCK_DIAG).map(rustix::net::Protocol::from_raw);
    let socket = rustix::net::socket_with(
        AddressFamily::NETLINK,
        SocketType::RAW,
        SocketFlags::CLOEXEC,
        protocol,
    )?;
    send(&socket, &request(ipv6), SendFlags::empty())?;
    let mut found = Vec::new();
    let mut buffer = vec![0u8; 64 * 1024];
    while read_part(&socket, &mut buffer, &mut found)? {}
    Ok(found)
}

/// struct inet_diag_req_v2 behind its header.
fn request(ipv6: bool) -> Vec<u8> {
    const REQUEST_BYTES: usize = NLMSGHDR_BYTES + 56;
    let mut message = vec![0u8; REQUEST_BYTES];
    message[0..4].copy_from_slice(&(REQUEST_BYTES as u32).to_ne_bytes());
    message[4..6].copy_from_slice(&SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    message[6..8].copy_from_slice(&REQUEST_AND_DUMP.to_ne_bytes());
    message[16] = if ipv6 { AF_INET6 } else { libc::AF_INET as u8 };
    message[17] = libc::IPPROTO_TCP as u8;
    message[18] = 1 << (INET_DIAG_INFO - 1);
    message[20..24].copy_from_slice(&ALL_STATES.to_ne_bytes());
    message
}

/// False: that was the last part.
fn read_part(socket: &OwnedFd, buffer: &mut [u8], found: &mut Vec<Found>) -> io::Result<bool> {
    let (len, _) = recv(socket, &mut *buffer, RecvFlags::empty())?;
    let mut rest = &buffer[..len];
    while rest.len() >= NLMSGHDR_BYTES {
        let (bytes, kind) = (u32_at(rest, 0) as usize, u16_at(rest, 4));
        if kind == NLMSG_DONE {
            return Ok(false);
        }
        if kind == NLMSG_ERROR || bytes < NLMSGHDR_BYTES || bytes > rest.len() {
            return Err(io::Error::other("sock_diag gives no list of connections"));
        }
        found.extend(connection(&rest[NLMSGHDR_BYTES..bytes]));
        rest = &rest[bytes.next_multiple_of(4).min(rest.len())..];
    }
    Ok(true)
}

/// struct inet_diag_msg and its attributes; None: it has no TCP_INFO (a listener's is none).
fn connection(message: &[u8]) -> Option<Found> {
    let (head, mut rest) = message.split_at_checked(INET_DIAG_MSG_BYTES)?;
    let port = |at: usize| u16::from_be_bytes([head[at], head[at + 1]]);
    let remote: IpAddr = match head[0] {
        AF_INET6 => <[u8; 16]>::try_from(&head[24..40]).ok()?.into(),
        _ => <[u8; 4]>::try_from(&head[24..28]).ok()?.into(),
    };
    while rest.len() >= 4 {
        let (bytes, kind) = (usize::from(u16_at(rest, 0)), u16_at(rest, 2));
        let value = rest.get(4..bytes)?;
        if kind == INET_DIAG_INFO {
            return Some(Found {
                remote: SocketAddr::new(remote, port(6)),
                cookie: u64::from(u32_at(head, 44)) | u64::from(u32_at(head, 48)) << 32,
                tcp_info: value.to_vec(),
            });
        }
        rest = rest.get(bytes.next_multiple_of(4)..)?;
    }
    None
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_ne_bytes([bytes[at], bytes[at + 1]])
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}
