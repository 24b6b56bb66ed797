// SPDX-License-Identifier: Apache-2.0
//! Follows values through slots: operations read the first slot that holds their operand, what is known is not
//! computed again, constants are computed now.
//!
//! Within a block, and on into a block that is entered from one place only (an extended basic block).

use std::collections::HashMap;

use super::effects::{Effects, Touch};
use super::flow::{Exit, Flow, Id};
use super::pool::Pool;
use crate::bits::low_mask;
use crate::compile::code::{Alu, Input, Op, Test};
use crate::compile::layout::Slot;

/// Number of a value.
type Value = u32;

/// A computed value: operation, operands, cut.
type Key = (Alu, Value, Value, u8);

/// So many values are handed on to a following block.
const MOST_VALUES: usize = 1_000;

#[derive(Clone, Debug)]
struct Known {
    constant: Option<u64>,
    most: u64,
    /// Slots that held it, the first first; some may hold something else by now.
    holders: Vec<Slot>,
}

/// What slots hold at some point of the code.
#[derive(Clone, Debug, Default)]
struct Values {
    of: HashMap<Slot, Value>,
    known: Vec<Known>,
    constants: HashMap<u64, Value>,
    computed: HashMap<Key, Value>,
}

/// Rewrites all blocks; new constants come from `pool`.
pub(super) fn propagate(flow: &mut Flow, effects: &mut Effects, pool: &mut Pool) {
    let entries = flow.entries();
    let mut done = vec![false; flow.blocks.len()];
    let mut waiting: Vec<(Id, Values)> = Vec::new();
    for start in flow.roots.clone() {
        waiting.push((start, Values::default()));
        while let Some((id, values)) = waiting.pop() {
            if std::mem::replace(&mut done[id], true) {
                continue;
            }
            let mut pass = Pass {
                values,
                effects,
                pool,
            };
            let block = &mut flow.blocks[id];
            block.ops = std::mem::take(&mut block.ops)
                .into_iter()
                .filter_map(|op| pass.rewrite(op))
                .collect();
            pass.exit(&mut block.exit);
            let values = pass.values;
            let inherit = values.known.len() < MOST_VALUES;
            for to in block.exit.targets() {
                waiting.push(match inherit && entries[to] == 1 {
                    true => (to, values.clone()),
                    false => (to, Values::default()),
                });
            }
        }
    }
}

impl Values {
    fn new_value(&mut self, constant: Option<u64>, most: u64) -> Value {
        self.known.push(Known {
            constant,
            most,
            holders: Vec::new(),
        });
        (self.known.len() - 1) as Value
    }

    fn constant(&mut self, value: u64) -> Value {
        if let Some(&known) = self.constants.get(&value) {
            return known;
        }
        let known = self.new_value(Some(value), value);
        self.constants.insert(value, known);
        known
    }

    fn put(&mut self, slot: Slot, value: Value) {
        self.of.insert(slot, value);
        self.known[value as usize].holders.push(slot);
    }

    /// The first slot that still holds `value`.
    fn holder(&self, value: Value) -> Option<Slot> {
        let holders = &self.known[value as usize].holders;
        holders
            .iter()
            .copied()
            .find(|slot| self.of.get(slot) == Some(&value))
    }
}

struct Pass<'p> {
    values: Values,
    effects: &'p mut Effects,
    pool: &'p mut Pool,
}

impl Pass<'_> {
    fn value(&mut self, slot: Slot) -> Value {
        if let Some(constant) = self.pool.value(slot) {
            return self.values.constant(constant);
        }
        if let Some(&value) = self.values.of.get(&slot) {
            return value;
        }
        let value = self
            .values
            .new_value(None, self.effects.most[usize::from(slot)]);
        self.values.put(slot, value);
        value
    }

    /// The slot to read instead of `slot`.
    fn instead(&mut self, slot: Slot) -> Slot {
        let value = self.value(slot);
        match self.values.known[value as usize].constant {
            Some(constant) => self.constant_slot(constant).unwrap_or(slot),
            None => self.values.holder(value).unwrap_or(slot),
        }
    }

    fn constant_slot(&mut self, value: u64) -> Option<Slot> {
        self.pool.slot(value, &mut self.effects.most)
    }

    /// The operation in better words; None when it does nothing.
    fn rewrite(&mut self, mut op: Op) -> Option<Op> {
        for slot in op.operands() {
            *slot = self.instead(*slot);
        }
        if let Op::Alu { alu, a, b, d, w } = op {
            return self.rewrite_alu(alu, (a, b), d, w);
        }
        if let Some(calculation) = op.calculation() {
            *calculation = self.calculation(*calculation);
        }
        let values = &mut self.values;
        self.effects.visit(&op, &mut |touch, range| {
            if touch != Touch::Reads {
                range.for_each(|slot| {
                    values.of.remove(&(slot as Slot));
                });
            }
        });
        let known = |slot| {
            let value = self.values.of.get(&slot);
            let known = value.map(|&value| self.values.known[value as usize].most);
            known.unwrap_or(self.effects.most[usize::from(slot)])
        };
        if let Some((d, most)) = self.effects.result(&op, known) {
            let value = self.values.new_value(None, most);
            self.values.put(d, value);
        }
        Some(op)
    }

    fn rewrite_alu(&mut self, alu: Alu, (a, b): (Slot, Slot), d: Slot, w: u8) -> Option<Op> {
        let (x, y) = (self.value(a), self.value(b));
        let result = self.result(alu, x, y, w);
        if self.values.of.get(&d) == Some(&result) {
            return None;
        }
        let from = match self.values.known[result as usize].constant {
            Some(constant) => self.constant_slot(constant),
            None => self.values.holder(result),
        };
        self.values.put(d, result);
        Some(from.map_or(Op::alu(alu, d, a, b, w), |from| Op::copy(d, from)))
    }

    /// The value that an operation computes.
    fn result(&mut self, alu: Alu, a: Value, b: Value, w: u8) -> Value {
        let known = |value: Value| &self.values.known[value as usize];
        let (x, y) = (known(a), known(b));
        if let (Some(x), Some(y)) = (x.constant, y.constant) {
            return self.values.constant(alu.compute(x, y, w));
        }
        let copies = match alu {
            Alu::Move => x.most <= low_mask(w.into()),
            Alu::SatU(bits) => x.most <= low_mask(bits.min(w.into())),
            _ => false,
        };
        if copies {
            return a;
        }
        let most = alu.upper_bound(x.most, y.most, y.constant, w);
        let (first, second) = match alu.commutes() {
            true => (a.min(b), a.max(b)),
            false => (a, b),
        };
        let key = (alu, first, second, w);
        if let Some(&value) = self.values.computed.get(&key) {
            return value;
        }
        let value = self.values.new_value(None, most);
        self.values.computed.insert(key, value);
        value
    }

    /// The calculation that reads its inputs where they come from.
    fn calculation(&mut self, index: u16) -> u16 {
        if self.effects.has_state(index) {
            return index;
        }
        let mut copy = self.effects.program.calculations[usize::from(index)].clone();
        let mut changed = HashMap::new();
        for input in &mut copy.inputs {
            if let Input::Field {
                slot,
                width: 1..=64,
                varbit_bits: None,
                ..
            } = input
            {
                let better = self.instead(*slot);
                if better != *slot {
                    changed.insert(*slot, better);
                    *slot = better;
                }
            }
        }
        if changed.is_empty() {
            return index;
        }
        for (slot, _) in copy
            .words
            .iter_mut()
            .flatten()
            .flat_map(|run| run.words.iter_mut().flat_map(|word| &mut word.fields))
        {
            *slot = *changed.get(slot).unwrap_or(slot);
        }
        self.effects.add_calculation(index, copy).unwrap_or(index)
    }

    fn exit(&mut self, exit: &mut Exit) {
        match exit {
            Exit::Branch {
                test,
                a,
                b,
                yes,
                no,
            } => {
                *a = self.instead(*a);
                *b = self.instead(*b);
                let (x, y) = (self.value(*a), self.value(*b));
                if let Some(answer) = self.answer(*test, x, y) {
                    *exit = Exit::Goto(if answer { *yes } else { *no });
                }
            }
            other => {
                let values = &mut self.values;
                other.touches(&self.effects.program, &mut |touch, range| {
                    if touch != Touch::Reads {
                        range.for_each(|slot| {
                            values.of.remove(&(slot as Slot));
                        });
                    }
                });
            }
        }
    }

    fn answer(&self, test: Test, x: Value, y: Value) -> Option<bool> {
        if x == y {
            return Some(test.holds(0, 0));
        }
        let (a, b) = (
            &self.values.known[x as usize],
            &self.values.known[y as usize],
        );
        match (test, a.constant, b.constant) {
            (_, Some(a), Some(b)) => Some(test.holds(a, b)),
            (Test::Eq | Test::Ne, None, Some(c)) if c > a.most => Some(test == Test::Ne),
            (Test::Eq | Test::Ne, Some(c), None) if c > b.most => Some(test == Test::Ne),
            (Test::LtU, None, Some(c)) if a.most < c => Some(true),
            (Test::LeU, None, Some(c)) if a.most <= c => Some(true),
            (Test::LtU, Some(c), None) if c >= b.most => Some(false),
            (Test::LeU, Some(c), None) if c > b.most => Some(false),
            (Test::LeU, Some(0), None) => Some(true),
            (Test::LtU, None, Some(0)) => Some(false),
            _ => None,
        }
    }
}
