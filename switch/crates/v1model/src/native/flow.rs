// SPDX-License-Identifier: Apache-2.0
//! Control flow: blocks in order, their copies, and how one leads to the next.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{self, types, InstBuilder, Value};

use super::lower::{trusted, Known, Lower, State, DONE};
use super::{calls, Native};
use crate::compile::code::Test;
use crate::compile::flow::{Block, Exit, Id};
use crate::compile::op::SlotSet;

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
    pub fn code(&mut self, start: Id) {
        let blocks = Blocks::new(self.native, start);
        self.copies = self
            .native
            .optimised
            .flow
            .blocks
            .iter()
            .map(|_| Vec::new())
            .collect();
        let first = self.edge(&blocks, start);
        self.b.ins().jump(first, &[]);
        for &id in &blocks.order {
            let block = blocks.get(id);
            // The code may come back to a loop's.
            for copy in 0..self.copies[id].len() {
                let copy = &self.copies[id][copy];
                self.b.switch_to_block(copy.block);
                self.state = copy.entry.clone();
                self.forget_dead(blocks.live(id));
                block.ops.iter().for_each(|op| self.op(op));
                self.end(&blocks, &block.exit);
            }
        }
    }

    /// Makes memory ready for the ends of a block that lead to these blocks.
    fn settle(&mut self, blocks: &Blocks, next: &[Id]) {
        let live = |to: &Id| blocks.live(*to);
        let wanted: Vec<&SlotSet> = next.iter().map(live).collect();
        let joined = next.iter().filter(|to| blocks.is_joined(**to));
        let joined: Vec<&SlotSet> = joined.map(live).collect();
        let loops = next.iter().any(|&to| blocks.is_loop(to));
        self.by_place = self.place().is_some() && !loops && self.more > next.len();
        let exited = self.native.exited();
        let by_place = self.by_place;
        let kept = &self.native.optimised.kept;
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

    /// Where to jump for a block, which then begins with what is known here.
    fn edge(&mut self, blocks: &Blocks, id: Id) -> ir::Block {
        let state = self.state.clone();
        match blocks.is_joined(id) {
            true => self.join(blocks, id, state),
            false => self.copy(id, None, state),
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
        if blocks.is_loop(index) {
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

    fn end(&mut self, blocks: &Blocks, exit: &Exit) {
        match *exit {
            Exit::Return | Exit::Apply { .. } => unreachable!("actions are copied to their calls"),
            Exit::Stop => {
                self.store_kept();
                self.finish(DONE);
            }
            Exit::Goto(to) => {
                self.settle(blocks, &[to]);
                let to = self.edge(blocks, to);
                self.b.ins().jump(to, &[]);
            }
            Exit::Branch {
                test,
                a,
                b,
                yes,
                no,
            } => {
                let test = match test {
                    Test::Eq => IntCC::Equal,
                    Test::Ne => IntCC::NotEqual,
                    Test::LtU => IntCC::UnsignedLessThan,
                    Test::LeU => IntCC::UnsignedLessThanOrEqual,
                    Test::LtS => IntCC::SignedLessThan,
                    Test::LeS => IntCC::SignedLessThanOrEqual,
                };
                self.settle(blocks, &[yes, no]);
                let holds = self.compare(test, a, b);
                let (yes, no) = (self.edge(blocks, yes), self.edge(blocks, no));
                self.b.ins().brif(holds, yes, &[], no, &[]);
            }
            Exit::Select { select, ref to } => {
                self.settle(blocks, to);
                let tests = self.select(select);
                for (test, &to) in tests.into_iter().zip(to) {
                    let to = self.edge(blocks, to);
                    let (test, no) = (test(self), self.b.create_block());
                    self.b.ins().brif(test, to, &[], no, &[]);
                    self.b.switch_to_block(no);
                }
                let to = self.edge(blocks, to[to.len() - 1]);
                self.b.ins().jump(to, &[]);
            }
            Exit::Lookup {
                table,
                ref actions,
                ref to,
            } => self.call_table(blocks, table, actions, to),
        }
    }

    /// An end that leads to a block after the call of an action, whose arguments lie at `entry`. Where others
    /// lead there too, the arguments go to memory on the way: `store_arguments`.
    fn action_edge(
        &mut self,
        blocks: &Blocks,
        id: Id,
        action: usize,
        entry: Value,
    ) -> (ir::Block, Option<Edge>) {
        let limbs = self.native.argument_limbs(action);
        let args = usize::from(self.native.program.args);
        if blocks.is_joined(id) {
            let to = self.join(blocks, id, self.state.clone());
            let live = (0..limbs).filter(|limb| blocks.live(id).contains(args + limb));
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
        (self.copy(id, None, state), None)
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

    fn call_table(&mut self, blocks: &Blocks, table: u16, actions: &[u32], to: &[Id]) {
        let args = usize::from(self.native.program.args);
        let limbs = usize::from(self.native.program.arg_limbs);
        let (entry, code) = self.lookup(table);
        (args..args + limbs).for_each(|slot| self.state.forget(slot));
        self.settle(blocks, to);
        let (hits, misses) = (self.b.create_block(), self.b.create_block());
        let hit = self
            .b
            .ins()
            .icmp_imm(IntCC::UnsignedLessThan, code, calls::MISS as i64);
        self.b.ins().brif(hit, hits, &[], misses, &[]);
        let (on_hit, rest) = to.split_at(actions.len());
        let (on_miss, none) = rest.split_at(actions.len());
        for (start, base, by_action, none) in [
            (hits, 0, on_hit, none[1]),
            (misses, calls::MISS, on_miss, none[0]),
        ] {
            self.b.switch_to_block(start);
            // Where nothing follows that differs, it need not be told apart.
            let differing = actions.iter().zip(by_action).filter(|(_, &to)| to != none);
            for (&action, &to) in differing {
                let is_it = (base + u64::from(action)) as i64;
                let is_it = self.b.ins().icmp_imm(IntCC::Equal, code, is_it);
                let (yes, edge) = match entry {
                    Some(entry) => self.action_edge(blocks, to, action as usize, entry),
                    None => (self.edge(blocks, to), None),
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
