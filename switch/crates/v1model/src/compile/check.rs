// SPDX-License-Identifier: Apache-2.0
//! `Program::check`: what the machine relies on without looking again, seen for every operation once.
//!
//! | file | idea |
//! |---|---|
//! | `check` | operations: slots, widths, indexes, jumps, loops |
//! | `sides` | the side tables that they point into |

mod sides;
#[cfg(test)]
mod tests;

use super::code::{Op, Pc, Program};
use super::cycles::loop_heads;
use super::touch::{touches, Touch};
use crate::schema::Schema;

/// What is wrong.
type Check = Result<(), String>;

impl Program {
    /// Sees that all that operations name is there and within a packet's slots, that none writes a constant, that every
    /// jump leads to an operation, that the code does not run over its end, and that every way round passes a `Step`.
    ///
    /// # Errors
    /// The operation or table in question; that would be a mistake of this crate.
    pub fn check(&self, schema: &Schema) -> Check {
        self.check_sides(schema)?;
        if self.ops.last() != Some(&Op::End) {
            return Err("the code does not end with End".into());
        }
        for (pc, op) in self.ops.iter().enumerate() {
            let named = |message| format!("operation {pc}, {op:?}: {message}");
            self.check_op(op, schema).map_err(named)?;
        }
        let targets = self.targets();
        if let Some(to) = targets.iter().find(|to| **to as usize >= self.ops.len()) {
            return Err(format!("a target is operation {to} of {}", self.ops.len()));
        }
        self.check_loops()
    }

    fn check_op(&self, op: &Op, schema: &Schema) -> Check {
        op.check(self, schema)?;
        if matches!(*op, Op::Call { exits, .. } if usize::from(exits) >= self.exits.len()) {
            return Err("its exits are not there".into());
        }
        let mut wrong = None;
        touches(self, op, &mut |touch, slots| {
            if slots.end > self.template.len() {
                wrong = Some(format!(
                    "slots {slots:?} are beyond {}",
                    self.template.len()
                ));
            } else if touch != Touch::Reads && slots.clone().any(|slot| self.is_constant(slot)) {
                wrong = Some(format!("it writes a constant in {slots:?}"));
            }
        });
        wrong.map_or(Ok(()), Err)?;
        match op.jump() {
            Some(to) if to as usize >= self.ops.len() => {
                Err(format!("it jumps beyond {}", self.ops.len()))
            }
            _ => Ok(()),
        }
    }

    /// Constants are all that is not 0 in a fresh packet, and the 0 in front.
    fn is_constant(&self, slot: usize) -> bool {
        slot == 0 || self.template[slot] != 0
    }

    /// Sees that code that comes back to where it was passes a `Step` on its way.
    fn check_loops(&self) -> Check {
        // An action returns to what follows its table, which here follows the table itself.
        let heads = loop_heads(self.ops.len(), |pc, next| {
            let op = &self.ops[pc];
            let to = |pc: &Pc| *pc as usize;
            match op {
                Op::Step | Op::End | Op::Return | Op::ReturnOrExit | Op::ParserError { .. } => {}
                Op::Jump { to } => next.push(*to as usize),
                Op::Select { select } => {
                    next.extend(self.selects[usize::from(*select)].targets().map(to));
                }
                Op::Apply { table } => {
                    let code = &self.tables[usize::from(*table)];
                    next.extend(code.next_hit.iter().chain(&code.next_miss).map(to));
                    next.extend([&code.next_none, &code.next_hit_none].map(to));
                    next.extend(self.actions.iter().map(to));
                }
                Op::Call { exits, .. } => {
                    next.extend(self.exits[usize::from(*exits)].targets().map(to));
                }
                op => {
                    next.push(pc + 1);
                    next.extend(op.jump().map(|to| to as usize));
                }
            }
        });
        match heads.iter().position(|head| *head) {
            Some(pc) => Err(format!(
                "operation {pc}, {:?}: the code comes back to it without a step",
                self.ops[pc]
            )),
            None => Ok(()),
        }
    }

    /// Every operation that something other than an operation leads to.
    pub fn targets(&self) -> Vec<Pc> {
        let mut targets: Vec<Pc> = self.actions.clone();
        targets.extend([
            self.parser_start,
            self.ingress_start,
            self.egress_start,
            self.deparser_start,
        ]);
        for table in &self.tables {
            targets.extend(table.next_hit.iter().chain(&table.next_miss));
            targets.extend([table.next_none, table.next_hit_none]);
        }
        targets.extend(self.exits.iter().flat_map(|exits| exits.targets()));
        targets.extend(self.selects.iter().flat_map(|select| select.targets()));
        let checksums = self.checksums.iter();
        targets.extend(checksums.filter_map(|c| c.condition.map(|(pc, _)| pc)));
        targets
    }
}
