// SPDX-License-Identifier: Apache-2.0
//! Takes out operations whose results nobody reads: p4c's temporaries, once their readers read what was copied.
//!
//! Operations read what a slot is a copy of: then nobody reads p4c's intermediate results.
//!
//! Within a block, and on into a block that is entered from one place only (an extended basic block). Cranelift does the rest:
//! common and constant values, in registers.

use std::collections::HashMap;
use std::ops::Range;

use super::flow::{Block, Exit, Flow, Id};
use super::{Effects, Touch};
use crate::bits::low_mask;
use crate::compile::code::{Alu, Op};
use crate::compile::layout::Slot;
use crate::compile::op::SlotSet;

/// Takes dead operations out. `visible` are the slots that count when the code ends; the result are those and all that
/// one part of the program reads before it writes them.
pub(super) fn remove(flow: &mut Flow, effects: &Effects, visible: &SlotSet) -> SlotSet {
    let (live, end) = live_throughout(flow, effects, visible);
    let after: Vec<SlotSet> = flow
        .blocks
        .iter()
        .map(|b| at_end(b, effects, &end, &live))
        .collect();
    for (block, mut live) in flow.blocks.iter_mut().zip(after) {
        let mut kept = Vec::with_capacity(block.ops.len());
        for op in block.ops.drain(..).rev() {
            if op.is_pure(&effects.program) && !is_read(&op, effects, &live) {
                continue;
            }
            before(&op, effects, &end, &mut live);
            kept.push(op);
        }
        kept.reverse();
        block.ops = kept;
    }
    end
}

/// What is read of a packet's slots before it is written, from the parser on; `end` are those that count when a part ends.
pub(super) fn read_first(flow: &Flow, effects: &Effects, end: &SlotSet) -> SlotSet {
    let (mut live, _) = live_throughout(flow, effects, end);
    live.swap_remove(flow.roots[0])
}

/// What is live where each block begins, and where a part ends: `visible` and what later parts read.
pub(crate) fn live_throughout(
    flow: &Flow,
    effects: &Effects,
    visible: &SlotSet,
) -> (Vec<SlotSet>, SlotSet) {
    let summaries: Vec<Summary> = flow
        .blocks
        .iter()
        .map(|b| Summary::new(b, effects))
        .collect();
    let mut end = visible.clone();
    loop {
        let live = live(&summaries, &end);
        // What a later part of the program reads of an earlier one's must be there at that one's end.
        let mut wanted = end.clone();
        for &root in &flow.roots {
            wanted.add_all(&live[root]);
        }
        if wanted == end {
            return (live, end);
        }
        end = wanted;
    }
}

/// True when something that `op` writes is live.
fn is_read(op: &Op, effects: &Effects, live: &SlotSet) -> bool {
    let mut read = false;
    effects.visit(op, &mut |touch, range| {
        read |= touch != Touch::Reads && range.into_iter().any(|slot| live.contains(slot));
    });
    read
}

/// From what is live behind `op` to what is live in front of it.
fn before(op: &Op, effects: &Effects, end: &SlotSet, live: &mut SlotSet) {
    effects.visit(op, &mut |touch, range| {
        if touch == Touch::Writes {
            range.for_each(|slot| live.remove(slot));
        }
    });
    effects.visit(op, &mut |touch, range| {
        if touch == Touch::Reads {
            range.for_each(|slot| live.add(slot));
        }
    });
    if op.may_leave() {
        live.add_all(end);
    }
}

/// What is live in front of a block's end; `live` is empty where only the end itself counts.
fn at_end(block: &Block, effects: &Effects, end: &SlotSet, live: &[SlotSet]) -> SlotSet {
    let mut set = match &block.exit {
        Exit::Stop => end.clone(),
        _ => SlotSet::new(effects.most.len()),
    };
    if !live.is_empty() {
        for to in block.exit.targets() {
            set.add_all(&live[to]);
        }
    }
    block.exit.touches(&effects.program, &mut |touch, range| {
        if touch == Touch::Reads {
            range.for_each(|slot| set.add(slot));
        }
    });
    set
}

/// What a block does to what is live.
struct Summary {
    reads: SlotSet,
    /// Written before it is read.
    writes: SlotSet,
    /// Where it may leave the code half way: written before.
    leaves: Option<SlotSet>,
    /// The code ends with it.
    stops: bool,
    targets: Vec<Id>,
}

impl Summary {
    fn new(block: &Block, effects: &Effects) -> Summary {
        let slots = effects.most.len();
        let none = SlotSet::new(slots);
        let mut reads = at_end(block, effects, &none, &[]);
        let (mut writes, mut leaves) = (none.clone(), None);
        for op in block.ops.iter().rev() {
            before(op, effects, &none, &mut reads);
            effects.visit(op, &mut |touch, range| {
                if touch == Touch::Writes {
                    for slot in range {
                        writes.add(slot);
                        if let Some(written) = &mut leaves {
                            SlotSet::add(written, slot);
                        }
                    }
                }
            });
            if op.may_leave() {
                leaves = Some(none.clone());
            }
        }
        Summary {
            reads,
            writes,
            leaves,
            stops: block.exit == Exit::Stop,
            targets: block.exit.targets(),
        }
    }
}

/// For each block, what is live where it begins.
fn live(blocks: &[Summary], end: &SlotSet) -> Vec<SlotSet> {
    let mut live: Vec<SlotSet> = blocks.iter().map(|b| b.reads.clone()).collect();
    for (live, block) in live.iter_mut().zip(blocks) {
        if let Some(written) = &block.leaves {
            live.add_others(end, written);
        }
        if block.stops {
            live.add_others(end, &block.writes);
        }
    }
    let mut changed = true;
    while changed {
        changed = false;
        for (id, block) in blocks.iter().enumerate().rev() {
            for &to in &block.targets {
                if to != id {
                    let [to, own] = live.get_disjoint_mut([to, id]).expect("two blocks");
                    changed |= own.add_others(to, &block.writes);
                }
            }
        }
    }
    live
}

/// So many copies are handed on to a following block.
const MOST_COPIES: usize = 1_000;

/// What some slots are copies of, at some point of the code.
#[derive(Clone, Debug, Default)]
struct Copies(HashMap<Slot, Slot>);

/// Rewrites all blocks.
pub(super) fn propagate(flow: &mut Flow, effects: &Effects) {
    let entries = flow.entries();
    let mut done = vec![false; flow.blocks.len()];
    let mut waiting: Vec<(Id, Copies)> = Vec::new();
    for start in flow.roots.clone() {
        waiting.push((start, Copies::default()));
        while let Some((id, mut copies)) = waiting.pop() {
            if std::mem::replace(&mut done[id], true) {
                continue;
            }
            let block = &mut flow.blocks[id];
            block.ops.retain_mut(|op| copies.rewrite(op, effects));
            match &mut block.exit {
                Exit::Branch { a, b, .. } => [a, b].into_iter().for_each(|s| *s = copies.of(*s)),
                exit => exit.touches(&effects.program, &mut |touch, range| {
                    copies.forget(touch, &range);
                }),
            }
            for to in block.exit.targets() {
                let inherits = entries[to] == 1 && copies.0.len() < MOST_COPIES;
                waiting.push((
                    to,
                    if inherits {
                        copies.clone()
                    } else {
                        Copies::default()
                    },
                ));
            }
        }
    }
}

impl Copies {
    fn of(&self, slot: Slot) -> Slot {
        *self.0.get(&slot).unwrap_or(&slot)
    }

    /// Something else is written to slots.
    fn forget(&mut self, touch: Touch, range: &Range<usize>) {
        if touch != Touch::Reads {
            let is_in = |slot: &Slot| range.contains(&usize::from(*slot));
            self.0.retain(|d, a| !is_in(d) && !is_in(a));
        }
    }

    /// Has an operation read other slots; false when it does nothing.
    fn rewrite(&mut self, op: &mut Op, effects: &Effects) -> bool {
        for slot in op.operands() {
            *slot = self.of(*slot);
        }
        let copy = match *op {
            Op::Alu {
                alu: Alu::Move,
                a,
                d,
                w,
                ..
            } if effects.most[usize::from(a)] <= low_mask(w.into()) => Some((d, a)),
            _ => None,
        };
        if copy.is_some_and(|(d, a)| a == self.of(d)) {
            return false;
        }
        effects.visit(op, &mut |touch, range| self.forget(touch, &range));
        self.0.extend(copy);
        true
    }
}
