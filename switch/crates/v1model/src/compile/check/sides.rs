// SPDX-License-Identifier: Apache-2.0
//! What `Program::check` sees of the side tables: headers in frames, elements, stacks, calculations, selects, tables.

use super::Check;
use crate::bits::limbs_for;
use crate::compile::code::{Case, Element, HeaderIo, Input, Operand, Piece, Program, NOT_EMITTED};
use crate::compile::layout::Slot;
use crate::compile::touch;
use crate::packet::TAILROOM;
use crate::schema::Schema;

/// Most entries of a side table that 16 bits tell apart.
const MOST: usize = 1 << 16;

/// `Err` with a message where `holds` is false.
fn see(holds: bool, message: &str) -> Check {
    match holds {
        true => Ok(()),
        false => Err(message.into()),
    }
}

fn check_each<T>(what: &str, all: &[T], check: impl Fn(&T) -> Check) -> Check {
    let named = |(i, one)| check(one).map_err(|message| format!("{what} {i}: {message}"));
    all.iter().enumerate().try_for_each(named)
}

impl Program {
    pub(super) fn check_sides(&self, schema: &Schema) -> Check {
        for (what, count) in [
            ("header types", self.headers.len()),
            ("headers", self.elements.len()),
            ("stacks", self.stacks.len()),
            ("calculations", self.calculations.len()),
            ("tables", self.tables.len()),
            ("selects", self.selects.len()),
            ("table calls", self.exits.len()),
            ("wide operations", self.wide.len()),
            ("messages", self.messages.len()),
            ("registers", schema.registers.len()),
            ("counters", schema.counters.len()),
            ("meters", schema.meters.len()),
            ("words a packet", self.template.len() + 1),
        ] {
            if count > MOST {
                return Err(format!("the program has more than {MOST} {what}"));
            }
        }
        let state = [self.headers_start, self.state_end, self.args.into()];
        see(
            self.slots(0, 2) && state.is_sorted(),
            "the slots are not in order",
        )?;
        let is_run =
            |&(first, end): &(usize, usize)| 2 <= first && first < end && end <= self.state_end;
        see(self.resets.iter().all(is_run), "a reset zeroes other slots")?;
        see(
            self.slots(self.args, self.arg_limbs.into()),
            "the arguments have no slots",
        )?;
        check_each("header type", &self.headers, |io| self.check_io(io))?;
        check_each("element", &self.elements, |e| self.check_element(e))?;
        self.check_stacks()?;
        self.check_deparser()?;
        check_each("wide operation", &self.wide, |wide| {
            self.operand(wide.a)?;
            self.operand(wide.b)?;
            see(
                wide.limbs > 0 && self.slots(wide.d, wide.limbs.into()),
                "its result",
            )
        })?;
        check_each("message", &self.messages, |message| {
            see(
                message.texts.len() == message.values.len() + 1,
                "a text is missing",
            )?;
            message
                .values
                .iter()
                .try_for_each(|value| self.operand(*value))
        })?;
        self.check_calculations()?;
        self.check_lists()?;
        self.check_selects(schema)?;
        self.check_tables(schema)
    }

    /// True when these slots are a packet's.
    fn slots(&self, first: Slot, count: usize) -> bool {
        usize::from(first) + count <= self.template.len()
    }

    fn number(&self, first: Slot, width: u32) -> bool {
        self.slots(first, limbs_for(width))
    }

    fn operand(&self, a: Operand) -> Check {
        see(
            a.limbs > 0 && self.slots(a.slot, a.limbs.into()),
            "an operand",
        )
    }

    fn check_io(&self, io: &HeaderIo) -> Check {
        let slots = usize::from(io.slots);
        see(slots > 0, "it has no slots")?;
        for load in io.loads.iter().flatten() {
            let inside = u32::from(load.byte) + 8 <= u32::from(io.window);
            let shifts = load.up < 64 && load.down < 64;
            see(inside && shifts && load.offset < io.slots, "a load")?;
        }
        // The bytes behind a frame that may be read without looking.
        see(
            usize::from(io.window) <= io.fixed_bytes as usize + TAILROOM,
            "its window",
        )?;
        self.pieces(io, io.pieces.iter().flatten())?;
        for field in io.head.iter().chain(&io.tail) {
            let end = usize::from(field.offset) + limbs_for(field.width);
            let bits = u64::from(field.bit) + u64::from(field.width);
            let inside = bits <= u64::from(io.fixed_bytes) * 8;
            see(end <= slots && inside, "a field")?;
        }
        let varbit = io.varbit.is_none_or(|(offset, most)| {
            slots > 2 && usize::from(offset) + limbs_for(most) <= slots
        });
        see(varbit, "its varbit field")
    }

    fn pieces<'p>(&self, io: &HeaderIo, pieces: impl Iterator<Item = &'p Piece>) -> Check {
        for piece in pieces {
            let end = u64::from(piece.byte) + u64::from(piece.bytes);
            let inside = (1..=8).contains(&piece.bytes) && end <= io.fixed_bytes.into();
            let mut fields = piece.fields.iter();
            see(
                inside && fields.all(|f| f.0 < io.slots && f.1 < 64),
                "a piece",
            )?;
        }
        Ok(())
    }

    /// A block, repeated `count` times, and the siblings of each.
    fn blocks(&self, base: usize, stride: u16, count: u16, ty: u16, siblings: &[i32]) -> Check {
        see(usize::from(ty) < self.headers.len(), "its header type")?;
        see(count > 0 && (stride > 0 || count == 1), "its count")?;
        let last = base + usize::from(stride) * usize::from(count - 1);
        let end = last + usize::from(self.headers[usize::from(ty)].slots);
        see(base >= 2 && end <= self.template.len(), "its slots")?;
        let slots = 2..self.template.len() as i64;
        let mut beside = siblings
            .iter()
            .flat_map(|&s| [base, last].map(|b| b as i64 + i64::from(s)));
        see(beside.all(|slot| slots.contains(&slot)), "a sibling")
    }

    fn check_element(&self, e: &Element) -> Check {
        see(self.slots(e.index, 1), "its index")?;
        self.blocks(e.base.into(), e.stride, e.count, e.header, &e.siblings)
    }

    fn check_stacks(&self) -> Check {
        check_each("stack", &self.stacks, |stack| {
            see(self.slots(stack.next, 1), "its next index")?;
            let base = usize::from(stack.base);
            stack.members.iter().try_for_each(|(offset, ty, siblings)| {
                let base = base + usize::from(*offset);
                self.blocks(base, stack.stride, stack.count, *ty, siblings)
            })
        })
    }

    fn check_deparser(&self) -> Check {
        check_each("emitted header", &self.deparser, |&(valid, base, ty)| {
            let io = self.headers.get(usize::from(ty)).ok_or("its header type")?;
            see(
                self.slots(valid, 1) && self.slots(base, io.slots.into()),
                "its slots",
            )
        })?;
        let emitted = self.deparser.len();
        let known = |place: &u8| *place == NOT_EMITTED || usize::from(*place) < emitted;
        see(
            self.places.len() == self.elements.len(),
            "an element has no place",
        )?;
        see(self.places.iter().all(known), "an element has no place")?;
        let Some(patches) = &self.patches else {
            return Ok(());
        };
        see(patches.len() == emitted, "a header has no patches")?;
        for (pieces, &(_, _, ty)) in patches.iter().zip(&self.deparser) {
            self.pieces(&self.headers[usize::from(ty)], pieces.iter())?;
        }
        Ok(())
    }

    fn check_calculations(&self) -> Check {
        for (index, calculation) in self.calculations.iter().enumerate() {
            for input in &calculation.inputs {
                let known = match input {
                    Input::Constant { limbs, width } => limbs.len() >= limbs_for(*width),
                    Input::Header { ty, .. } => usize::from(*ty) < self.headers.len(),
                    Input::Field { .. } => true,
                };
                see(known, "an input of a calculation")?;
            }
            let mut inside = true;
            touch::inputs(self, index as u16, &mut |slots| {
                inside &= slots.end <= self.template.len()
            });
            for run in calculation.words.iter().flatten() {
                inside &= self.slots(run.valid, 1);
                for word in &run.words {
                    inside &= word.bytes <= 8;
                    let mut fields = word.fields.iter();
                    inside &= fields.all(|f| self.slots(f.0, 1) && f.1.unsigned_abs() < 64);
                }
            }
            see(inside, "an input of a calculation")?;
        }
        check_each("checksum", &self.checksums, |checksum| {
            see(
                usize::from(checksum.calculation) < self.calculations.len(),
                "its calculation",
            )?;
            let when = checksum.when.iter().map(|w| w.0);
            let condition = checksum.condition.iter().map(|c| c.1);
            let mut all = when.chain(condition).chain([checksum.valid]);
            let inside = all.all(|slot| self.slots(slot, 1));
            see(
                inside && self.number(checksum.slot, checksum.width),
                "a slot",
            )
        })
    }

    fn check_lists(&self) -> Check {
        check_each("digest", &self.digests, |members| {
            see(members.iter().all(|m| self.number(m.0, m.1)), "a member")
        })?;
        check_each("field list", &self.field_lists, |fields| {
            see(
                fields.iter().all(|f| self.slots(f.0, f.1.into())),
                "a field",
            )
        })?;
        let std = |field: &Option<(Slot, u8)>| match field {
            Some((slot, w)) => see(self.slots(*slot, 1) && (1..=64).contains(w), "its slot"),
            None => Ok(()),
        };
        check_each("standard metadata", &self.std, std)
    }

    fn check_selects(&self, schema: &Schema) -> Check {
        check_each("select", &self.selects, |select| {
            let parts = select.parts.iter();
            let limbs: usize = parts.clone().map(|p| usize::from(p.1)).sum();
            see(parts.clone().all(|p| self.slots(p.0, p.1.into())), "a part")?;
            see(
                select.narrow.is_empty() || select.parts.len() == 1,
                "its parts",
            )?;
            let known = select.cases.iter().all(|case| match case {
                Case::Masked { values, masks, .. } => values.len() == limbs && masks.len() == limbs,
                Case::ValueSet { set, .. } => (*set as usize) < schema.value_sets.len(),
            });
            see(known, "a case")
        })
    }

    fn check_tables(&self, schema: &Schema) -> Check {
        see(
            self.tables.len() == schema.tables.len(),
            "a table has no schema",
        )?;
        check_each("table", &self.tables, |table| {
            let key = table.key.iter().all(|k| self.slots(k.0, k.1.into()));
            let slots = table.key_slots.iter().all(|slot| self.slots(*slot, 1));
            see(key && slots, "its key")?;
            let masks = table
                .masks
                .as_ref()
                .is_none_or(|m| m.len() == table.key_slots.len());
            see(masks, "its masks")?;
            let profile = table
                .profile
                .is_none_or(|p| (p as usize) < schema.profiles.len());
            let hash = |s: u16| usize::from(s) < self.calculations.len();
            see(profile && table.selector.is_none_or(hash), "its profile")?;
            let meter = table
                .meter
                .is_none_or(|(slot, w)| self.slots(slot, 1) && (1..=64).contains(&w));
            see(meter, "its meter")
        })
    }
}
