// SPDX-License-Identifier: Apache-2.0
//! Conditions to branches: a boolean becomes a number only where a number is asked for.

use super::code::{Alu, Op, Operand, Test, WideKind};
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
            Cond::Equal(a, b) => {
                let (a, b) = (self.boolean(a, None)?, self.boolean(b, None)?);
                let test = if sense { Test::Eq } else { Test::Ne };
                self.branch_if(test, a, b, to);
            }
            Cond::If(c, a, b) => {
                let (no, end) = (self.label(), self.label());
                self.branch(c, false, no)?;
                self.branch(a, sense, to)?;
                self.jump(end);
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
                self.op(Op::copy(any, ZERO));
                for header in headers {
                    let b = self.valid(header)?;
                    self.op(Op::alu(Alu::Or, any, any, b, 64));
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
                self.op(Op::copy(all, ONE));
                for (a, b) in pairs {
                    let (d, (a, b)) = (self.temp(1)?, self.two_elements(a, b)?);
                    self.op(Op::SetHeadersEqual { d, a, b });
                    self.op(Op::alu(Alu::And, all, all, d, 64));
                }
                self.test(all, sense, to);
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

    fn compare(&mut self, op: Compare, a: Operand, b: Operand, sense: bool, to: Label) -> Emit<()> {
        // a > b is b < a; a >= b is b <= a; and the opposite of < is >=.
        let op = if sense {
            op
        } else {
            match op {
                Compare::Eq => Compare::Ne,
                Compare::Ne => Compare::Eq,
                Compare::Lt => Compare::Ge,
                Compare::Le => Compare::Gt,
                Compare::Gt => Compare::Le,
                Compare::Ge => Compare::Lt,
            }
        };
        let (op, x, y) = match op {
            Compare::Gt => (Compare::Lt, b, a),
            Compare::Ge => (Compare::Le, b, a),
            other => (other, a, b),
        };
        // One limb each, and both read the same way. (An unsigned limb beside a signed one may exceed 2^63.)
        if x.limbs == 1 && y.limbs == 1 && x.signed == y.signed {
            let (a, b) = (x.slot, y.slot);
            let test = match (op, x.signed) {
                (Compare::Eq, _) => Test::Eq,
                (Compare::Ne, _) => Test::Ne,
                (Compare::Lt, false) => Test::LtU,
                (Compare::Lt, true) => Test::LtS,
                (_, false) => Test::LeU,
                (_, true) => Test::LeS,
            };
            self.branch_if(test, a, b, to);
            return Ok(());
        }
        let d = self.temp(1)?;
        match op {
            Compare::Eq | Compare::Ne => {
                self.wide(WideKind::SetEq, d, 1, x, y)?;
                self.test(d, op == Compare::Eq, to);
            }
            Compare::Lt => {
                self.wide(WideKind::SetLt, d, 1, x, y)?;
                self.test(d, true, to);
            }
            _ => {
                self.wide(WideKind::SetLt, d, 1, y, x)?;
                self.test(d, false, to);
            }
        }
        Ok(())
    }
}
