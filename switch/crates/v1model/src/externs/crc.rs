// SPDX-License-Identifier: Apache-2.0
//! Cyclic redundancy checks of 8 to 64 bits: any polynomial, table driven, eight bytes a step.

/// Parameters of a CRC in the notation of Williams' "Painless guide" (Rocksoft model): polynomial and initial value are
/// written most significant bit first.
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

#[cfg(test)]
mod tests {
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
