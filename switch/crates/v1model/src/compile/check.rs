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
use crate::bits::limbs_for;
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
            self.check_op(pc, op, schema).map_err(named)?;
        }
        let targets = self.targets();
        if let Some(to) = targets.iter().find(|to| **to as usize >= self.ops.len()) {
            return Err(format!("a target is operation {to} of {}", self.ops.len()));
        }
        self.check_loops()
    }

    fn check_op(&self, pc: usize, op: &Op, schema: &Schema) -> Check {
        self.check_indexes(pc, op, schema)?;
        if widths(op).iter().any(|w| !(1..=64).contains(w)) {
            return Err("a width is not 1 to 64".into());
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

    /// Sees that the entries of side tables are there that an operation names.
    fn check_indexes(&self, pc: usize, op: &Op, schema: &Schema) -> Check {
        let inside = |what: &str, index: usize, count: usize| match index < count {
            true => Ok(()),
            false => Err(format!("{what} {index} of {count}")),
        };
        let element = |index: u16| inside("element", index.into(), self.elements.len());
        let slots_of = |index: u16| {
            let header = self.elements[usize::from(index)].header;
            self.headers[usize::from(header)].slots
        };
        let stack = |index: u16| inside("stack", index.into(), self.stacks.len());
        let member = |of: u16, index: u16| {
            stack(of)?;
            inside(
                "member",
                index.into(),
                self.stacks[usize::from(of)].members.len(),
            )
        };
        let message = |index: u16| inside("message", index.into(), self.messages.len());
        let register = |index: u16| inside("register", index.into(), schema.registers.len());
        match *op {
            Op::MoveRun { first, count } => {
                let end = first as usize + usize::from(count);
                inside("the last move", end, self.moves.len() + 1)?;
                // The machine goes on behind the moves that it stands for.
                inside(
                    "the operation behind",
                    pc + usize::from(count),
                    self.ops.len(),
                )
            }
            Op::Wide { index } => inside("wide operation", index.into(), self.wide.len()),
            Op::LoadElement {
                element: e,
                offset,
                limbs,
                ..
            }
            | Op::StoreElement {
                element: e,
                offset,
                limbs,
                ..
            } => {
                element(e)?;
                let end = usize::from(offset) + usize::from(limbs);
                inside("the field's end", end, usize::from(slots_of(e)) + 1)
            }
            Op::SetValid { header } | Op::SetInvalid { header } | Op::Extract { header } => {
                element(header)
            }
            Op::ExtractVarbit { header, .. } => element(header),
            Op::CopyHeader { d, a } | Op::SetHeadersEqual { a, b: d, .. } => {
                element(d)?;
                element(a)?;
                match slots_of(d) == slots_of(a) {
                    true => Ok(()),
                    false => Err("the headers differ in size".into()),
                }
            }
            Op::Push { stack: s, .. } | Op::Pop { stack: s, .. } => stack(s),
            Op::ExtractNext { stack, member: m } => member(stack, m),
            Op::ExtractNextVarbit {
                stack, member: m, ..
            } => member(stack, m),
            Op::Count { counter, .. } => inside("counter", counter.into(), schema.counters.len()),
            Op::Meter { meter, .. } => inside("meter", meter.into(), schema.meters.len()),
            Op::RegisterRead { register: r, .. } | Op::RegisterWrite { register: r, .. } => {
                register(r)
            }
            Op::RegisterReadWide {
                register: r, limbs, ..
            }
            | Op::RegisterWriteWide {
                register: r, limbs, ..
            } => {
                register(r)?;
                let own = limbs_for(schema.registers[usize::from(r)].width);
                inside("limb", own - 1, limbs.into())
            }
            Op::Hash { calculation, .. } => {
                let count = self.calculations.len();
                inside("calculation", calculation.into(), count)
            }
            Op::Digest { digest } => inside("digest", digest.index(), self.digests.len()),
            Op::Clone { list, .. } | Op::Resubmit { list } | Op::Recirculate { list } => {
                let count = self.field_lists.len();
                list.map_or(Ok(()), |list| inside("field list", list.index(), count))
            }
            Op::Log { message: m } | Op::Assert { message: m, .. } => message(m),
            Op::Select { select } => inside("select", select.into(), self.selects.len()),
            Op::Apply { table } => {
                inside("table", table.into(), self.tables.len())?;
                let code = &self.tables[usize::from(table)];
                let count = schema.actions.len();
                let known = [&code.next_hit, &code.next_miss, &self.actions];
                known
                    .iter()
                    .try_for_each(|next| inside("action", count, next.len() + 1))
            }
            Op::Call { table, exits } => {
                inside("table", table.into(), self.tables.len())?;
                inside("exits", exits.into(), self.exits.len())?;
                let exits = &self.exits[usize::from(exits)];
                let actions = super::table::actions(&schema.tables[usize::from(table)], schema);
                actions.into_iter().try_for_each(|action| {
                    inside(
                        "action",
                        action as usize,
                        exits.hit.len().min(exits.miss.len()),
                    )
                })
            }
            Op::Note { note } => inside("note", note as usize, self.notes.len()),
            _ => Ok(()),
        }
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
                Op::MoveRun { count, .. } => next.push(pc + usize::from(*count)),
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

/// The numbers of bits in an operation of one limb, which the machine shifts by.
fn widths(op: &Op) -> Vec<u8> {
    match *op {
        Op::Move { w, .. }
        | Op::Add { w, .. }
        | Op::Sub { w, .. }
        | Op::Mul { w, .. }
        | Op::And { w, .. }
        | Op::Or { w, .. }
        | Op::Xor { w, .. }
        | Op::Not { w, .. }
        | Op::Shl { w, .. }
        | Op::ShrU { w, .. }
        | Op::ShrS { w, .. }
        | Op::DivU { w, .. }
        | Op::ModU { w, .. }
        | Op::Meter { w, .. }
        | Op::RegisterRead { w, .. }
        | Op::Hash { w, .. }
        | Op::Random { w, .. } => vec![w],
        Op::SignExtend { from, w, .. } => vec![from, w],
        Op::SatU { bits, w, .. } | Op::SatSU { bits, w, .. } | Op::SatS { bits, w, .. } => {
            vec![bits, w]
        }
        _ => Vec::new(),
    }
}
