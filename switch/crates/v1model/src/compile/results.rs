// SPDX-License-Identifier: Apache-2.0
//! What externs give, to any place: registers of any width, meters, random numbers, hashes. Where there is no result (an
//! index beyond the array) the place stays as it is, as in BMv2.

use super::code::{Op, Operand, Test, WideKind};
use super::emit::{Emit, Emitter, Label};
use super::expr::Expr;
use super::layout::Slot;
use super::lower::Place;
use super::names::Array;
use crate::bits::limbs_for;

/// An operation with a result of one limb to any place; `op` gets slot and width. It has none where `skip` says so.
pub(super) fn narrow(
    e: &mut Emitter,
    place: &Place,
    skip: Option<Skip>,
    op: impl FnOnce(Slot, u8) -> Op,
) -> Emit<()> {
    if let Place::Slot {
        slot,
        width: width @ 1..=64,
    } = *place
    {
        // The machine itself leaves a single slot as it is.
        e.op(op(slot, width as u8));
        return Ok(());
    }
    let temp = zeroed(e, limbs_for(place.width()).max(1))?;
    let (op, end) = (op(temp, place.width().clamp(1, 64) as u8), e.label());
    // Without a result it does nothing.
    e.op(op);
    if let Some(skip) = skip {
        skip.branch(e, end);
    }
    e.store(place, temp)?;
    e.place(end);
    Ok(())
}

/// A temporary that holds 0.
fn zeroed(e: &mut Emitter, limbs: usize) -> Emit<Slot> {
    let temp = e.temp(limbs)?;
    let zero = e.wide_constant(&vec![0; limbs])?;
    e.copy(temp, zero, limbs);
    Ok(temp)
}

/// Where an operation has no result: what the test asks of `a` and `b`.
#[derive(Clone, Copy)]
pub(super) struct Skip {
    test: Test,
    a: Slot,
    b: Slot,
}

impl Skip {
    /// `index` is beyond an array of `size`.
    pub fn if_beyond(e: &mut Emitter, index: Slot, size: u32) -> Emit<Skip> {
        Ok(Skip {
            test: Test::LeU,
            a: e.constant(size.into())?,
            b: index,
        })
    }

    /// `a` is below `b`.
    pub fn below(a: Slot, b: Slot) -> Skip {
        let test = Test::LtU;
        Skip { test, a, b }
    }

    fn branch(self, e: &mut Emitter, to: Label) {
        e.branch_if(self.test, self.a, self.b, to);
    }
}

/// `place = register[index]`.
pub(super) fn register_read(e: &mut Emitter, place: &Place, array: Array, index: Slot) -> Emit<()> {
    let (own, limbs) = (limbs_for(array.width), limbs_for(place.width()).max(1));
    let register = array.id;
    if own == 1 {
        if let Place::Slot {
            slot,
            width: w @ 1..=64,
        } = place
        {
            // The machine itself leaves a single slot as it is.
            e.read_register(register, index, *slot, 1, *w as u8);
            return Ok(());
        }
    }
    let (skip, end) = (Skip::if_beyond(e, index, array.size)?, e.label());
    let d = zeroed(e, own.max(limbs))?;
    e.read_register(register, index, d, own, 64);
    skip.branch(e, end);
    if place.width() < array.width {
        let a = Operand::new(d, limbs, false);
        e.wide(WideKind::Mask(place.width()), d, limbs, a, a);
    }
    e.store(place, d)?;
    e.place(end);
    Ok(())
}

/// `register[index] = value`.
pub(super) fn register_write(e: &mut Emitter, array: Array, index: Slot, value: &Expr) -> Emit<()> {
    let (register, width) = (array.id, array.width);
    let limbs = limbs_for(width);
    let range = value.range();
    let a = if !range.signed && range.bits <= width {
        e.modular(value, limbs, None)?
    } else {
        let temp = e.temp(limbs)?;
        e.modular(value, limbs, Some((temp, width)))?
    };
    e.op(if limbs == 1 {
        Op::RegisterWrite { register, index, a }
    } else {
        Op::RegisterWriteWide {
            register,
            index,
            a,
            limbs: limbs as u16,
        }
    });
    Ok(())
}
