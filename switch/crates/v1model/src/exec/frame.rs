// SPDX-License-Identifier: Apache-2.0
//! Headers between a frame's bytes and a packet's slots.

use crate::compile::code::{FieldIo, HeaderIo, Piece};

/// `n` ≤ 64 bits from bit `at` on; 16 bytes from there must be readable.
#[inline]
pub(crate) fn read_bits(bytes: &[u8], at: usize, n: u32) -> u64 {
    let (byte, skip) = (at / 8, at % 8);
    let word: [u8; 16] = bytes[byte..byte + 16].try_into().expect("16 bytes");
    if n == 0 {
        return 0;
    }
    ((u128::from_be_bytes(word) << skip) >> (128 - n)) as u64
}

/// Writes the low `n` ≤ 64 bits of `value` from bit `at` on.
#[inline]
pub(crate) fn write_bits(bytes: &mut [u8], at: usize, value: u64, n: u32) {
    let (mut at, mut left) = (at, n);
    while left > 0 {
        let (byte, skip) = (at / 8, (at % 8) as u32);
        let take = left.min(8 - skip);
        let mask = (0xffu16 >> (8 - take)) as u8;
        let shift = 8 - skip - take;
        let part = (value >> (left - take)) as u8 & mask;
        bytes[byte] = bytes[byte] & !(mask << shift) | part << shift;
        at += take as usize;
        left -= take;
    }
}

/// Reads a number of `width` bits into limbs, least significant first.
fn read_number(bytes: &[u8], at: usize, width: u32, limbs: &mut [u64]) {
    let count = width.div_ceil(64) as usize;
    for (i, limb) in limbs.iter_mut().enumerate() {
        if i >= count {
            *limb = 0;
            continue;
        }
        let low = i as u32 * 64;
        let take = (width - low).min(64);
        *limb = read_bits(bytes, at + (width - low - take) as usize, take);
    }
}

/// Writes the low `width` bits of a number.
fn write_number(bytes: &mut [u8], at: usize, width: u32, limbs: &[u64]) {
    for i in 0..width.div_ceil(64) {
        let low = i * 64;
        let take = (width - low).min(64);
        write_bits(
            bytes,
            at + (width - low - take) as usize,
            limbs[i as usize],
            take,
        );
    }
}

/// Reads `width` bits (any number) at bit `at` of `bytes` into the slots from `d` on.
pub(crate) fn lookahead(bytes: &[u8], at: usize, width: u32, slots: &mut [u64], d: usize) {
    let limbs = width.div_ceil(64) as usize;
    read_number(bytes, at, width, &mut slots[d..d + limbs]);
}

fn extract_field(field: &FieldIo, bytes: &[u8], start: usize, slots: &mut [u64], base: usize) {
    let (first, limbs) = (
        base + usize::from(field.offset),
        field.width.div_ceil(64) as usize,
    );
    read_number(
        bytes,
        start + field.bit as usize,
        field.width,
        &mut slots[first..first + limbs],
    );
}

fn bits(fields: &[FieldIo]) -> usize {
    fields.iter().map(|f| f.width as usize).sum()
}

/// Extracts the fields of a header at byte `at` into the block at `base`; its varbit field, where it has one, has
/// `varbit_bits` bits. The header is there whole.
pub(crate) fn extract(
    io: &HeaderIo,
    bytes: &[u8],
    at: usize,
    varbit_bits: u32,
    slots: &mut [u64],
    base: usize,
) {
    let start = at * 8;
    for field in &io.head {
        extract_field(field, bytes, start, slots, base);
    }
    let Some((offset, most)) = io.varbit else {
        return;
    };
    let middle = start + bits(&io.head);
    let (first, limbs) = (base + usize::from(offset), most.div_ceil(64) as usize);
    read_number(bytes, middle, varbit_bits, &mut slots[first..first + limbs]);
    slots[base + 1] = u64::from(varbit_bits);
    for field in &io.tail {
        extract_field(field, bytes, middle + varbit_bits as usize, slots, base);
    }
}

/// Bytes that the header in the block at `base` takes in a frame.
#[inline]
pub(crate) fn header_bytes(io: &HeaderIo, slots: &[u64], base: usize) -> usize {
    match io.varbit {
        None => io.fixed_bytes as usize,
        Some(_) => io.fixed_bytes as usize + slots[base + 1] as usize / 8,
    }
}

/// Writes the header in the block at `base` to `bytes`, exactly its length.
#[inline]
pub(crate) fn emit(io: &HeaderIo, slots: &[u64], base: usize, bytes: &mut [u8]) {
    match (&io.pieces, io.varbit) {
        (Some(pieces), None) => {
            let block = &slots[base..base + usize::from(io.slots)];
            emit_pieces(pieces, block, bytes);
        }
        _ => emit_slow(io, slots, base, bytes),
    }
}

/// Writes pieces of the header in `block` to their places in `bytes`.
#[inline]
pub(crate) fn emit_pieces(pieces: &[Piece], block: &[u64], bytes: &mut [u8]) {
    for piece in pieces {
        let mut word = 0u64;
        for &(offset, shift) in &piece.fields {
            word |= block[usize::from(offset)] << shift;
        }
        let at = piece.byte as usize;
        match piece.bytes {
            8 => bytes[at..at + 8].copy_from_slice(&word.to_be_bytes()),
            4 => bytes[at..at + 4].copy_from_slice(&((word >> 32) as u32).to_be_bytes()),
            2 => bytes[at..at + 2].copy_from_slice(&((word >> 48) as u16).to_be_bytes()),
            6 => {
                bytes[at..at + 4].copy_from_slice(&((word >> 32) as u32).to_be_bytes());
                bytes[at + 4..at + 6].copy_from_slice(&((word >> 16) as u16).to_be_bytes());
            }
            n => {
                let n = usize::from(n);
                bytes[at..at + n].copy_from_slice(&word.to_be_bytes()[..n]);
            }
        }
    }
}

fn emit_slow(io: &HeaderIo, slots: &[u64], base: usize, bytes: &mut [u8]) {
    let field = |bytes: &mut [u8], field: &FieldIo, start: usize| {
        let limbs = &slots[base + usize::from(field.offset)..];
        write_number(bytes, start + field.bit as usize, field.width, limbs);
    };
    for part in &io.head {
        field(bytes, part, 0);
    }
    if let Some((offset, _)) = io.varbit {
        let middle = bits(&io.head);
        let width = slots[base + 1] as u32;
        write_number(bytes, middle, width, &slots[base + usize::from(offset)..]);
        for part in &io.tail {
            field(bytes, part, middle + width as usize);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_read_back_at_any_place_and_width() {
        for at in 0..24 {
            for n in 1..=64u32 {
                let mut bytes = [0xa5u8; 32];
                let before = bytes;
                let value = 0x1234_5678_9abc_def1u64 & (u64::MAX >> (64 - n));
                write_bits(&mut bytes, at, value, n);
                assert_eq!(read_bits(&bytes, at, n), value, "{n} bits at {at}");
                // Nothing else has changed.
                write_bits(&mut bytes, at, read_bits(&before, at, n), n);
                assert_eq!(bytes, before);
            }
        }
    }
}
