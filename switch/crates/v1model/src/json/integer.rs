// SPDX-License-Identifier: Apache-2.0
//! Integers of any size as the JSON's `hexstr` gives them.

/// A signed integer: magnitude in limbs, least significant first, without leading zeros.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(crate) struct Integer {
    negative: bool,
    magnitude: Vec<u64>,
}

impl Integer {
    /// Parses `[-]0x…` or `[-]` hexadecimal digits.
    pub fn from_hexstr(text: &str) -> Option<Integer> {
        let (negative, digits) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let digits = digits
            .strip_prefix("0x")
            .or(digits.strip_prefix("0X"))
            .unwrap_or(digits);
        if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
            return None;
        }
        let mut magnitude = Vec::new();
        let mut end = digits.len();
        while end > 0 {
            let start = end.saturating_sub(16);
            magnitude.push(u64::from_str_radix(&digits[start..end], 16).ok()?);
            end = start;
        }
        Some(Integer::new(negative, magnitude))
    }

    fn new(negative: bool, mut magnitude: Vec<u64>) -> Integer {
        while magnitude.last() == Some(&0) {
            magnitude.pop();
        }
        Integer {
            negative: negative && !magnitude.is_empty(),
            magnitude,
        }
    }

    /// From an unsigned value.
    pub fn from_u64(value: u64) -> Integer {
        Integer::new(false, vec![value])
    }

    /// True below zero.
    pub fn is_negative(&self) -> bool {
        self.negative
    }

    /// Bits of the magnitude.
    pub fn bits(&self) -> u32 {
        match self.magnitude.last() {
            Some(top) => self.magnitude.len() as u32 * 64 - top.leading_zeros(),
            None => 0,
        }
    }

    /// It is a value of `width` bits, a negative one in two's complement.
    pub fn fits(&self, width: u32) -> bool {
        match self.negative {
            false => self.bits() <= width,
            true => {
                let ones: u32 = self.magnitude.iter().map(|limb| limb.count_ones()).sum();
                self.bits() - u32::from(ones == 1) < width
            }
        }
    }

    /// The value, when it is in 0..2^64.
    pub fn to_u64(&self) -> Option<u64> {
        match (self.negative, self.magnitude.as_slice()) {
            (_, []) => Some(0),
            (false, [limb]) => Some(*limb),
            _ => None,
        }
    }

    /// Two's complement in `limbs` limbs (modulo 2^(64·limbs)), least significant first.
    pub fn to_limbs(&self, limbs: usize) -> Vec<u64> {
        let mut out: Vec<u64> = (0..limbs)
            .map(|i| self.magnitude.get(i).copied().unwrap_or(0))
            .collect();
        if self.negative {
            let mut carry = true;
            for limb in &mut out {
                let (sum, over) = (!*limb).overflowing_add(u64::from(carry));
                *limb = sum;
                carry = over;
            }
        }
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
