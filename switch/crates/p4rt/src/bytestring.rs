// SPDX-License-Identifier: Apache-2.0
//! P4Runtime bytestrings: values of `bit<W>` and `int<W>` in the fewest big-endian bytes (P4Runtime 1.5 §8.4).

use bytes::Bytes;
use v1model::bits::{hex, push_number};
use v1model::Bits;

use crate::error::{refuse, Checked};

/// Reads an unsigned value; leading zero bytes are accepted.
///
/// # Errors
/// OUT_OF_RANGE for an empty string and for a value that needs more than `width` bits.
pub fn decode(value: &[u8], width: u32) -> Checked<Bits> {
    Ok(Bits::from_be_bytes(width, number(value, width)?)?)
}

/// Appends the limbs of an unsigned value, as `decode` reads it.
///
/// # Errors
/// As `decode`.
pub fn push(value: &[u8], width: u32, limbs: &mut Vec<u64>) -> Checked {
    Ok(push_number(width, number(value, width)?, limbs)?)
}

/// Sees that a string is there, as a number takes at least one byte.
///
/// # Errors
/// OUT_OF_RANGE for an empty string.
pub fn number(value: &[u8], width: u32) -> Checked<&[u8]> {
    match value.is_empty() {
        true => refuse!(
            OutOfRange,
            "the value is an empty byte string; {width} bits take at least 1 byte"
        ),
        false => Ok(value),
    }
}

/// Reads a two's complement value; bytes of sign extension are accepted.
///
/// # Errors
/// OUT_OF_RANGE for an empty string and for a value that does not fit in `int<width>`.
pub fn decode_signed(value: &[u8], width: u32) -> Checked<Bits> {
    let negative = number(value, width)?[0] & 0x80 != 0;
    let sign = if negative { 0xff } else { 0 };
    let total = value.len() as u32 * 8;
    // Position, from the top, of the first bit that differs from the sign: all before it is sign extension.
    let same = value.iter().take_while(|b| **b == sign).count();
    let run = same as u32 * 8 + value.get(same).map_or(0, |b| (b ^ sign).leading_zeros());
    let needed = (total - run.min(total)) + 1;
    if needed > width {
        refuse!(
            OutOfRange,
            "the value 0x{} needs {needed} bits, but the field is int<{width}>",
            hex(value)
        );
    }
    let bytes = width.div_ceil(8) as usize;
    let mut wide = vec![sign; bytes.saturating_sub(value.len())];
    wide.extend_from_slice(&value[value.len().saturating_sub(bytes)..]);
    if !width.is_multiple_of(8) {
        wide[0] &= (1 << (width % 8)) - 1;
    }
    Ok(Bits::from_be_bytes(width, &wide)?)
}

/// The shortest string of an unsigned value; 0 is one zero byte.
pub fn encode(value: &Bits) -> Bytes {
    encode_be(value.as_be_bytes())
}

/// The shortest string of an unsigned value that is given in limbs, least significant first.
pub fn encode_limbs(limbs: &[u64]) -> Bytes {
    match limbs {
        [limb] => encode_be(&limb.to_be_bytes()),
        _ => {
            let bytes = limbs.iter().rev().flat_map(|limb| limb.to_be_bytes());
            encode_be(&bytes.collect::<Vec<u8>>())
        }
    }
}

/// The shortest string of an unsigned value that is given in big-endian bytes.
pub fn encode_be(bytes: &[u8]) -> Bytes {
    Bytes::copy_from_slice(canonical(bytes))
}

/// The shortest string of a two's complement value of `width` bits.
pub fn encode_signed(value: &Bits, width: u32) -> Bytes {
    let mut bytes = value.to_be_bytes();
    let spare = width.next_multiple_of(8) - width;
    let negative = bytes
        .first()
        .is_some_and(|first| first << spare & 0x80 != 0);
    let sign = if negative { 0xff } else { 0 };
    if let (true, Some(first)) = (negative, bytes.first_mut()) {
        *first |= !(0xff >> spare);
    }
    // The last byte stays, and a byte whose first bit is the sign.
    let extended = bytes
        .windows(2)
        .take_while(|two| two[0] == sign && (two[1] & 0x80 != 0) == negative);
    let start = extended.count();
    match bytes.is_empty() {
        true => Bytes::from_static(&[0]),
        false => Bytes::copy_from_slice(&bytes[start..]),
    }
}

/// Reads a port of the SDN side: an unsigned number of at most 32 bits.
///
/// # Errors
/// OUT_OF_RANGE for an empty string and for more than 32 bits.
pub fn decode_port(value: &[u8]) -> Checked<u32> {
    let port = canonical(value);
    if port.is_empty() || port.len() > 4 {
        refuse!(
            OutOfRange,
            "port 0x{} is no number of 1 to 32 bits",
            hex(value)
        );
    }
    Ok(port
        .iter()
        .fold(0, |port, byte| port << 8 | u32::from(*byte)))
}

/// Without the leading zero bytes, but at least one byte of a string that has one.
fn canonical(value: &[u8]) -> &[u8] {
    let zeros = value.iter().take_while(|b| **b == 0).count();
    &value[zeros.min(value.len().saturating_sub(1))..]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The two tables of P4Runtime 1.5 §8.4: valid and invalid encodings.
    #[test]
    fn valid_encodings_of_the_specification() {
        for (width, text, canonical) in [
            (8, &[0x63][..], &[0x63][..]),
            (16, &[0, 0x63], &[0x63]),
            (16, &[0x63], &[0x63]),
            (16, &[0x30, 0x64], &[0x30, 0x64]),
            (16, &[0, 0x30, 0x64], &[0x30, 0x64]),
            (12, &[0, 0, 0x63], &[0x63]),
            (9, &[0x01, 0xff], &[0x01, 0xff]),
            (128, &[0; 16], &[0]),
        ] {
            assert_eq!(
                &encode(&decode(text, width).unwrap())[..],
                canonical,
                "bit<{width}> {text:x?}"
            );
        }
        for (width, text, canonical) in [
            (8, &[0x63][..], &[0x63][..]),
            (8, &[0x9d], &[0x9d]),
            (8, &[0xff, 0x9d], &[0x9d]),
            (12, &[0xfd, 0x1d], &[0xfd, 0x1d]),
            (16, &[0, 0], &[0]),
            (16, &[0], &[0]),
            (16, &[0xff, 0x9d], &[0x9d]),
            (16, &[0x9d], &[0x9d]),
        ] {
            let bits = decode_signed(text, width).unwrap();
            assert_eq!(
                &encode_signed(&bits, width)[..],
                canonical,
                "int<{width}> {text:x?}"
            );
        }
    }

    #[test]
    fn invalid_encodings_of_the_specification() {
        for (width, text) in [
            (8, &[0x01, 0x63][..]),
            (8, &[]),
            (16, &[0x01, 0, 0x63]),
            (12, &[0x10, 0x63]),
            (12, &[0x01, 0, 0x63]),
            (12, &[0, 0x40, 0x63]),
        ] {
            let refusal = decode(text, width).unwrap_err();
            assert_eq!(
                refusal.kind,
                crate::error::ErrorKind::OutOfRange,
                "bit<{width}> {text:x?}"
            );
        }
        for (width, text) in [(8, &[0, 0x9d][..]), (12, &[0x8d, 0x1d]), (16, &[])] {
            let refusal = decode_signed(text, width).unwrap_err();
            assert_eq!(
                refusal.kind,
                crate::error::ErrorKind::OutOfRange,
                "int<{width}> {text:x?}"
            );
        }
    }

    #[test]
    fn the_text_names_value_and_width() {
        let refusal = decode(&[0x02, 0x00], 9).unwrap_err();
        assert_eq!(
            refusal.message,
            "the value 0x0200 needs 10 bits, but the field is bit<9>"
        );
    }

    #[test]
    fn ports() {
        assert_eq!(decode_port(&[0, 0, 0, 0, 2]).unwrap(), 2);
        assert_eq!(decode_port(&[0xff, 0xff, 0xff, 0xfd]).unwrap(), 0xffff_fffd);
        assert!(decode_port(&[1, 0, 0, 0, 0]).is_err());
        assert!(decode_port(&[]).is_err());
    }
}
