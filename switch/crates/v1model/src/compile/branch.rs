// SPDX-License-Identifier: Apache-2.0
//! Conditions to branches: a boolean becomes a number only where a number is asked for.

use super::code::{alu, Alu, Op, Operand, Test, WideKind};
use super::emit::{Emit, Emitter, Label};
use super::expr::{Compare, Cond, HeaderRef};
use super::layout::{Slot, ONE, ZERO};
use super::lower::narrow;

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
        self.copy(d, ONE, 1);
        self.op(Op::Jump { to: end });
        self.place(no);
        self.copy(d, ZERO, 1);
        self.place(end);
        Ok(d)
    }

    /// Jumps to `to` when `cond` is `sense`.
    pub fn branch(&mut self, cond: &Cond, sense: bool, to: Label) -> Emit<()> {
        match cond {
            Cond::Const(value) => {
                if *value == sense {
                    self.op(Op::Jump { to });
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
            Cond::Equal(a, b) => {
                let (a, b) = (self.boolean(a, None)?, self.boolean(b, None)?);
                let test = if sense { Test::Eq } else { Test::Ne };
                self.op(Op::Br { test, a, b, to });
            }
            Cond::If(c, a, b) => {
                let (no, end) = (self.label(), self.label());
                self.branch(c, false, no)?;
                self.branch(a, sense, to)?;
                self.op(Op::Jump { to: end });
                self.place(no);
                self.branch(b, sense, to)?;
                self.place(end);
            }
            Cond::NonZero(a) => {
                let a = self.exact(a)?;
                self.compare(Compare::Ne, a, narrow(ZERO), sense, to)?;
            }
            Cond::Valid(header) => {
                let valid = self.valid(header)?;
                self.test(valid, sense, to);
            }
            Cond::AnyValid(headers) => {
                let any = self.temp(1)?;
                self.copy(any, ZERO, 1);
                for header in headers {
                    let b = self.valid(header)?;
                    self.op(alu(Alu::Or, any, any, b, 64));
                }
                self.test(any, sense, to);
            }
            Cond::HeadersEqual(a, b) => {
                let (d, (a, b)) = (self.temp(1)?, self.two_elements(a, b)?);
                self.op(Op::SetHeadersEqual { d, a, b });
                self.test(d, sense, to);
            }
            Cond::UnionsEqual(pairs) => {
                let all = self.temp(1)?;
                self.copy(all, ONE, 1);
                for (a, b) in pairs {
                    let (d, (a, b)) = (self.temp(1)?, self.two_elements(a, b)?);
                    self.op(Op::SetHeadersEqual { d, a, b });
                    self.op(alu(Alu::And, all, all, d, 64));
                }
                self.test(all, sense, to);
            }
        }
        Ok(())
    }

    fn test(&mut self, a: Slot, sense: bool, to: Label) {
        let test = if sense { Test::Ne } else { Test::Eq };
        let b = ZERO;
        self.op(Op::Br { test, a, b, to });
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

    fn compare(&mut self, op: Compare, a: Operand, b: Operand, sense: bool, to: Label) -> Emit<()> {
        // a > b is b < a; a >= b is b <= a.
        let (test, a, b) = match op {
            Compare::Eq => (Test::Eq, a, b),
            Compare::Ne => (Test::Ne, a, b),
            Compare::Lt => (Test::LtU, a, b),
            Compare::Le => (Test::LeU, a, b),
            Compare::Gt => (Test::LtU, b, a),
            Compare::Ge => (Test::LeU, b, a),
        };
        // One limb each, and both read the same way. (An unsigned limb beside a signed one may exceed 2^63.)
        if a.limbs == 1 && b.limbs == 1 && a.signed == b.signed {
            let test = match test {
                Test::LtU if a.signed => Test::LtS,
                Test::LeU if a.signed => Test::LeS,
                other => other,
            };
            let (test, a, b) = match sense {
                true => (test, a.slot, b.slot),
                false => test.opposite(a.slot, b.slot),
            };
            self.op(Op::Br { test, a, b, to });
            return Ok(());
        }
        let d = self.temp(1)?;
        // What is computed, and whether the test is true where that is.
        let (kind, a, b, same) = match test {
            Test::Eq => (WideKind::SetEq, a, b, true),
            Test::Ne => (WideKind::SetEq, a, b, false),
            Test::LtU | Test::LtS => (WideKind::SetLt, a, b, true),
            Test::LeU | Test::LeS => (WideKind::SetLt, b, a, false),
        };
        self.wide(kind, d, 1, a, b)?;
        self.test(d, sense == same, to);
        Ok(())
    }
}
