// SPDX-License-Identifier: Apache-2.0
//! Validity, copies and stacks of headers among a packet's slots.
//!
//! Headers between a frame's bytes and a packet's slots.
//!
//! The parser's moves: headers taken out of the frame, and what is said when it is too short for them.

use super::{mask, Machine};
use crate::bits::{limbs_for, shifted};
use crate::compile::code::{Element, Input, Program, Word, NOT_EMITTED};
use crate::compile::layout::{slot_limbs, HeaderType, Slot, Stack};
use crate::packet::{Packet, OUT_OF_ORDER};
use crate::pipeline::Std;
use crate::trace::Observer;

/// First slot of a header's block; None when the index is beyond the stack.
#[inline]
pub(crate) fn block(element: &Element, slots: &[u64]) -> Option<usize> {
    if element.stride == 0 {
        return Some(usize::from(element.base));
    }
    let index = slots[usize::from(element.index)];
    (index < u64::from(element.count))
        .then(|| usize::from(element.base) + index as usize * usize::from(element.stride))
}

fn clear_siblings(slots: &mut [u64], base: usize, siblings: &[i32]) {
    for &offset in siblings {
        slots[(base as i64 + i64::from(offset)) as usize] = 0;
    }
}

/// Marks the header in the block at `base` valid, after extraction.
#[inline]
pub(crate) fn mark_valid(slots: &mut [u64], base: usize, siblings: &[i32]) {
    slots[base] = 1;
    clear_siblings(slots, base, siblings);
}

/// `setValid`: the fields of a header that was invalid become 0.
pub(crate) fn set_valid(
    program: &Program,
    slots: &mut [u64],
    length_bytes: &mut u32,
    element: &Element,
) {
    let Some(base) = block(element, slots) else {
        return;
    };
    if element.metadata || slots[base] != 0 {
        return;
    }
    let ty = &program.headers[usize::from(element.header)];
    slots[base..base + usize::from(ty.slots)].fill(0);
    mark_valid(slots, base, &element.siblings);
    *length_bytes = length_bytes.wrapping_add(ty.fixed_bytes());
}

/// `setInvalid`.
pub(crate) fn set_invalid(
    program: &Program,
    slots: &mut [u64],
    length_bytes: &mut u32,
    element: &Element,
) {
    let Some(base) = block(element, slots) else {
        return;
    };
    if element.metadata || slots[base] == 0 {
        return;
    }
    let ty = &program.headers[usize::from(element.header)];
    slots[base] = 0;
    let bytes = header_bytes(ty, slots, base);
    *length_bytes = length_bytes.wrapping_sub(bytes);
}

/// Assigns a header: its validity and, when it is valid, its fields.
pub(crate) fn copy(program: &Program, slots: &mut [u64], to: &Element, from: &Element) {
    let (Some(d), Some(a)) = (block(to, slots), block(from, slots)) else {
        return;
    };
    let ty = &program.headers[usize::from(from.header)];
    if from.metadata || to.metadata {
        slots.copy_within(a + 1..a + usize::from(ty.slots), d + 1);
        if !to.metadata {
            mark_valid(slots, d, &to.siblings);
        }
    } else if slots[a] == 0 {
        slots[d] = 0;
    } else {
        slots.copy_within(a..a + usize::from(ty.slots), d);
        clear_siblings(slots, d, &to.siblings);
    }
}

/// Equality as P4_16 defines it: both invalid, or both valid with equal fields.
pub(crate) fn equal(program: &Program, slots: &[u64], x: &Element, y: &Element) -> bool {
    let (Some(a), Some(b)) = (block(x, slots), block(y, slots)) else {
        return false;
    };
    let valid = |element: &Element, base: usize| element.metadata || slots[base] != 0;
    match (valid(x, a), valid(y, b)) {
        (true, true) => {
            let n = usize::from(program.headers[usize::from(x.header)].slots);
            slots[a + 1..a + n] == slots[b + 1..b + n]
        }
        (valid_a, valid_b) => valid_a == valid_b,
    }
}

fn stack_range(stack: &Stack) -> std::ops::Range<usize> {
    let base = usize::from(stack.base);
    base..base + usize::from(stack.stride) * usize::from(stack.count)
}

/// `push_front(n)`: P4_16, the new elements are invalid.
pub(crate) fn push(stack: &Stack, slots: &mut [u64], n: u64) {
    let n = n.min(u64::from(stack.count)) as usize;
    let next = &mut slots[usize::from(stack.next)];
    *next = (*next + n as u64).min(u64::from(stack.count));
    let all = stack_range(stack);
    let shift = n * usize::from(stack.stride);
    slots.copy_within(all.start..all.end - shift, all.start + shift);
    slots[all.start..all.start + shift].fill(0);
}

/// `pop_front(n)`.
pub(crate) fn pop(stack: &Stack, slots: &mut [u64], n: u64) {
    let next = &mut slots[usize::from(stack.next)];
    *next = next.saturating_sub(n);
    let n = n.min(u64::from(stack.count)) as usize;
    let all = stack_range(stack);
    let shift = n * usize::from(stack.stride);
    slots.copy_within(all.start + shift..all.end, all.start);
    slots[all.end - shift..all.end].fill(0);
}

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

/// Reads `width` bits (any number) at bit `at` of `bytes` into the slots from `d` on.
pub(crate) fn read_number(bytes: &[u8], mut at: usize, width: u32, slots: &mut [u64], d: usize) {
    for (limb, width) in slot_limbs(0, width) {
        slots[d + usize::from(limb)] = read_bits(bytes, at, width);
        at += width as usize;
    }
}

/// Extracts the fields of a header at byte `at` into the block at `base`; its varbit field, where it has one, has
/// `varbit_bits` bits. The header is there whole.
pub(crate) fn extract(
    ty: &HeaderType,
    bytes: &[u8],
    at: usize,
    varbit_bits: u32,
    slots: &mut [u64],
    base: usize,
) {
    if let Some(varbit) = ty.varbit.map(|field| &ty.fields[field]) {
        let first = base + usize::from(varbit.offset);
        slots[first..first + limbs_for(varbit.width)].fill(0);
        slots[base + usize::from(HeaderType::VARBIT_BITS)] = u64::from(varbit_bits);
    }
    let mut bit = at * 8;
    for (first, width) in ty.widths(base, varbit_bits) {
        read_number(bytes, bit, width, slots, first);
        bit += width as usize;
    }
}

/// Bits of the varbit field of the header in the block at `base`.
fn varbit_bits(ty: &HeaderType, slots: &[u64], base: usize) -> u32 {
    ty.varbit.map_or(0, |_| {
        slots[base + usize::from(HeaderType::VARBIT_BITS)] as u32
    })
}

/// Bytes that the header in the block at `base` takes in a frame.
pub(crate) fn header_bytes(ty: &HeaderType, slots: &[u64], base: usize) -> u32 {
    ty.fixed_bytes() + varbit_bits(ty, slots, base) / 8
}

/// Appends numbers to bytes, one after another, padded with zeros to a byte at the end.
pub(crate) struct Writer<'w> {
    pub program: &'w Program,
    pub slots: &'w [u64],
    pub bytes: &'w mut Vec<u8>,
}

impl Writer<'_> {
    #[inline]
    pub fn words(&mut self, words: &[Word]) {
        for word in words {
            let mut value = word.constant;
            for &(slot, shift) in &word.fields {
                value |= shifted(self.slots[usize::from(slot)], shift);
            }
            let end = self.bytes.len() + usize::from(word.bytes);
            self.bytes.extend_from_slice(&value.to_be_bytes());
            self.bytes.truncate(end);
        }
    }

    /// What the deparser emits.
    pub fn headers(&mut self) {
        let program = self.program;
        for header in &program.deparser {
            match &header.words {
                _ if self.slots[usize::from(header.valid)] == 0 => {}
                Some(words) => self.words(words),
                None => {
                    let mut bits = self.bytes.len() * 8;
                    self.header(&mut bits, header.base, header.ty);
                }
            }
        }
    }

    /// What a calculation is of, but for the payload.
    pub fn inputs(&mut self, inputs: &[Input]) {
        let (slots, mut bits) = (self.slots, 0);
        let at = |slot: Slot| slots[usize::from(slot)];
        for input in inputs {
            match *input {
                Input::Field {
                    slot,
                    width,
                    valid,
                    varbit_bits,
                } if at(valid) != 0 => {
                    let width = varbit_bits.map_or(width, |bits| at(bits) as u32);
                    self.number(&mut bits, &slots[usize::from(slot)..], width);
                }
                Input::Constant { ref limbs, width } => self.number(&mut bits, limbs, width),
                Input::Header { base, valid, ty } if at(valid) != 0 => {
                    self.header(&mut bits, base, ty);
                }
                _ => {}
            }
        }
    }

    fn header(&mut self, bits: &mut usize, base: Slot, ty: u16) {
        let (program, slots, base) = (self.program, self.slots, usize::from(base));
        let ty = &program.headers[usize::from(ty)];
        for (first, width) in ty.widths(base, varbit_bits(ty, slots, base)) {
            self.number(bits, &slots[first..], width);
        }
    }

    /// Behind the first `bits` bits.
    fn number(&mut self, bits: &mut usize, limbs: &[u64], width: u32) {
        for (limb, width) in slot_limbs(0, width) {
            let end = *bits + width as usize;
            self.bytes.resize(end.div_ceil(8), 0);
            write_bits(self.bytes, *bits, limbs[usize::from(limb)], width);
            *bits = end;
        }
    }
}

impl<O: Observer> Machine<'_, O> {
    /// False: the code ends with an error.
    pub(super) fn parser_error(&self, slots: &mut [u64], code: u64) -> bool {
        if let Some((slot, w)) = self.program.std[Std::ParserError as usize] {
            slots[usize::from(slot)] = code & mask(w);
        }
        false
    }

    /// Extracts a header, whose varbit field has so many bits; false after a parser error.
    pub(super) fn extract(
        &self,
        packet: &mut Packet,
        slots: &mut [u64],
        element: usize,
        bits: Option<u64>,
    ) -> bool {
        let program = self.program;
        let (element, place) = (&program.elements[element], program.places[element]);
        let ty = &program.headers[usize::from(element.header)];
        let (base, before) = (usize::from(element.base), packet.extracted);
        if !self.extract_to(packet, slots, ty, base, bits) {
            return false;
        }
        mark_valid(slots, base, &element.siblings);
        // In the deparser's order as long as each place is behind those before.
        let bit = 1 << place;
        if bits.is_none() && before < bit && place != NOT_EMITTED {
            packet.extracted = before | bit;
        }
        true
    }

    /// Extracts the fields to the block at `base`; false after a parser error.
    fn extract_to(
        &self,
        packet: &mut Packet,
        slots: &mut [u64],
        ty: &HeaderType,
        base: usize,
        bits: Option<u64>,
    ) -> bool {
        let codes = self.program.error_codes;
        let varbit = bits.unwrap_or(0);
        if !varbit.is_multiple_of(8) {
            return self.parser_error(slots, codes.parser_invalid_argument);
        }
        let at = packet.buffer.start + packet.parsed;
        let bytes = u64::from(ty.fixed_bytes()) + varbit / 8;
        if bytes > (packet.buffer.end - at) as u64 {
            return self.parser_error(slots, codes.packet_too_short);
        }
        if varbit > ty.varbit.map_or(0, |field| ty.fields[field].width.into()) {
            return self.parser_error(slots, codes.header_too_short);
        }
        let frame = &packet.buffer.bytes;
        extract(ty, frame, at, varbit as u32, slots, base);
        packet.parsed += bytes as usize;
        packet.extracted = OUT_OF_ORDER;
        true
    }

    /// Extracts to the first free element of a stack; false after a parser error.
    pub(super) fn extract_next(
        &self,
        packet: &mut Packet,
        slots: &mut [u64],
        stack: u16,
        member: u16,
        bits: Option<u64>,
    ) -> bool {
        let program = self.program;
        let stack = &program.stacks[usize::from(stack)];
        let member = &stack.members[usize::from(member)];
        let next = slots[usize::from(stack.next)];
        if next >= u64::from(stack.count) {
            return self.parser_error(slots, program.error_codes.stack_out_of_bounds);
        }
        let base = usize::from(stack.base)
            + next as usize * usize::from(stack.stride)
            + usize::from(member.offset);
        let ty = &program.headers[member.ty];
        if !self.extract_to(packet, slots, ty, base, bits) {
            return false;
        }
        mark_valid(slots, base, &member.siblings);
        slots[usize::from(stack.next)] += 1;
        true
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
