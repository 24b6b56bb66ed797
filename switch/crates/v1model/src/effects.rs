// SPDX-License-Identifier: Apache-2.0
//! What a packet's controls asked the switch to do; filled by parse, ingress and egress, read and cleared by the device.

use crate::schema::{DigestId, FieldListId};

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
