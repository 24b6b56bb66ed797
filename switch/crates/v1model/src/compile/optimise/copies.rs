// SPDX-License-Identifier: Apache-2.0
//! Operations read what a slot is a copy of: then nobody reads p4c's intermediate results.
//!
//! Within a block, and on into a block that is entered from one place only (an extended basic block). Cranelift does the rest:
//! common and constant values, in registers.

use std::collections::HashMap;
use std::ops::Range;

use super::effects::{Effects, Touch};
use super::flow::{Exit, Flow, Id};
use crate::bits::low_mask;
use crate::compile::code::{Alu, Op};
use crate::compile::layout::Slot;

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
