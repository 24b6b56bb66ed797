// SPDX-License-Identifier: Apache-2.0
//! Arithmetic of one limb as data: operands of an operation and the largest that its result may be.

use crate::bits::low_mask;
use crate::compile::code::{mask, Alu, Op};
use crate::compile::layout::{Slot, ZERO};

/// An operation of one limb that does nothing but compute `d`.
#[derive(Clone, Copy)]
pub(super) struct Arithmetic {
    pub kind: Alu,
    pub d: Slot,
    pub a: Slot,
    pub b: Slot,
    /// Bits that the result is cut to.
    pub w: u8,
}

/// `op` taken apart, if it is one of arithmetic; a move is an `or` with 0.
pub(super) fn arithmetic(op: &Op) -> Option<Arithmetic> {
    let (kind, d, a, b, w) = match *op {
        Op::Move { d, a, w } => (Alu::Or, d, a, ZERO, w),
        Op::Alu { kind, d, a, b, w } => (kind, d, a, b, w),
        _ => return None,
    };
    Some(Arithmetic { kind, d, a, b, w })
}

/// The largest result of an operation, cut to `w` bits, on operands of at most `a` and `b`; `constant` is the second one
/// where it is known.
pub(super) fn most(kind: Alu, w: u8, a: u64, b: u64, constant: Option<u64>) -> u64 {
    let ones = |most: u64| match most {
        0 => 0,
        most => u64::MAX >> most.leading_zeros(),
    };
    let all = match kind {
        Alu::Or | Alu::Xor if b == 0 => a,
        Alu::Or | Alu::Xor => ones(a | b),
        Alu::DivU | Alu::ModU => a,
        Alu::Add => a.saturating_add(b),
        Alu::Mul => a.saturating_mul(b),
        Alu::And => a.min(b),
        Alu::SatU(bits) => a.min(low_mask(bits.into())),
        Alu::ShrU => constant.map_or(a, |n| if n < 64 { a >> n } else { 0 }),
        Alu::Shl => match constant {
            Some(n) if n <= u64::from(a.leading_zeros().min(63)) => a << n,
            _ => u64::MAX,
        },
        _ => u64::MAX,
    };
    // What does not fit may wrap to anything that does.
    all.min(mask(w))
}
