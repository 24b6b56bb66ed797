// SPDX-License-Identifier: Apache-2.0
//! The hash algorithms of v1model and BMv2 by their names in BMv2 JSON.

use super::crc::{Crc, CRC16, CRC32, CRC64_CUSTOM, CRC8_CUSTOM, CRC_CCITT};
use super::random::Random;
use checksum::csum16;

/// A hash with its tables and state, made once per calculation when a program is loaded.
#[derive(Clone)]
pub struct Hash(Kind);

#[derive(Clone)]
enum Kind {
    Crc(Crc),
    Csum16,
    Xor16,
    Xor32,
    Identity,
    Xxh64,
    Random(Random),
    RoundRobin(u64),
}

impl Hash {
    /// The names that [`Hash::from_name`] knows.
    pub const NAMES: [&'static str; 15] = [
        "crc8_custom",
        "crc16",
        "crc16_custom",
        "crcCCITT",
        "crc32",
        "crc32_custom",
        "crc64_custom",
        "csum16",
        "cksum16",
        "identity",
        "random",
        "round_robin",
        "xor16",
        "xor32",
        "xxh64",
    ];

    /// The algorithm of this name in BMv2 JSON; `random` takes its numbers from `stream`. `None` for an unknown name.
    pub fn from_name(name: &str, stream: Random) -> Option<Hash> {
        let kind = match name {
            "crc16" | "crc16_custom" => Kind::Crc(Crc::new(CRC16)),
            "crc32" | "crc32_custom" => Kind::Crc(Crc::new(CRC32)),
            "crcCCITT" => Kind::Crc(Crc::new(CRC_CCITT)),
            "crc8_custom" => Kind::Crc(Crc::new(CRC8_CUSTOM)),
            "crc64_custom" => Kind::Crc(Crc::new(CRC64_CUSTOM)),
            "csum16" | "cksum16" => Kind::Csum16,
            "xor16" => Kind::Xor16,
            "xor32" => Kind::Xor32,
            "identity" => Kind::Identity,
            "xxh64" => Kind::Xxh64,
            "random" => Kind::Random(stream),
            "round_robin" => Kind::RoundRobin(0),
            _ => return None,
        };
        Some(Hash(kind))
    }

    /// The hash of `data` as a number.
    #[inline]
    pub fn compute(&mut self, data: &[u8]) -> u64 {
        match &mut self.0 {
            Kind::Csum16 => u64::from(csum16(data)),
            Kind::Crc(crc) => crc.compute(data),
            Kind::Xor16 => xor_words::<2>(data),
            Kind::Xor32 => xor_words::<4>(data),
            Kind::Identity => identity(data),
            Kind::Xxh64 => twox_hash::XxHash64::oneshot(0, data),
            Kind::Random(random) => random.next_u64(),
            Kind::RoundRobin(next) => {
                let this = *next;
                *next = next.wrapping_add(1);
                this
            }
        }
    }
}

/// Exclusive or of big-endian words of `N` bytes; the last one is padded with zeros at its end.
fn xor_words<const N: usize>(data: &[u8]) -> u64 {
    let mut result = 0u64;
    for chunk in data.chunks(N) {
        let mut word = 0u64;
        for i in 0..N {
            word = word << 8 | u64::from(chunk.get(i).copied().unwrap_or(0));
        }
        result ^= word;
    }
    result
}

/// The first eight bytes as a big-endian number; fewer bytes are the number that they spell.
fn identity(data: &[u8]) -> u64 {
    data.iter().take(8).fold(0, |n, &b| n << 8 | u64::from(b))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(name: &str, data: &[u8]) -> u64 {
        Hash::from_name(name, Random::new(1))
            .unwrap_or_else(|| panic!("{name} is unknown"))
            .compute(data)
    }

    #[test]
    fn known_values() {
        let data = b"123456789";
        assert_eq!(hash("crc16", data), 0xbb3d);
        assert_eq!(hash("crc16_custom", data), 0xbb3d);
        assert_eq!(hash("crc32", data), 0xcbf4_3926);
        assert_eq!(hash("crc32_custom", data), 0xcbf4_3926);
        assert_eq!(hash("crcCCITT", data), 0x29b1);
        // xxHash's own test vectors, seed 0.
        assert_eq!(hash("xxh64", b""), 0xef46_db37_51d8_e999);
        assert_eq!(hash("xxh64", b"a"), 0xd24e_c4f1_a98c_6e5b);
        assert_eq!(hash("xxh64", b"abc"), 0x44bc_2cf5_ad77_0999);
        assert_eq!(
            hash("csum16", &[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]),
            0x220d
        );
    }

    #[test]
    fn identity_and_xor_pad_as_bmv2_does() {
        assert_eq!(hash("identity", &[0xab, 0xcd]), 0xabcd);
        assert_eq!(
            hash("identity", &[1, 2, 3, 4, 5, 6, 7, 8, 9]),
            0x0102_0304_0506_0708
        );
        assert_eq!(hash("identity", &[]), 0);
        assert_eq!(hash("xor16", &[0x12, 0x34, 0xff]), 0xed34);
        assert_eq!(hash("xor32", &[0x12, 0x34, 0x56, 0x78, 0xff]), 0xed34_5678);
        assert_eq!(hash("xor16", &[]), 0);
    }

    #[test]
    fn other_names_are_unknown() {
        for bad in ["crc_32c", "poly_0x11021_not_rev", "sha1", ""] {
            assert!(
                Hash::from_name(bad, Random::new(0)).is_none(),
                "{bad:?} was accepted"
            );
        }
    }

    #[test]
    fn every_listed_name_is_known() {
        for name in Hash::NAMES {
            assert!(Hash::from_name(name, Random::new(0)).is_some(), "{name}");
        }
    }

    #[test]
    fn random_is_seeded_and_round_robin_counts() {
        let draw = |seed| {
            let mut h = Hash::from_name("random", Random::new(seed)).unwrap();
            [h.compute(b"x"), h.compute(b"x")]
        };
        assert_eq!(draw(3), draw(3));
        assert_ne!(draw(3), draw(4));
        assert_ne!(draw(3)[0], draw(3)[1]);
        let mut rr = Hash::from_name("round_robin", Random::new(0)).unwrap();
        assert_eq!(
            [rr.compute(b""), rr.compute(b"a"), rr.compute(b"")],
            [0, 1, 2]
        );
    }
}
