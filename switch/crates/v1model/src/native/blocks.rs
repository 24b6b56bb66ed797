// SPDX-License-Identifier: Apache-2.0
//! The blocks from one start on: their order, and where several ends meet.

use super::slots::SlotSet;
use super::Native;
use crate::compile::flow::{Block, Id};

/// The blocks of the code from one start on.
pub(super) struct Blocks<'b> {
    blocks: &'b [Block],
    live: &'b [SlotSet],
    /// Each stands behind those that lead to it, but where the code comes back.
    pub order: Vec<Id>,
    /// How many ends lead to each, the start counted.
    entries: Vec<u32>,
    /// Where all that leads to it is not in front of it: the code comes back.
    loops: Vec<bool>,
}

impl<'b> Blocks<'b> {
    /// The blocks that code from `start` on may reach.
    pub fn new(native: &Native<'b>, start: Id) -> Blocks<'b> {
        let flow = &native.optimised.flow;
        let order = flow.order(start);
        let count = flow.blocks.len();
        let (mut entries, mut loops) = (vec![0; count], vec![false; count]);
        let mut seen = vec![false; count];
        entries[start] = 1;
        for &id in &order {
            seen[id] = true;
            for to in flow.blocks[id].exit.targets() {
                entries[to] += 1;
                loops[to] |= seen[to];
            }
        }
        Blocks {
            blocks: &flow.blocks,
            live: native.live,
            order,
            entries,
            loops,
        }
    }

    pub fn get(&self, id: Id) -> &'b Block {
        &self.blocks[id]
    }

    /// Slots whose values count where a block begins.
    pub fn live(&self, id: Id) -> &'b SlotSet {
        &self.live[id]
    }

    /// Several ends lead to it.
    pub fn is_joined(&self, id: Id) -> bool {
        self.entries[id] > 1 || self.loops[id]
    }

    pub fn is_loop(&self, id: Id) -> bool {
        self.loops[id]
    }
}
