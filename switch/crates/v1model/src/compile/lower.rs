// SPDX-License-Identifier: Apache-2.0
//! Expressions to operations. BMv2 computes with integers of infinite precision; here every value is computed
//! modulo 2^(64·limbs), in as few limbs as its use and its range allow: one, nearly always.
//!
//! Conditions to branches: a boolean becomes a number only where a number is asked for.

use num_bigint::BigInt;

use super::alu::BITS_MAX;
use super::code::{Alu, Op, Operand, Test, WideKind};
use super::emit::{Emit, Emitter, Label};
use super::expr::{Cond, Expr, HeaderRef};
use super::layout::{Slot, ONE, ZERO};
use crate::bits::limbs_for;
use crate::json::to_limbs;

/// Where a value is to be put: slot, and bits to cut it to.
pub(crate) type Want = Option<(Slot, u32)>;

/// Slot and limbs of a result, and the bits that it is cut to.
pub(crate) type To = (Slot, usize, u32);

/// A place that can be assigned to.
#[derive(Clone, Debug)]
pub(crate) enum Place {
    Slot {
        slot: Slot,
        width: u32,
    },
    Element {
        header: HeaderRef,
        offset: u16,
        width: u32,
    },
}

impl Place {
    /// Expressions that are places.
    pub fn from_expr(expr: Expr) -> Option<Place> {
        match expr {
            Expr::Field(field) => Some(Place::Slot {
                slot: field.slot,
                width: field.width,
            }),
            Expr::Element {
                header,
                offset,
                width,
                ..
            } => Some(Place::Element {
                header,
                offset,
                width,
            }),
            _ => None,
        }
    }

    pub fn width(&self) -> u32 {
        match self {
            Place::Slot { width, .. } | Place::Element { width, .. } => *width,
        }
    }
}

pub(super) fn narrow(slot: Slot) -> Operand {
    Operand::new(slot, 1, false)
}

impl Emitter<'_> {
    /// `place = expr`, cut to the place's width.
    pub fn assign(&mut self, place: &Place, expr: &Expr) -> Emit<()> {
        match place.width() {
            0 => Ok(()),
            _ => self.put(place, |e, (d, limbs, w)| {
                e.modular(expr, limbs, Some((d, w)))
            }),
        }
    }

    /// Has `f` emit what gives a place another value, or leaves it as it is.
    pub fn put<R>(&mut self, place: &Place, f: impl FnOnce(&mut Self, To) -> Emit<R>) -> Emit<()> {
        let width = place.width();
        let limbs = limbs_for(width);
        match place {
            Place::Slot { slot, .. } => {
                f(self, (*slot, limbs, width))?;
            }
            Place::Element { header, offset, .. } => {
                let (temp, element) = (self.temp(limbs)?, self.element(header)?);
                let (offset, d) = (*offset, temp);
                let count = limbs as u16;
                self.op(Op::LoadElement {
                    d,
                    element,
                    offset,
                    limbs: count,
                });
                f(self, (temp, limbs, width))?;
                self.op(Op::StoreElement {
                    a: temp,
                    element,
                    offset,
                    limbs: count,
                });
            }
        }
        Ok(())
    }

    /// The same for an operation, which gets slot, limbs and bits.
    pub fn result(&mut self, place: &Place, op: impl FnOnce(Slot, u16, u32) -> Op) -> Emit<()> {
        self.put(place, |e, (d, limbs, w)| {
            e.op(op(d, limbs as u16, w));
            Ok(())
        })
    }

    /// The register's value to a place, which stays as it is where `index` is beyond the array.
    pub fn read_register(&mut self, place: &Place, register: u16, index: Slot) -> Emit<()> {
        self.result(place, |d, limbs, w| Op::RegisterRead {
            register,
            index,
            d,
            limbs,
            w,
        })
    }

    /// The exact value.
    pub fn exact(&mut self, expr: &Expr) -> Emit<Operand> {
        let range = expr.range();
        if range.bits > BITS_MAX {
            return Err(format!(
                "an intermediate value may have {} bits, more than {BITS_MAX}",
                range.bits
            ));
        }
        let limbs = range.limbs();
        let slot = self.modular(expr, limbs, None)?;
        Ok(Operand::new(slot, limbs, range.signed))
    }

    /// An operand that is right modulo 2^(64·limbs).
    fn operand(&mut self, expr: &Expr, limbs: usize) -> Emit<Operand> {
        let range = expr.range();
        if range.limbs() <= limbs {
            return self.exact(expr);
        }
        let slot = self.modular(expr, limbs, None)?;
        Ok(Operand::new(slot, limbs, false))
    }

    /// The value modulo 2^(64·limbs), in `limbs` limbs; in `want`'s slot, cut to its bits, when given.
    pub fn modular(&mut self, expr: &Expr, limbs: usize, want: Want) -> Emit<Slot> {
        match expr {
            Expr::Const(value) => {
                let slot = self.wide_constant(&to_limbs(value, limbs))?;
                self.deliver(Operand::new(slot, limbs, false), limbs, want)
            }
            Expr::Field(field) => self.leaf(field.slot, field.width, field.signed, limbs, want),
            Expr::Local { offset, width } => {
                self.leaf(self.args + offset, *width, false, limbs, want)
            }
            Expr::Element {
                header,
                offset,
                width,
                signed,
            } => {
                let own = limbs_for(*width).max(1);
                let d = self.temp(own)?;
                let element = self.element(header)?;
                self.op(Op::LoadElement {
                    d,
                    element,
                    offset: *offset,
                    limbs: own as u16,
                });
                self.leaf(d, *width, *signed, limbs, want)
            }
            Expr::Register {
                register,
                width,
                index,
            } => {
                let own = limbs_for(*width);
                let index = self.modular(index, 1, None)?;
                let (register, d, zero) = (*register, self.temp(own)?, vec![0; own]);
                // Out of range it is 0.
                let zero = self.wide_constant(&zero)?;
                self.copy(d, zero, own);
                let (slot, width) = (d, *width);
                self.read_register(&Place::Slot { slot, width }, register, index)?;
                self.leaf(d, width, false, limbs, want)
            }
            Expr::Arith(alu, a, b) => self.arith(*alu, a, b, expr, limbs, want),
            Expr::Not(a) => {
                let a = self.operand(a, limbs)?;
                self.compute(Alu::Not, limbs, a, narrow(ZERO), want)
            }
            Expr::TwoCompMod(a, width) => {
                let own = limbs_for(*width);
                let slot = self.modular(a, own, None)?;
                self.sign_extended(Operand::new(slot, own, false), *width, limbs, want)
            }
            Expr::USatCast(a, bits) | Expr::SatCast(a, bits) => {
                let to_signed = matches!(expr, Expr::SatCast(..));
                self.saturate(a, *bits, to_signed, limbs, want)
            }
            Expr::If(cond, a, b) => {
                let d = match want {
                    Some((d, _)) => d,
                    None => self.temp(limbs)?,
                };
                let w = want.map_or(limbs as u32 * 64, |(_, w)| w);
                let (no, end) = (self.label(), self.label());
                self.branch(cond, false, no)?;
                self.modular(a, limbs, Some((d, w)))?;
                self.jump(end);
                self.place(no);
                self.modular(b, limbs, Some((d, w)))?;
                self.place(end);
                Ok(d)
            }
            Expr::FromBool(cond) => {
                let d = want.filter(|_| limbs == 1).map(|(d, _)| d);
                let slot = self.boolean(cond, d)?;
                match d {
                    Some(d) => Ok(d),
                    None => self.deliver(narrow(slot), limbs, want),
                }
            }
            Expr::StackSize(stack) => {
                let next = self.layout.stacks[*stack].next;
                self.deliver(narrow(next), limbs, want)
            }
            Expr::LastIndex(stack) => {
                let (a, d) = (self.layout.stacks[*stack].next, self.temp(1)?);
                self.op(Op::alu(Alu::Sub, d, a, ONE, 64));
                self.deliver(narrow(d), limbs, want)
            }
        }
    }

    pub fn copy(&mut self, d: Slot, a: Slot, limbs: usize) {
        let (a, w) = (Operand::new(a, limbs, false), limbs as u32 * 64);
        self.alu(Alu::Move, (d, limbs, w), a, narrow(ZERO));
    }

    /// An operation modulo 2^w, whose result takes so many limbs.
    fn alu(&mut self, alu: Alu, (d, limbs, w): To, a: Operand, b: Operand) {
        match (limbs, a.limbs, b.limbs) {
            (1, 1, 1) => self.op(Op::alu(alu, d, a.slot, b.slot, w.min(64) as u8)),
            _ => self.wide(WideKind::Alu(alu), (d, limbs, w), a, b),
        }
    }

    /// An operation modulo 2^(64·limbs).
    pub fn compute(
        &mut self,
        alu: Alu,
        limbs: usize,
        a: Operand,
        b: Operand,
        want: Want,
    ) -> Emit<Slot> {
        let (d, w) = match want {
            Some(want) => want,
            None => (self.temp(limbs)?, limbs as u32 * 64),
        };
        self.alu(alu, (d, limbs, w), a, b);
        Ok(d)
    }

    /// An operation of which so many limbs of its own are exact, `signed` or not, as `limbs` limbs.
    fn compute_exact(
        &mut self,
        alu: Alu,
        (own, signed): (usize, bool),
        (a, b): (Operand, Operand),
        limbs: usize,
        want: Want,
    ) -> Emit<Slot> {
        if own == limbs {
            return self.compute(alu, limbs, a, b, want);
        }
        let slot = self.compute(alu, own, a, b, None)?;
        self.deliver(Operand::new(slot, own, signed), limbs, want)
    }

    fn sign_extended(&mut self, a: Operand, from: u32, limbs: usize, want: Want) -> Emit<Slot> {
        let (own, operands) = (usize::from(a.limbs), (a, narrow(ZERO)));
        self.compute_exact(Alu::SignExtend(from), (own, true), operands, limbs, want)
    }

    /// A value that is there, as `limbs` limbs, in `want`.
    pub fn deliver(&mut self, a: Operand, limbs: usize, want: Want) -> Emit<Slot> {
        if want.is_none() && usize::from(a.limbs) >= limbs {
            return Ok(a.slot);
        }
        let own = usize::from(a.limbs).min(limbs);
        let a = Operand::new(a.slot, own, a.signed);
        self.compute(Alu::Move, limbs, a, narrow(ZERO), want)
    }

    fn leaf(
        &mut self,
        slot: Slot,
        width: u32,
        signed: bool,
        limbs: usize,
        want: Want,
    ) -> Emit<Slot> {
        let own = limbs_for(width);
        if own == 0 {
            return self.deliver(narrow(ZERO), limbs, want);
        }
        let value = Operand::new(slot, own, false);
        // Cut to no more than the field's own bits, its sign does not matter.
        match signed && want.is_none_or(|(_, w)| w > width) {
            true => self.sign_extended(value, width, limbs, want),
            false => self.deliver(value, limbs, want),
        }
    }

    fn arith(
        &mut self,
        alu: Alu,
        a: &Expr,
        b: &Expr,
        whole: &Expr,
        limbs: usize,
        want: Want,
    ) -> Emit<Slot> {
        match alu {
            Alu::And => {
                if let Some(slot) = self.and_mask(a, b, limbs, want)? {
                    return Ok(slot);
                }
            }
            Alu::Shl => {
                let (b, a) = (self.exact(b)?, self.operand(a, limbs)?);
                return self.compute(alu, limbs, a, b, want);
            }
            Alu::ShrU => {
                let (b, a) = (self.exact(b)?, self.exact(a)?);
                let alu = if a.signed { Alu::ShrS } else { alu };
                let own = (a.limbs.into(), a.signed);
                return self.compute_exact(alu, own, (a, b), limbs, want);
            }
            Alu::DivU | Alu::ModU => {
                let (a, b) = (self.exact(a)?, self.exact(b)?);
                if a.signed || b.signed {
                    return Err(
                        "division and modulo of values that may be negative are not defined in P4"
                            .into(),
                    );
                }
                let own = whole.range().limbs().max(usize::from(a.limbs));
                return self.compute_exact(alu, (own, false), (a, b), limbs, want);
            }
            _ => {}
        }
        let (a, b) = (self.operand(a, limbs)?, self.operand(b, limbs)?);
        self.compute(alu, limbs, a, b, want)
    }

    /// `x & (2^bits - 1)`: the low bits of x, for which x need not be exact.
    fn and_mask(&mut self, a: &Expr, b: &Expr, limbs: usize, want: Want) -> Emit<Option<Slot>> {
        let (x, mask) = match (a, b) {
            (x, Expr::Const(mask)) | (Expr::Const(mask), x) => (x, mask),
            _ => return Ok(None),
        };
        let bits = mask.bits() as u32;
        let own = limbs_for(bits);
        if *mask <= BigInt::ZERO || (mask + 1u8).trailing_zeros() != Some(bits.into()) {
            return Ok(None);
        }
        if own > limbs {
            return self.modular(x, limbs, want).map(Some);
        }
        let w = want.map_or(bits, |(_, w)| w.min(bits));
        let d = match want.filter(|_| own == limbs) {
            Some((d, _)) => d,
            None => self.temp(own)?,
        };
        let slot = self.modular(x, own, Some((d, w)))?;
        match own == limbs {
            true => Ok(Some(slot)),
            false => self
                .deliver(Operand::new(slot, own, false), limbs, want)
                .map(Some),
        }
    }

    fn saturate(
        &mut self,
        a: &Expr,
        bits: u32,
        to_signed: bool,
        limbs: usize,
        want: Want,
    ) -> Emit<Slot> {
        let a = self.exact(a)?;
        let own = limbs_for(bits).max(usize::from(a.limbs));
        let alu = match (to_signed, a.signed) {
            (true, true) => Alu::SatS(bits),
            (true, false) => Alu::SatU(bits - 1),
            (false, true) => Alu::SatSU(bits),
            (false, false) => Alu::SatU(bits),
        };
        self.compute_exact(alu, (own, to_signed), (a, narrow(ZERO)), limbs, want)
    }
}

impl Emitter<'_> {
    /// 0 or 1, in `want` when given.
    pub fn boolean(&mut self, cond: &Cond, want: Option<Slot>) -> Emit<Slot> {
        if want.is_none() {
            match cond {
                Cond::Const(value) => return Ok(if *value { ONE } else { ZERO }),
                Cond::Valid(HeaderRef::Fixed(header)) => {
                    return Ok(self.layout.headers[*header].valid)
                }
                _ => {}
            }
        }
        // The result may be an operand of the condition: it is written last.
        let d = match want {
            Some(d) => d,
            None => self.temp(1)?,
        };
        let (no, end) = (self.label(), self.label());
        self.branch(cond, false, no)?;
        self.op(Op::copy(d, ONE));
        self.jump(end);
        self.place(no);
        self.op(Op::copy(d, ZERO));
        self.place(end);
        Ok(d)
    }

    /// Jumps to `to` when `cond` is `sense`.
    pub fn branch(&mut self, cond: &Cond, sense: bool, to: Label) -> Emit<()> {
        match cond {
            Cond::Const(value) => {
                if *value == sense {
                    self.jump(to);
                }
            }
            Cond::Compare(op, a, b) => {
                let (ra, rb) = (a.range(), b.range());
                let (mut a, mut b) = (self.exact(a)?, self.exact(b)?);
                // An unsigned value below 2^63 reads the same when taken as signed.
                a.signed |= rb.signed && ra.bits < 64;
                b.signed |= ra.signed && rb.bits < 64;
                self.compare(*op, a, b, sense, to)?;
            }
            Cond::And(a, b) | Cond::Or(a, b) => {
                // `a and b` is false as soon as a is; `a or b` true as soon as a is.
                let decides = matches!(cond, Cond::Or(..));
                if sense == decides {
                    self.branch(a, decides, to)?;
                    self.branch(b, sense, to)?;
                } else {
                    let end = self.label();
                    self.branch(a, decides, end)?;
                    self.branch(b, sense, to)?;
                    self.place(end);
                }
            }
            Cond::Not(a) => self.branch(a, !sense, to)?,
            Cond::If(c, a, b) => {
                let (no, end) = (self.label(), self.label());
                self.branch(c, false, no)?;
                self.branch(a, sense, to)?;
                self.jump(end);
                self.place(no);
                self.branch(b, sense, to)?;
                self.place(end);
            }
            Cond::Valid(header) => {
                let valid = self.valid(header)?;
                self.test(valid, sense, to);
            }
            Cond::HeadersEqual(a, b) => {
                let (d, (a, b)) = (self.temp(1)?, self.two_elements(a, b)?);
                self.op(Op::SetHeadersEqual { d, a, b });
                self.test(d, sense, to);
            }
        }
        Ok(())
    }

    fn test(&mut self, a: Slot, sense: bool, to: Label) {
        let test = if sense { Test::Ne } else { Test::Eq };
        self.branch_if(test, a, ZERO, to);
    }

    /// The slot of a header's validity.
    fn valid(&mut self, header: &HeaderRef) -> Emit<Slot> {
        match header {
            HeaderRef::Fixed(index) => Ok(self.layout.headers[*index].valid),
            HeaderRef::Element { .. } => {
                let (d, element) = (self.temp(1)?, self.element(header)?);
                self.op(Op::LoadElement {
                    d,
                    element,
                    offset: 0,
                    limbs: 1,
                });
                Ok(d)
            }
        }
    }

    fn compare(&mut self, test: Test, a: Operand, b: Operand, sense: bool, to: Label) -> Emit<()> {
        // The opposite of a < b is b <= a.
        let (test, a, b) = match (test, sense) {
            (Test::Eq, false) => (Test::Ne, a, b),
            (Test::Ne, false) => (Test::Eq, a, b),
            (Test::LtU, false) => (Test::LeU, b, a),
            (_, false) => (Test::LtU, b, a),
            (test, true) => (test, a, b),
        };
        // One limb each, and both read the same way. (An unsigned limb beside a signed one may exceed 2^63.)
        if a.limbs == 1 && b.limbs == 1 && a.signed == b.signed {
            let test = match test {
                Test::LtU if a.signed => Test::LtS,
                Test::LeU if a.signed => Test::LeS,
                test => test,
            };
            self.branch_if(test, a.slot, b.slot, to);
            return Ok(());
        }
        let d = self.temp(1)?;
        self.wide(WideKind::Test(test), (d, 1, 64), a, b);
        self.test(d, true, to);
        Ok(())
    }
}
