// SPDX-License-Identifier: Apache-2.0
//! Integers of any size as the JSON's `hexstr` gives them.

use num_bigint::{BigInt, Sign};

/// A signed integer of any size, as the JSON's `hexstr` gives it.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(crate) struct Integer(BigInt);

impl Integer {
    /// Parses `[-]0x…` or `[-]` hexadecimal digits.
    pub fn from_hexstr(text: &str) -> Option<Integer> {
        let (sign, digits) = match text.strip_prefix('-') {
            Some(rest) => (-1, rest),
            None => (1, text),
        };
        let prefix = digits.strip_prefix("0x").or(digits.strip_prefix("0X"));
        let digits = prefix.unwrap_or(digits).as_bytes();
        if !digits.iter().all(u8::is_ascii_hexdigit) {
            return None;
        }
        Some(Integer(BigInt::parse_bytes(digits, 16)? * sign))
    }

    /// From an unsigned value.
    pub fn from_u64(value: u64) -> Integer {
        Integer(value.into())
    }

    /// True below zero.
    pub fn is_negative(&self) -> bool {
        self.0.sign() == Sign::Minus
    }

    /// Bits of the magnitude.
    pub fn bits(&self) -> u32 {
        self.0.bits() as u32
    }

    /// It is a value of `width` bits, a negative one in two's complement.
    pub fn fits(&self, width: u32) -> bool {
        match self.is_negative() {
            false => self.bits() <= width,
            true => (!&self.0).bits() < width.into(),
        }
    }

    /// The value, when it is in 0..2^64.
    pub fn to_u64(&self) -> Option<u64> {
        u64::try_from(&self.0).ok()
    }

    /// Two's complement in `limbs` limbs (modulo 2^(64·limbs)), least significant first.
    pub fn to_limbs(&self, limbs: usize) -> Vec<u64> {
        let modulus = BigInt::from(1) << (64 * limbs);
        let low: BigInt = &self.0 & (modulus - 1);
        let (_, mut out) = low.to_u64_digits();
        out.resize(limbs, 0);
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hexstr_of_any_size_and_sign() {
        assert_eq!(
            Integer::from_hexstr("0x0800").unwrap().to_u64(),
            Some(0x800)
        );
        assert_eq!(
            Integer::from_hexstr("-0x01").unwrap().to_limbs(2),
            vec![u64::MAX, u64::MAX]
        );
        let wide = Integer::from_hexstr("0x1ffffffffffffffff").unwrap();
        assert_eq!((wide.bits(), wide.to_u64()), (65, None));
        assert_eq!(Integer::from_hexstr("0xzz"), None);
        assert_eq!(Integer::from_hexstr(""), None);
        assert!(!Integer::from_hexstr("-0x00").unwrap().is_negative());
    }

    #[test]
    fn a_width_takes_its_unsigned_and_its_signed_values() {
        let fits = |text: &str, width| Integer::from_hexstr(text).unwrap().fits(width);
        for (text, least) in [
            ("0x00", 0),
            ("0xff", 8),
            ("0x100", 9),
            ("-0x01", 1),
            ("-0x02", 2),
            ("-0x03", 3),
            ("-0x80", 8),
            ("-0x81", 9),
            ("-0x8000000000000000", 64),
            ("-0x8000000000000001", 65),
            ("-0x10000000000000001", 66),
        ] {
            assert!(
                fits(text, least) && (least == 0 || !fits(text, least - 1)),
                "{text}"
            );
        }
    }
}
