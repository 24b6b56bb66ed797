// SPDX-License-Identifier: Apache-2.0
//! A TCP segment: its header as values, its payload as a length (the bytes are zeros).
//!
//! [`options`]: what may follow the header.

pub mod options;

use checksum::Sum;
use options::Options;
use std::net::IpAddr;
use std::ops::BitOr;

const PROTOCOL_TCP: u8 = 6;
/// The length of a header without options, bytes.
pub const BASE_HEADER_LEN: usize = 20;

/// Byte ranges of the header (RFC 9293 §3.1).
mod field {
    use std::ops::Range;

    pub const SRC_PORT: Range<usize> = 0..2;
    pub const DST_PORT: Range<usize> = 2..4;
    pub const SEQ: Range<usize> = 4..8;
    pub const ACK: Range<usize> = 8..12;
    pub const DATA_OFFSET: usize = 12;
    pub const FLAGS: usize = 13;
    pub const WINDOW: Range<usize> = 14..16;
    pub const CHECKSUM: Range<usize> = 16..18;
    pub const URGENT: Range<usize> = 18..20;
}

/// Why bytes are no TCP segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ParseError {
    #[error("a TCP header has at least 20 bytes, here are {len}")]
    TooShort { len: usize },
    #[error("data offset of {header_len} bytes does not fit a segment of {len} bytes (allowed: 20 to 60, at most the segment)")]
    BadDataOffset { header_len: usize, len: usize },
    #[error("TCP checksum is wrong (the sum over segment and pseudo header leaves {remainder:#06x}, not 0)")]
    BadChecksum { remainder: u16 },
    #[error("TCP option {kind} has a length of {len} bytes that does not fit")]
    BadOption { kind: u8, len: usize },
}

/// Header fields in host order; `window` unscaled as on the wire; `payload_len` bytes of zeros.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Segment {
    pub src_port: u16,
    pub dst_port: u16,
    pub seq: u32,
    pub ack: u32,
    pub flags: Flags,
    pub window: u16,
    pub options: Options,
    pub payload_len: u32,
    /// Of the IP header that carries it: the host writes it there and takes it from there.
    pub ecn: Ecn,
}

/// The ECN field of an IP header (RFC 3168 §5).
#[repr(u8)]
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Ecn {
    #[default]
    NotEct = 0,
    Ect1 = 1,
    Ect0 = 2,
    /// Congestion experienced: marked on the way.
    Ce = 3,
}

impl Ecn {
    /// Of the last two bits of IPv4's second byte.
    pub const fn from_bits(bits: u8) -> Ecn {
        match bits & 3 {
            0 => Ecn::NotEct,
            1 => Ecn::Ect1,
            2 => Ecn::Ect0,
            _ => Ecn::Ce,
        }
    }
}

/// What can be read of a segment whose checksum is wrong; any of it may be what is wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Damaged {
    pub src_port: u16,
    pub dst_port: u16,
    pub seq: u32,
    /// Sequence numbers that it takes: payload and FIN.
    pub seq_len: u32,
}

impl Damaged {
    /// Reads the header; None when its length does not fit `bytes`.
    pub fn parse(bytes: &[u8]) -> Option<Damaged> {
        if bytes.len() < BASE_HEADER_LEN {
            return None;
        }
        let header_len = usize::from(bytes[field::DATA_OFFSET] >> 4) * 4;
        let payload_len = bytes.len().checked_sub(header_len)?;
        let fin = Flags::from_bits(bytes[field::FLAGS]).fin();
        (header_len >= BASE_HEADER_LEN).then(|| Damaged {
            src_port: be16(&bytes[field::SRC_PORT]),
            dst_port: be16(&bytes[field::DST_PORT]),
            seq: be32(&bytes[field::SEQ]),
            seq_len: payload_len as u32 + u32::from(fin),
        })
    }
}

impl Segment {
    /// Bytes of the header with its options.
    pub fn header_len(&self) -> usize {
        BASE_HEADER_LEN + self.options.len()
    }

    /// Bytes of header and payload: the TCP length of the pseudo header.
    pub fn wire_len(&self) -> usize {
        self.header_len() + self.payload_len as usize
    }

    /// Sequence numbers that the segment takes: payload, plus one each for SYN and FIN.
    pub fn seq_len(&self) -> u32 {
        self.payload_len + u32::from(self.flags.syn()) + u32::from(self.flags.fin())
    }

    /// Writes header (with its checksum) and payload zeros to `out[..wire_len()]`.
    ///
    /// # Panics
    /// When `out` is shorter than `wire_len()`.
    pub fn encode(&self, src: IpAddr, dst: IpAddr, out: &mut [u8]) {
        let (header, payload) = out[..self.wire_len()].split_at_mut(self.header_len());
        self.encode_header(src, dst, header);
        payload.fill(0);
    }

    /// Writes the header alone to `out[..header_len()]`; its checksum holds for a payload of zeros.
    ///
    /// # Panics
    /// When `out` is shorter than `header_len()`.
    pub fn encode_header(&self, src: IpAddr, dst: IpAddr, out: &mut [u8]) {
        let header_len = self.header_len();
        let out = &mut out[..header_len];
        out[field::SRC_PORT].copy_from_slice(&self.src_port.to_be_bytes());
        out[field::DST_PORT].copy_from_slice(&self.dst_port.to_be_bytes());
        out[field::SEQ].copy_from_slice(&self.seq.to_be_bytes());
        out[field::ACK].copy_from_slice(&self.ack.to_be_bytes());
        out[field::DATA_OFFSET] = (header_len as u8 / 4) << 4;
        out[field::FLAGS] = self.flags.bits();
        out[field::WINDOW].copy_from_slice(&self.window.to_be_bytes());
        out[field::CHECKSUM].fill(0);
        out[field::URGENT].fill(0);
        self.options.encode(&mut out[BASE_HEADER_LEN..]);
        let sum = Sum::pseudo_header(src, dst, PROTOCOL_TCP, self.wire_len());
        let checksum = sum.plus(out).finish();
        out[field::CHECKSUM].copy_from_slice(&checksum.to_be_bytes());
    }

    /// Reads a segment that spans all of `bytes`.
    ///
    /// # Errors
    /// `ParseError`: too short, a data offset or an option that does not fit, or a wrong checksum.
    pub fn parse(src: IpAddr, dst: IpAddr, bytes: &[u8]) -> Result<Segment, ParseError> {
        Segment::parse_written(src, dst, bytes, bytes.len())
    }

    /// The same for bytes that are known to be zero behind the first `written`: zeros need not be summed.
    ///
    /// # Errors
    /// As `parse`.
    pub fn parse_written(
        src: IpAddr,
        dst: IpAddr,
        bytes: &[u8],
        written: usize,
    ) -> Result<Segment, ParseError> {
        if bytes.len() < BASE_HEADER_LEN {
            return Err(ParseError::TooShort { len: bytes.len() });
        }
        let sum = Sum::pseudo_header(src, dst, PROTOCOL_TCP, bytes.len());
        let remainder = sum.plus(&bytes[..written.min(bytes.len())]).finish();
        if remainder != 0 {
            return Err(ParseError::BadChecksum { remainder });
        }
        let header_len = usize::from(bytes[field::DATA_OFFSET] >> 4) * 4;
        if header_len < BASE_HEADER_LEN || header_len > bytes.len() {
            return Err(ParseError::BadDataOffset {
                header_len,
                len: bytes.len(),
            });
        }
        Ok(Segment {
            src_port: be16(&bytes[field::SRC_PORT]),
            dst_port: be16(&bytes[field::DST_PORT]),
            seq: be32(&bytes[field::SEQ]),
            ack: be32(&bytes[field::ACK]),
            flags: Flags::from_bits(bytes[field::FLAGS]),
            window: be16(&bytes[field::WINDOW]),
            options: Options::parse(&bytes[BASE_HEADER_LEN..header_len])?,
            payload_len: (bytes.len() - header_len) as u32,
            ecn: Ecn::NotEct,
        })
    }
}

fn be16(bytes: &[u8]) -> u16 {
    u16::from_be_bytes([bytes[0], bytes[1]])
}

fn be32(bytes: &[u8]) -> u32 {
    u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
}

/// The low eight control bits (RFC 9293 §3.1): CWR ECE URG ACK PSH RST SYN FIN.
#[derive(Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct Flags(u8);

impl Flags {
    pub const NONE: Flags = Flags(0);
    pub const FIN: Flags = Flags(0x01);
    pub const SYN: Flags = Flags(0x02);
    pub const RST: Flags = Flags(0x04);
    pub const PSH: Flags = Flags(0x08);
    pub const ACK: Flags = Flags(0x10);
    pub const URG: Flags = Flags(0x20);
    pub const ECE: Flags = Flags(0x40);
    pub const CWR: Flags = Flags(0x80);

    pub const fn from_bits(bits: u8) -> Flags {
        Flags(bits)
    }

    pub const fn bits(self) -> u8 {
        self.0
    }

    /// Whether every bit of `other` is set.
    pub const fn contains(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }

    pub const fn syn(self) -> bool {
        self.contains(Flags::SYN)
    }

    pub const fn ack(self) -> bool {
        self.contains(Flags::ACK)
    }

    pub const fn fin(self) -> bool {
        self.contains(Flags::FIN)
    }

    pub const fn rst(self) -> bool {
        self.contains(Flags::RST)
    }
}

impl BitOr for Flags {
    type Output = Flags;

    fn bitor(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }
}

/// `FIN|ACK`, or `-` when no bit is set.
impl std::fmt::Debug for Flags {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        const NAMES: [&str; 8] = ["FIN", "SYN", "RST", "PSH", "ACK", "URG", "ECE", "CWR"];
        let mut separator = "";
        for (bit, name) in NAMES.iter().enumerate() {
            if self.0 & 1 << bit != 0 {
                write!(f, "{separator}{name}")?;
                separator = "|";
            }
        }
        if self.0 == 0 {
            f.write_str("-")?;
        }
        Ok(())
    }
}
