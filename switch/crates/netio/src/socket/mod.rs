// SPDX-License-Identifier: Apache-2.0
//! Packet sockets on Linux interfaces: what crosses here is whole Ethernet frames, nothing of P4 or links.
//!
//! - [`RxRing`]: frames of one interface, by a memory-mapped AF_PACKET ring; own frames never come back,
//!   VLAN tags and checksums that the kernel left to the device are put into the frame.
//! - [`TxSocket`]: frames to any interface, many in one system call.

mod rx_ring;
mod tx;

pub use rx_ring::{RingOptions, RxCounters, RxFrame, RxRing};
pub use tx::{TxSocket, TX_BATCH};

use rustix::net::{AddressFamily, SocketFlags, SocketType};
use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

/// `setsockopt` with a plain value.
fn set_option<T: Copy>(fd: BorrowedFd<'_>, level: i32, name: i32, value: T) -> io::Result<()> {
    // SAFETY: value outlives the call and its size is passed with it.
    let rc = unsafe {
        libc::setsockopt(
            fd.as_raw_fd(),
            level,
            name,
            (&raw const value).cast(),
            size_of::<T>() as libc::socklen_t,
        )
    };
    if rc == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// A raw packet socket that receives nothing until it is bound with a protocol.
fn packet_socket() -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    Ok(rustix::net::socket_with(
        AddressFamily::PACKET,
        SocketType::RAW,
        flags,
        None,
    )?)
}

/// The link-layer address of an interface, for `bind` and `sendmsg`.
fn link_address(index: i32, protocol: u16) -> libc::sockaddr_ll {
    // SAFETY: all-zero is a valid sockaddr_ll.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = protocol.to_be();
    address.sll_ifindex = index;
    address
}
