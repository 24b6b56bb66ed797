// SPDX-License-Identifier: Apache-2.0
//! One copy of a block for each thing that is known where it begins: a branch whose answer is known is no branch.
//!
//! What is known of a slot is that it equals a constant or that it does not; it is kept only where a later branch asks for it.

use std::collections::HashMap;

use super::flow::{Block, Exit, Flow, Id};
use super::{Effects, Touch};
use crate::compile::code::{Alu, Op, Test};
use crate::compile::layout::Slot;
use crate::compile::op::SlotSet;

/// What is known of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Fact {
    Is(u64),
    IsNot(u64),
}

/// Facts by slot, in order.
type Facts = Vec<(Slot, Fact)>;

fn get(facts: &Facts, slot: Slot) -> Option<Fact> {
    let at = facts.binary_search_by_key(&slot, |f| f.0).ok()?;
    Some(facts[at].1)
}

fn set(facts: &mut Facts, slot: Slot, fact: Option<Fact>) {
    match (facts.binary_search_by_key(&slot, |f| f.0), fact) {
        (Ok(at), Some(fact)) => facts[at].1 = fact,
        (Ok(at), None) => {
            facts.remove(at);
        }
        (Err(at), Some(fact)) => facts.insert(at, (slot, fact)),
        (Err(_), None) => {}
    }
}

/// The constants of a program by slot.
pub(super) type Constants = HashMap<Slot, u64>;

/// The specialised flow, of at most about `most` operations.
pub(super) fn specialise(
    flow: &Flow,
    effects: &Effects,
    constants: &Constants,
    most: usize,
) -> Flow {
    let mut pass = Pass {
        flow,
        effects,
        constants,
        asked: compared_later(flow, effects, constants),
        ids: HashMap::new(),
        pending: Vec::new(),
        generous: true,
    };
    let roots = flow
        .roots
        .iter()
        .map(|&id| pass.id(id, &Facts::new()))
        .collect();
    let mut blocks = Vec::new();
    let mut size = 0;
    while let Some((id, facts)) = pass.pending.get(blocks.len()).cloned() {
        let block = pass.block(id, facts);
        size += block.ops.len() + 1;
        pass.generous = size < most;
        blocks.push(block);
    }
    Flow { blocks, roots }
}

/// For each block, the slots that a branch at its end or later compares with a constant before they are written.
fn compared_later(flow: &Flow, effects: &Effects, constants: &Constants) -> Vec<SlotSet> {
    let slots = effects.most.len();
    let mut asked = vec![SlotSet::new(slots); flow.blocks.len()];
    let mut changed = true;
    while changed {
        changed = false;
        for (id, block) in flow.blocks.iter().enumerate().rev() {
            let mut set = SlotSet::new(slots);
            for to in block.exit.targets() {
                set.add_all(&asked[to]);
            }
            if let Exit::Branch { a, b, .. } = block.exit {
                for (slot, other) in [(a, b), (b, a)] {
                    if constants.contains_key(&other) && !constants.contains_key(&slot) {
                        set.add(slot.into());
                    }
                }
            }
            for op in block.ops.iter().rev() {
                if let Op::Alu {
                    alu: Alu::Move,
                    d,
                    a,
                    ..
                } = *op
                {
                    let wanted = set.contains(d.into());
                    set.remove(d.into());
                    if wanted && !constants.contains_key(&a) {
                        set.add(a.into());
                    }
                    continue;
                }
                effects.visit(op, &mut |touch, range| {
                    if touch == Touch::Writes {
                        range.for_each(|slot| set.remove(slot));
                    }
                });
            }
            if set != asked[id] {
                asked[id] = set;
                changed = true;
            }
        }
    }
    asked
}

struct Pass<'p> {
    flow: &'p Flow,
    effects: &'p Effects,
    constants: &'p Constants,
    asked: Vec<SlotSet>,
    ids: HashMap<(Id, Facts), Id>,
    pending: Vec<(Id, Facts)>,
    /// False when there is enough code: then blocks are taken without facts.
    generous: bool,
}

impl Pass<'_> {
    /// The copy of block `id` for `facts`.
    fn id(&mut self, id: Id, facts: &Facts) -> Id {
        let asked = &self.asked[id];
        let kept: Facts = match self.generous {
            true => {
                let wanted = facts.iter().filter(|f| asked.contains(f.0.into()));
                wanted.copied().collect()
            }
            false => Facts::new(),
        };
        let pending = &mut self.pending;
        *self.ids.entry((id, kept)).or_insert_with_key(|key| {
            pending.push(key.clone());
            pending.len() - 1
        })
    }

    fn block(&mut self, id: Id, mut facts: Facts) -> Block {
        let Block { ops, exit } = &self.flow.blocks[id];
        for op in ops {
            self.learn(op, &mut facts);
        }
        let exit = match exit {
            Exit::Branch {
                test,
                a,
                b,
                yes,
                no,
            } => self.branch(*test, (*a, *b), (*yes, *no), &facts),
            other => {
                let mut after = facts;
                other.touches(&self.effects.program, &mut forget(&mut after));
                self.others(other, &after)
            }
        };
        Block {
            ops: ops.clone(),
            exit,
        }
    }

    fn others(&mut self, exit: &Exit, facts: &Facts) -> Exit {
        let mut exit = exit.clone();
        exit.retarget(|id| self.id(id, facts));
        exit
    }

    fn learn(&self, op: &Op, facts: &mut Facts) {
        match *op {
            Op::Alu {
                alu: Alu::Move,
                d,
                a,
                w,
                ..
            } => {
                let mask = crate::bits::low_mask(w.into());
                let fact = match self.fact(a, facts) {
                    Some(Fact::Is(value)) => Some(Fact::Is(value & mask)),
                    Some(other) if self.effects.most[usize::from(a)] <= mask => Some(other),
                    _ => None,
                };
                set(facts, d, fact);
            }
            _ => self.effects.visit(op, &mut forget(facts)),
        }
    }

    fn fact(&self, slot: Slot, facts: &Facts) -> Option<Fact> {
        match self.constants.get(&slot) {
            Some(value) => Some(Fact::Is(*value)),
            None => get(facts, slot),
        }
    }

    fn branch(
        &mut self,
        test: Test,
        (a, b): (Slot, Slot),
        (yes, no): (Id, Id),
        facts: &Facts,
    ) -> Exit {
        if let Some(answer) = answer(test, self.fact(a, facts), self.fact(b, facts)) {
            return Exit::Goto(self.id(if answer { yes } else { no }, facts));
        }
        let mut branches = [facts.clone(), facts.clone()];
        for (slot, other) in [(a, b), (b, a)] {
            let Some(&value) = self.constants.get(&other) else {
                continue;
            };
            let (equal, unequal) = match test {
                Test::Eq => (0, 1),
                Test::Ne => (1, 0),
                _ => continue,
            };
            set(&mut branches[equal], slot, Some(Fact::Is(value)));
            let only = self.effects.most[usize::from(slot)] == 1 && value <= 1;
            let fact = if only {
                Fact::Is(1 - value)
            } else {
                Fact::IsNot(value)
            };
            set(&mut branches[unequal], slot, Some(fact));
        }
        Exit::Branch {
            test,
            a,
            b,
            yes: self.id(yes, &branches[0]),
            no: self.id(no, &branches[1]),
        }
    }
}

/// Forgets what is known of slots that are written.
fn forget(facts: &mut Facts) -> impl FnMut(Touch, std::ops::Range<usize>) + '_ {
    |touch, range| {
        if touch != Touch::Reads {
            facts.retain(|(slot, _)| !range.contains(&usize::from(*slot)));
        }
    }
}

/// The answer that follows from what is known.
fn answer(test: Test, a: Option<Fact>, b: Option<Fact>) -> Option<bool> {
    use Fact::{Is, IsNot};
    match (a?, b?) {
        (Is(a), Is(b)) => Some(test.holds(a, b)),
        (IsNot(a), Is(b)) | (Is(a), IsNot(b)) if a == b => match test {
            Test::Eq => Some(false),
            Test::Ne => Some(true),
            _ => None,
        },
        _ => None,
    }
}
