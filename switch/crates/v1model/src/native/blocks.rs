// SPDX-License-Identifier: Apache-2.0
//! The code from one start on as blocks, in an order in which each stands behind those that lead to it, and what of a
//! packet's slots is still wanted where a block begins.

use std::collections::HashMap;

use super::slots::SlotSet;
use super::Native;
use crate::compile::code::{Op, Pc, Program};
use crate::compile::touch::{touches, Touch};

/// Straight code up to the operation that ends it.
pub(super) struct Block {
    /// First operation.
    pub pc: Pc,
    /// The operations in order.
    pub ops: Vec<Op>,
    /// The last operation, which leads elsewhere; `Jump` where the code simply goes on.
    pub end: Op,
    /// Blocks that may follow, by index.
    pub next: Vec<usize>,
    /// How many ends lead here, the start counted.
    pub entries: u32,
    /// Where all that leads here is not in front of it: the code comes back.
    pub is_loop: bool,
    /// Slots whose values count where the block begins.
    pub live: SlotSet,
}

impl Block {
    /// Several ends lead here.
    pub fn is_joined(&self) -> bool {
        self.entries > 1 || self.is_loop
    }
}

/// The blocks of the code from one start on.
pub(super) struct Blocks {
    pub blocks: Vec<Block>,
    /// By first operation.
    pub by_pc: HashMap<Pc, usize>,
}

/// Every operation that a jump, a select or a lookup may lead to.
pub(super) fn leaders(program: &Program) -> Vec<bool> {
    let mut leaders = vec![false; program.ops.len()];
    let jumps = program.ops.iter().filter_map(Op::jump);
    for pc in program.targets().into_iter().chain(jumps) {
        leaders[pc as usize] = true;
    }
    leaders
}

/// Where an operation leads that ends a block.
pub(super) fn targets(program: &Program, pc: Pc, op: &Op) -> Vec<Pc> {
    match *op {
        Op::Jump { to } => vec![to],
        Op::Select { select } => {
            let to = program.selects[usize::from(select)].targets();
            to.copied().collect()
        }
        Op::Call { exits, .. } => {
            let exits = &program.exits[usize::from(exits)];
            exits.targets().copied().collect()
        }
        _ => op.jump().map_or(Vec::new(), |to| vec![to, pc + 1]),
    }
}

impl Blocks {
    /// The blocks that code from `start` on may reach.
    pub fn new(native: &Native<'_>, leaders: &[bool], start: Pc) -> Blocks {
        let program = native.program;
        let mut blocks = Blocks {
            blocks: Vec::new(),
            by_pc: HashMap::new(),
        };
        // Depth first; a block is finished behind all that follow it.
        let mut found: HashMap<Pc, Option<usize>> = HashMap::from([(start, None)]);
        let mut way = vec![blocks.read(program, leaders, start)];
        let mut finished: Vec<(Block, Vec<Pc>)> = Vec::new();
        while let Some((_, targets, next)) = way.last_mut() {
            match targets.get(*next) {
                Some(&to) => {
                    *next += 1;
                    if let std::collections::hash_map::Entry::Vacant(place) = found.entry(to) {
                        place.insert(None);
                        way.push(blocks.read(program, leaders, to));
                    }
                }
                None => {
                    let (block, targets, _) = way.pop().expect("it was there");
                    finished.push((block, targets));
                }
            }
        }
        finished.reverse();
        for (index, (block, _)) in finished.iter().enumerate() {
            blocks.by_pc.insert(block.pc, index);
        }
        let next_of = |targets: &[Pc]| targets.iter().map(|pc| blocks.by_pc[pc]).collect();
        let next: Vec<Vec<usize>> = finished.iter().map(|(_, to)| next_of(to)).collect();
        blocks.blocks = finished.into_iter().map(|(block, _)| block).collect();
        blocks.blocks[0].entries = 1;
        for (index, next) in next.into_iter().enumerate() {
            for &to in &next {
                let block = &mut blocks.blocks[to];
                block.entries += 1;
                block.is_loop |= to <= index;
            }
            blocks.blocks[index].next = next;
        }
        blocks.find_live(native);
        blocks
    }

    fn read(&self, program: &Program, leaders: &[bool], start: Pc) -> (Block, Vec<Pc>, usize) {
        let mut ops = Vec::new();
        let mut pc = start;
        let end = loop {
            if pc != start && leaders[pc as usize] {
                break Op::Jump { to: pc };
            }
            let op = program.ops[pc as usize];
            match op {
                Op::Jump { .. }
                | Op::Branch { .. }
                | Op::Select { .. }
                | Op::Call { .. }
                | Op::ParserError { .. }
                | Op::End => break op,
                op => ops.push(op),
            }
            pc += 1;
        };
        let to = targets(program, pc, &end);
        let block = Block {
            pc: start,
            ops,
            end,
            next: Vec::new(),
            entries: 0,
            is_loop: false,
            live: SlotSet::new(program.template.len()),
        };
        (block, to, 0)
    }

    /// Fills `Block::live` in.
    fn find_live(&mut self, native: &Native<'_>) {
        // What the block reads before it writes it, and what it writes before it is read.
        let summaries: Vec<(SlotSet, SlotSet)> = self
            .blocks
            .iter()
            .map(|block| summary(native, block))
            .collect();
        for (block, (reads, _)) in self.blocks.iter_mut().zip(&summaries) {
            block.live.add_all(reads);
        }
        let mut changed = true;
        while changed {
            changed = false;
            for index in (0..self.blocks.len()).rev() {
                let next = std::mem::take(&mut self.blocks[index].next);
                for &to in &next {
                    if to != index {
                        let pair = self.blocks.get_disjoint_mut([to, index]);
                        let [to, own] = pair.expect("two blocks");
                        changed |= own.live.add_others(&to.live, &summaries[index].1);
                    }
                }
                self.blocks[index].next = next;
            }
        }
    }
}

fn summary(native: &Native<'_>, block: &Block) -> (SlotSet, SlotSet) {
    let slots = native.program.template.len();
    let (mut reads, mut writes) = (SlotSet::new(slots), SlotSet::new(slots));
    if block.end == Op::End {
        reads.add_all(&native.kept);
    }
    for op in [&block.end].into_iter().chain(block.ops.iter().rev()) {
        touches(native.program, op, &mut |touch, range| {
            if touch == Touch::Writes {
                range.for_each(|slot| {
                    reads.remove(slot);
                    writes.add(slot);
                });
            }
        });
        touches(native.program, op, &mut |touch, range| {
            if touch == Touch::Reads {
                range.for_each(|slot| reads.add(slot));
            }
        });
        if op.may_leave() {
            reads.add_all(&native.kept);
        }
    }
    (reads, writes)
}
