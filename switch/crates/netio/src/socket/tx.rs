// SPDX-License-Identifier: Apache-2.0
//! Sending frames to any interface, many in one system call, past the queueing discipline.
//!
//! `sendmmsg` and not a TX ring: a ring's slot is free again as soon as a veth orphans the packet, while
//! the receiver may still read the memory.

use super::{link_address, packet_socket, set_option};
use std::io;
use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

/// Frames in one system call.
pub const TX_BATCH: usize = 64;

/// A sending socket for all interfaces of the namespace, with its message headers preallocated.
pub struct TxSocket {
    fd: OwnedFd,
    addresses: Box<[libc::sockaddr_ll; TX_BATCH]>,
    vectors: Box<[libc::iovec; TX_BATCH]>,
    messages: Box<[libc::mmsghdr; TX_BATCH]>,
}

// SAFETY: the raw pointers inside point into the boxes of the same value, or are rewritten before each use.
unsafe impl Send for TxSocket {}

impl TxSocket {
    /// Opens the socket (CAP_NET_RAW is needed).
    ///
    /// # Errors
    /// The system's error, as when the right is missing.
    pub fn open() -> io::Result<Self> {
        let fd = packet_socket()?;
        set_option(
            fd.as_fd(),
            libc::SOL_PACKET,
            libc::PACKET_QDISC_BYPASS,
            1i32,
        )?;
        // A full send buffer would be a loss that no link asked for; without CAP_NET_ADMIN the default stays.
        let _ = set_option(
            fd.as_fd(),
            libc::SOL_SOCKET,
            libc::SO_SNDBUFFORCE,
            16i32 << 20,
        );
        // SAFETY: all-zero is valid for these plain structs.
        let mut socket = unsafe {
            Self {
                fd,
                addresses: Box::new([link_address(0, 0); TX_BATCH]),
                vectors: Box::new(std::mem::zeroed()),
                messages: Box::new(std::mem::zeroed()),
            }
        };
        for i in 0..TX_BATCH {
            let header = &mut socket.messages[i].msg_hdr;
            header.msg_name = (&raw mut socket.addresses[i]).cast();
            header.msg_namelen = size_of::<libc::sockaddr_ll>() as u32;
            header.msg_iov = &raw mut socket.vectors[i];
            header.msg_iovlen = 1;
        }
        Ok(socket)
    }

    /// Sends `count` frames in order; `frame(i)` gives the interface index and the bytes of the i-th.
    /// A frame that fails (its interface is down or gone, the kernel had no room for it at the second try either, or it is longer than
    /// the MTU) is told to `failed` and the rest go on. Returns how many were sent.
    pub fn send<'a>(
        &mut self,
        count: usize,
        frame: impl Fn(usize) -> (i32, &'a [u8]),
        mut failed: impl FnMut(usize),
    ) -> usize {
        let mut sent_total = 0;
        let mut base = 0;
        while base < count {
            let batch = TX_BATCH.min(count - base);
            for i in 0..batch {
                let (index, bytes) = frame(base + i);
                self.addresses[i].sll_ifindex = index;
                self.vectors[i].iov_base = bytes.as_ptr().cast_mut().cast();
                self.vectors[i].iov_len = bytes.len();
            }
            let mut done = 0;
            let mut retried = false;
            while done < batch {
                // SAFETY: messages[done..batch] point to addresses, vectors and frames that live over the call.
                let rc = unsafe {
                    libc::sendmmsg(
                        self.fd.as_raw_fd(),
                        self.messages[done..].as_mut_ptr(),
                        (batch - done) as u32,
                        libc::MSG_DONTWAIT,
                    )
                };
                if rc > 0 {
                    done += rc as usize;
                    sent_total += rc as usize;
                    retried = false;
                    continue;
                }
                let errno = io::Error::last_os_error().raw_os_error().unwrap_or(0);
                if errno == libc::EINTR {
                    continue;
                }
                if matches!(errno, libc::ENOBUFS | libc::EAGAIN) && !retried {
                    retried = true;
                    // Lets the receiving softirq run; a peer that is down fails again at once.
                    std::thread::yield_now();
                    continue;
                }
                failed(base + done);
                done += 1;
                retried = false;
            }
            base += batch;
        }
        sent_total
    }
}
