// SPDX-License-Identifier: Apache-2.0
//! What goes on behind the deparser's own code: headers written back to where they were.

use std::mem::offset_of;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{types, InstBuilder, Value};

use super::context::Context;
use super::lower::{unaligned, Lower, DONE};
use crate::compile::code::{Word, NOT_EMITTED};
use crate::packet::Packet;

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
