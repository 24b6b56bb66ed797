// SPDX-License-Identifier: Apache-2.0
//! Control flow: blocks in order, their copies, and how one leads to the next.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{self, types, InstBuilder, Value};

use super::blocks::{Block, Blocks};
use super::calls;
use super::lower::{trusted, Lower, DONE};
use super::slots::SlotSet;
use super::values::{Known, State};
use crate::compile::code::{Op, Pc, Test};
use crate::compile::layout::Slot;

/// A block where it is reached: one with several ends that lead to it has a copy for each place in the frame that is known
/// there, so that a header that follows several others is still found at a distance that stands in the code.
pub(super) struct BlockCopy {
    /// `Pseudo::Parsed` and `Pseudo::Extracted`, where both are constants.
    at: Option<(u64, u64)>,
    block: ir::Block,
    /// What is known where it begins.
    entry: State,
}

/// So many copies of blocks are made beyond one of each.
pub(super) const MORE_COPIES: usize = 200;

/// The way from a lookup to a block that others lead to as well.
struct Edge {
    block: ir::Block,
    to: ir::Block,
    entry: Value,
    /// Limbs of the arguments that the block reads.
    limbs: Vec<usize>,
}

impl<'l, 'f> Lower<'l, 'f> {
    /// The code from `start` on, in place; afterwards the builder is at no block.
    pub fn code(&mut self, leaders: &[bool], start: Pc) {
        let blocks = Blocks::new(self.native, leaders, start);
        self.copies = blocks.blocks.iter().map(|_| Vec::new()).collect();
        let first = self.edge(&blocks, start);
        self.b.ins().jump(first, &[]);
        for (index, block) in blocks.blocks.iter().enumerate() {
            // The code may come back to a loop's.
            for copy in 0..self.copies[index].len() {
                let copy = &self.copies[index][copy];
                self.b.switch_to_block(copy.block);
                self.state = copy.entry.clone();
                self.forget_dead(&block.live);
                block.ops.iter().for_each(|op| self.op(op));
                self.end(&blocks, block);
            }
        }
    }

    /// Makes memory ready for the ends of a block that lead to these blocks.
    fn settle(&mut self, blocks: &Blocks, next: &[usize]) {
        let mut wanted: Vec<&SlotSet> = Vec::new();
        let mut joined: Vec<&SlotSet> = Vec::new();
        for &to in next {
            let block = &blocks.blocks[to];
            wanted.push(&block.live);
            if block.is_joined() {
                joined.push(&block.live);
            }
        }
        let loops = next.iter().any(|&to| blocks.blocks[to].is_loop);
        self.by_place = self.place().is_some() && !loops && self.more > next.len();
        let exited = self.native.exited();
        let by_place = self.by_place;
        let kept = self.native.kept.clone();
        let slots = self.native.program.template.len();
        self.flush(|slot| {
            if slot >= slots {
                return !joined.is_empty() && (slot == exited || !by_place);
            }
            let sets = if kept.contains(slot) {
                &wanted
            } else {
                &joined
            };
            sets.iter().any(|live| live.contains(slot))
        });
    }

    /// Where to jump for the block at `pc`, which then begins with what is known here.
    fn edge(&mut self, blocks: &Blocks, pc: Pc) -> ir::Block {
        let index = blocks.by_pc[&pc];
        let state = self.state.clone();
        match blocks.blocks[index].is_joined() {
            true => self.join(blocks, index, state),
            false => self.copy(index, None, state),
        }
    }

    /// A copy of its own of a block.
    fn copy(&mut self, index: usize, at: Option<(u64, u64)>, entry: State) -> ir::Block {
        let block = self.b.create_block();
        let more = !self.copies[index].is_empty();
        self.more = self.more.saturating_sub(more.into());
        self.copies[index].push(BlockCopy { at, block, entry });
        block
    }

    /// What is parsed and extracted, where both are constants.
    fn place(&self) -> Option<(u64, u64)> {
        let [parsed, extracted] = [self.native.parsed(), self.native.extracted()].map(|place| {
            match self.state.places[place].known {
                Known::Const(value) => Some(value),
                _ => None,
            }
        });
        parsed.zip(extracted)
    }

    /// The copy of a block that is common to all ends that reach it at the same place of the frame.
    fn join(&mut self, blocks: &Blocks, index: usize, mut state: State) -> ir::Block {
        let at = self.place().filter(|_| self.by_place);
        state.drop_dirty();
        if blocks.blocks[index].is_loop {
            state = State::new(self.native.places());
        }
        let found = self.copies[index].iter().position(|copy| copy.at == at);
        let found = match found {
            Some(found) => {
                self.copies[index][found].entry.meet(&state);
                found
            }
            None => {
                self.copy(index, at, state);
                self.copies[index].len() - 1
            }
        };
        let (parsed, extracted) = (self.native.parsed(), self.native.extracted());
        let copy = &mut self.copies[index][found];
        if let Some((at_parsed, at_extracted)) = at {
            // Memory may be behind.
            copy.entry.set(parsed, Known::Const(at_parsed));
            copy.entry.set(extracted, Known::Const(at_extracted));
        }
        copy.block
    }

    fn end(&mut self, blocks: &Blocks, block: &Block) {
        match block.end {
            Op::End => {
                self.store_kept();
                self.finish(DONE);
            }
            Op::ParserError { code } => {
                let code = self.value(code);
                self.parser_error(code);
                self.store_kept();
                self.finish(DONE);
            }
            Op::Jump { to } => {
                self.settle(blocks, &block.next);
                let to = self.edge(blocks, to);
                self.b.ins().jump(to, &[]);
            }
            Op::Branch { test, a, b, to } => {
                let test = match test {
                    Test::Eq => IntCC::Equal,
                    Test::Ne => IntCC::NotEqual,
                    Test::LtU => IntCC::UnsignedLessThan,
                    Test::LeU => IntCC::UnsignedLessThanOrEqual,
                    Test::LtS => IntCC::SignedLessThan,
                    Test::LeS => IntCC::SignedLessThanOrEqual,
                };
                self.branch(blocks, block, test, (a, b), to);
            }
            Op::Select { select } => {
                self.settle_and_select(blocks, block, usize::from(select));
            }
            Op::Call { table, exits } => {
                self.call_table(blocks, block, table, usize::from(exits));
            }
            op => unreachable!("{op:?} ends no block"),
        }
    }

    fn branch(
        &mut self,
        blocks: &Blocks,
        block: &Block,
        test: IntCC,
        (a, b): (Slot, Slot),
        to: Pc,
    ) {
        self.settle(blocks, &block.next);
        let holds = self.compare(test, a, b);
        let other = *block
            .next
            .iter()
            .find(|&&next| blocks.blocks[next].pc != to)
            .unwrap_or(&block.next[0]);
        let yes = self.edge(blocks, to);
        let no = self.edge(blocks, blocks.blocks[other].pc);
        self.b.ins().brif(holds, yes, &[], no, &[]);
    }

    fn settle_and_select(&mut self, blocks: &Blocks, block: &Block, select: usize) {
        self.settle(blocks, &block.next);
        for (test, pc) in self.select(select) {
            let to = self.edge(blocks, pc);
            let Some(test) = test else {
                self.b.ins().jump(to, &[]);
                return;
            };
            let (test, no) = (test(self), self.b.create_block());
            self.b.ins().brif(test, to, &[], no, &[]);
            self.b.switch_to_block(no);
        }
    }

    /// An end that leads to the block at `pc` after the call of an action, whose arguments lie at `entry`. Where others
    /// lead there too, the arguments go to memory on the way: `store_arguments`.
    fn action_edge(
        &mut self,
        blocks: &Blocks,
        pc: Pc,
        action: usize,
        entry: Value,
    ) -> (ir::Block, Option<Edge>) {
        let index = blocks.by_pc[&pc];
        let block = &blocks.blocks[index];
        let limbs = self.native.argument_limbs(action);
        let args = usize::from(self.native.program.args);
        if block.is_joined() {
            let to = self.join(blocks, index, self.state.clone());
            let live = (0..limbs).filter(|limb| block.live.contains(args + limb));
            let edge = Edge {
                block: self.b.create_block(),
                to,
                entry,
                limbs: live.collect(),
            };
            return (edge.block, Some(edge));
        }
        let mut state = self.state.clone();
        for limb in 0..limbs {
            let offset = limb as i32 * 8;
            state.set(args + limb, Known::Argument { entry, offset });
        }
        (self.copy(index, None, state), None)
    }

    fn store_arguments(&mut self, edge: &Edge) {
        self.b.switch_to_block(edge.block);
        for &limb in &edge.limbs {
            let value = self.load(types::I64, edge.entry, limb as i32 * 8);
            let slot = usize::from(self.native.program.args) + limb;
            self.b
                .ins()
                .store(trusted(), value, self.slots, slot as i32 * 8);
        }
        self.b.ins().jump(edge.to, &[]);
    }

    fn call_table(&mut self, blocks: &Blocks, block: &Block, table: u16, exits: usize) {
        let args = usize::from(self.native.program.args);
        let limbs = usize::from(self.native.program.arg_limbs);
        let (entry, code) = self.lookup(table);
        (args..args + limbs).for_each(|slot| self.state.forget(slot));
        self.settle(blocks, &block.next);
        let exits = self.native.program.exits[exits].clone();
        let (hits, misses) = (self.b.create_block(), self.b.create_block());
        let hit = self
            .b
            .ins()
            .icmp_imm(IntCC::UnsignedLessThan, code, calls::MISS as i64);
        self.b.ins().brif(hit, hits, &[], misses, &[]);
        for (start, base, by_action, none) in [
            (hits, 0, &exits.hit, exits.hit_none),
            (misses, calls::MISS, &exits.miss, exits.none),
        ] {
            self.b.switch_to_block(start);
            let mut actions = self.native.table_actions(table);
            // Where nothing follows that differs, it need not be told apart.
            actions.retain(|&action| by_action.get(action).is_some_and(|&to| to != none));
            for action in actions {
                let is_it =
                    self.b
                        .ins()
                        .icmp_imm(IntCC::Equal, code, (base + action as u64) as i64);
                let (yes, edge) = match entry {
                    Some(entry) => self.action_edge(blocks, by_action[action], action, entry),
                    None => (self.edge(blocks, by_action[action]), None),
                };
                let no = self.b.create_block();
                self.b.ins().brif(is_it, yes, &[], no, &[]);
                if let Some(edge) = edge {
                    self.store_arguments(&edge);
                }
                self.b.switch_to_block(no);
            }
            let to = self.edge(blocks, none);
            self.b.ins().jump(to, &[]);
        }
    }
}
