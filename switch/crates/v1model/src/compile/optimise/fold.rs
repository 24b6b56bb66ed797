// SPDX-License-Identifier: Apache-2.0
//! Arithmetic of one limb as data: operands of an operation, its result for constants, the largest that it may be.

use std::mem::Discriminant;

use crate::bits::low_mask;
use crate::compile::code::Op;
use crate::compile::layout::Slot;

/// An operation of one limb that does nothing but compute `d`.
pub(super) struct Alu {
    pub kind: Discriminant<Op>,
    pub d: Slot,
    pub a: Slot,
    pub b: Option<Slot>,
    /// Bits that the result is cut to.
    pub w: u8,
    /// `bits` or `from` of the operation.
    pub bits: u8,
}

/// `op` taken apart, if it is one of arithmetic.
pub(super) fn alu(op: &Op) -> Option<Alu> {
    let (d, a, b, w, bits) = match *op {
        Op::Move { d, a, w } | Op::Not { d, a, w } => (d, a, None, w, 0),
        Op::SignExtend { d, a, from, w } => (d, a, None, w, from),
        Op::SatU { d, a, bits, w } | Op::SatSU { d, a, bits, w } | Op::SatS { d, a, bits, w } => {
            (d, a, None, w, bits)
        }
        Op::Add { d, a, b, w }
        | Op::Sub { d, a, b, w }
        | Op::Mul { d, a, b, w }
        | Op::And { d, a, b, w }
        | Op::Or { d, a, b, w }
        | Op::Xor { d, a, b, w }
        | Op::Shl { d, a, b, w }
        | Op::ShrU { d, a, b, w }
        | Op::ShrS { d, a, b, w }
        | Op::DivU { d, a, b, w }
        | Op::ModU { d, a, b, w } => (d, a, Some(b), w, 0),
        _ => return None,
    };
    Some(Alu {
        kind: std::mem::discriminant(op),
        d,
        a,
        b,
        w,
        bits,
    })
}

/// True when the operands may change places.
pub(super) fn commutes(op: &Op) -> bool {
    matches!(
        op,
        Op::Add { .. } | Op::Mul { .. } | Op::And { .. } | Op::Or { .. } | Op::Xor { .. }
    )
}

/// The slots of one limb that `op` reads as numbers.
pub(super) fn operands(op: &mut Op) -> Vec<&mut Slot> {
    match op {
        Op::Move { a, .. }
        | Op::Not { a, .. }
        | Op::SignExtend { a, .. }
        | Op::SatU { a, .. }
        | Op::SatSU { a, .. }
        | Op::SatS { a, .. }
        | Op::Truncate { a }
        | Op::Assert { a, .. } => vec![a],
        Op::Add { a, b, .. }
        | Op::Sub { a, b, .. }
        | Op::Mul { a, b, .. }
        | Op::And { a, b, .. }
        | Op::Or { a, b, .. }
        | Op::Xor { a, b, .. }
        | Op::Shl { a, b, .. }
        | Op::ShrU { a, b, .. }
        | Op::ShrS { a, b, .. }
        | Op::DivU { a, b, .. }
        | Op::ModU { a, b, .. } => vec![a, b],
        Op::Push { n, .. } | Op::Pop { n, .. } => vec![n],
        Op::Count { index, .. }
        | Op::Meter { index, .. }
        | Op::RegisterRead { index, .. }
        | Op::RegisterReadWide { index, .. }
        | Op::RegisterWriteWide { index, .. } => vec![index],
        Op::RegisterWrite { index, a, .. } => vec![index, a],
        Op::Hash { base, size, .. } => vec![base, size],
        Op::Random { low, high, .. } => vec![low, high],
        Op::Clone { session, .. } => vec![session],
        Op::ExtractVarbit { bits, .. }
        | Op::ExtractNextVarbit { bits, .. }
        | Op::Advance { bits } => vec![bits],
        Op::ParserError { code } => vec![code],
        _ => Vec::new(),
    }
}

/// What `op` computes from these operands, as the machine does.
pub(super) fn compute(op: &Op, a: u64, b: u64) -> Option<u64> {
    let signed_shift = |bits: u8| 64 - u32::from(bits);
    let Alu { w, bits, .. } = alu(op)?;
    let value = match op {
        Op::Move { .. } => a,
        Op::Not { .. } => !a,
        Op::SignExtend { .. } => (((a << signed_shift(bits)) as i64) >> signed_shift(bits)) as u64,
        Op::SatU { .. } => a.min(low_mask(bits.into())),
        Op::SatSU { .. } => ((a as i64).max(0) as u64).min(low_mask(bits.into())),
        Op::SatS { .. } => {
            let most = (low_mask(bits.into()) >> 1) as i64;
            (a as i64).clamp(-most - 1, most) as u64
        }
        Op::Add { .. } => a.wrapping_add(b),
        Op::Sub { .. } => a.wrapping_sub(b),
        Op::Mul { .. } => a.wrapping_mul(b),
        Op::And { .. } => a & b,
        Op::Or { .. } => a | b,
        Op::Xor { .. } => a ^ b,
        Op::Shl { .. } => u32::try_from(b).map_or(0, |b| a.checked_shl(b).unwrap_or(0)),
        Op::ShrU { .. } => u32::try_from(b).map_or(0, |b| a.checked_shr(b).unwrap_or(0)),
        Op::ShrS { .. } => ((a as i64) >> b.min(63)) as u64,
        Op::DivU { .. } => a.checked_div(b).unwrap_or(0),
        Op::ModU { .. } => a.checked_rem(b).unwrap_or(0),
        _ => return None,
    };
    Some(value & low_mask(w.into()))
}

/// The largest result of `op` for operands of at most `a` and `b`; `shift` is the second one where it is a constant.
pub(super) fn upper_bound(op: &Op, a: u64, b: u64, shift: Option<u64>) -> u64 {
    let Some(Alu { w, bits, .. }) = alu(op) else {
        return u64::MAX;
    };
    let ones = |most: u64| match most {
        0 => 0,
        most => u64::MAX >> most.leading_zeros(),
    };
    let all = match op {
        Op::Move { .. } | Op::DivU { .. } | Op::ModU { .. } => a,
        Op::Add { .. } => a.saturating_add(b),
        Op::Mul { .. } => a.saturating_mul(b),
        Op::And { .. } => a.min(b),
        Op::Or { .. } | Op::Xor { .. } => ones(a | b),
        Op::SatU { .. } => a.min(low_mask(bits.into())),
        Op::ShrU { .. } => shift.map_or(a, |n| if n < 64 { a >> n } else { 0 }),
        Op::Shl { .. } => match shift {
            Some(n) if n <= u64::from(a.leading_zeros().min(63)) => a << n,
            _ => u64::MAX,
        },
        _ => u64::MAX,
    };
    // What does not fit may wrap to anything that does.
    if all <= low_mask(w.into()) {
        all
    } else {
        low_mask(w.into())
    }
}
