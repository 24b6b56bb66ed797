// SPDX-License-Identifier: Apache-2.0
//! `Optimised::check`: what machine code relies on without looking again, seen once.

use super::code::{FieldIo, HeaderIo, Op, Piece, Program, NOT_EMITTED};
use super::cycles::loop_heads;
use super::flow::Exit;
use super::layout::Slot;
use super::optimise::Optimised;
use super::touch::{touches, Touch, Visit};
use crate::bits::limbs_for;
use crate::schema::Schema;

/// What is wrong.
type Check = Result<(), String>;

/// `Err` with a message where `holds` is false.
fn see(holds: bool, message: impl FnOnce() -> String) -> Check {
    match holds {
        true => Ok(()),
        false => Err(message()),
    }
}

impl Optimised {
    /// Sees that all that operations name is there and within a packet's slots, that none writes a constant, and that every
    /// way round passes a `Step`.
    ///
    /// # Errors
    /// The operation or table in question; that would be a mistake of this crate.
    pub fn check(&self, schema: &Schema) -> Check {
        let program = &self.effects.program;
        program.check_sides()?;
        let emitted = &program.deparser;
        let patches = self.patches.as_ref();
        see(patches.is_none_or(|p| p.len() == emitted.len()), || {
            "a header has no patches".into()
        })?;
        for (pieces, &(_, _, ty)) in patches.into_iter().flatten().zip(emitted) {
            program.headers[usize::from(ty)].check_pieces(pieces)?;
        }
        for block in &self.flow.blocks {
            for op in &block.ops {
                let named = |message| format!("{op:?}: {message}");
                op.check(program, schema).map_err(named)?;
                let touched = |f: &mut Visit| touches(program, op, f);
                program.check_slots(touched).map_err(named)?;
            }
            let exit = &block.exit;
            let (select, table) = match *exit {
                Exit::Select { select, .. } => (select, 0),
                Exit::Lookup { table, .. } => (0, usize::from(table)),
                Exit::Return | Exit::Apply { .. } => (usize::MAX, 0),
                _ => continue,
            };
            let known = select < program.selects.len().max(1)
                && table < program.tables.len().min(schema.tables.len()).max(1);
            see(known, || format!("{exit:?} is not there"))?;
            program.check_slots(|f| exit.touches(program, f))?;
        }
        self.check_loops()
    }

    /// Sees that code that comes back to where it was passes a `Step` on its way.
    fn check_loops(&self) -> Check {
        let blocks = &self.flow.blocks;
        let heads = loop_heads(blocks.len(), |id, next| {
            if !blocks[id].ops.contains(&Op::Step) {
                next.extend(blocks[id].exit.targets());
            }
        });
        see(!heads.contains(&true), || {
            "the code comes back without a step".into()
        })
    }
}

impl HeaderIo {
    fn check_pieces(&self, pieces: &[Piece]) -> Check {
        let fits = |piece: &Piece| {
            let end = u64::from(piece.byte) + u64::from(piece.bytes);
            let inside = (1..=8).contains(&piece.bytes) && end <= self.fixed_bytes.into();
            inside && piece.fields.iter().all(|f| f.0 < self.slots && f.1 < 64)
        };
        see(pieces.iter().all(fits), || "a piece".into())
    }
}

impl Program {
    /// True when these slots are a packet's.
    fn has(&self, first: Slot, count: usize) -> bool {
        usize::from(first) + count <= self.template.len()
    }

    fn check_slots(&self, touched: impl FnOnce(&mut Visit)) -> Check {
        let mut wrong = None;
        touched(&mut |touch, slots| {
            // Constants are all that is not 0 in a fresh packet, and the 0 in front.
            let is_constant = |slot: usize| slot == 0 || self.template[slot] != 0;
            if slots.end > self.template.len() {
                wrong = Some(format!(
                    "slots {slots:?} are beyond {}",
                    self.template.len()
                ));
            } else if touch != Touch::Reads && slots.clone().any(is_constant) {
                wrong = Some(format!("it writes a constant in {slots:?}"));
            }
        });
        wrong.map_or(Ok(()), Err)
    }

    /// Sees what stands beside the operations.
    fn check_sides(&self) -> Check {
        for io in &self.headers {
            io.check_pieces(io.pieces.as_deref().unwrap_or_default())?;
            // `native::parser` reads no byte beyond these, and 8.
            let fits = |f: &FieldIo| {
                u64::from(f.bit) + u64::from(f.width) <= u64::from(io.fixed_bytes) * 8
                    && usize::from(f.offset) + limbs_for(f.width) <= usize::from(io.slots)
            };
            see(io.head.iter().all(fits), || "a field".into())?;
        }
        for &(valid, base, ty) in &self.deparser {
            let io = self.headers.get(usize::from(ty));
            let slots = io.map_or(usize::MAX >> 1, |io| io.slots.into());
            see(self.has(valid, 1) && self.has(base, slots), || {
                "an emitted header".into()
            })?;
        }
        see(self.places.len() == self.elements.len(), || {
            "an element has no place".into()
        })?;
        let emitted = self.deparser.len();
        let known = |place: &u8| *place == NOT_EMITTED || usize::from(*place) < emitted;
        see(self.places.iter().all(known), || "a place".into())?;
        for run in self
            .calculations
            .iter()
            .flat_map(|c| c.words.iter().flatten())
        {
            let mut words = run.words.iter();
            let inside = self.has(run.valid, 1)
                && words.all(|word| {
                    let mut fields = word.fields.iter();
                    word.bytes <= 8 && fields.all(|f| self.has(f.0, 1) && f.1.unsigned_abs() < 64)
                });
            see(inside, || "an input of a calculation".into())?;
        }
        for table in &self.tables {
            let known = table.key_slots.iter().all(|&slot| self.has(slot, 1));
            let masks = table.masks.as_ref();
            see(
                known && masks.is_none_or(|m| m.len() == table.key_slots.len()),
                || "a table's key".into(),
            )?;
        }
        let fits = |&(slot, w): &(Slot, u8)| self.has(slot, 1) && (1..=64).contains(&w);
        see(self.std.iter().flatten().all(fits), || {
            "standard metadata".into()
        })
    }
}
