// SPDX-License-Identifier: Apache-2.0
//! A virtio-net device over vhost-user (virtio 1.2 §5.1; the vhost-user protocol of QEMU's documentation). Of frames neither side
//! sends a notification: each looks into the rings when it gets its turn (`calendar`). So no wake-up is ever under way while time
//! moves. The guest takes in-band notifications for granted where time travels.
//!
//! It offers no offloads: every frame is what would be on the wire, checksums included.

use crate::error::{system, MachineError};
use crate::memory::Memory;
use crate::ring::{GuestMemory, Ring};
use rustix::fd::OwnedFd;
use rustix::net::{recvmsg, send, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendFlags};
use std::io::IoSliceMut;
use std::mem::MaybeUninit;

/// Requests of the guest.
mod request {
    pub(super) const GET_FEATURES: u32 = 1;
    pub(super) const SET_FEATURES: u32 = 2;
    pub(super) const SET_OWNER: u32 = 3;
    pub(super) const SET_MEMORY_TABLE: u32 = 5;
    pub(super) const SET_RING_SIZE: u32 = 8;
    pub(super) const SET_RING_ADDRESS: u32 = 9;
    pub(super) const SET_RING_BASE: u32 = 10;
    pub(super) const GET_PROTOCOL_FEATURES: u32 = 15;
    pub(super) const SET_PROTOCOL_FEATURES: u32 = 16;
    pub(super) const SET_RING_ENABLED: u32 = 18;
    pub(super) const SET_CALL_SOCKET: u32 = 21;
    pub(super) const GET_CONFIG: u32 = 24;
    pub(super) const KICK: u32 = 35;
}
const VERSION: u32 = 1;
const IS_REPLY: u32 = 1 << 2;
const NEEDS_REPLY: u32 = 1 << 3;
const HEADER_BYTES: usize = 12;

/// VIRTIO_NET_F_MAC, VHOST_USER_F_PROTOCOL_FEATURES, VIRTIO_F_VERSION_1.
const FEATURES: u64 = 1 << 5 | 1 << 30 | 1 << 32;
/// Replies to all, our own requests, configuration, in-band notifications.
const PROTOCOL_FEATURES: u64 = 1 << 3 | 1 << 5 | 1 << 9 | 1 << 14;
/// struct virtio_net_hdr_v1.
const NET_HEADER_BYTES: usize = 12;
const RX: usize = 0;
const TX: usize = 1;
/// Longest message: a table of two memory regions.
const MESSAGE_BYTES_MAX: usize = 512;

/// Frames of an interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InterfaceCounts {
    pub sent: u64,
    pub received: u64,
    /// Arrived while the guest had no buffer.
    pub dropped: u64,
}

pub(crate) struct Interface {
    pub(crate) socket: OwnedFd,
    /// The guest has not closed it, as it does when it halts.
    pub(crate) is_open: bool,
    /// Where we could send requests.
    _ours: Option<OwnedFd>,
    guest: Option<GuestMemory>,
    rings: [Ring; 2],
    mac: [u8; 6],
    pub(crate) counts: InterfaceCounts,
    frame: Vec<u8>,
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let mut number = [0; 4];
    number.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(number)
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let mut number = [0; 8];
    number.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(number)
}

impl Interface {
    pub(crate) fn new(socket: OwnedFd, mac: [u8; 6]) -> Interface {
        Interface {
            socket,
            is_open: true,
            _ours: None,
            guest: None,
            rings: [Ring::default(), Ring::default()],
            mac,
            counts: InterfaceCounts::default(),
            frame: Vec::with_capacity(2048),
        }
    }

    /// The guest may send and receive.
    pub(crate) fn is_set_up(&self) -> bool {
        self.rings.iter().all(|ring| ring.is_enabled)
    }

    /// Reads a message and does what it asks for. The reply comes last.
    pub(crate) fn serve(&mut self) -> Result<(), MachineError> {
        let mut message = [0; MESSAGE_BYTES_MAX];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let len = match recvmsg(
            &self.socket,
            &mut [IoSliceMut::new(&mut message)],
            &mut control,
            RecvFlags::CMSG_CLOEXEC,
        ) {
            Ok(read) => read.bytes,
            Err(rustix::io::Errno::CONNRESET) => 0,
            Err(error) => return Err(system("reading from an interface")(error)),
        };
        if len == 0 {
            self.is_open = false;
            return Ok(());
        }
        let mut files = control.drain().find_map(|message| match message {
            RecvAncillaryMessage::ScmRights(files) => Some(files.collect::<Vec<OwnedFd>>()),
            _ => None,
        });
        // Before replies are agreed on, two requests may come at once.
        let mut rest = &message[..len];
        while !rest.is_empty() {
            let size = match rest.len() {
                0..HEADER_BYTES => usize::MAX,
                _ => HEADER_BYTES.saturating_add(u32_at(rest, 8) as usize),
            };
            let Some((request, later)) = rest.split_at_checked(size) else {
                return Err(MachineError::Protocol(format!(
                    "a vhost-user message of {len} bytes is not whole"
                )));
            };
            let file = files.take().and_then(|files| files.into_iter().next());
            self.answer(request, file)?;
            rest = later;
        }
        Ok(())
    }

    /// Does what a request asks for, and replies last.
    fn answer(&mut self, message: &[u8], file: Option<OwnedFd>) -> Result<(), MachineError> {
        let (request, flags) = (u32_at(message, 0), u32_at(message, 4));
        let body = &message[HEADER_BYTES..];
        let short = || MachineError::Protocol(format!("vhost-user request {request} is too short"));
        let needed = match request {
            request::SET_MEMORY_TABLE | request::SET_RING_ADDRESS => 40,
            request::GET_CONFIG => 12,
            request::SET_RING_SIZE | request::SET_RING_BASE | request::SET_RING_ENABLED => 8,
            _ => 0,
        };
        if body.len() < needed {
            return Err(short());
        }
        match request {
            request::GET_FEATURES => return self.reply(request, &FEATURES.to_le_bytes()),
            request::GET_PROTOCOL_FEATURES => {
                return self.reply(request, &PROTOCOL_FEATURES.to_le_bytes())
            }
            request::GET_CONFIG => {
                let mut reply = body.to_vec();
                let config = &mut reply[12..];
                let len = config.len().min(self.mac.len());
                config[..len].copy_from_slice(&self.mac[..len]);
                return self.reply(request, &reply);
            }
            request::SET_FEATURES | request::SET_OWNER | request::SET_PROTOCOL_FEATURES => {}
            request::SET_RING_BASE => {} // always 0 here
            request::SET_CALL_SOCKET => {
                self._ours = file;
            }
            request::SET_MEMORY_TABLE => {
                let file = file.ok_or_else(|| {
                    MachineError::Protocol("a table of memory without a file".to_owned())
                })?;
                let file_start = u64_at(body, 32) as usize;
                self.guest = Some(GuestMemory {
                    memory: Memory::map(file, file_start + u64_at(body, 16) as usize)?,
                    guest_start: u64_at(body, 8),
                    file_start,
                });
            }
            request::SET_RING_SIZE => self.ring(body)?.size = (u32_at(body, 4) as u16).max(1),
            request::SET_RING_ENABLED => self.ring(body)?.is_enabled = u32_at(body, 4) != 0,
            request::SET_RING_ADDRESS => {
                self.ring(body)?; // its number is checked
                let guest = self.guest.as_ref().ok_or_else(short)?;
                self.rings[u32_at(body, 0) as usize].place(
                    guest,
                    u64_at(body, 8),
                    u64_at(body, 16),
                    u64_at(body, 24),
                )?;
            }
            request::KICK => {
                return Err(MachineError::Protocol(
                    "the kernel is older than this simulator; `make kernel` builds it anew"
                        .to_owned(),
                ))
            }
            other => {
                return Err(MachineError::Protocol(format!(
                    "vhost-user request {other} is not known"
                )))
            }
        }
        match flags & NEEDS_REPLY {
            0 => Ok(()),
            _ => self.reply(request, &0u64.to_le_bytes()),
        }
    }

    fn ring(&mut self, body: &[u8]) -> Result<&mut Ring, MachineError> {
        let number = u32_at(body, 0) as usize;
        let ring = self.rings.get_mut(number);
        ring.ok_or_else(|| MachineError::Protocol(format!("an interface has no ring {number}")))
    }

    fn reply(&self, request: u32, body: &[u8]) -> Result<(), MachineError> {
        let mut message = [0; MESSAGE_BYTES_MAX];
        let len = HEADER_BYTES + body.len();
        message[0..4].copy_from_slice(&request.to_le_bytes());
        message[4..8].copy_from_slice(&(VERSION | IS_REPLY).to_le_bytes());
        message[8..12].copy_from_slice(&(body.len() as u32).to_le_bytes());
        message[HEADER_BYTES..len].copy_from_slice(body);
        send(&self.socket, &message[..len], SendFlags::NOSIGNAL)
            .map_err(system("writing to an interface"))?;
        Ok(())
    }

    /// Takes every frame that the guest has made ready; true when it wants to know that they are taken (its ring was full).
    pub(crate) fn drain(&mut self, mut sent: impl FnMut(&[u8])) -> Result<bool, MachineError> {
        let Some(guest) = &self.guest else {
            return Ok(false);
        };
        let ring = &mut self.rings[TX];
        let before = self.counts.sent;
        while let Some(head) = ring.take(guest)? {
            self.frame.clear();
            ring.read(guest, head, &mut self.frame)?;
            ring.give(guest, head, 0)?;
            let frame = self.frame.get(NET_HEADER_BYTES..).unwrap_or_default();
            self.counts.sent += 1;
            sent(frame);
        }
        // Mostly not: with napi_tx=0 it looks by itself when it sends again.
        Ok(self.counts.sent > before && ring.publish(guest)?)
    }

    /// Writes a frame into the guest's memory; true when the guest has to look.
    pub(crate) fn deliver(&mut self, frame: &[u8]) -> Result<bool, MachineError> {
        let ring = &mut self.rings[RX];
        let head = match &self.guest {
            Some(guest) => ring.take(guest)?,
            None => None,
        };
        let (Some(guest), Some(head)) = (&self.guest, head) else {
            self.counts.dropped += 1;
            return Ok(false);
        };
        self.frame.clear();
        // Of the header only num_buffers is not zero.
        self.frame.extend_from_slice(&[0; NET_HEADER_BYTES - 2]);
        self.frame.extend_from_slice(&1u16.to_le_bytes());
        self.frame.extend_from_slice(frame);
        let fits = ring.write(guest, head, &self.frame)?;
        let len = if fits { self.frame.len() as u32 } else { 0 };
        ring.give(guest, head, len)?;
        match fits {
            true => self.counts.received += 1,
            false => self.counts.dropped += 1,
        }
        ring.publish(guest)
    }
}
