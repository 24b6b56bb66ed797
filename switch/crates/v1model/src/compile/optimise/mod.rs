// SPDX-License-Identifier: Apache-2.0
//! The same program in fewer operations. p4c writes every intermediate result to a field and every condition to a
//! number; a packet should not pay for that.
//!
//! | file | idea |
//! |---|---|
//! | `specialise` | a copy of a block for what is known where it begins, so that known branches go |
//! | `dead` | operations read where values come from; results that nobody reads are not computed |

pub(crate) mod dead;
#[cfg(test)]
mod pass_tests;
mod specialise;
#[cfg(test)]
mod tests;

use std::ops::Range;

use self::specialise::Constants;
use super::code::{Emitted, Word};
use super::flow::{self, Flow};
use super::layout::{Layout, Slot};
use super::op::SlotSet;
use super::Written;
use crate::bits::low_mask;
use crate::compile::code::{Op, Program};
use crate::compile::op::{touches, Visit};
use crate::native::NotCompiled;

/// Programs of more operations are neither optimised nor made machine code: that would take too long.
pub(crate) const MOST_OPS: usize = 20_000;
/// Specialisation ends at so many operations more: beyond, code is larger, not faster.
const MORE: usize = 1_000;
/// To zero so many slots is quicker than to begin anew behind them.
const CLOSE: usize = 16;

/// A program in fewer operations, with what machine code is made from.
pub(crate) struct Optimised {
    /// The program around the operations; the largest value of each slot.
    pub effects: Effects,
    pub flow: Flow,
    /// The slots that count when a part of the program has run: what others see, and what a later part reads.
    pub kept: SlotSet,
    /// For each of `Program::deparser`, which of its words have fields that the program ever writes: all that differs from
    /// the frame when the headers are those that were extracted.
    pub patches: Vec<Vec<(usize, Word)>>,
    /// Slots that a reset zeroes, first and behind the last; the others are written before they are read.
    pub resets: Vec<(usize, usize)>,
}

/// The program in fewer operations. What it leaves in fields that nothing outside sees (p4c's local variables) may differ.
pub(crate) fn optimise(written: &Written) -> Result<Optimised, NotCompiled> {
    let Written {
        program,
        constants,
        schema,
        layout,
    } = written;
    let of = |table| super::table::actions(table, schema);
    let tables: Vec<Vec<u32>> = schema.tables.iter().map(of).collect();
    let flow = Flow::new(program, &tables, MOST_OPS)?;
    let mut program = program.clone();
    (program.blocks, program.notes) = Default::default();
    let mut visible = visible(&program, layout);
    let effects = Effects {
        registers: schema
            .registers
            .iter()
            .map(|r| (r.size.into(), r.width))
            .collect(),
        most: upper_bounds(&program, constants, layout),
        program,
    };
    let most = flow.size() + MORE;
    let mut flow = specialise::specialise(&flow, &effects, constants, most);
    for _ in 0..2 {
        dead::propagate(&mut flow, &effects);
        visible = dead::remove(&mut flow, &effects, &visible);
    }
    let first = first_values(&flow, &effects, layout, &visible);
    let patches = patches(&flow, &effects);
    flow.tidy();
    Ok(Optimised {
        resets: resets(&first, effects.program.state_end),
        effects,
        flow,
        kept: visible,
        patches,
    })
}

/// The slots whose values count when a packet comes in: all that outside code sees, and what the program reads before it
/// writes it. Of p4c's local variables, those that a digest samples are written before it is asked for.
fn first_values(flow: &Flow, effects: &Effects, layout: &Layout, visible: &SlotSet) -> SlotSet {
    let mut first = visible.clone();
    for (slot, _, local) in layout.slots() {
        if local {
            first.remove(slot.into());
        }
    }
    let read = dead::read_first(flow, effects, &first);
    first.add_all(&read);
    first
}

/// The slots of `2..end` that count, as runs; two that are close become one.
fn resets(visible: &SlotSet, end: usize) -> Vec<(usize, usize)> {
    let mut resets: Vec<(usize, usize)> = Vec::new();
    for slot in (2..end).filter(|&slot| visible.contains(slot)) {
        match resets.last_mut() {
            Some((_, last)) if slot - *last < CLOSE => *last = slot + 1,
            _ => resets.push((slot, slot + 1)),
        }
    }
    resets
}

/// The largest value of each slot.
fn upper_bounds(program: &Program, constants: &Constants, layout: &Layout) -> Vec<u64> {
    let mut most = vec![u64::MAX; program.template.len()];
    for (slot, width, _) in layout.slots() {
        most[usize::from(slot)] = low_mask(width);
    }
    for header in layout.headers.iter().filter(|h| !h.metadata) {
        most[usize::from(header.valid)] = 1;
    }
    for (&slot, &value) in constants {
        most[usize::from(slot)] = value;
    }
    most
}

/// The slots that count when a part of the program has run: all of headers and metadata but p4c's local variables, and
/// of those what is read without operations.
fn visible(program: &Program, layout: &Layout) -> SlotSet {
    let mut visible = SlotSet::new(program.template.len());
    (2..program.state_end).for_each(|slot| visible.add(slot));
    for (slot, _, local) in layout.slots() {
        if local {
            visible.remove(slot.into());
        }
    }
    let mut add = |slot: Slot, limbs: usize| {
        (0..limbs).for_each(|i| visible.add(usize::from(slot) + i));
    };
    for &(slot, width) in program.digests.iter().flatten() {
        add(slot, crate::bits::limbs_for(width));
    }
    for &(slot, slots) in program.field_lists.iter().flatten() {
        add(slot, slots.into());
    }
    visible
}

/// `Optimised::patches`: where a packet's headers are those that came, nothing else need be written when it leaves. A header with a varbit field is never extracted in place.
fn patches(flow: &Flow, effects: &Effects) -> Vec<Vec<(usize, Word)>> {
    let written = written(flow, effects);
    let is_written = |(_, word): &(usize, Word)| {
        let mut fields = word.fields.iter();
        fields.any(|(slot, _)| written.contains((*slot).into()))
    };
    let of = |header: &Emitted| {
        let words = header.words.clone().unwrap_or_default();
        words.into_iter().enumerate().filter(is_written).collect()
    };
    effects.program.deparser.iter().map(of).collect()
}

/// Slots that anything but extraction from the frame may write.
fn written(flow: &Flow, effects: &Effects) -> SlotSet {
    let mut written = SlotSet::new(effects.most.len());
    let mut add = |touch: Touch, range: Range<usize>| {
        if touch != Touch::Reads {
            range.for_each(|slot| written.add(slot));
        }
    };
    for block in &flow.blocks {
        for op in &block.ops {
            match op {
                // What is extracted is what the frame says; what becomes invalid is not emitted.
                Op::Extract { bits: None, .. } | Op::SetInvalid { .. } => {}
                op => effects.visit(op, &mut add),
            }
        }
        block.exit.touches(&effects.program, &mut add);
    }
    written
}

pub(crate) use crate::compile::op::Touch;

/// The program around the operations.
pub(crate) struct Effects {
    pub program: Program,
    /// Size and width in bits of each register array.
    pub registers: Vec<(u64, u32)>,
    /// The largest value that each slot ever holds.
    pub most: Vec<u64>,
}

impl Effects {
    /// Calls `f` with every range of slots that `op` touches.
    pub fn visit(&self, op: &Op, f: &mut Visit) {
        let certain = op.register_read().is_some_and(|(register, index)| {
            self.in_range(register, self.most[usize::from(index)])
        });
        touches(&self.program, op, &mut |touch, range| match touch {
            Touch::MayWrite if certain => f(Touch::Writes, range),
            touch => f(touch, range),
        });
    }

    /// True when an index of at most `most` is always one of the register array's.
    fn in_range(&self, register: u16, most: u64) -> bool {
        most < self.registers[usize::from(register)].0
    }
}
