// SPDX-License-Identifier: Apache-2.0
//! Arithmetic and comparisons: what each computes of numbers of one limb, for the interpreter and for constants, and the
//! largest that its result may be. Those of several limbs are in `exec::wide`.
//!
//! The range of values that an expression can take, whatever the packet.

use std::cmp::Ordering;

use num_bigint::BigInt;

use super::expr::Expr;
use super::layout::Field;
use crate::bits::low_mask;

/// What an operation computes from `a` and `b`; those of one operand leave `b` alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Alu {
    Move,
    Not,
    /// Sign-extends the low bits, so many.
    SignExtend(u32),
    /// min(a, 2^bits - 1), unsigned.
    SatU(u32),
    /// A signed value to 0..2^bits.
    SatSU(u32),
    /// A signed value to bits signed bits.
    SatS(u32),
    Add,
    Sub,
    Mul,
    And,
    Or,
    Xor,
    /// Distances from 64 on shift everything out.
    Shl,
    ShrU,
    ShrS,
    /// By zero gives 0.
    DivU,
    ModU,
}

impl Alu {
    /// The result, cut to its low `w` bits.
    pub fn compute(self, a: u64, b: u64, w: u8) -> u64 {
        let distance = u32::try_from(b).unwrap_or(u32::MAX);
        let value = match self {
            Alu::Move => a,
            Alu::Not => !a,
            Alu::SignExtend(from) => {
                let up = 64 - from;
                (((a << up) as i64) >> up) as u64
            }
            Alu::SatU(bits) => a.min(low_mask(bits)),
            Alu::SatSU(bits) => ((a as i64).max(0) as u64).min(low_mask(bits)),
            Alu::SatS(bits) => {
                let max = (low_mask(bits) >> 1) as i64;
                (a as i64).clamp(-max - 1, max) as u64
            }
            Alu::Add => a.wrapping_add(b),
            Alu::Sub => a.wrapping_sub(b),
            Alu::Mul => a.wrapping_mul(b),
            Alu::And => a & b,
            Alu::Or => a | b,
            Alu::Xor => a ^ b,
            Alu::Shl => a.checked_shl(distance).unwrap_or(0),
            Alu::ShrU => a.checked_shr(distance).unwrap_or(0),
            Alu::ShrS => ((a as i64) >> b.min(63)) as u64,
            Alu::DivU => a.checked_div(b).unwrap_or(0),
            Alu::ModU => a.checked_rem(b).unwrap_or(0),
        };
        value & low_mask(w.into())
    }

    /// The largest result for operands of at most `a` and `b`; `shift` is the second one where it is a constant.
    pub fn upper_bound(self, a: u64, b: u64, shift: Option<u64>, w: u8) -> u64 {
        let ones = |max: u64| low_mask(64 - max.leading_zeros());
        let all = match self {
            Alu::Move | Alu::DivU => a,
            Alu::ModU => a.min(b.saturating_sub(1)),
            Alu::Add => a.saturating_add(b),
            Alu::Mul => a.saturating_mul(b),
            Alu::And => a.min(b),
            Alu::Or | Alu::Xor => ones(a | b),
            Alu::SatU(bits) => a.min(low_mask(bits)),
            Alu::SatSU(bits) => low_mask(bits),
            Alu::ShrU => shift.map_or(a, |n| if n < 64 { a >> n } else { 0 }),
            Alu::Shl => match shift {
                Some(n) if n <= u64::from(a.leading_zeros().min(63)) => a << n,
                _ => u64::MAX,
            },
            _ => u64::MAX,
        };
        // What does not fit may wrap to anything that does.
        all.min(low_mask(w.into()))
    }
}

/// What a branch asks of two numbers; S: signed, U: unsigned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Test {
    Eq,
    Ne,
    LtU,
    LeU,
    LtS,
    LeS,
}

impl Test {
    /// Of numbers in this order, whose signs are considered.
    pub fn of(self, order: Ordering) -> bool {
        match self {
            Test::Eq => order.is_eq(),
            Test::Ne => order.is_ne(),
            Test::LtU | Test::LtS => order.is_lt(),
            Test::LeU | Test::LeS => order.is_le(),
        }
    }

    pub fn holds(self, a: u64, b: u64) -> bool {
        self.of(match self {
            Test::LtS | Test::LeS => (a as i64).cmp(&(b as i64)),
            _ => a.cmp(&b),
        })
    }
}

/// Bounds of a value: 0 ≤ v < 2^bits, or -2^bits ≤ v < 2^bits when signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    pub signed: bool,
    pub bits: u32,
}

impl Range {
    pub const fn unsigned(bits: u32) -> Range {
        Range {
            signed: false,
            bits,
        }
    }

    pub const fn signed(bits: u32) -> Range {
        Range { signed: true, bits }
    }

    /// Limbs of a two's complement (or unsigned) representation.
    pub fn limbs(self) -> usize {
        let bits = self.bits.saturating_add(self.signed.into());
        bits.div_ceil(64).max(1) as usize
    }

    fn join(self, other: Range) -> Range {
        Range {
            signed: self.signed || other.signed,
            bits: self.bits.max(other.bits),
        }
    }
}

/// Widest intermediate value, bits.
pub(crate) const BITS_MAX: u32 = 1 << 16;

impl Expr {
    /// Where the value lies, whatever the packet.
    pub fn range(&self) -> Range {
        match self {
            Expr::Const(value) => Range {
                signed: *value < BigInt::ZERO,
                bits: value.bits() as u32,
            },
            Expr::Field(Field {
                width,
                signed: true,
                ..
            })
            | Expr::Element {
                width,
                signed: true,
                ..
            } => Range::signed(width.saturating_sub(1)),
            Expr::Field(Field { width, .. })
            | Expr::Element { width, .. }
            | Expr::Local { width, .. }
            | Expr::Register { width, .. } => Range::unsigned(*width),
            Expr::Arith(op, a, b) => arith_range(*op, a, b),
            Expr::Not(a) => Range::signed(a.range().bits),
            Expr::TwoCompMod(_, width) | Expr::SatCast(_, width) => {
                Range::signed(width.saturating_sub(1))
            }
            Expr::USatCast(_, width) => Range::unsigned(*width),
            Expr::If(_, a, b) => a.range().join(b.range()),
            Expr::FromBool(_) => Range::unsigned(1),
            Expr::StackSize(_) | Expr::LastIndex(_) => Range::unsigned(64),
        }
    }
}

fn arith_range(op: Alu, a: &Expr, b: &Expr) -> Range {
    let (ra, rb) = (a.range(), b.range());
    let signed = ra.signed || rb.signed;
    let most = ra.bits.max(rb.bits);
    match op {
        Alu::Add => Range {
            signed,
            bits: most.saturating_add(1),
        },
        Alu::Sub if signed => Range::signed(most.saturating_add(1)),
        Alu::Sub => Range::signed(most),
        Alu::Mul => Range {
            signed,
            bits: (ra.bits.saturating_add(rb.bits))
                .saturating_add(u32::from(ra.signed && rb.signed)),
        },
        Alu::DivU => Range {
            signed,
            bits: ra.bits.saturating_add(u32::from(signed)),
        },
        Alu::ModU => Range {
            signed: ra.signed,
            bits: ra.bits,
        },
        Alu::And if ra.signed && rb.signed => Range::signed(most),
        Alu::And if ra.signed => rb,
        Alu::And if rb.signed => ra,
        Alu::And => Range::unsigned(ra.bits.min(rb.bits)),
        Alu::Shl => {
            let shift = match b {
                Expr::Const(value) => u64::try_from(value).unwrap_or(u64::MAX),
                _ => 1u64.checked_shl(rb.bits.min(64)).unwrap_or(u64::MAX),
            };
            let bits = u64::from(ra.bits)
                .saturating_add(shift)
                .min(u64::from(u32::MAX / 2));
            Range {
                signed: ra.signed,
                bits: bits as u32,
            }
        }
        Alu::ShrU => match b {
            Expr::Const(value) => {
                let shift = u64::try_from(value)
                    .unwrap_or(u64::MAX)
                    .min(u64::from(ra.bits));
                Range {
                    signed: ra.signed,
                    bits: ra.bits - shift as u32,
                }
            }
            _ => ra,
        },
        _ => Range { signed, bits: most },
    }
}
