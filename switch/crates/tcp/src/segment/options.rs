// SPDX-License-Identifier: Apache-2.0
//! The TCP options that the endpoint knows: MSS, window scale, SACK permitted, SACK, timestamps, error notification.
//!
//! ```text
//!  kind 2 len 4  MSS (RFC 9293 §3.7.1)        SYN only
//!  kind 3 len 3  shift (RFC 7323 §2)          SYN only, behind one NOP
//!  kind 4 len 2  SACK permitted (RFC 2018 §2) SYN only, behind two NOPs
//!  kind 5 len 2+8n  left, right edge (RFC 2018 §3), behind two NOPs
//!  kind 8 len 10 TSval, TSecr (RFC 7323 §3), behind two NOPs
//!  kind 253 len 8  error notification (ENA): experimental, with an identifier (RFC 6994 §3)
//!
//!    0                   1                   2                   3
//!    0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//!   +---------------+---------------+-------------------------------+
//!   |   kind 253    |   length 8    |         ExID 0xEB0A           |
//!   +---------------+---------------+-------------------------------+
//!   |            sequence number of the corrupted segment           |
//!   +---------------------------------------------------------------+
//! ```

use super::ParseError;

/// The room for options in a TCP header, bytes.
pub const MAX_OPTIONS_LEN: usize = 40;
/// The bytes that timestamps take in each segment, NOPs included.
pub const TIMESTAMPS_LEN: usize = 12;
/// The bytes of an error notification.
pub const ENA_LEN: usize = 8;
const ENA_EXID: u16 = 0xEB0A;
const MAX_WINDOW_SCALE: u8 = 14; // RFC 7323 §2.3

mod kind {
    pub const END: u8 = 0;
    pub const NOP: u8 = 1;
    pub const MSS: u8 = 2;
    pub const WINDOW_SCALE: u8 = 3;
    pub const SACK_PERMITTED: u8 = 4;
    pub const SACK: u8 = 5;
    pub const TIMESTAMPS: u8 = 8;
    pub const EXPERIMENT: u8 = 253; // RFC 4727 §5
}

/// Up to four blocks `[left, right)` of received sequence numbers, the newest first (RFC 2018 §4).
#[derive(Clone, Copy, Default)]
pub struct SackBlocks {
    blocks: [(u32, u32); 4],
    len: u8,
}

impl SackBlocks {
    pub const MAX: usize = 4;

    /// Appends a block; false (and nothing appended) when four are there.
    pub fn push(&mut self, left: u32, right: u32) -> bool {
        if usize::from(self.len) == Self::MAX {
            return false;
        }
        self.blocks[usize::from(self.len)] = (left, right);
        self.len += 1;
        true
    }

    pub fn as_slice(&self) -> &[(u32, u32)] {
        &self.blocks[..usize::from(self.len)]
    }

    pub fn len(&self) -> usize {
        usize::from(self.len)
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len as u8);
    }
}

impl FromIterator<(u32, u32)> for SackBlocks {
    /// Blocks beyond the fourth are left out.
    fn from_iter<I: IntoIterator<Item = (u32, u32)>>(blocks: I) -> SackBlocks {
        let mut all = SackBlocks::default();
        for (left, right) in blocks {
            all.push(left, right);
        }
        all
    }
}

impl PartialEq for SackBlocks {
    fn eq(&self, other: &SackBlocks) -> bool {
        self.as_slice() == other.as_slice()
    }
}

impl Eq for SackBlocks {}

impl std::fmt::Debug for SackBlocks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.as_slice().fmt(f)
    }
}

/// The options of one segment.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Options {
    pub mss: Option<u16>,
    pub window_scale: Option<u8>,
    pub sack_permitted: bool,
    pub sack: SackBlocks,
    /// TSval, TSecr.
    pub timestamps: Option<(u32, u32)>,
    /// Error notification: where a segment began that came in with a bad checksum.
    pub ena: Option<u32>,
}

impl Options {
    /// Bytes on the wire, a multiple of four.
    pub fn len(&self) -> usize {
        let mut len = 0;
        len += if self.mss.is_some() { 4 } else { 0 };
        len += if self.window_scale.is_some() { 4 } else { 0 };
        len += if self.sack_permitted { 4 } else { 0 };
        len += if self.timestamps.is_some() {
            TIMESTAMPS_LEN
        } else {
            0
        };
        len += if self.ena.is_some() { ENA_LEN } else { 0 };
        len += if self.sack.is_empty() {
            0
        } else {
            4 + 8 * self.sack.len()
        };
        len
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// SACK blocks that fit beside the other options (RFC 2018 §3: three beside timestamps; an error
    /// notification takes the room of one).
    pub fn sack_room(&self) -> usize {
        let others = Options {
            sack: SackBlocks::default(),
            ..*self
        }
        .len();
        (MAX_OPTIONS_LEN.saturating_sub(others + 4) / 8).min(SackBlocks::MAX)
    }

    /// Writes `len()` bytes to the start of `out`.
    ///
    /// # Panics
    /// When `out` is shorter than `len()`.
    pub fn encode(&self, out: &mut [u8]) {
        let mut at = 0;
        let mut put = |bytes: &[u8]| {
            out[at..at + bytes.len()].copy_from_slice(bytes);
            at += bytes.len();
        };
        if let Some(mss) = self.mss {
            put(&[kind::MSS, 4]);
            put(&mss.to_be_bytes());
        }
        if let Some(shift) = self.window_scale {
            put(&[kind::NOP, kind::WINDOW_SCALE, 3, shift]);
        }
        if self.sack_permitted {
            put(&[kind::NOP, kind::NOP, kind::SACK_PERMITTED, 2]);
        }
        if let Some((value, echo)) = self.timestamps {
            put(&[kind::NOP, kind::NOP, kind::TIMESTAMPS, 10]);
            put(&value.to_be_bytes());
            put(&echo.to_be_bytes());
        }
        if let Some(seq) = self.ena {
            put(&[kind::EXPERIMENT, ENA_LEN as u8]);
            put(&ENA_EXID.to_be_bytes());
            put(&seq.to_be_bytes());
        }
        if !self.sack.is_empty() {
            put(&[
                kind::NOP,
                kind::NOP,
                kind::SACK,
                2 + 8 * self.sack.len() as u8,
            ]);
            for (left, right) in self.sack.as_slice() {
                put(&left.to_be_bytes());
                put(&right.to_be_bytes());
            }
        }
    }

    /// Reads the option bytes of a header; unknown kinds are skipped (RFC 9293 §3.1).
    ///
    /// # Errors
    /// `ParseError::BadOption` for a length that does not fit its kind or the header.
    pub fn parse(mut bytes: &[u8]) -> Result<Options, ParseError> {
        let mut options = Options::default();
        while let Some(&kind) = bytes.first() {
            match kind {
                kind::END => break,
                kind::NOP => {
                    bytes = &bytes[1..];
                    continue;
                }
                _ => {}
            }
            let len = usize::from(*bytes.get(1).ok_or(ParseError::BadOption { kind, len: 0 })?);
            let bad = ParseError::BadOption { kind, len };
            if len < 2 || len > bytes.len() {
                return Err(bad);
            }
            let body = &bytes[2..len];
            match (kind, body.len()) {
                (kind::MSS, 2) => options.mss = Some(u16::from_be_bytes([body[0], body[1]])),
                (kind::WINDOW_SCALE, 1) => {
                    options.window_scale = Some(body[0].min(MAX_WINDOW_SCALE))
                }
                (kind::SACK_PERMITTED, 0) => options.sack_permitted = true,
                (kind::SACK, 8 | 16 | 24 | 32) => {
                    options.sack = body
                        .chunks_exact(8)
                        .map(|block| (be32(block), be32(&block[4..])))
                        .collect();
                }
                (kind::EXPERIMENT, 6) if body[..2] == ENA_EXID.to_be_bytes() => {
                    options.ena = Some(be32(&body[2..]))
                }
                (kind::TIMESTAMPS, 8) => options.timestamps = Some((be32(body), be32(&body[4..]))),
                (
                    kind::MSS
                    | kind::WINDOW_SCALE
                    | kind::SACK_PERMITTED
                    | kind::SACK
                    | kind::TIMESTAMPS,
                    _,
                ) => {
                    return Err(bad);
                }
                _ => {}
            }
            bytes = &bytes[len..];
        }
        Ok(options)
    }
}

fn be32(bytes: &[u8]) -> u32 {
    u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
}
