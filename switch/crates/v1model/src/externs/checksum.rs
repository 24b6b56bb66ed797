// SPDX-License-Identifier: Apache-2.0
//! The Internet checksum (RFC 1071) over byte slices, and incrementally over pieces.

/// One's complement sum that pieces of a message are added to in order.
#[derive(Clone, Copy, Default)]
pub struct Sum {
    sum: u64,
    /// An odd number of bytes came so far: the next piece is shifted by one byte.
    odd: bool,
}

impl Sum {
    #[inline]
    pub fn new() -> Self {
        Sum::default()
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

/// Sums 16-bit words in native byte order, eight bytes a step (RFC 1071 §2: byte-order independence).
#[inline]
fn sum_native(data: &[u8]) -> u64 {
    let mut sum = 0u64;
    let mut chunks = data.chunks_exact(8);
    for chunk in &mut chunks {
        let word = u64::from_ne_bytes(chunk.try_into().expect("eight bytes"));
        let (s, carry) = sum.overflowing_add(word);
        sum = s + u64::from(carry);
    }
    let rest = chunks.remainder();
    if !rest.is_empty() {
        let mut tail = [0u8; 8];
        tail[..rest.len()].copy_from_slice(rest);
        let (s, carry) = sum.overflowing_add(u64::from_ne_bytes(tail));
        sum = s + u64::from(carry);
    }
    sum
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
        for len in 0..data.len() {
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
