// SPDX-License-Identifier: Apache-2.0
//! The range of values that an expression can take, whatever the packet.

use num_bigint::BigInt;

use super::code::Alu;
use super::expr::Expr;
use super::layout::Field;

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
