// SPDX-License-Identifier: Apache-2.0
//! What goes on behind the deparser's own code: headers written back to where they were.

use std::mem::offset_of;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{types, InstBuilder, Value};

use super::context::Context;
use super::lower::{unaligned, Lower};
use crate::compile::code::{Piece, NOT_EMITTED};
use crate::packet::Packet;

/// What compiled code returns that has emitted the packet's headers.
pub(super) const EMITTED: i64 = 2;

impl Lower<'_, '_> {
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
