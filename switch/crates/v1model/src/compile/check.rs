// SPDX-License-Identifier: Apache-2.0
//! `Program::check`: what the machine relies on without looking again.

use super::code::{Op, Pc, Program};
use super::layout::Slot;

impl Program {
    /// Sees that every single slot that an operation names is one of a packet's, that every jump leads to an
    /// operation, and that the code does not run over its end.
    ///
    /// # Errors
    /// The operation in question; that would be a mistake of this crate.
    pub fn check(&self) -> Result<(), String> {
        if self.ops.last() != Some(&Op::End) {
            return Err("the code does not end with End".into());
        }
        for io in &self.headers {
            let inside = |load: &super::code::FieldLoad| {
                load.byte + 8 <= io.window && load.offset < io.slots && load.up.max(load.down) < 64
            };
            if !io.loads.iter().flatten().all(inside) {
                return Err("a field lies outside its header".into());
            }
        }
        for (pc, op) in self.ops.iter().enumerate() {
            let (slots, to) = parts(op);
            if slots
                .iter()
                .any(|&slot| usize::from(slot) >= self.template.len())
            {
                return Err(format!(
                    "operation {pc}, {op:?}: a slot is beyond {}",
                    self.template.len()
                ));
            }
            if to.is_some_and(|to| to as usize >= self.ops.len()) {
                return Err(format!(
                    "operation {pc}, {op:?}: jumps beyond {}",
                    self.ops.len()
                ));
            }
        }
        for op in &self.ops {
            if let Op::MoveRun { first, count } = op {
                let run = self
                    .moves
                    .get(*first as usize..*first as usize + usize::from(*count));
                let slots = run
                    .into_iter()
                    .flatten()
                    .all(|(d, a, _)| usize::from(*d.max(a)) < self.template.len());
                if run.is_none() || !slots {
                    return Err(format!("{op:?}: is beyond its moves or the slots"));
                }
            }
        }
        let targets = self.targets();
        match targets.iter().find(|to| **to as usize >= self.ops.len()) {
            Some(to) => Err(format!("a target is operation {to} of {}", self.ops.len())),
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
        for exits in &self.exits {
            targets.extend(exits.hit.iter().chain(&exits.miss));
            targets.extend([exits.none, exits.hit_none]);
        }
        for select in &self.selects {
            targets.push(select.default);
            targets.extend(select.narrow.iter().map(|n| n.2));
            targets.extend(select.cases.iter().map(|c| match c {
                super::code::Case::Masked { to, .. } | super::code::Case::ValueSet { to, .. } => {
                    *to
                }
            }));
        }
        targets.extend(
            self.checksums
                .iter()
                .filter_map(|c| c.condition.map(|(pc, _)| pc)),
        );
        targets
    }
}

/// Where an operation may jump.
pub(super) fn jump(op: &Op) -> Option<Pc> {
    parts(op).1
}

/// The slots that the machine reads or writes one by one, and where the operation may jump.
fn parts(op: &Op) -> (Vec<Slot>, Option<Pc>) {
    match *op {
        Op::Move { d, a, .. }
        | Op::Not { d, a, .. }
        | Op::SignExtend { d, a, .. }
        | Op::SatU { d, a, .. }
        | Op::SatSU { d, a, .. }
        | Op::SatS { d, a, .. } => (vec![d, a], None),
        Op::Add { d, a, b, .. }
        | Op::Sub { d, a, b, .. }
        | Op::Mul { d, a, b, .. }
        | Op::And { d, a, b, .. }
        | Op::Or { d, a, b, .. }
        | Op::Xor { d, a, b, .. }
        | Op::Shl { d, a, b, .. }
        | Op::ShrU { d, a, b, .. }
        | Op::ShrS { d, a, b, .. }
        | Op::DivU { d, a, b, .. }
        | Op::ModU { d, a, b, .. } => (vec![d, a, b], None),
        Op::Jump { to } => (vec![], Some(to)),
        Op::BrEq { a, b, to }
        | Op::BrNe { a, b, to }
        | Op::BrLtU { a, b, to }
        | Op::BrLeU { a, b, to }
        | Op::BrLtS { a, b, to }
        | Op::BrLeS { a, b, to } => (vec![a, b], Some(to)),
        Op::Push { n, .. } | Op::Pop { n, .. } => (vec![n], None),
        Op::SetHeadersEqual { d, .. } | Op::LoadElement { d, .. } | Op::Lookahead { d, .. } => {
            (vec![d], None)
        }
        Op::StoreElement { a, .. } | Op::Truncate { a } | Op::Assert { a, .. } => (vec![a], None),
        Op::Count { index, .. } => (vec![index], None),
        Op::Meter { index, d, .. }
        | Op::RegisterRead { index, d, .. }
        | Op::RegisterReadWide { index, d, .. } => (vec![index, d], None),
        Op::RegisterWrite { index, a, .. } | Op::RegisterWriteWide { index, a, .. } => {
            (vec![index, a], None)
        }
        Op::Hash { d, base, size, .. } => (vec![d, base, size], None),
        Op::Random { d, low, high, .. } => (vec![d, low, high], None),
        Op::Clone { session, .. } => (vec![session], None),
        Op::ExtractVarbit { bits, .. }
        | Op::ExtractNextVarbit { bits, .. }
        | Op::Advance { bits } => (vec![bits], None),
        Op::ParserError { code } => (vec![code], None),
        Op::MoveWide { d, a, .. } => (vec![d, a], None),
        Op::Wide { .. }
        | Op::MoveRun { .. }
        | Op::SetValid { .. }
        | Op::SetInvalid { .. }
        | Op::CopyHeader { .. }
        | Op::Digest { .. }
        | Op::Resubmit { .. }
        | Op::Recirculate { .. }
        | Op::MarkToDrop
        | Op::Exit
        | Op::Log { .. }
        | Op::Extract { .. }
        | Op::ExtractNext { .. }
        | Op::Select { .. }
        | Op::Apply { .. }
        | Op::Call { .. }
        | Op::Return
        | Op::ReturnOrExit
        | Op::CheckExit
        | Op::Note { .. }
        | Op::End => (vec![], None),
    }
}
