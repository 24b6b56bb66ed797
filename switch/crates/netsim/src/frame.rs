// SPDX-License-Identifier: Apache-2.0
//! Ethernet, IPv4 and UDP headers of a host's frames: emit and parse, checksums included. No options, no fragments.
//!
//! ```text
//!  0        6        12     14           34
//!  | dst mac | src mac | 0800 | IPv4 (20)  | TCP or UDP …
//! ```

use std::ops::Range;

use checksum::{csum16, Sum};
use tcp::segment::Ecn;
use tcp::{ParseError, Segment};

mod field {
    use super::Range;
    pub(super) const DST_MAC: Range<usize> = 0..6;
    pub(super) const SRC_MAC: Range<usize> = 6..12;
    pub(super) const ETHER_TYPE: Range<usize> = 12..14;
    // Of IPv4, from its start (RFC 791 §3.1).
    pub(super) const DSCP_ECN: usize = 1;
    pub(super) const TOTAL_LENGTH: Range<usize> = 2..4;
    pub(super) const IDENTIFICATION: Range<usize> = 4..6;
    pub(super) const FLAGS_FRAGMENT: Range<usize> = 6..8;
    pub(super) const TTL: usize = 8;
    pub(super) const PROTOCOL: usize = 9;
    pub(super) const CHECKSUM: Range<usize> = 10..12;
    pub(super) const SRC: Range<usize> = 12..16;
    pub(super) const DST: Range<usize> = 16..20;
}

/// Bytes of the Ethernet header.
pub(crate) const ETHERNET_LEN: usize = 14;
/// Bytes of the IPv4 header.
pub(crate) const IPV4_LEN: usize = 20;
/// Bytes of the UDP header.
pub(crate) const UDP_LEN: usize = 8;
/// Where the transport header starts.
pub(crate) const TRANSPORT: usize = ETHERNET_LEN + IPV4_LEN;
pub(crate) const PROTOCOL_TCP: u8 = 6;
pub(crate) const PROTOCOL_UDP: u8 = 17;

const ETHER_TYPE_IPV4: [u8; 2] = [0x08, 0x00];
const VERSION_IHL: u8 = 0x45;
const DONT_FRAGMENT: [u8; 2] = [0x40, 0x00];
const INITIAL_TTL: u8 = 64;

/// Why a host does not take a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FrameError {
    /// Not IPv4 without options and fragments, or lengths that disagree.
    Malformed,
    /// IPv4 header checksum.
    IpChecksum,
    /// TCP or UDP checksum.
    TransportChecksum,
}

/// What a host writes into the headers of each of its frames.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Headers {
    pub(crate) src_mac: [u8; 6],
    pub(crate) dst_mac: [u8; 6],
    pub(crate) src: [u8; 4],
    pub(crate) dst: [u8; 4],
    pub(crate) protocol: u8,
    pub(crate) identification: u16,
    pub(crate) ecn: Ecn,
}

impl Headers {
    /// Writes Ethernet and IPv4 headers at the start of `frame`, whose length is final.
    #[inline]
    pub(crate) fn emit(&self, frame: &mut [u8]) {
        let total_length = (frame.len() - ETHERNET_LEN) as u16;
        frame[field::DST_MAC].copy_from_slice(&self.dst_mac);
        frame[field::SRC_MAC].copy_from_slice(&self.src_mac);
        frame[field::ETHER_TYPE].copy_from_slice(&ETHER_TYPE_IPV4);
        let ip = &mut frame[ETHERNET_LEN..TRANSPORT];
        ip[0] = VERSION_IHL;
        ip[field::DSCP_ECN] = self.ecn as u8;
        ip[field::TOTAL_LENGTH].copy_from_slice(&total_length.to_be_bytes());
        ip[field::IDENTIFICATION].copy_from_slice(&self.identification.to_be_bytes());
        ip[field::FLAGS_FRAGMENT].copy_from_slice(&DONT_FRAGMENT);
        ip[field::TTL] = INITIAL_TTL;
        ip[field::PROTOCOL] = self.protocol;
        ip[field::CHECKSUM].fill(0);
        ip[field::SRC].copy_from_slice(&self.src);
        ip[field::DST].copy_from_slice(&self.dst);
        let checksum = csum16(ip);
        ip[field::CHECKSUM].copy_from_slice(&checksum.to_be_bytes());
    }
}

/// An IPv4 packet in a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Packet<'a> {
    pub(crate) dst_mac: [u8; 6],
    pub(crate) src: [u8; 4],
    pub(crate) dst: [u8; 4],
    pub(crate) protocol: u8,
    pub(crate) ecn: Ecn,
    /// Transport header and payload, padding cut off.
    pub(crate) body: &'a [u8],
    /// Bytes of the body before those that are known to be zero.
    written: usize,
}

fn four(bytes: &[u8]) -> [u8; 4] {
    [bytes[0], bytes[1], bytes[2], bytes[3]]
}

impl<'a> Packet<'a> {
    /// Reads the headers and verifies the header checksum; the frame is known to be zero behind the first `written` bytes.
    #[inline]
    pub(crate) fn parse(frame: &'a [u8], written: usize) -> Result<Packet<'a>, FrameError> {
        if frame.len() < TRANSPORT || frame[field::ETHER_TYPE] != ETHER_TYPE_IPV4 {
            return Err(FrameError::Malformed);
        }
        let ip = &frame[ETHERNET_LEN..TRANSPORT];
        // The checksum first: a flipped bit in the header is what it is, whatever it looks like.
        if csum16(ip) != 0 {
            return Err(FrameError::IpChecksum);
        }
        let total_length = usize::from(u16::from_be_bytes([ip[2], ip[3]]));
        let end = ETHERNET_LEN + total_length;
        // More fragments, or an offset: not for us.
        let fragment = u16::from_be_bytes([ip[6], ip[7]]) & 0x3fff;
        if ip[0] != VERSION_IHL || fragment != 0 || end > frame.len() || end < TRANSPORT {
            return Err(FrameError::Malformed);
        }
        let mut dst_mac = [0u8; 6];
        dst_mac.copy_from_slice(&frame[field::DST_MAC]);
        Ok(Packet {
            dst_mac,
            src: four(&ip[field::SRC]),
            dst: four(&ip[field::DST]),
            protocol: ip[field::PROTOCOL],
            ecn: Ecn::from_bits(ip[field::DSCP_ECN]),
            body: &frame[TRANSPORT..end],
            written: written.clamp(TRANSPORT, end) - TRANSPORT,
        })
    }

    /// Its TCP segment.
    #[inline]
    pub(crate) fn segment(&self) -> Result<Segment, ParseError> {
        let segment = Segment::parse_written(self.src, self.dst, self.body, self.written);
        segment.map(|segment| Segment {
            ecn: self.ecn,
            ..segment
        })
    }

    /// Source port, destination port and bytes of payload of its UDP datagram; its checksum is verified.
    pub(crate) fn datagram(&self) -> Result<(u16, u16, usize), FrameError> {
        let body = self.body;
        if body.len() < UDP_LEN {
            return Err(FrameError::Malformed);
        }
        let port = |at: usize| u16::from_be_bytes([body[at], body[at + 1]]);
        if body[6..8] != [0, 0] {
            let sum = Sum::pseudo_header(self.src, self.dst, PROTOCOL_UDP, body.len());
            if sum.plus(&body[..self.written]).finish() != 0 {
                return Err(FrameError::TransportChecksum);
            }
        }
        if port(4) != body.len() as u16 {
            return Err(FrameError::Malformed);
        }
        Ok((port(0), port(2), body.len() - UDP_LEN))
    }
}

/// Source, destination and what is behind the IPv4 header of a frame, nothing of it verified; None where it is too short.
#[inline]
pub(crate) fn unverified(frame: &[u8]) -> Option<([u8; 4], [u8; 4], &[u8])> {
    let (headers, body) = frame.split_at_checked(TRANSPORT)?;
    let ip = &headers[ETHERNET_LEN..];
    Some((four(&ip[field::SRC]), four(&ip[field::DST]), body))
}

/// Writes a UDP header in front of a payload of zeros; `out` is header and payload.
pub(crate) fn emit_udp(src: [u8; 4], dst: [u8; 4], ports: (u16, u16), out: &mut [u8]) {
    let len = out.len() as u16;
    out[0..2].copy_from_slice(&ports.0.to_be_bytes());
    out[2..4].copy_from_slice(&ports.1.to_be_bytes());
    out[4..6].copy_from_slice(&len.to_be_bytes());
    out[6..8].fill(0);
    // Zeros add nothing to the sum.
    let sum = Sum::pseudo_header(src, dst, PROTOCOL_UDP, out.len()).plus(&out[..UDP_LEN]);
    let checksum = match sum.finish() {
        0 => 0xffff, // RFC 768: zero means none
        checksum => checksum,
    };
    out[6..8].copy_from_slice(&checksum.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: [u8; 4] = [10, 0, 1, 1];
    const B: [u8; 4] = [10, 0, 3, 1];

    fn datagram(payload: usize) -> Vec<u8> {
        let mut frame = vec![0u8; TRANSPORT + UDP_LEN + payload];
        let headers = Headers {
            src_mac: [8, 0, 0, 0, 0, 1],
            dst_mac: [8, 0, 0, 0, 0xff, 1],
            src: A,
            dst: B,
            protocol: PROTOCOL_UDP,
            identification: 7,
            ecn: Ecn::Ect0,
        };
        headers.emit(&mut frame);
        emit_udp(A, B, (1000, 2000), &mut frame[TRANSPORT..]);
        frame
    }

    #[test]
    fn what_was_emitted_is_parsed() {
        for payload in [0, 1, 2, 3, 957] {
            let frame = datagram(payload);
            for written in [TRANSPORT + UDP_LEN, frame.len()] {
                let packet = Packet::parse(&frame, written).unwrap();
                assert_eq!((packet.src, packet.dst, packet.ecn), (A, B, Ecn::Ect0));
                assert_eq!(packet.datagram(), Ok((1000, 2000, payload)));
            }
        }
    }

    #[test]
    fn padding_is_cut_off() {
        let mut frame = datagram(1);
        frame.resize(60, 0xaa);
        let packet = Packet::parse(&frame, frame.len()).unwrap();
        assert_eq!(packet.datagram(), Ok((1000, 2000, 1)));
    }

    /// A checksum finds every single flipped bit behind the Ethernet header.
    #[test]
    fn every_flipped_bit_is_found() {
        let good = datagram(20);
        for bit in ETHERNET_LEN * 8..good.len() * 8 {
            let mut frame = good.clone();
            frame[bit / 8] ^= 0x80 >> (bit % 8);
            let taken = Packet::parse(&frame, frame.len()).and_then(|packet| packet.datagram());
            assert!(taken.is_err(), "bit {bit}");
        }
    }
}
