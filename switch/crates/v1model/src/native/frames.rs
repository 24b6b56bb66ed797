// SPDX-License-Identifier: Apache-2.0
//! What goes on around the parser's and the deparser's own code: checksums, and headers written back to where they were.

use std::mem::offset_of;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{types, InstBuilder, Value};

use super::context::Context;
use super::lower::{trusted, unaligned, Lower};
use crate::bits::low_mask;
use crate::compile::code::{Checksum, Piece, NOT_EMITTED};
use crate::packet::Packet;
use crate::pipeline::Std;

/// What compiled code returns that has emitted the packet's headers.
pub(super) const EMITTED: i64 = 2;

impl Lower<'_, '_> {
    /// Does `f` where the checksum applies.
    fn where_it_applies(&mut self, checksum: &Checksum, f: impl FnOnce(&mut Self)) {
        let (after, state) = (self.b.create_block(), self.state.clone());
        let mut when = checksum.when.clone();
        if checksum.verify {
            when.push((checksum.valid, true));
        }
        for (slot, set) in when {
            let (value, on) = (self.value(slot), self.b.create_block());
            let (yes, no) = if set { (on, after) } else { (after, on) };
            self.b.ins().brif(value, yes, &[], no, &[]);
            self.b.switch_to_block(on);
        }
        f(self);
        // What was found on the way holds there only.
        self.state = state;
        self.b.ins().jump(after, &[]);
        self.b.switch_to_block(after);
    }

    /// Verifies the program's checksums and sets `checksum_error`.
    pub fn verify(&mut self) {
        let checksums = self.native.program.checksums.clone();
        let error = self.native.program.std[Std::ChecksumError as usize];
        if let Some((slot, _)) = error {
            let zero = self.number(0);
            self.store_slot(slot, zero);
        }
        for checksum in checksums.iter().filter(|c| c.verify) {
            self.where_it_applies(checksum, |lower| {
                let value = lower.calculation(usize::from(checksum.calculation));
                let field = lower.value(checksum.slot);
                let (wrong, on) = (lower.b.create_block(), lower.b.create_block());
                lower.b.set_cold_block(wrong);
                let right = lower.b.ins().icmp(IntCC::Equal, value, field);
                lower.b.ins().brif(right, on, &[], wrong, &[]);
                lower.b.switch_to_block(wrong);
                if let Some((slot, w)) = error {
                    let one = lower.number(1 & low_mask(w.into()));
                    lower.store_slot(slot, one);
                }
                lower.b.ins().jump(on, &[]);
                lower.b.switch_to_block(on);
            });
        }
    }

    /// Updates the program's checksums.
    pub fn update(&mut self) {
        let checksums = self.native.program.checksums.clone();
        for checksum in checksums.iter().filter(|c| c.update) {
            self.where_it_applies(checksum, |lower| {
                let value = lower.calculation(usize::from(checksum.calculation));
                let value = lower.cut(value, checksum.width.min(64) as u8);
                lower.store_slot(checksum.slot, value);
            });
            self.state.forget(checksum.slot.into());
        }
    }

    fn store_slot(&mut self, slot: u16, value: Value) {
        let offset = i32::from(slot) * 8;
        self.b.ins().store(trusted(), value, self.slots, offset);
    }

    /// Writes what the program may have changed of headers that lie in the frame as they are to be emitted, and returns
    /// `EMITTED`, or 0 when they do not.
    pub fn emit(&mut self) {
        let program = self.native.program;
        let (anew, done) = (self.b.create_block(), self.b.create_block());
        match &self.native.optimised.patches {
            Some(patches) if program.deparser.len() < usize::from(NOT_EMITTED) => {
                let packet = self.context(offset_of!(Context<'_, '_>, packet));
                let extracted = offset_of!(Packet, extracted) as i32;
                let extracted = self.load(types::I64, packet, extracted);
                let mut present = self.number(0);
                let mut bytes = self.number(0);
                let mut places = Vec::new();
                for (place, &(valid, base, ty)) in program.deparser.iter().enumerate() {
                    let valid = self.value(valid);
                    let is_valid = match self.bound(valid) {
                        0 | 1 => valid,
                        _ => {
                            let set = self.b.ins().icmp_imm(IntCC::NotEqual, valid, 0);
                            self.b.ins().uextend(types::I64, set)
                        }
                    };
                    let bit = self.b.ins().ishl_imm(is_valid, place as i64);
                    present = self.b.ins().bor(present, bit);
                    let length = program.headers[usize::from(ty)].fixed_bytes;
                    if !patches[place].is_empty() {
                        places.push((is_valid, bytes, base, &patches[place]));
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
                for (valid, at, base, pieces) in places {
                    let (yes, after) = (self.b.create_block(), self.b.create_block());
                    self.b.ins().brif(valid, yes, &[], after, &[]);
                    self.b.switch_to_block(yes);
                    let address = self.b.ins().iadd(frame, at);
                    let state = self.state.clone();
                    for piece in pieces {
                        self.piece(address, base, piece);
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
        for (block, result) in [(anew, 0), (done, EMITTED)] {
            self.b.switch_to_block(block);
            let result = self.b.ins().iconst(types::I64, result);
            self.b.ins().return_(&[result]);
        }
    }

    /// Writes a piece of the header whose block begins at `base` to its place behind `address`.
    fn piece(&mut self, address: Value, base: u16, piece: &Piece) {
        let mut word = self.number(0);
        let bits = 8 * u32::from(piece.bytes);
        for &(offset, up) in &piece.fields {
            let field = self.value(base + offset);
            let up = i64::from(up) - i64::from(64 - bits);
            let field = match up {
                0 => field,
                _ => self.b.ins().ishl_imm(field, up),
            };
            word = self.b.ins().bor(word, field);
        }
        let (mut at, mut left) = (piece.byte as i32, bits);
        for (size, ty) in [
            (64, types::I64),
            (32, types::I32),
            (16, types::I16),
            (8, types::I8),
        ] {
            while left >= size {
                left -= size;
                let part = match left {
                    0 => word,
                    _ => self.b.ins().ushr_imm(word, i64::from(left)),
                };
                let part = if size < 64 {
                    self.b.ins().ireduce(ty, part)
                } else {
                    part
                };
                let part = if size > 8 {
                    self.b.ins().bswap(part)
                } else {
                    part
                };
                self.b.ins().store(unaligned(), part, address, at);
                at += (size / 8) as i32;
            }
        }
    }
}
