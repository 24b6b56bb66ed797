// SPDX-License-Identifier: Apache-2.0
//! Sockets and what Linux alone says of them: TCP_INFO, and which byte was acknowledged when.

use rustix::fd::{AsFd, AsRawFd, OwnedFd};
use rustix::net::{self, sockopt, AddressFamily, SocketFlags, SocketType};
use std::io;
use std::mem::{size_of, zeroed};
use std::net::{Ipv4Addr, SocketAddrV4};

/// More than any kernel's struct tcp_info.
const TCP_INFO_BYTES_MAX: usize = 512;
pub const TCP_NOTSENT_LOWAT: libc::c_int = 25;
const ERROR_QUEUE_BYTES: usize = 512;
/// Where `ee_origin`, `ee_info` and `ee_data` are in struct sock_extended_err.
const EE_ORIGIN: usize = 4;
const EE_INFO: usize = 8;
const EE_DATA: usize = 12;

pub fn tcp_socket() -> io::Result<OwnedFd> {
    socket(SocketType::STREAM)
}

/// A UDP socket at an address of its host.
pub fn udp_socket(at: SocketAddrV4) -> io::Result<OwnedFd> {
    let socket = socket(SocketType::DGRAM)?;
    net::bind(&socket, &at)?;
    Ok(socket)
}

fn socket(kind: SocketType) -> io::Result<OwnedFd> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    Ok(net::socket_with(AddressFamily::INET, kind, flags, None)?)
}

/// A socket that takes connections of a port.
pub fn listen(port: u16, options: impl FnOnce(&OwnedFd) -> io::Result<()>) -> io::Result<OwnedFd> {
    const BACKLOG: i32 = 1024;
    let listener = tcp_socket()?;
    sockopt::set_socket_reuseaddr(&listener, true)?;
    options(&listener)?;
    net::bind(&listener, &SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, port))?;
    net::listen(&listener, BACKLOG)?;
    Ok(listener)
}

/// The next `close` sends a reset: what is not sent yet is not sent.
pub fn reset_on_close(socket: &OwnedFd) -> io::Result<()> {
    Ok(sockopt::set_socket_linger(
        socket,
        Some(std::time::Duration::ZERO),
    )?)
}

/// An option of IPPROTO_TCP that is a number.
pub fn set_tcp_option(socket: &OwnedFd, option: libc::c_int, value: u32) -> io::Result<()> {
    set_option(socket, libc::IPPROTO_TCP, option, &value.to_ne_bytes())
}

/// What comes is thrown away by a thread of the kernel (hosts/kernel/sink.c).
pub fn throw_away(socket: &OwnedFd) -> io::Result<()> {
    const TCP_ULP: libc::c_int = 31;
    set_option(socket, libc::IPPROTO_TCP, TCP_ULP, b"fl_sink")
}

fn set_option(
    socket: &OwnedFd,
    level: libc::c_int,
    option: libc::c_int,
    value: &[u8],
) -> io::Result<()> {
    // SAFETY: the kernel reads the bytes of `value`.
    let code = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            level,
            option,
            value.as_ptr().cast(),
            value.len() as libc::socklen_t,
        )
    };
    match code {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// TCP_INFO of a connection.
pub fn tcp_info(socket: &OwnedFd) -> io::Result<Vec<u8>> {
    tcp_option(socket, libc::TCP_INFO, TCP_INFO_BYTES_MAX)
}

/// Timeouts that a connection's sender has undone.
#[derive(Clone, Copy, Debug, Default)]
pub struct Undone {
    pub timeouts: u32,
    /// The bandwidth that it had estimated at each, summed.
    pub bw_est_pps: u32,
}

/// None: the sender is not one of hosts/cc that estimates a bandwidth (struct fl_undone of hosts/bpf/tcp_core.bpf.h).
pub fn undone(socket: &OwnedFd) -> io::Result<Option<Undone>> {
    const TCP_CC_INFO: libc::c_int = 26;
    const CC_INFO_BYTES_MAX: usize = 64;
    let info = tcp_option(socket, TCP_CC_INFO, CC_INFO_BYTES_MAX)?;
    // Those of Linux's own senders are longer.
    let Ok([a, b, c, d, e, f, g, h]) = <[u8; 8]>::try_from(info) else {
        return Ok(None);
    };
    Ok(Some(Undone {
        timeouts: u32::from_ne_bytes([a, b, c, d]),
        bw_est_pps: u32::from_ne_bytes([e, f, g, h]),
    }))
}

/// At most `bytes_max` of an option of IPPROTO_TCP.
fn tcp_option(socket: &OwnedFd, option: libc::c_int, bytes_max: usize) -> io::Result<Vec<u8>> {
    let mut value = vec![0u8; bytes_max];
    let mut len = value.len() as libc::socklen_t;
    // SAFETY: the kernel writes at most `len` bytes into `value`.
    let code = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::IPPROTO_TCP,
            option,
            value.as_mut_ptr().cast(),
            &mut len,
        )
    };
    if code != 0 {
        return Err(io::Error::last_os_error());
    }
    value.truncate(len as usize);
    Ok(value)
}

/// From now on the error queue says when each write was acknowledged (Documentation/networking/timestamping.rst). Bytes count from
/// here, so `connect` was called already.
pub fn report_acknowledgments(socket: &OwnedFd) -> io::Result<()> {
    const OPT_ID_TCP: u32 = 1 << 16;
    let flags = libc::SOF_TIMESTAMPING_TX_ACK
        | libc::SOF_TIMESTAMPING_SOFTWARE
        | libc::SOF_TIMESTAMPING_OPT_ID
        | libc::SOF_TIMESTAMPING_OPT_TSONLY
        | OPT_ID_TCP;
    set_option(
        socket,
        libc::SOL_SOCKET,
        libc::SO_TIMESTAMPING,
        &flags.to_ne_bytes(),
    )
}

/// How many bytes of the stream, modulo 2^32, the oldest report on the error queue says were acknowledged; None: it is empty.
pub fn next_acknowledged(socket: &OwnedFd) -> Option<u32> {
    loop {
        let mut control = [0u64; ERROR_QUEUE_BYTES / size_of::<u64>()]; // aligned as cmsghdr is
                                                                        // SAFETY: a msghdr of zeros is one without buffers.
        let mut message: libc::msghdr = unsafe { zeroed() };
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = ERROR_QUEUE_BYTES as _;
        // SAFETY: `message` points to `control`, which lives on; the kernel writes at most its length.
        let code =
            unsafe { libc::recvmsg(socket.as_fd().as_raw_fd(), &mut message, libc::MSG_ERRQUEUE) };
        if code < 0 {
            return None;
        }
        // SAFETY: the kernel has written whole control messages, and their length.
        unsafe {
            let mut next = libc::CMSG_FIRSTHDR(&message);
            while let Some(header) = next.as_ref() {
                if (header.cmsg_level, header.cmsg_type) == (libc::IPPROTO_IP, libc::IP_RECVERR) {
                    let error = std::slice::from_raw_parts(
                        libc::CMSG_DATA(next),
                        EE_DATA + size_of::<u32>(),
                    );
                    if let Some(bytes) = acknowledged(error) {
                        return Some(bytes);
                    }
                }
                next = libc::CMSG_NXTHDR(&message, next);
            }
        }
    }
}

/// What a sock_extended_err says; None: something else.
fn acknowledged(error: &[u8]) -> Option<u32> {
    const ORIGIN_TIMESTAMPING: u8 = 4;
    const SCM_TSTAMP_ACK: u32 = 2;
    let number = |at: usize| Some(u32::from_ne_bytes(error.get(at..at + 4)?.try_into().ok()?));
    let is_ack =
        *error.get(EE_ORIGIN)? == ORIGIN_TIMESTAMPING && number(EE_INFO)? == SCM_TSTAMP_ACK;
    Some(number(EE_DATA)?.wrapping_add(1)).filter(|_| is_ack)
}
