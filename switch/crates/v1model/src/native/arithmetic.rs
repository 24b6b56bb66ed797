// SPDX-License-Identifier: Apache-2.0
//! Moves and arithmetic on numbers of one limb, and those on several that are the same limb by limb.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{types, InstBuilder, Value};

use super::lower::{Known, Lower};
use crate::bits::low_mask;
use crate::compile::code::{Alu, Op, Operand, Test, WideKind, WideOp};
use crate::compile::layout::Slot;

impl Lower<'_, '_> {
    /// False when it is none of these.
    pub fn arithmetic(&mut self, op: &Op) -> bool {
        match *op {
            Op::Alu { alu, a, b, d, w } => self.alu(alu, (a, b), d, w),
            Op::Wide { op } => return self.limbwise(op),
            _ => return false,
        }
        true
    }

    fn alu(&mut self, alu: Alu, (a, b): (Slot, Slot), d: Slot, w: u8) {
        let by = match self.known(b) {
            Known::Const(value) => Some(value),
            _ => None,
        };
        if let (Alu::Move, Known::Const(value)) = (alu, self.known(a)) {
            return self.put(d.into(), Known::Const(value & low_mask(w.into())));
        }
        let bound = alu.upper_bound(self.bound_of(a), self.bound_of(b), by, 64);
        let a = self.value(a);
        let value = match alu {
            Alu::Move => a,
            Alu::Not => self.b.ins().bnot(a),
            Alu::SignExtend(from) => {
                let up = 64 - i64::from(from);
                let value = self.b.ins().ishl_imm(a, up);
                self.b.ins().sshr_imm(value, up)
            }
            Alu::SatU(bits) => self.at_most(a, low_mask(bits)),
            Alu::SatSU(bits) => {
                let zero = self.number(0);
                let a = self.b.ins().smax(a, zero);
                self.at_most(a, low_mask(bits))
            }
            Alu::SatS(bits) => {
                let max = (low_mask(bits) >> 1) as i64;
                let (max, min) = (self.number(max as u64), self.number((-max - 1) as u64));
                let a = self.b.ins().smin(a, max);
                self.b.ins().smax(a, min)
            }
            Alu::Add | Alu::Sub | Alu::Mul | Alu::And | Alu::Or | Alu::Xor => {
                let b = self.value(b);
                let ins = self.b.ins();
                match alu {
                    Alu::Add => ins.iadd(a, b),
                    Alu::Sub => ins.isub(a, b),
                    Alu::Mul => ins.imul(a, b),
                    Alu::And => ins.band(a, b),
                    Alu::Or => ins.bor(a, b),
                    _ => ins.bxor(a, b),
                }
            }
            Alu::Shl => self.shift(a, b, |l, a, b| l.b.ins().ishl(a, b)),
            Alu::ShrU => self.shift(a, b, |l, a, b| l.b.ins().ushr(a, b)),
            Alu::ShrS => {
                let (by, max) = (self.value(b), self.number(63));
                let by = self.b.ins().umin(by, max);
                self.b.ins().sshr(a, by)
            }
            Alu::DivU => self.divide(a, b, |l, a, b| l.b.ins().udiv(a, b)),
            Alu::ModU => self.divide(a, b, |l, a, b| l.b.ins().urem(a, b)),
        };
        let bound = bound.min(self.bound(value));
        self.set_bound(value, bound);
        self.set(d, value, w);
    }

    fn bound_of(&mut self, slot: Slot) -> u64 {
        match self.known(slot) {
            Known::Const(value) => value,
            Known::Value(value) => self.bound(value),
            _ => u64::MAX,
        }
    }

    fn at_most(&mut self, value: Value, max: u64) -> Value {
        if self.bound(value) <= max {
            return value;
        }
        let bound = self.number(max);
        self.b.ins().umin(value, bound)
    }

    /// Distances from 64 on shift everything out.
    fn shift(
        &mut self,
        value: Value,
        by: Slot,
        f: impl FnOnce(&mut Self, Value, Value) -> Value,
    ) -> Value {
        match self.known(by) {
            Known::Const(by) if by >= 64 => self.number(0),
            Known::Const(by) => {
                let by = self.b.ins().iconst(types::I64, by as i64);
                f(self, value, by)
            }
            _ => {
                let by = self.value(by);
                let shifted = f(self, value, by);
                if self.bound(by) < 64 {
                    return shifted;
                }
                let inside = self.b.ins().icmp_imm(IntCC::UnsignedLessThan, by, 64);
                let zero = self.number(0);
                self.b.ins().select(inside, shifted, zero)
            }
        }
    }

    /// By zero gives 0.
    fn divide(
        &mut self,
        value: Value,
        by: Slot,
        f: impl FnOnce(&mut Self, Value, Value) -> Value,
    ) -> Value {
        match self.known(by) {
            Known::Const(0) => self.number(0),
            Known::Const(by) => {
                let by = self.number(by);
                f(self, value, by)
            }
            _ => {
                let by = self.value(by);
                let (zero, one) = (self.number(0), self.number(1));
                let is_zero = self.b.ins().icmp_imm(IntCC::Equal, by, 0);
                let divisor = self.b.ins().select(is_zero, one, by);
                let result = f(self, value, divisor);
                self.b.ins().select(is_zero, zero, result)
            }
        }
    }

    /// Operations on several limbs that know no carry.
    fn limbwise(&mut self, op: WideOp) -> bool {
        let is_one = matches!(
            op.kind,
            WideKind::Alu(Alu::Move | Alu::And | Alu::Or | Alu::Xor | Alu::Not)
                | WideKind::Test(Test::Eq | Test::Ne)
        );
        let operands = op.a.limbs.max(op.b.limbs);
        if !is_one || op.a.signed || op.b.signed || op.limbs.max(operands) > 8 {
            return false;
        }
        let limb = |l: &mut Self, operand: Operand, i: u16| match i < operand.limbs {
            true => l.value(operand.slot + i),
            false => l.number(0),
        };
        let alu = match op.kind {
            WideKind::Alu(alu) => alu,
            WideKind::Test(test) => {
                let mut differing = self.number(0);
                for i in 0..operands {
                    let (a, b) = (limb(self, op.a, i), limb(self, op.b, i));
                    let bits = self.b.ins().bxor(a, b);
                    differing = self.b.ins().bor(differing, bits);
                }
                let test = match test {
                    Test::Eq => IntCC::Equal,
                    _ => IntCC::NotEqual,
                };
                let holds = self.b.ins().icmp_imm(test, differing, 0);
                let holds = self.b.ins().uextend(types::I64, holds);
                self.set_bound(holds, 1);
                self.set(op.d, holds, 64);
                return true;
            }
        };
        let mut values = Vec::new();
        for i in 0..op.limbs {
            let (a, b) = (limb(self, op.a, i), limb(self, op.b, i));
            let value = match alu {
                Alu::Move => a,
                Alu::Not => self.b.ins().bnot(a),
                Alu::And => self.b.ins().band(a, b),
                Alu::Or => self.b.ins().bor(a, b),
                _ => self.b.ins().bxor(a, b),
            };
            values.push(match op.w.saturating_sub(u32::from(i) * 64) {
                0 => self.number(0),
                left => self.cut(value, left.min(64) as u8),
            });
        }
        for (d, value) in (op.d..).zip(values) {
            self.set(d, value, 64);
        }
        true
    }
}
