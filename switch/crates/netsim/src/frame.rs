// SPDX-License-Identifier: Apache-2.0
//! Ethernet, IPv4, IPv6 and UDP headers of a host's frames: emit and parse, checksums included. No options, no extension
//! headers, no fragments.
//!
//! ```text
//!  0        6        12     14           34 or 54
//!  | dst mac | src mac | 0800 | IPv4 (20)  | TCP or UDP …
//!                      | 86dd | IPv6 (40)  |
//! ```

use std::net::{IpAddr, SocketAddr};
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
    // Of IPv6, from its start (RFC 8200 §3).
    pub(super) const TRAFFIC_CLASS: Range<usize> = 0..2;
    pub(super) const PAYLOAD_LENGTH: Range<usize> = 4..6;
    pub(super) const NEXT_HEADER: usize = 6;
    pub(super) const HOP_LIMIT: usize = 7;
    pub(super) const SRC_V6: Range<usize> = 8..24;
    pub(super) const DST_V6: Range<usize> = 24..40;
}

/// Bytes of the Ethernet header.
pub(crate) const ETHERNET_LEN: usize = 14;
/// Bytes of the IPv4 header.
pub(crate) const IPV4_LEN: usize = 20;
/// Bytes of the IPv6 header.
pub(crate) const IPV6_LEN: usize = 40;
/// Bytes of the UDP header.
pub(crate) const UDP_LEN: usize = 8;
pub(crate) const PROTOCOL_TCP: u8 = 6;
pub(crate) const PROTOCOL_UDP: u8 = 17;

const ETHER_TYPE_IPV4: [u8; 2] = [0x08, 0x00];
const ETHER_TYPE_IPV6: [u8; 2] = [0x86, 0xdd];
const VERSION_IHL: u8 = 0x45;
const VERSION_6: u16 = 6 << 12;
const DONT_FRAGMENT: [u8; 2] = [0x40, 0x00];
const INITIAL_TTL: u8 = 64;

/// Why a host does not take a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FrameError {
    /// Not IP without options, extension headers and fragments, or lengths that disagree.
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
    /// Both of one version.
    pub(crate) src: IpAddr,
    pub(crate) dst: IpAddr,
    pub(crate) protocol: u8,
    pub(crate) identification: u16,
    pub(crate) ecn: Ecn,
}

/// Where the transport header starts behind an IP header with this address.
#[inline]
pub(crate) const fn transport(ip: IpAddr) -> usize {
    match ip {
        IpAddr::V4(_) => ETHERNET_LEN + IPV4_LEN,
        IpAddr::V6(_) => ETHERNET_LEN + IPV6_LEN,
    }
}

impl Headers {
    /// Writes Ethernet and IP headers at the start of `frame`, whose length is final.
    #[inline]
    pub(crate) fn emit(&self, frame: &mut [u8]) {
        let total_length = (frame.len() - ETHERNET_LEN) as u16;
        let (ethernet, ip) = frame.split_at_mut(ETHERNET_LEN);
        ethernet[field::DST_MAC].copy_from_slice(&self.dst_mac);
        ethernet[field::SRC_MAC].copy_from_slice(&self.src_mac);
        let (IpAddr::V4(src), IpAddr::V4(dst)) = (self.src, self.dst) else {
            ethernet[field::ETHER_TYPE].copy_from_slice(&ETHER_TYPE_IPV6);
            return self.emit_ipv6(ip);
        };
        ethernet[field::ETHER_TYPE].copy_from_slice(&ETHER_TYPE_IPV4);
        let ip = &mut ip[..IPV4_LEN];
        ip[0] = VERSION_IHL;
        ip[field::DSCP_ECN] = self.ecn as u8;
        ip[field::TOTAL_LENGTH].copy_from_slice(&total_length.to_be_bytes());
        ip[field::IDENTIFICATION].copy_from_slice(&self.identification.to_be_bytes());
        ip[field::FLAGS_FRAGMENT].copy_from_slice(&DONT_FRAGMENT);
        ip[field::TTL] = INITIAL_TTL;
        ip[field::PROTOCOL] = self.protocol;
        ip[field::CHECKSUM].fill(0);
        ip[field::SRC].copy_from_slice(&src.octets());
        ip[field::DST].copy_from_slice(&dst.octets());
        let checksum = csum16(ip);
        ip[field::CHECKSUM].copy_from_slice(&checksum.to_be_bytes());
    }

    #[inline(never)]
    fn emit_ipv6(&self, packet: &mut [u8]) {
        let payload_length = (packet.len() - IPV6_LEN) as u16;
        let ip = &mut packet[..IPV6_LEN];
        let traffic_class = VERSION_6 | (self.ecn as u16) << 4;
        ip[field::TRAFFIC_CLASS].copy_from_slice(&traffic_class.to_be_bytes());
        ip[field::PAYLOAD_LENGTH].copy_from_slice(&payload_length.to_be_bytes());
        ip[field::NEXT_HEADER] = self.protocol;
        ip[field::HOP_LIMIT] = INITIAL_TTL;
        for (field, address) in [(field::SRC_V6, self.src), (field::DST_V6, self.dst)] {
            if let IpAddr::V6(address) = address {
                ip[field].copy_from_slice(&address.octets());
            }
        }
    }
}

/// An IP packet in a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Packet<'a> {
    pub(crate) dst_mac: [u8; 6],
    pub(crate) src: IpAddr,
    pub(crate) dst: IpAddr,
    pub(crate) protocol: u8,
    pub(crate) ecn: Ecn,
    /// Transport header and payload, padding cut off.
    pub(crate) body: &'a [u8],
    /// Bytes of the body before those that are known to be zero.
    written: usize,
}

/// The IP address that is all of `bytes`, 4 or 16.
#[inline]
fn address(bytes: &[u8]) -> IpAddr {
    match <[u8; 4]>::try_from(bytes) {
        Ok(octets) => octets.into(),
        Err(_) => <[u8; 16]>::try_from(bytes).unwrap_or_default().into(),
    }
}

impl<'a> Packet<'a> {
    /// Reads the headers and verifies the header checksum; the frame is known to be zero behind the first `written` bytes.
    #[inline]
    pub(crate) fn parse(frame: &'a [u8], written: usize) -> Result<Packet<'a>, FrameError> {
        if frame.len() < ETHERNET_LEN + IPV4_LEN || frame[field::ETHER_TYPE] != ETHER_TYPE_IPV4 {
            return Packet::parse_ipv6(frame, written);
        }
        let ip = &frame[ETHERNET_LEN..ETHERNET_LEN + IPV4_LEN];
        // The checksum first: a flipped bit in the header is what it is, whatever it looks like.
        if csum16(ip) != 0 {
            return Err(FrameError::IpChecksum);
        }
        let total_length = usize::from(u16::from_be_bytes([ip[2], ip[3]]));
        let end = ETHERNET_LEN + total_length;
        // More fragments, or an offset: not for us.
        let fragment = u16::from_be_bytes([ip[6], ip[7]]) & 0x3fff;
        let start = ETHERNET_LEN + IPV4_LEN;
        if ip[0] != VERSION_IHL || fragment != 0 || end > frame.len() || end < start {
            return Err(FrameError::Malformed);
        }
        let ends = (address(&ip[field::SRC]), address(&ip[field::DST]));
        let (protocol, ecn) = (ip[field::PROTOCOL], ip[field::DSCP_ECN]);
        Ok(Packet::new(frame, ends, protocol, ecn, start..end, written))
    }

    #[inline(never)]
    fn parse_ipv6(frame: &'a [u8], written: usize) -> Result<Packet<'a>, FrameError> {
        const START: usize = ETHERNET_LEN + IPV6_LEN;
        if frame.len() < START || frame[field::ETHER_TYPE] != ETHER_TYPE_IPV6 {
            return Err(FrameError::Malformed);
        }
        let ip = &frame[ETHERNET_LEN..START];
        let end = START + usize::from(u16::from_be_bytes([ip[4], ip[5]]));
        if ip[0] >> 4 != 6 || end > frame.len() {
            return Err(FrameError::Malformed);
        }
        let ends = (address(&ip[field::SRC_V6]), address(&ip[field::DST_V6]));
        let (protocol, ecn) = (ip[field::NEXT_HEADER], ip[1] >> 4);
        Ok(Packet::new(frame, ends, protocol, ecn, START..end, written))
    }

    #[inline]
    fn new(
        frame: &'a [u8],
        (src, dst): (IpAddr, IpAddr),
        protocol: u8,
        ecn: u8,
        body: Range<usize>,
        written: usize,
    ) -> Packet<'a> {
        let mut dst_mac = [0u8; 6];
        dst_mac.copy_from_slice(&frame[field::DST_MAC]);
        Packet {
            dst_mac,
            src,
            dst,
            protocol,
            ecn: Ecn::from_bits(ecn),
            written: written.clamp(body.start, body.end) - body.start,
            body: &frame[body],
        }
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

/// Source, destination and what is behind the IP header of a frame, nothing of it verified; None where it is too short.
#[inline]
pub(crate) fn unverified(frame: &[u8]) -> Option<(IpAddr, IpAddr, &[u8])> {
    let (ethernet, packet) = frame.split_at_checked(ETHERNET_LEN)?;
    let (len, src, dst) = match ethernet[field::ETHER_TYPE] == ETHER_TYPE_IPV6 {
        false => (IPV4_LEN, field::SRC, field::DST),
        true => (IPV6_LEN, field::SRC_V6, field::DST_V6),
    };
    let (ip, body) = packet.split_at_checked(len)?;
    Some((address(&ip[src]), address(&ip[dst]), body))
}

/// Writes a UDP header in front of a payload of zeros; `out` is header and payload.
pub(crate) fn emit_udp(src: SocketAddr, dst: SocketAddr, out: &mut [u8]) {
    let len = out.len() as u16;
    out[0..2].copy_from_slice(&src.port().to_be_bytes());
    out[2..4].copy_from_slice(&dst.port().to_be_bytes());
    out[4..6].copy_from_slice(&len.to_be_bytes());
    out[6..8].fill(0);
    // Zeros add nothing to the sum.
    let sum = Sum::pseudo_header(src.ip(), dst.ip(), PROTOCOL_UDP, out.len());
    let checksum = match sum.plus(&out[..UDP_LEN]).finish() {
        0 => 0xffff, // RFC 768: zero means none
        checksum => checksum,
    };
    out[6..8].copy_from_slice(&checksum.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Both ends, of IPv4 and of IPv6.
    fn ends() -> [(SocketAddr, SocketAddr); 2] {
        let end = |text: &str| text.parse().unwrap();
        [
            (end("10.0.1.1:1000"), end("10.0.3.1:2000")),
            (end("[fd00::a00:101]:1000"), end("[fd00::a00:301]:2000")),
        ]
    }

    fn datagram((src, dst): (SocketAddr, SocketAddr), payload: usize) -> Vec<u8> {
        let start = transport(src.ip());
        let mut frame = vec![0u8; start + UDP_LEN + payload];
        let headers = Headers {
            src_mac: [8, 0, 0, 0, 0, 1],
            dst_mac: [8, 0, 0, 0, 0xff, 1],
            src: src.ip(),
            dst: dst.ip(),
            protocol: PROTOCOL_UDP,
            identification: 7,
            ecn: Ecn::Ect0,
        };
        headers.emit(&mut frame);
        emit_udp(src, dst, &mut frame[start..]);
        frame
    }

    #[test]
    fn what_was_emitted_is_parsed() {
        for (src, dst) in ends() {
            for payload in [0, 1, 2, 3, 957] {
                let frame = datagram((src, dst), payload);
                for written in [transport(src.ip()) + UDP_LEN, frame.len()] {
                    let packet = Packet::parse(&frame, written).unwrap();
                    let seen = (packet.src, packet.dst, packet.ecn);
                    assert_eq!(seen, (src.ip(), dst.ip(), Ecn::Ect0));
                    assert_eq!(packet.datagram(), Ok((1000, 2000, payload)));
                    let (found, _, body) = unverified(&frame).unwrap();
                    assert_eq!((found, body), (src.ip(), packet.body));
                }
            }
        }
    }

    #[test]
    fn padding_is_cut_off() {
        for ends in ends() {
            let mut frame = datagram(ends, 1);
            frame.resize(70, 0xaa);
            let packet = Packet::parse(&frame, frame.len()).unwrap();
            assert_eq!(packet.datagram(), Ok((1000, 2000, 1)));
        }
    }

    /// A checksum finds every single flipped bit behind the Ethernet header; in IPv6 none covers traffic class, flow label and hop
    /// limit, and another next header is another protocol.
    #[test]
    fn every_flipped_bit_is_found() {
        for ends in ends() {
            let good = datagram(ends, 20);
            for bit in ETHERNET_LEN * 8..good.len() * 8 {
                let of_ip = bit - ETHERNET_LEN * 8;
                let is_covered = ends.0.is_ipv4() || !matches!(of_ip, 4..32 | 48..64);
                let mut frame = good.clone();
                frame[bit / 8] ^= 0x80 >> (bit % 8);
                let taken = Packet::parse(&frame, frame.len()).and_then(|packet| packet.datagram());
                assert_eq!(taken.is_err(), is_covered, "bit {bit}");
            }
        }
    }

    /// RFC 8200 §3: 6, ECT(0) in the traffic class, the length without the header, UDP, 64 hops.
    #[test]
    fn an_ipv6_header_is_that_of_the_rfc() {
        let frame = datagram(ends()[1], 20);
        assert_eq!(frame[12..22], [0x86, 0xdd, 0x60, 0x20, 0, 0, 0, 28, 17, 64]);
        for cut in 0..frame.len() {
            let parsed = Packet::parse(&frame[..cut], cut);
            assert_eq!(parsed, Err(FrameError::Malformed), "{cut} bytes");
        }
    }
}
