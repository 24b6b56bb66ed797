// SPDX-License-Identifier: Apache-2.0
//! The hash algorithms of v1model and BMv2 by their names in BMv2 JSON.
//!
//! Cyclic redundancy checks of 8 to 64 bits: any polynomial, table driven, eight bytes a step.
//!
//! v1model's `random`: uniform numbers that a seed fixes, on every machine and whatever the version of a library.
//!
//! The generator is xoshiro256++ 1.0 (Blackman and Vigna), its four words the first four numbers of SplitMix64 from the
//! seed. A number in a range of n is the upper half of the product of a draw and n; a draw whose lower half is below
//! 2^64 mod n is drawn anew, so that every number is as likely (Lemire, 2019).

use checksum::csum16;
use rand_xoshiro::rand_core::{RngCore, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CrcConfig {
    /// Width in bits: 8, 16, 32 or 64.
    pub width: u32,
    pub polynomial: u64,
    pub initial: u64,
    pub final_xor: u64,
    /// Bytes enter least significant bit first, and the remainder leaves so.
    pub reflected: bool,
}

impl CrcConfig {
    pub const fn new(
        width: u32,
        polynomial: u64,
        initial: u64,
        final_xor: u64,
        reflected: bool,
    ) -> Self {
        CrcConfig {
            width,
            polynomial,
            initial,
            final_xor,
            reflected,
        }
    }

    fn mask(&self) -> u64 {
        u64::MAX >> (64 - self.width)
    }
}

pub const CRC16: CrcConfig = CrcConfig::new(16, 0x8005, 0, 0, true);
pub const CRC32: CrcConfig = CrcConfig::new(32, 0x04c1_1db7, 0xffff_ffff, 0xffff_ffff, true);
pub const CRC_CCITT: CrcConfig = CrcConfig::new(16, 0x1021, 0xffff, 0, false);
pub const CRC8_CUSTOM: CrcConfig = CrcConfig::new(8, 0x07, 0, 0, false);
pub const CRC64_CUSTOM: CrcConfig = CrcConfig::new(64, 0x1b, 0, 0, true);

/// A CRC ready to compute. The register is kept reflected (least significant bit first) if data is, else left-aligned
/// in 64 bits, so that one table serves every width.
#[derive(Clone)]
pub struct Crc {
    config: CrcConfig,
    /// `tables[k][b]`: byte `b` followed by `k` zero bytes.
    tables: Box<[[u64; 256]; 8]>,
    start: u64,
}

impl Crc {
    /// `config.width` is 8, 16, 32 or 64.
    pub fn new(config: CrcConfig) -> Self {
        assert!(
            matches!(config.width, 8 | 16 | 32 | 64),
            "CRC width {} is not 8, 16, 32 or 64",
            config.width
        );
        // The register with its first bit at the top, and as it is kept.
        let align = 64 - config.width;
        let polynomial = (config.polynomial & config.mask()) << align;
        let keep = |register: u64| match config.reflected {
            true => register.reverse_bits(),
            false => register,
        };
        let mut tables = Box::new([[0u64; 256]; 8]);
        for b in 0..256u64 {
            let mut r = match config.reflected {
                true => b.reverse_bits(),
                false => b << 56,
            };
            for _ in 0..8 {
                r = (r << 1) ^ if r >> 63 != 0 { polynomial } else { 0 };
            }
            tables[0][b as usize] = keep(r);
        }
        for k in 1..8 {
            for b in 0..256 {
                let r = tables[k - 1][b];
                tables[k][b] = match config.reflected {
                    true => (r >> 8) ^ tables[0][(r & 0xff) as usize],
                    false => (r << 8) ^ tables[0][(r >> 56) as usize],
                };
            }
        }
        let start = keep((config.initial & config.mask()) << align);
        Crc {
            config,
            tables,
            start,
        }
    }

    /// The CRC of `data`.
    pub fn compute(&self, data: &[u8]) -> u64 {
        let t = &*self.tables;
        let mut r = self.start;
        let mut chunks = data.chunks_exact(8);
        if self.config.reflected {
            for chunk in &mut chunks {
                let x = r ^ u64::from_le_bytes(chunk.try_into().expect("eight bytes"));
                r = 0;
                for (k, table) in t.iter().enumerate() {
                    r ^= table[(x >> (8 * (7 - k)) & 0xff) as usize];
                }
            }
            for &byte in chunks.remainder() {
                r = (r >> 8) ^ t[0][((r ^ u64::from(byte)) & 0xff) as usize];
            }
        } else {
            for chunk in &mut chunks {
                let x = r ^ u64::from_be_bytes(chunk.try_into().expect("eight bytes"));
                r = 0;
                for (k, table) in t.iter().enumerate() {
                    r ^= table[(x >> (8 * k) & 0xff) as usize];
                }
            }
            for &byte in chunks.remainder() {
                r = (r << 8) ^ t[0][((r >> 56) ^ u64::from(byte)) as usize];
            }
        }
        self.finish(r)
    }

    fn finish(&self, r: u64) -> u64 {
        let remainder = match self.config.reflected {
            true => r,
            false => r >> (64 - self.config.width),
        };
        (remainder ^ self.config.final_xor) & self.config.mask()
    }
}

/// A seeded source of uniform random numbers.
#[derive(Clone)]
pub struct Random(Xoshiro256PlusPlus);

impl Random {
    pub fn new(seed: u64) -> Self {
        Random(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// The same stream 2^128 draws further on: nobody gets there.
    pub fn next_stream(&mut self) -> Self {
        let stream = self.clone();
        self.0.jump();
        stream
    }

    /// A number in `low ..= high`, every one as likely; `None` if `low > high`, where BMv2 leaves the destination
    /// untouched.
    #[inline]
    pub fn uniform(&mut self, low: u64, high: u64) -> Option<u64> {
        let count = high.checked_sub(low)?.wrapping_add(1);
        if count == 0 {
            return Some(self.next_u64());
        }
        let mut product = u128::from(self.next_u64()) * u128::from(count);
        if (product as u64) < count {
            let unfair = count.wrapping_neg() % count;
            while (product as u64) < unfair {
                product = u128::from(self.next_u64()) * u128::from(count);
            }
        }
        Some(low + (product >> 64) as u64)
    }

    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        self.0.next_u64()
    }
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

#[cfg(test)]
mod crc_tests {
    use super::*;

    /// Bit by bit, most significant bit first, as BMv2 defines it.
    fn naive(c: &CrcConfig, data: &[u8]) -> u64 {
        let reflect = |v: u64, n: u32| v.reverse_bits() >> (64 - n);
        let mut r = c.initial & c.mask();
        for &byte in data {
            let b = if c.reflected {
                byte.reverse_bits()
            } else {
                byte
            };
            r ^= u64::from(b) << (c.width - 8);
            for _ in 0..8 {
                let top = r >> (c.width - 1) & 1 != 0;
                r = (r << 1) & c.mask();
                if top {
                    r ^= c.polynomial;
                }
            }
        }
        let r = if c.reflected { reflect(r, c.width) } else { r };
        (r ^ c.final_xor) & c.mask()
    }

    #[test]
    fn check_values_of_the_catalogue() {
        // "Catalogue of parametrised CRC algorithms": the CRC of "123456789".
        let check = |c: CrcConfig| Crc::new(c).compute(b"123456789");
        assert_eq!(check(CRC16), 0xbb3d);
        assert_eq!(check(CRC32), 0xcbf4_3926);
        assert_eq!(check(CRC_CCITT), 0x29b1);
        assert_eq!(check(CRC8_CUSTOM), 0xf4);
        assert_eq!(
            check(CrcConfig::new(
                32,
                0x1edc_6f41,
                0xffff_ffff,
                0xffff_ffff,
                true
            )),
            0xe306_9283
        );
        assert_eq!(check(CrcConfig::new(16, 0x1021, 0xb2aa, 0, true)), 0x63d0);
        assert_eq!(
            check(CrcConfig::new(
                64,
                0x42f0_e1eb_a9ea_3693,
                u64::MAX,
                u64::MAX,
                false
            )),
            0x62ec_59e3_f1a4_f00a
        );
    }

    #[test]
    fn every_length_width_and_reflection_agrees_with_bit_by_bit() {
        let data: Vec<u8> = (0..64u32).map(|i| (i * 73 + 190) as u8).collect();
        for width in [8, 16, 32, 64] {
            for reflected in [false, true] {
                let config = CrcConfig {
                    width,
                    polynomial: 0xad93_d235_94c9_35a9 & (u64::MAX >> (64 - width)),
                    initial: 0x1d0f_b2aa_8000_0d01 & (u64::MAX >> (64 - width)),
                    final_xor: 0x0f55 & (u64::MAX >> (64 - width)),
                    reflected,
                };
                let crc = Crc::new(config);
                for len in 0..data.len() {
                    assert_eq!(
                        crc.compute(&data[..len]),
                        naive(&config, &data[..len]),
                        "{config:?}, {len} bytes"
                    );
                }
            }
        }
    }
}

#[cfg(test)]
mod random_tests {
    use super::*;

    /// The definition, written out: Vigna's splitmix64.c and xoshiro256plusplus.c.
    struct Reference([u64; 4]);

    impl Reference {
        fn new(seed: u64) -> Self {
            let mut x = seed;
            Reference([(); 4].map(|()| {
                x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
                let z = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
                let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
                z ^ (z >> 31)
            }))
        }

        fn next(&mut self) -> u64 {
            let s = &mut self.0;
            let result = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
            let t = s[1] << 17;
            s[2] ^= s[0];
            s[3] ^= s[1];
            s[1] ^= s[2];
            s[0] ^= s[3];
            s[2] ^= t;
            s[3] = s[3].rotate_left(45);
            result
        }
    }

    #[test]
    fn the_numbers_are_those_of_the_definition() {
        // SplitMix64 from 0, and xoshiro256++ from 1, 2, 3, 4: numbers that their authors and others publish.
        assert_eq!(
            Reference::new(0).0[..2],
            [0xe220_a839_7b1d_cdaf, 0x6e78_9e6a_a1b9_65f4]
        );
        let mut known = Reference([1, 2, 3, 4]);
        let first = [(); 4].map(|()| known.next());
        assert_eq!(
            first,
            [
                41_943_041,
                58_720_359,
                3_588_806_011_781_223,
                3_591_011_842_654_386
            ]
        );
        for seed in [0, 1, 0x5eed, u64::MAX] {
            let (mut random, mut reference) = (Random::new(seed), Reference::new(seed));
            for _ in 0..1_000 {
                assert_eq!(random.next_u64(), reference.next());
            }
        }
    }

    #[test]
    fn a_seed_gives_these_numbers_for_ever() {
        let mut random = Random::new(1);
        let draws = [
            (0, 99),
            (0, 99),
            (1, 6),
            (1, 6),
            (0, 1 << 40),
            (0, u64::MAX),
        ];
        let drawn = draws.map(|(low, high)| random.uniform(low, high).unwrap());
        assert_eq!(
            drawn,
            [81, 74, 1, 5, 203_056_237_446, 10_892_412_867_582_108_485]
        );
    }

    #[test]
    fn streams_differ() {
        let mut random = Random::new(7);
        let mut streams = [(); 3].map(|()| random.next_stream());
        let first = streams.each_mut().map(Random::next_u64);
        assert!(first[0] != first[1] && first[1] != first[2] && first[0] != first[2]);
        // The first stream is the seed's own.
        assert_eq!(first[0], Random::new(7).next_u64());
    }

    #[test]
    fn bounds_are_included_and_kept() {
        let mut r = Random::new(1);
        let mut seen = [0u32; 4];
        for _ in 0..4000 {
            let v = r.uniform(10, 13).unwrap();
            seen[(v - 10) as usize] += 1;
        }
        // Mean 1000, standard deviation 27: seven of them are no accident.
        assert!(seen.iter().all(|&n| (800..1200).contains(&n)), "{seen:?}");
        assert_eq!(r.uniform(5, 5), Some(5));
        assert_eq!(r.uniform(6, 5), None);
        assert_eq!(r.uniform(u64::MAX, u64::MAX), Some(u64::MAX));
        assert!(r.uniform(1, u64::MAX).unwrap() >= 1);
        let _ = r.uniform(0, u64::MAX).unwrap();
    }
}
