// SPDX-License-Identifier: Apache-2.0
//! Conditions to branches: a boolean becomes a number only where a number is asked for.

use super::code::{Op, Operand, Test, WideKind};
use super::emit::{Emit, Emitter, Label};
use super::expr::{Cond, HeaderRef};
use super::layout::{Slot, ONE, ZERO};

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
