// SPDX-License-Identifier: Apache-2.0
//! Moves and arithmetic on numbers of one limb, and those on several that are the same limb by limb.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{types, InstBuilder, Value};

use super::lower::Lower;
use super::values::Known;
use crate::bits::low_mask;
use crate::compile::code::{Op, WideKind};
use crate::compile::layout::Slot;

impl Lower<'_, '_> {
    /// False when it is none of these.
    pub fn arithmetic(&mut self, op: &Op) -> bool {
        match *op {
            Op::Move { d, a, w } => match self.known(a) {
                Known::Const(value) => self.set_const(d, value & low_mask(w.into())),
                _ => {
                    let a = self.value(a);
                    self.set(d, a, w);
                }
            },
            Op::Add { d, a, b, w } => {
                let bound = self.sum_bound(a, b);
                self.binary(d, a, b, w, bound, |l, a, b| l.b.ins().iadd(a, b));
            }
            Op::Sub { d, a, b, w } => {
                self.binary(d, a, b, w, u64::MAX, |l, a, b| l.b.ins().isub(a, b));
            }
            Op::Mul { d, a, b, w } => {
                self.binary(d, a, b, w, u64::MAX, |l, a, b| l.b.ins().imul(a, b));
            }
            Op::And { d, a, b, w } => {
                let bound = self.bound_of(a).min(self.bound_of(b));
                self.binary(d, a, b, w, bound, |l, a, b| l.b.ins().band(a, b));
            }
            Op::Or { d, a, b, w } => {
                let bound = self.union_bound(a, b);
                self.binary(d, a, b, w, bound, |l, a, b| l.b.ins().bor(a, b));
            }
            Op::Xor { d, a, b, w } => {
                let bound = self.union_bound(a, b);
                self.binary(d, a, b, w, bound, |l, a, b| l.b.ins().bxor(a, b));
            }
            Op::Not { d, a, w } => {
                let a = self.value(a);
                let value = self.b.ins().bnot(a);
                self.set(d, value, w);
            }
            Op::Shl { d, a, b, w } => {
                let value = self.shift(a, b, |l, a, b| l.b.ins().ishl(a, b));
                self.set(d, value, w);
            }
            Op::ShrU { d, a, b, w } => {
                let bound = match (self.bound_of(a), self.known(b)) {
                    (bound, Known::Const(by)) => bound.checked_shr(by as u32).unwrap_or(0),
                    (bound, _) => bound,
                };
                let value = self.shift(a, b, |l, a, b| l.b.ins().ushr(a, b));
                self.set_bound(value, bound);
                self.set(d, value, w);
            }
            Op::ShrS { d, a, b, w } => {
                let (a, by) = (self.value(a), self.value(b));
                let most = self.number(63);
                let by = self.b.ins().umin(by, most);
                let value = self.b.ins().sshr(a, by);
                self.set(d, value, w);
            }
            Op::DivU { d, a, b, w } => self.divide(d, a, b, w, |l, a, b| l.b.ins().udiv(a, b)),
            Op::ModU { d, a, b, w } => self.divide(d, a, b, w, |l, a, b| l.b.ins().urem(a, b)),
            Op::SignExtend { d, a, from, w } => {
                let (a, up) = (self.value(a), 64 - i64::from(from));
                let value = self.b.ins().ishl_imm(a, up);
                let value = self.b.ins().sshr_imm(value, up);
                self.set(d, value, w);
            }
            Op::SatU { d, a, bits, w } => {
                let most = low_mask(bits.into());
                let a = self.value(a);
                let value = self.at_most(a, most);
                self.set(d, value, w);
            }
            Op::SatSU { d, a, bits, w } => {
                let (a, zero) = (self.value(a), self.number(0));
                let a = self.b.ins().smax(a, zero);
                let value = self.at_most(a, low_mask(bits.into()));
                self.set(d, value, w);
            }
            Op::SatS { d, a, bits, w } => {
                let most = (low_mask(bits.into()) >> 1) as i64;
                let a = self.value(a);
                let (most, least) = (self.number(most as u64), self.number((-most - 1) as u64));
                let a = self.b.ins().smin(a, most);
                let value = self.b.ins().smax(a, least);
                self.set(d, value, w);
            }
            Op::Wide { index } => return self.limbwise(usize::from(index)),
            _ => return false,
        }
        true
    }

    fn binary(
        &mut self,
        d: Slot,
        a: Slot,
        b: Slot,
        w: u8,
        bound: u64,
        f: impl FnOnce(&mut Self, Value, Value) -> Value,
    ) {
        let (a, b) = (self.value(a), self.value(b));
        let value = f(self, a, b);
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

    fn sum_bound(&mut self, a: Slot, b: Slot) -> u64 {
        let bounds = (self.bound_of(a), self.bound_of(b));
        bounds.0.saturating_add(bounds.1)
    }

    fn union_bound(&mut self, a: Slot, b: Slot) -> u64 {
        let all = self.bound_of(a) | self.bound_of(b);
        low_mask(64 - all.leading_zeros())
    }

    fn at_most(&mut self, value: Value, most: u64) -> Value {
        if self.bound(value) <= most {
            return value;
        }
        let bound = self.number(most);
        let value = self.b.ins().umin(value, bound);
        self.set_bound(value, most);
        value
    }

    /// Distances from 64 on shift everything out.
    fn shift(
        &mut self,
        a: Slot,
        b: Slot,
        f: impl FnOnce(&mut Self, Value, Value) -> Value,
    ) -> Value {
        let value = self.value(a);
        match self.known(b) {
            Known::Const(by) if by >= 64 => self.number(0),
            Known::Const(by) => {
                let by = self.b.ins().iconst(types::I64, by as i64);
                f(self, value, by)
            }
            _ => {
                let by = self.value(b);
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
        d: Slot,
        a: Slot,
        b: Slot,
        w: u8,
        f: impl FnOnce(&mut Self, Value, Value) -> Value,
    ) {
        let (value, by) = (self.value(a), self.known(b));
        let bound = self.bound(value);
        let result = match by {
            Known::Const(0) => self.number(0),
            Known::Const(by) => {
                let by = self.number(by);
                f(self, value, by)
            }
            _ => {
                let by = self.value(b);
                let (zero, one) = (self.number(0), self.number(1));
                let is_zero = self.b.ins().icmp_imm(IntCC::Equal, by, 0);
                let divisor = self.b.ins().select(is_zero, one, by);
                let result = f(self, value, divisor);
                self.b.ins().select(is_zero, zero, result)
            }
        };
        let bound = bound.min(self.bound(result));
        self.set_bound(result, bound);
        self.set(d, result, w);
    }

    /// Operations on several limbs that know no carry.
    fn limbwise(&mut self, index: usize) -> bool {
        let op = self.native.program.wide[index];
        let unsigned = !op.a.signed && !op.b.signed;
        let is_one = matches!(
            op.kind,
            WideKind::Copy
                | WideKind::And
                | WideKind::Or
                | WideKind::Xor
                | WideKind::Not
                | WideKind::Mask(_)
                | WideKind::SetEq
        );
        if !is_one || !unsigned || op.limbs.max(op.a.limbs).max(op.b.limbs) > 8 {
            return false;
        }
        let limb = |l: &mut Self, operand: crate::compile::code::Operand, i: u16| match i < operand
            .limbs
        {
            true => l.value(operand.slot + i),
            false => l.number(0),
        };
        if op.kind == WideKind::SetEq {
            let mut differing = self.number(0);
            for i in 0..op.a.limbs.max(op.b.limbs) {
                let (a, b) = (limb(self, op.a, i), limb(self, op.b, i));
                let bits = self.b.ins().bxor(a, b);
                differing = self.b.ins().bor(differing, bits);
            }
            let equal = self.b.ins().icmp_imm(IntCC::Equal, differing, 0);
            let equal = self.b.ins().uextend(types::I64, equal);
            self.set_bound(equal, 1);
            self.set(op.d, equal, 64);
            return true;
        }
        let mut values = Vec::new();
        for i in 0..op.limbs {
            let a = limb(self, op.a, i);
            let value = match op.kind {
                WideKind::Not => self.b.ins().bnot(a),
                WideKind::Mask(bits) => match bits.saturating_sub(u32::from(i) * 64) {
                    0 => self.number(0),
                    left => self.cut(a, left.min(64) as u8),
                },
                WideKind::Copy => a,
                kind => {
                    let b = limb(self, op.b, i);
                    match kind {
                        WideKind::And => self.b.ins().band(a, b),
                        WideKind::Or => self.b.ins().bor(a, b),
                        _ => self.b.ins().bxor(a, b),
                    }
                }
            };
            values.push(value);
        }
        for (i, value) in values.into_iter().enumerate() {
            self.set(op.d + i as u16, value, 64);
        }
        true
    }
}
