// SPDX-License-Identifier: Apache-2.0
//! The Internet checksum over the TCP pseudo header (RFC 9293 §3.1, RFC 1071).

const PROTOCOL_TCP: u64 = 6;

/// One's complement sum in a wide accumulator: carries are folded once, at the end (RFC 1071 §2).
#[derive(Clone, Copy)]
pub struct Sum(u64);

impl Sum {
    /// The pseudo header of IPv4: addresses, protocol, length of header and payload in bytes.
    pub fn pseudo_header(src: [u8; 4], dst: [u8; 4], tcp_len: usize) -> Sum {
        let addresses = u64::from(u32::from_be_bytes(src)) + u64::from(u32::from_be_bytes(dst));
        Sum(addresses + PROTOCOL_TCP + tcp_len as u64)
    }

    /// Adds bytes as big-endian words; an odd last byte is padded with zero.
    ///
    /// Sums words in the machine's order (the sum commutes with swapping bytes, RFC 1071 §2B), which the
    /// compiler vectorises.
    pub fn plus(self, bytes: &[u8]) -> Sum {
        let mut native = 0u64;
        let mut words = bytes.chunks_exact(4);
        for word in &mut words {
            native += u64::from(u32::from_ne_bytes([word[0], word[1], word[2], word[3]]));
        }
        let mut tail = [0u8; 4];
        tail[..words.remainder().len()].copy_from_slice(words.remainder());
        native += u64::from(u32::from_ne_bytes(tail));
        Sum(self.0 + u64::from(u16::from_be(fold(native))))
    }

    /// The value for the checksum field; 0 when the field was part of the sum and right.
    pub fn checksum(self) -> u16 {
        !fold(self.0)
    }
}

fn fold(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    fn by_the_book(bytes: &[u8]) -> u16 {
        let mut sum = 0u32;
        for pair in bytes.chunks(2) {
            sum += u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0));
            sum = (sum & 0xffff) + (sum >> 16);
        }
        !(sum as u16)
    }

    #[test]
    fn sums_words_as_rfc_1071_does() {
        assert_eq!(
            Sum(0)
                .plus(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7])
                .checksum(),
            !0xddf2
        );
        let bytes: Vec<u8> = (0..2048u32).map(|i| (i * 167 + 13) as u8).collect();
        for len in [0, 1, 2, 3, 4, 5, 7, 63, 1459, 1460, 2048] {
            assert_eq!(
                Sum(0).plus(&bytes[..len]).checksum(),
                by_the_book(&bytes[..len]),
                "{len} bytes"
            );
        }
    }
}
