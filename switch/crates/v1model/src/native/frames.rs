// SPDX-License-Identifier: Apache-2.0
//! What goes on behind the deparser's own code: headers written back to where they were.
//!
//! The parser: fields loaded from where they lie in the frame, and selects.

use std::mem::offset_of;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{types, InstBuilder, Value};

use super::calls::{self, Context};
use super::lower::{unaligned, Known, Lower, DONE};
use crate::bits::low_mask;
use crate::compile::code::{Case, Op, Word, NOT_EMITTED};
use crate::compile::layout::{slot_limbs, Slot};
use crate::packet::{Packet, OUT_OF_ORDER};

/// What compiled code returns that has emitted the packet's headers.
pub(crate) const EMITTED: u64 = 2;

impl Lower<'_, '_> {
    /// Writes what the program may have changed of headers that lie in the frame as they are to be emitted, and returns
    /// `EMITTED`, or 0 when they do not.
    pub fn emit(&mut self) {
        let program = self.native.program;
        let (anew, done) = (self.b.create_block(), self.b.create_block());
        match &self.native.optimised.patches {
            patches if program.deparser.len() < usize::from(NOT_EMITTED) => {
                let packet = self.context(offset_of!(Context<'_, '_>, packet));
                let extracted = offset_of!(Packet, extracted) as i32;
                let extracted = self.load(types::I64, packet, extracted);
                let mut present = self.number(0);
                let mut bytes = self.number(0);
                let mut places = Vec::new();
                for (place, header) in program.deparser.iter().enumerate() {
                    let valid = self.value(header.valid);
                    let is_valid = match self.bound(valid) {
                        0 | 1 => valid,
                        _ => {
                            let set = self.b.ins().icmp_imm(IntCC::NotEqual, valid, 0);
                            self.b.ins().uextend(types::I64, set)
                        }
                    };
                    let bit = self.b.ins().ishl_imm(is_valid, place as i64);
                    present = self.b.ins().bor(present, bit);
                    let length = program.headers[usize::from(header.ty)].fixed_bytes();
                    if !patches[place].is_empty() {
                        places.push((is_valid, bytes, length, &patches[place]));
                    }
                    let length = self.b.ins().imul_imm(is_valid, i64::from(length));
                    bytes = self.b.ins().iadd(bytes, length);
                }
                let in_place = self.b.ins().icmp(IntCC::Equal, present, extracted);
                let length = self.context(offset_of!(Context<'_, '_>, length));
                let test = IntCC::UnsignedLessThanOrEqual;
                let inside = self.b.ins().icmp(test, bytes, length);
                let in_place = self.b.ins().band(in_place, inside);
                let write = self.b.create_block();
                self.b.ins().brif(in_place, write, &[], anew, &[]);
                self.b.switch_to_block(write);
                let frame = self.context(offset_of!(Context<'_, '_>, frame));
                for (valid, at, length, words) in places {
                    let (yes, after) = (self.b.create_block(), self.b.create_block());
                    self.b.ins().brif(valid, yes, &[], after, &[]);
                    self.b.switch_to_block(yes);
                    let address = self.b.ins().iadd(frame, at);
                    let state = self.state.clone();
                    for (index, word) in words {
                        assert!(index * 8 + usize::from(word.bytes) <= length as usize);
                        self.put_word(address, index * 8, word);
                    }
                    self.state = state;
                    self.b.ins().jump(after, &[]);
                    self.b.switch_to_block(after);
                }
                self.b.ins().jump(done, &[]);
            }
            _ => {
                self.b.ins().jump(anew, &[]);
            }
        }
        for (block, result) in [(anew, DONE), (done, EMITTED)] {
            self.b.switch_to_block(block);
            let result = self.number(result);
            self.b.ins().return_(&[result]);
        }
    }

    /// A word, its first byte the most significant.
    pub fn word(&mut self, word: &Word) -> Value {
        let mut value = self.number(word.constant);
        for &(slot, shift) in &word.fields {
            let part = self.value(slot);
            let part = match shift {
                0.. => self.b.ins().ishl_imm(part, i64::from(shift)),
                _ => self.b.ins().ushr_imm(part, -i64::from(shift)),
            };
            value = self.b.ins().bor(value, part);
        }
        value
    }

    /// Writes a word `at` bytes behind `address`.
    fn put_word(&mut self, address: Value, at: usize, word: &Word) {
        let value = self.word(word);
        let (mut at, mut done) = (at as i32, 0);
        for ty in [types::I64, types::I32, types::I16, types::I8] {
            let size = ty.bits() as i32;
            if i32::from(word.bytes) * 8 - done >= size {
                let mut part = self.b.ins().ushr_imm(value, i64::from(64 - done - size));
                if ty != types::I64 {
                    part = self.b.ins().ireduce(ty, part);
                }
                if ty != types::I8 {
                    part = self.b.ins().bswap(part);
                }
                self.b.ins().store(unaligned(), part, address, at);
                (at, done) = (at + size / 8, done + size);
            }
        }
    }
}

/// A case's test, made where it is asked.
pub(super) type CaseTest<'l, 'f> = Box<dyn FnOnce(&mut Lower<'l, 'f>) -> Value>;

impl<'l, 'f> Lower<'l, 'f> {
    /// False when it is no operation of the parser.
    pub fn parser(&mut self, op: &Op) -> bool {
        match *op {
            Op::Extract { header, bits: None } if self.extract(usize::from(header)) => true,
            Op::Lookahead { d, offset, width } if width <= 56 => {
                self.lookahead(usize::from(d), offset, width.into());
                true
            }
            _ if op.parses() => {
                self.parse(op);
                true
            }
            _ => false,
        }
    }

    /// Has the interpreter do it.
    fn parse(&mut self, op: &Op) {
        let on = self.interpret(op);
        self.state.forget(self.native.parsed());
        self.state.forget(self.native.extracted());
        self.leave_unless(on, DONE, |_| {});
    }

    /// Address of what is not parsed yet, and its distance from there where it is known.
    fn unparsed(&mut self) -> (Value, Option<u64>) {
        let frame = self.context(offset_of!(Context<'_, '_>, frame));
        match self.state.places[self.native.parsed()].known {
            Known::Const(parsed) if parsed < 1 << 20 => (frame, Some(parsed)),
            _ => {
                let parsed = self.parsed();
                (self.b.ins().iadd(frame, parsed), None)
            }
        }
    }

    /// Bytes parsed.
    fn parsed(&mut self) -> Value {
        let slot = self.native.parsed();
        match self.state.places[slot].known {
            Known::Const(parsed) => self.number(parsed),
            Known::Value(value) => value,
            _ => {
                let packet = self.context(offset_of!(Context<'_, '_>, packet));
                let value = self.load(types::I64, packet, offset_of!(Packet, parsed) as i32);
                self.state.places[slot].known = Known::Value(value);
                value
            }
        }
    }

    /// Leaves with an error where the frame has not so many unparsed bytes.
    fn need(&mut self, bytes: u64) {
        let (_, at) = self.unparsed();
        let length = |lower: &mut Self| lower.context(offset_of!(Context<'_, '_>, length));
        let holds = match at {
            Some(at) if at + bytes <= self.state.checked => return,
            Some(at) => {
                let length = length(self);
                let end = at + bytes;
                self.state.checked = end;
                let test = IntCC::UnsignedGreaterThanOrEqual;
                self.b.ins().icmp_imm(test, length, end as i64)
            }
            None => {
                let (length, parsed) = (length(self), self.parsed());
                let left = self.b.ins().isub(length, parsed);
                let test = IntCC::UnsignedGreaterThanOrEqual;
                self.b.ins().icmp_imm(test, left, bytes as i64)
            }
        };
        let code = self.native.program.error_codes.packet_too_short;
        self.leave_unless(holds, DONE, |lower| {
            let code = lower.number(code);
            lower.parser_error(code);
        });
    }

    /// `width` bits from bit `skip` (0 to 7) of byte `byte` on, behind an address; `skip + width` ≤ 64.
    fn field(&mut self, base: Value, byte: i32, skip: u32, width: u32) -> Value {
        let ty = match skip + width {
            ..=8 => types::I8,
            9..=16 => types::I16,
            17..=32 => types::I32,
            _ => types::I64,
        };
        let mut value = match ty {
            // The load extends it.
            types::I8 => self.b.ins().uload8(types::I64, unaligned(), base, byte),
            _ => {
                let value = self.b.ins().load(ty, unaligned(), base, byte);
                self.b.ins().bswap(value)
            }
        };
        if ty == types::I16 || ty == types::I32 {
            value = self.b.ins().uextend(types::I64, value);
        }
        if ty.bits() > skip + width {
            let down = ty.bits() - skip - width;
            value = self.b.ins().ushr_imm(value, i64::from(down));
        }
        if skip > 0 {
            value = self.b.ins().band_imm(value, low_mask(width) as i64);
        }
        self.set_bound(value, low_mask(width));
        value
    }

    /// False when the header has fields that lie across more than eight bytes.
    fn extract(&mut self, element: usize) -> bool {
        let program = self.native.program;
        let (element, place) = (&program.elements[element], program.places[element]);
        let ty = &program.headers[usize::from(element.header)];
        let (mut bit, mut limbs) = (0, Vec::new());
        for (first, width) in ty.widths(element.base.into(), 0) {
            for (slot, width) in slot_limbs(first as Slot, width) {
                limbs.push((usize::from(slot), bit, width));
                bit += width;
            }
        }
        if limbs.iter().any(|(_, bit, width)| bit % 8 + width > 64) {
            return false;
        }
        self.need(ty.fixed_bytes().into());
        let (address, at) = self.unparsed();
        let base = usize::from(element.base);
        for (slot, bit, width) in limbs {
            let byte = (bit / 8) as i32 + at.unwrap_or(0) as i32;
            let value = self.field(address, byte, bit % 8, width);
            self.put(slot, Known::Value(value));
        }
        self.put(base, Known::Const(1));
        for &sibling in &element.siblings {
            let slot = (base as i64 + i64::from(sibling)) as usize;
            self.put(slot, Known::Const(0));
        }
        let (parsed, extracted) = (self.native.parsed(), self.native.extracted());
        let now_parsed = match at {
            Some(at) => Known::Const(at + u64::from(ty.fixed_bytes())),
            None => {
                let before = self.parsed();
                Known::Value(self.b.ins().iadd_imm(before, i64::from(ty.fixed_bytes())))
            }
        };
        self.state.set(parsed, now_parsed);
        let now_extracted = self.now_extracted(place);
        self.state.set(extracted, now_extracted);
        true
    }

    /// In the deparser's order as long as each place is behind those before.
    fn now_extracted(&mut self, place: u8) -> Known {
        let (bit, slot) = (1u64 << place, self.native.extracted());
        if place == NOT_EMITTED {
            return Known::Const(OUT_OF_ORDER);
        }
        match self.state.places[slot].known {
            Known::Const(before) if before < bit => Known::Const(before | bit),
            Known::Const(_) => Known::Const(OUT_OF_ORDER),
            _ => {
                let packet = self.context(offset_of!(Context<'_, '_>, packet));
                let before = match self.state.places[slot].known {
                    Known::Value(value) => value,
                    _ => self.load(types::I64, packet, offset_of!(Packet, extracted) as i32),
                };
                let in_order = self
                    .b
                    .ins()
                    .icmp_imm(IntCC::UnsignedLessThan, before, bit as i64);
                let with = self.b.ins().bor_imm(before, bit as i64);
                let none = self.number(OUT_OF_ORDER);
                Known::Value(self.b.ins().select(in_order, with, none))
            }
        }
    }

    fn lookahead(&mut self, d: usize, offset: u32, width: u32) {
        self.need((u64::from(offset) + u64::from(width)).div_ceil(8));
        let (address, at) = self.unparsed();
        let byte = (offset / 8) as i32 + at.unwrap_or(0) as i32;
        let value = self.field(address, byte, offset % 8, width);
        self.put(d, Known::Value(value));
    }

    /// The tests of a select's cases in order.
    pub fn select(&mut self, index: usize) -> Vec<CaseTest<'l, 'f>> {
        let select = &self.native.program.selects[index];
        let is_set = |case: &Case| matches!(case, Case::ValueSet(_));
        if select.cases.iter().any(is_set) {
            self.flush(|_| true);
            let number = self.number(index as u64);
            let found = self.call(calls::select(), &[number])[0];
            let test = |case| -> CaseTest<'l, 'f> {
                Box::new(move |l| l.b.ins().icmp_imm(IntCC::Equal, found, case))
            };
            return (0..select.cases.len() as i64).map(test).collect();
        }
        let parts = select.parts.iter();
        let slots: Vec<Slot> = parts.flat_map(|&(slot, n, _)| slot..slot + n).collect();
        let test = |case: &Case| -> Option<CaseTest<'l, 'f>> {
            let Case::Masked { values, masks } = case else {
                return None;
            };
            let limbs = slots.iter().zip(masks.iter().zip(values));
            let limbs: Vec<_> = limbs.map(|(&slot, (&m, &v))| (slot, m, v)).collect();
            Some(Box::new(move |l| l.matches(&limbs)))
        };
        select.cases.iter().filter_map(test).collect()
    }

    /// Each of the slots, masked, has its value.
    fn matches(&mut self, limbs: &[(Slot, u64, u64)]) -> Value {
        let mut differing = None;
        for &(slot, mask, value) in limbs {
            let key = self.value(slot);
            let key = match self.bound(key) & !mask {
                0 => key,
                _ => self.b.ins().band_imm(key, mask as i64),
            };
            if limbs.len() == 1 {
                return self.b.ins().icmp_imm(IntCC::Equal, key, value as i64);
            }
            let bits = self.b.ins().bxor_imm(key, value as i64);
            differing = Some(match differing {
                Some(others) => self.b.ins().bor(others, bits),
                None => bits,
            });
        }
        let differing = differing.unwrap_or_else(|| self.number(0));
        self.b.ins().icmp_imm(IntCC::Equal, differing, 0)
    }
}
