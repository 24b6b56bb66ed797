// SPDX-License-Identifier: Apache-2.0
//! Reception from one interface through a memory-mapped AF_PACKET ring (TPACKET_V2).
//!
//! Version 2 and not 3: version 3 hands over whole blocks and wakes the reader only when a block is full
//! or its timer (1 ms at best, a kernel tick on older kernels) ends; version 2 wakes for each frame.
//!
//! ```text
//! slot: | tpacket2_hdr | sockaddr_ll | … | virtio_net_hdr (10) | frame … |
//!                                                  a VLAN tag grows to here ┘ (4 bytes to the left)
//! ```

use super::{link_address, packet_socket, set_option};
use crate::clock::{ClockPair, Nanos};
use crate::interface::{Interface, InterfaceError};
use checksum::csum16;
use rustix::mm::{mmap, munmap, MapFlags, ProtFlags};
use serde::Serialize;
use std::io;
use std::mem::{offset_of, size_of};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{fence, AtomicU32, Ordering};

/// `struct virtio_net_hdr` without buffer count, as the packet socket writes it.
const VNET_HEADER_LEN: usize = 10;
const VNET_NEEDS_CHECKSUM: u8 = 1;
const VLAN_TAG_LEN: usize = 4;
/// Bytes in a slot that are not frame: headers, alignment, virtio header (kernel: `tpacket_rcv`), and one tag to spare.
const SLOT_OVERHEAD: usize = 96;
/// Ethernet header and two VLAN tags in the frame itself.
const LINK_HEADER_MAX: usize = 14 + 2 * VLAN_TAG_LEN;
const BLOCK_LEN: usize = 1 << 16;

/// How large the ring of an interface is.
#[derive(Debug, Clone, Copy)]
pub struct RingOptions {
    /// Frames that fit before the kernel drops (rounded up to whole blocks of 64 KiB).
    pub frames: usize,
}

impl Default for RingOptions {
    fn default() -> Self {
        Self { frames: 1024 }
    }
}

/// Frames that never reached the caller, by reason.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct RxCounters {
    /// The ring was full.
    #[serde(rename = "dropped_ring_full")]
    pub ring_full: u64,
    /// Longer than the interface's MTU at opening time.
    #[serde(rename = "dropped_truncated")]
    pub truncated: u64,
    /// Segmentation left to the device: offloads are on where they must be off.
    #[serde(rename = "dropped_unsegmented")]
    pub unsegmented: u64,
}

/// A received frame, in the ring itself until the callback returns.
pub struct RxFrame<'a> {
    /// The whole frame, VLAN tag and checksums included; the caller may change it.
    pub bytes: &'a mut [u8],
    /// When the kernel saw the frame, `CLOCK_MONOTONIC`.
    pub arrival: Nanos,
}

/// The receiving ring of one interface.
pub struct RxRing {
    fd: OwnedFd,
    map: NonNull<u8>,
    map_len: usize,
    slot_len: usize,
    /// Where the next frame will stand, bytes from the start.
    next: usize,
    counters: RxCounters,
}

// SAFETY: the mapping belongs to this value alone; the kernel shares it by the status words only.
unsafe impl Send for RxRing {}

impl RxRing {
    /// Opens a promiscuous ring on `interface`: frames that come in, not those that we send.
    ///
    /// # Errors
    /// [`InterfaceError::Io`] naming the step that failed (CAP_NET_RAW is needed).
    pub fn open(interface: &Interface, options: RingOptions) -> Result<Self, InterfaceError> {
        let fail = |action: &'static str| {
            move |source: io::Error| InterfaceError::Io {
                name: interface.name.clone(),
                action,
                source,
            }
        };
        let fd = packet_socket().map_err(fail("opening a packet socket"))?;
        let socket = fd.as_fd();
        let packet = libc::SOL_PACKET;
        let version = libc::tpacket_versions::TPACKET_V2 as libc::c_int;
        set_option(socket, packet, libc::PACKET_VERSION, version)
            .map_err(fail("PACKET_VERSION"))?;
        set_option(socket, packet, libc::PACKET_VNET_HDR, 1i32).map_err(fail("PACKET_VNET_HDR"))?;
        set_option(socket, packet, libc::PACKET_IGNORE_OUTGOING, 1i32)
            .map_err(fail("PACKET_IGNORE_OUTGOING"))?;
        // Stamps at the moment of arrival in the stack, not when the tap runs.
        let stamps = libc::SOF_TIMESTAMPING_RX_SOFTWARE | libc::SOF_TIMESTAMPING_SOFTWARE;
        set_option(socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPING, stamps)
            .map_err(fail("SO_TIMESTAMPING"))?;

        let wanted = SLOT_OVERHEAD + LINK_HEADER_MAX + interface.mtu as usize;
        // A power of two fills its block, so that the slots stand one behind the other.
        let slot_len = wanted.next_power_of_two().max(2048);
        let block_len = BLOCK_LEN.max(slot_len);
        let slots_per_block = block_len / slot_len;
        let blocks = options.frames.max(1).div_ceil(slots_per_block);
        let request = libc::tpacket_req {
            tp_block_size: block_len as u32,
            tp_block_nr: blocks as u32,
            tp_frame_size: slot_len as u32,
            tp_frame_nr: (blocks * slots_per_block) as u32,
        };
        set_option(socket, packet, libc::PACKET_RX_RING, request)
            .map_err(fail("PACKET_RX_RING"))?;
        let map_len = blocks * block_len;
        let (access, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
        // SAFETY: a fresh mapping of the ring that was just made, with its exact length.
        let map = unsafe { mmap(std::ptr::null_mut(), map_len, access, flags, &fd, 0) };
        let map = map.map_err(|e| fail("mapping the ring")(e.into()))?;
        let ring = Self {
            map: NonNull::new(map.cast()).expect("mmap never returns null"),
            map_len,
            slot_len,
            next: 0,
            counters: RxCounters::default(),
            fd,
        };
        let membership = libc::packet_mreq {
            mr_ifindex: interface.index,
            mr_type: libc::PACKET_MR_PROMISC as u16,
            mr_alen: 0,
            mr_address: [0; 8],
        };
        set_option(
            ring.fd.as_fd(),
            packet,
            libc::PACKET_ADD_MEMBERSHIP,
            membership,
        )
        .map_err(fail("promiscuous mode"))?;
        let address = link_address(interface.index, libc::ETH_P_ALL as u16);
        // SAFETY: address is a sockaddr_ll of the stated size.
        let rc = unsafe {
            libc::bind(
                ring.fd.as_raw_fd(),
                (&raw const address).cast(),
                size_of::<libc::sockaddr_ll>() as u32,
            )
        };
        if rc != 0 {
            return Err(fail("binding")(io::Error::last_os_error()));
        }
        Ok(ring)
    }

    /// Hands up to `limit` waiting frames to `each`, in order of arrival; returns how many.
    /// Fewer than `limit` means that the ring was empty then.
    pub fn receive(
        &mut self,
        clock: &ClockPair,
        limit: usize,
        each: impl FnMut(RxFrame<'_>),
    ) -> usize {
        self.receive_until(clock, limit, Nanos::MAX, each)
    }

    /// As `receive`, but stops before a frame that arrived later than `until`.
    #[inline]
    pub fn receive_until(
        &mut self,
        clock: &ClockPair,
        limit: usize,
        until: Nanos,
        mut each: impl FnMut(RxFrame<'_>),
    ) -> usize {
        let mut count = 0;
        while count < limit {
            let slot = self.next_slot();
            let status_word = Self::status(slot);
            let status = status_word.load(Ordering::Acquire);
            if status & libc::TP_STATUS_USER == 0 {
                break;
            }
            // SAFETY: the status says that the kernel has handed the slot to us until the status is written back.
            unsafe {
                let arrival = clock.monotonic_of(Self::stamp(slot));
                if arrival > until {
                    break;
                }
                if let Some(bytes) = self.open_slot(slot, status) {
                    each(RxFrame { bytes, arrival });
                }
            }
            fence(Ordering::Release);
            status_word.store(libc::TP_STATUS_KERNEL, Ordering::Release);
            self.next += self.slot_len;
            if self.next == self.map_len {
                self.next = 0;
            }
            count += 1;
        }
        count
    }

    /// When the first waiting frame arrived; None when the ring is empty.
    #[inline]
    pub fn peek(&self, clock: &ClockPair) -> Option<Nanos> {
        let slot = self.next_slot();
        if Self::status(slot).load(Ordering::Acquire) & libc::TP_STATUS_USER == 0 {
            return None;
        }
        // SAFETY: the status says that the kernel has handed the slot to us.
        Some(clock.monotonic_of(unsafe { Self::stamp(slot) }))
    }

    fn status<'a>(slot: NonNull<u8>) -> &'a AtomicU32 {
        // SAFETY: slot points to a tpacket2_hdr inside the mapping; its status word is shared with the kernel.
        unsafe {
            AtomicU32::from_ptr(
                slot.as_ptr()
                    .add(offset_of!(libc::tpacket2_hdr, tp_status))
                    .cast(),
            )
        }
    }

    /// The kernel's stamp of a slot that user space owns, `CLOCK_REALTIME`.
    unsafe fn stamp(slot: NonNull<u8>) -> Nanos {
        // SAFETY: by contract the slot is ours and starts with a tpacket2_hdr.
        let header = unsafe { slot.cast::<libc::tpacket2_hdr>().as_ref() };
        Nanos::from(header.tp_sec) * 1_000_000_000 + Nanos::from(header.tp_nsec)
    }

    fn next_slot(&self) -> NonNull<u8> {
        debug_assert!(self.next + self.slot_len <= self.map_len);
        // SAFETY: `next` lies inside the mapping.
        unsafe { self.map.add(self.next) }
    }

    /// Reads a slot that user space owns. None: the frame is counted and not handed on.
    unsafe fn open_slot<'a>(&mut self, slot: NonNull<u8>, status: u32) -> Option<&'a mut [u8]> {
        // SAFETY: by contract the slot is ours and starts with a tpacket2_hdr, which is plain data.
        let header = unsafe { slot.cast::<libc::tpacket2_hdr>().read() };
        let mac = usize::from(header.tp_mac);
        let mut len = header.tp_snaplen as usize;
        // SAFETY: tpacket_rcv puts the virtio header directly before the frame.
        let vnet = unsafe {
            slot.add(mac - VNET_HEADER_LEN)
                .cast::<[u8; VNET_HEADER_LEN]>()
                .read()
        };
        let [flags, segmentation, _, _, _, _, start_0, start_1, offset_0, offset_1] = vnet;
        if segmentation != 0 {
            self.counters.unsegmented += 1;
            return None;
        }
        if header.tp_snaplen < header.tp_len {
            self.counters.truncated += 1;
            return None;
        }
        // SAFETY: mac..mac + snaplen lies in the slot (kernel's promise), and nobody else looks at it now.
        let mut bytes = unsafe { std::slice::from_raw_parts_mut(slot.add(mac).as_ptr(), len) };
        if flags & VNET_NEEDS_CHECKSUM != 0 {
            let start = u16::from_ne_bytes([start_0, start_1]);
            let offset = u16::from_ne_bytes([offset_0, offset_1]);
            complete_checksum(bytes, start.into(), offset.into());
        }
        if status & libc::TP_STATUS_VLAN_VALID != 0 && len >= 12 {
            let tpid = match status & libc::TP_STATUS_VLAN_TPID_VALID {
                0 => 0x8100,
                _ => header.tp_vlan_tpid,
            };
            len += VLAN_TAG_LEN;
            // SAFETY: the virtio header before the frame (10 bytes, already read) makes room for the tag.
            bytes = unsafe {
                std::slice::from_raw_parts_mut(slot.add(mac - VLAN_TAG_LEN).as_ptr(), len)
            };
            bytes.copy_within(4..16, 0);
            bytes[12..14].copy_from_slice(&tpid.to_be_bytes());
            bytes[14..16].copy_from_slice(&header.tp_vlan_tci.to_be_bytes());
        }
        Some(bytes)
    }

    /// What was lost since the last call; asks the kernel for its part, so not for the packet path.
    pub fn take_counters(&mut self) -> RxCounters {
        // SAFETY: plain getsockopt into a struct of the stated size; the kernel resets its count at each read.
        unsafe {
            let mut stats: libc::tpacket_stats = std::mem::zeroed();
            let mut len = size_of::<libc::tpacket_stats>() as libc::socklen_t;
            let rc = libc::getsockopt(
                self.fd.as_raw_fd(),
                libc::SOL_PACKET,
                libc::PACKET_STATISTICS,
                (&raw mut stats).cast(),
                &mut len,
            );
            if rc == 0 {
                self.counters.ring_full += u64::from(stats.tp_drops);
            }
        }
        std::mem::take(&mut self.counters)
    }

    /// Clears the pending error of the socket: ENETDOWN when the interface went down or away.
    pub fn clear_error(&self) {
        let _ = rustix::net::sockopt::socket_error(&self.fd);
    }
}

impl AsFd for RxRing {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Drop for RxRing {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by open with this length and is not used after.
        let _ = unsafe { munmap(self.map.as_ptr().cast(), self.map_len) };
    }
}

/// Completes a transport checksum that the sender's stack left to the device (CHECKSUM_PARTIAL):
/// writes the Internet checksum (RFC 1071) over `frame[start..]` to `frame[start + offset..]`, where the
/// sum of the pseudo header already stands, as in `struct virtio_net_hdr`. A sum of 0 is sent as 0xffff.
/// Returns false, and changes nothing, when the two offsets do not lie inside the frame.
fn complete_checksum(frame: &mut [u8], start: usize, offset: usize) -> bool {
    let field = start + offset;
    if field + 2 > frame.len() {
        return false;
    }
    let checksum = match csum16(&frame[start..]) {
        0 => 0xffff,
        other => other,
    };
    frame[field..field + 2].copy_from_slice(&checksum.to_be_bytes());
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_over_a_completed_range_is_all_ones() {
        // A UDP header (ports 1000 and 2000, length 11, pseudo-header sum 0x1234) and three bytes, after two foreign bytes.
        let mut frame = vec![
            0xaa, 0xbb, 0x03, 0xe8, 0x07, 0xd0, 0x00, 0x0b, 0x12, 0x34, 1, 2, 3,
        ];
        assert!(complete_checksum(&mut frame, 2, 6));
        let mut sum: u32 = 0x1234;
        let padded: Vec<u8> = frame[2..].iter().copied().chain([0]).collect();
        for word in padded.chunks_exact(2) {
            sum += u32::from(u16::from_be_bytes([word[0], word[1]]));
        }
        while sum > 0xffff {
            sum = (sum >> 16) + (sum & 0xffff);
        }
        assert_eq!(sum, 0xffff);
    }

    #[test]
    fn offsets_outside_the_frame_change_nothing() {
        let mut frame = [1u8; 10];
        assert!(!complete_checksum(&mut frame, 4, 5));
        assert!(!complete_checksum(&mut frame, 11, 0));
        assert_eq!(frame, [1u8; 10]);
    }
}
