// SPDX-License-Identifier: Apache-2.0
//! `Packet`: frame bytes plus the packet header vector of one pipeline; recycled, never reallocated in steady state.
//!
//! What a packet's controls asked the switch to do; filled by parse, ingress and egress, read and cleared by the device.

use std::ptr;

use crate::compile::ProgramId;
use crate::schema::{DigestId, FieldListId};

/// Bytes kept free before the frame, so that a longer header stack can be written without moving the payload.
pub(crate) const HEADROOM: usize = 256;
/// Bytes kept readable behind the frame, so that a field can be loaded by one 16-byte read.
pub(crate) const TAILROOM: usize = 16;

/// Of `Packet::extracted`: not as the deparser emits them.
pub(crate) const OUT_OF_ORDER: u64 = u64::MAX;

/// A frame with the room around it that a `Packet` keeps: given to a packet and taken from it without a copy. What nobody
/// has written since it was zero is known to be zero, so that a payload of zeros is neither written nor summed again.
#[derive(Clone, Debug)]
pub struct FrameBuffer {
    /// Headroom, frame, tailroom.
    pub(crate) bytes: Vec<u8>,
    pub(crate) start: usize,
    pub(crate) end: usize,
    /// Where in `bytes` begins what is zero.
    pub(crate) zeros_from: usize,
}

impl Default for FrameBuffer {
    fn default() -> FrameBuffer {
        FrameBuffer {
            bytes: vec![0; HEADROOM + 2048 + TAILROOM],
            start: HEADROOM,
            end: HEADROOM,
            zeros_from: 0,
        }
    }
}

impl FrameBuffer {
    fn place(&mut self, len: usize) {
        let need = HEADROOM + len + TAILROOM;
        if self.bytes.len() < need {
            self.bytes.resize(need, 0);
        }
        (self.start, self.end) = (HEADROOM, HEADROOM + len);
    }

    /// Makes it a copy of `frame`.
    pub fn load(&mut self, frame: &[u8]) {
        self.place(frame.len());
        self.bytes[self.start..self.end].copy_from_slice(frame);
        self.zeros_from = self.zeros_from.max(self.end);
    }

    /// Makes it a frame of `len` zeros, of which the caller writes none but the first `written`.
    #[inline]
    pub fn zeros(&mut self, len: usize, written: usize) -> &mut [u8] {
        self.place(len);
        if let Some(used) = self.bytes.get_mut(self.start..self.zeros_from) {
            used.fill(0);
        }
        debug_assert!(self.bytes[self.start..].iter().all(|byte| *byte == 0));
        self.zeros_from = self.start + written.min(len);
        &mut self.bytes[self.start..self.end]
    }

    /// Bytes of the frame before those that are known to be zero.
    #[inline]
    pub fn written(&self) -> usize {
        self.zeros_from.clamp(self.start, self.end) - self.start
    }
}

impl AsRef<[u8]> for FrameBuffer {
    /// The frame.
    #[inline]
    fn as_ref(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }
}

impl AsMut<[u8]> for FrameBuffer {
    /// The frame, no byte of which is known to be zero from here on.
    #[inline]
    fn as_mut(&mut self) -> &mut [u8] {
        self.zeros_from = self.zeros_from.max(self.end);
        &mut self.bytes[self.start..self.end]
    }
}

/// A packet in flight: its frame and its header vector. Made by `Pipeline::new_packet`; belongs to that pipeline.
#[derive(Clone, Debug)]
pub struct Packet {
    pub(crate) program: ProgramId,
    pub(crate) buffer: FrameBuffer,
    /// Bytes of the frame that the parser consumed: the payload starts at `start + parsed`.
    pub(crate) parsed: usize,
    /// The headers that these bytes are, by their places in the deparser, one bit each, while they lie in its order;
    /// else `OUT_OF_ORDER`.
    pub(crate) extracted: u64,
    /// Constants, fields, validity, args, temporaries: see `compile::layout`.
    pub(crate) slots: Box<[u64]>,
    /// Length limit of `truncate`, bytes.
    pub(crate) truncate_bytes: u32,
    /// `standard_metadata.packet_length` at reception, kept up to date as BMv2's length register.
    pub(crate) length_bytes: u32,
    /// Length of the frame as received: what counters and meters count (as in BMv2, in egress too).
    pub(crate) ingress_bytes: u32,
}

/// Addresses of a packet, by which its cache lines are asked for; nothing is read by them.
#[derive(Clone, Copy, Debug)]
pub struct PacketAddresses {
    pub(crate) packet: usize,
    pub(crate) slots: usize,
    pub(crate) frame: usize,
}

impl Packet {
    pub(crate) fn with_slots(slots: Box<[u64]>, program: ProgramId) -> Packet {
        Packet {
            program,
            buffer: FrameBuffer::default(),
            parsed: 0,
            extracted: 0,
            slots,
            truncate_bytes: u32::MAX,
            length_bytes: 0,
            ingress_bytes: 0,
        }
    }

    /// Where it lies until it is moved or its frame exchanged: for `Pipeline::prefetch`.
    #[inline]
    pub fn addresses(&self) -> PacketAddresses {
        PacketAddresses {
            packet: ptr::from_ref(self).addr(),
            slots: self.slots.as_ptr().addr(),
            frame: self.frame().as_ptr().addr(),
        }
    }

    /// The program whose packet it is; no other may run on it.
    #[inline]
    pub fn program_id(&self) -> ProgramId {
        self.program
    }

    /// Takes a received frame: the bytes are copied. Call `Pipeline::reset` for the header vector.
    pub fn load(&mut self, frame: &[u8]) {
        self.buffer.load(frame);
        self.loaded();
    }

    /// Takes a received frame as `load` does, but without a copy: the buffer is the packet's from here on, and `frame` has
    /// the packet's frame.
    #[inline]
    pub fn exchange(&mut self, frame: &mut FrameBuffer) {
        std::mem::swap(&mut self.buffer, frame);
        self.loaded();
    }

    #[inline]
    fn loaded(&mut self) {
        self.parsed = 0;
        self.extracted = 0;
        self.truncate_bytes = u32::MAX;
        self.length_bytes = self.frame_len() as u32;
        self.ingress_bytes = self.frame_len() as u32;
    }

    /// The frame: as received until `Pipeline::deparse`, as to be sent afterwards (truncation applied).
    #[inline]
    pub fn frame(&self) -> &[u8] {
        self.buffer.as_ref()
    }

    /// Length of `frame()` in bytes.
    #[inline]
    pub fn frame_len(&self) -> usize {
        self.buffer.end - self.buffer.start
    }

    /// Length that `standard_metadata.packet_length` gets next: as received, changed by headers added or removed.
    #[inline]
    pub fn length_bytes(&self) -> u32 {
        self.length_bytes
    }

    /// Bytes that it takes in a queue: that length, or less where it is to be cut.
    #[inline]
    pub fn queue_bytes(&self) -> u32 {
        // As in BMv2 a header assigned to another adds nothing: removed again, it may leave less than nothing.
        let length = u32::try_from(self.length_bytes as i32).unwrap_or(0);
        length.min(self.truncate_bytes)
    }

    /// What the parser left unparsed.
    #[inline]
    pub fn payload(&self) -> &[u8] {
        &self.frame()[self.parsed..]
    }

    /// Cuts what `deparse` will emit to at most `bytes` (`truncate` of a program, or a clone session's length).
    pub fn truncate(&mut self, bytes: u32) {
        self.truncate_bytes = bytes;
    }

    /// Makes this packet an equal copy of `other` (frame, headers, metadata), both of the same pipeline.
    pub fn copy_from(&mut self, other: &Packet) {
        self.copy_frame_from(other);
        self.parsed = other.parsed;
        self.extracted = other.extracted;
        self.truncate_bytes = other.truncate_bytes;
        self.length_bytes = other.length_bytes;
        self.ingress_bytes = other.ingress_bytes;
        self.slots.copy_from_slice(&other.slots);
    }

    /// Takes the frame of `other` only, as if it had just been received.
    pub fn copy_frame_from(&mut self, other: &Packet) {
        self.load(other.frame());
    }
}

/// A `clone` or `clone_preserving_field_list`; the last call of a control wins, as in BMv2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CloneRequest {
    /// Clone session (PRE) to send the copy to.
    pub session: u32,
    /// Fields that the copy keeps.
    pub field_list: Option<FieldListId>,
}

/// A `resubmit` or `recirculate`, with the fields to keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Again {
    /// Fields that the packet keeps in its next round.
    pub field_list: Option<FieldListId>,
}

/// Requests of one packet; reused from packet to packet.
#[derive(Debug, Default)]
pub struct Effects {
    /// `clone` (I2E when set by ingress, E2E when set by egress).
    pub clone: Option<CloneRequest>,
    /// `resubmit_preserving_field_list`, ingress only.
    pub resubmit: Option<Again>,
    /// `recirculate_preserving_field_list`, egress only.
    pub recirculate: Option<Again>,
    /// An `assert` or `assume` failed: the packet must be dropped and counted.
    pub assertion_failed: bool,
    /// The parser went round a loop too often: the packet has the error ParserTimeout.
    pub parser_timed_out: bool,
    /// A control or deparser did: the packet must be dropped and counted.
    pub timed_out: bool,
    /// Digest samples, values as they were at the end of ingress.
    pub digests: DigestSink,
    /// Lines of `log_msg` and failed assertions.
    pub log: LogSink,
}

impl Effects {
    /// Buffers of the sinks allocated, log off.
    pub fn new() -> Effects {
        Effects {
            digests: DigestSink::with_capacity(16, 4096),
            ..Effects::default()
        }
    }

    /// Forgets everything, keeps capacity.
    #[inline]
    pub fn clear(&mut self) {
        self.clone = None;
        self.resubmit = None;
        self.recirculate = None;
        self.assertion_failed = false;
        self.parser_timed_out = false;
        self.timed_out = false;
        self.digests.clear();
        self.log.clear();
    }
}

/// Digest samples of one packet in one buffer.
#[derive(Debug, Default)]
pub struct DigestSink {
    ends: Vec<(DigestId, u32)>,
    bytes: Vec<u8>,
}

impl DigestSink {
    /// Room for `samples` samples of `bytes` bytes in all before memory is allocated.
    pub fn with_capacity(samples: usize, bytes: usize) -> DigestSink {
        DigestSink {
            ends: Vec::with_capacity(samples),
            bytes: Vec::with_capacity(bytes),
        }
    }

    /// Samples in order: the digest and its members, each ceil(width/8) bytes big-endian, one after another.
    pub fn iter(&self) -> impl Iterator<Item = (DigestId, &[u8])> {
        let mut start = 0usize;
        self.ends.iter().map(move |&(id, end)| {
            let sample = &self.bytes[start..end as usize];
            start = end as usize;
            (id, sample)
        })
    }

    /// True when no sample was taken.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Adds a sample that `write` appends to the buffer.
    pub fn push_with(&mut self, id: DigestId, write: impl FnOnce(&mut Vec<u8>)) {
        write(&mut self.bytes);
        self.ends.push((id, self.bytes.len() as u32));
    }

    /// Forgets the samples.
    #[inline]
    pub fn clear(&mut self) {
        self.ends.clear();
        self.bytes.clear();
    }
}

/// Most bytes of log text that one packet may leave between two `clear`s.
pub const LOG_BYTES_MAX: usize = 16 * 1024;

/// Text of `log_msg`; formats nothing unless `enabled`.
#[derive(Debug, Default)]
pub struct LogSink {
    /// Set by who wants the lines.
    pub enabled: bool,
    text: String,
}

impl LogSink {
    /// Lines so far, each ended by a newline.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Appends one line; silently ends at `LOG_BYTES_MAX`.
    pub fn line(&mut self, write: impl FnOnce(&mut String)) {
        if self.enabled && self.text.len() < LOG_BYTES_MAX {
            write(&mut self.text);
            self.text.push('\n');
        }
    }

    /// Forgets the lines.
    #[inline]
    pub fn clear(&mut self) {
        self.text.clear();
    }
}
