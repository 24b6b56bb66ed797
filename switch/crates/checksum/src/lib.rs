// SPDX-License-Identifier: Apache-2.0
//! The Internet checksum (RFC 1071) over byte slices, and incrementally over pieces.

#![forbid(unsafe_code)]

use std::net::IpAddr;

/// One's complement sum that pieces of a message are added to in order.
#[derive(Clone, Copy, Default)]
pub struct Sum {
    sum: u64,
    /// An odd number of bytes came so far: the next piece is shifted by one byte.
    odd: bool,
}

impl Sum {
    /// An empty sum.
    #[inline]
    pub fn new() -> Self {
        Sum::default()
    }

    /// The pseudo header of TCP and UDP (RFC 9293 §3.1, RFC 768; over IPv6 RFC 8200 §8.1): addresses, protocol, bytes of
    /// header and payload. The words of both versions have one sum.
    #[inline]
    pub fn pseudo_header(src: IpAddr, dst: IpAddr, protocol: u8, len: usize) -> Self {
        let word = |bytes: [u8; 4]| u64::from(u32::from_ne_bytes(bytes));
        let address = |ip: IpAddr| match ip {
            IpAddr::V4(ip) => word(ip.octets()),
            IpAddr::V6(ip) => sum_native(&ip.octets()),
        };
        let rest = word([0, protocol, 0, 0]) + word((len as u32).to_be_bytes());
        Sum {
            sum: address(src) + address(dst) + rest,
            odd: false,
        }
    }

    /// The sum with a further piece of the message.
    #[inline]
    #[must_use]
    pub fn plus(mut self, data: &[u8]) -> Self {
        self.add(data);
        self
    }

    /// Adds a piece of the message.
    #[inline]
    pub fn add(&mut self, data: &[u8]) {
        let piece = fold(sum_native(data));
        // RFC 1071 §2: a sum that starts at an odd byte is the byte-swapped sum.
        let piece = if self.odd { piece.swap_bytes() } else { piece };
        self.sum += u64::from(piece);
        self.odd ^= data.len() % 2 == 1;
    }

    /// The checksum of all pieces, as the number that stands in the header field.
    #[inline]
    pub fn finish(self) -> u16 {
        !u16::from_be(fold(self.sum))
    }
}

/// The 16-bit one's complement checksum of `data`; an odd last byte is padded with zero. A message that sums to zero
/// gives 0xffff.
#[inline]
pub fn csum16(data: &[u8]) -> u16 {
    !u16::from_be(fold(sum_native(data)))
}

/// Sums 16-bit words in native byte order (RFC 1071 §2: byte-order independence), larger ones at a time: 2^16 is 1
/// modulo 2^16 - 1. Long data goes in four sums of halves, which need no carries and which compilers make vectors of.
#[inline]
fn sum_native(data: &[u8]) -> u64 {
    let word = |bytes: &[u8]| u64::from_ne_bytes(bytes.try_into().expect("eight bytes"));
    let mut lanes = [0u64; 4];
    let mut blocks = data.chunks_exact(32);
    for block in &mut blocks {
        for (lane, bytes) in lanes.iter_mut().zip(block.chunks_exact(8)) {
            let word = word(bytes);
            *lane += (word & 0xffff_ffff) + (word >> 32);
        }
    }
    // Each lane is below 2^33 times the number of blocks.
    let mut sum: u64 = lanes.iter().sum();
    let mut words = blocks.remainder().chunks_exact(8);
    for bytes in &mut words {
        let word = word(bytes);
        sum += (word & 0xffff_ffff) + (word >> 32);
    }
    let rest = words.remainder();
    let (four, rest) = rest.split_at(rest.len() & 4);
    if let Ok(four) = four.try_into() {
        sum += u64::from(u32::from_ne_bytes(four));
    }
    match *rest {
        [a] => sum + u64::from(u16::from_ne_bytes([a, 0])),
        [a, b] => sum + u64::from(u16::from_ne_bytes([a, b])),
        [a, b, c] => {
            sum + u64::from(u16::from_ne_bytes([a, b])) + u64::from(u16::from_ne_bytes([c, 0]))
        }
        _ => sum,
    }
}

#[inline]
fn fold(sum: u64) -> u16 {
    let s = (sum & 0xffff_ffff) + (sum >> 32);
    let s = (s & 0xffff) + ((s >> 16) & 0xffff) + (s >> 32);
    let s = (s & 0xffff) + (s >> 16);
    ((s & 0xffff) + (s >> 16)) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    fn naive(data: &[u8]) -> u16 {
        let mut sum = 0u64;
        for pair in data.chunks(2) {
            sum += u64::from(pair[0]) << 8 | u64::from(*pair.get(1).unwrap_or(&0));
        }
        while sum >> 16 != 0 {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        !(sum as u16)
    }

    #[test]
    fn rfc_1071_example() {
        // RFC 1071 §3: the sum of these words is 0xddf2.
        assert_eq!(
            csum16(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]),
            !0xddf2
        );
    }

    #[test]
    fn ipv4_header_example() {
        let mut h = [
            0x45, 0x00, 0x00, 0x73, 0x00, 0x00, 0x40, 0x00, 0x40, 0x11, 0, 0, 0xc0, 0xa8, 0x00,
            0x01, 0xc0, 0xa8, 0x00, 0xc7,
        ];
        assert_eq!(csum16(&h), 0xb861);
        h[10..12].copy_from_slice(&0xb861u16.to_be_bytes());
        assert_eq!(csum16(&h), 0);
    }

    #[test]
    fn a_pseudo_header_is_the_words_of_the_rfc() {
        let sum = Sum::pseudo_header([10, 0, 0, 1].into(), [10, 0, 3, 2].into(), 6, 0x1_0203);
        let words = [10, 0, 0, 1, 10, 0, 3, 2, 0, 6, 0, 1, 2, 3];
        assert_eq!(sum.finish(), naive(&words));
        // RFC 8200 §8.1: source, destination, length, next header.
        let (src, dst): ([u8; 16], [u8; 16]) = ([0xfd; 16], std::array::from_fn(|i| i as u8));
        let sum = Sum::pseudo_header(src.into(), dst.into(), 17, 0x1_0203);
        let words = [&src[..], &dst, &[0, 1, 2, 3, 0, 0, 0, 17]].concat();
        assert_eq!(sum.finish(), naive(&words));
    }

    #[test]
    fn zeros_give_all_ones() {
        assert_eq!(csum16(&[]), 0xffff);
        assert_eq!(csum16(&[0; 20]), 0xffff);
        assert_eq!(csum16(&[0xff; 20]), 0);
    }

    #[test]
    fn every_length_agrees_with_word_by_word() {
        let data: Vec<u8> = (0..200u32)
            .map(|i| (i * 37 + (i >> 3) * 101) as u8 | 0x80)
            .collect();
        for len in 0..=data.len() {
            assert_eq!(csum16(&data[..len]), naive(&data[..len]), "length {len}");
        }
    }

    #[test]
    fn the_longest_frames_of_all_ones_do_not_overflow() {
        let data = vec![0xff; 65_535];
        for len in [9_000, 65_534, 65_535] {
            assert_eq!(csum16(&data[..len]), naive(&data[..len]), "length {len}");
        }
    }

    #[test]
    fn pieces_of_any_length_add_up() {
        let data: Vec<u8> = (0..97u32).map(|i| (i * 89 + 200) as u8).collect();
        for a in 0..data.len() {
            for b in [a, (a + 1).min(97), (a + 8).min(97), 97] {
                let mut sum = Sum::new();
                sum.add(&data[..a]);
                sum.add(&data[a..b]);
                sum.add(&data[b..]);
                assert_eq!(sum.finish(), naive(&data), "split at {a}, {b}");
            }
        }
    }
}
