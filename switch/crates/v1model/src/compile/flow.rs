// SPDX-License-Identifier: Apache-2.0
//! Code as basic blocks with explicit exits. The front end makes them as the program is written, where an action is called and
//! returns; the optimiser and machine code work on a copy in which every call is a copy of the action.

use std::collections::HashMap;

use super::code::{Op, Program, Test};
use super::layout::Slot;
use super::op::{lookup, one, run, Touch, Visit};
use crate::native::NotCompiled;

/// Index of a block.
pub(crate) type Id = usize;

/// Straight code and how it ends.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Block {
    pub ops: Vec<Op>,
    pub exit: Exit,
}

/// The end of a block.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) enum Exit {
    #[default]
    Stop,
    /// End of an action: to where the table that called it goes on.
    Return,
    Goto(Id),
    Branch {
        test: Test,
        a: Slot,
        b: Slot,
        yes: Id,
        no: Id,
    },
    /// `Program::selects[select]`: to each case in order, and the default last.
    Select {
        select: usize,
        to: Vec<Id>,
    },
    /// A lookup, and a call of the action: then on as `TableCode::next` says.
    Apply {
        table: u16,
    },
    /// The same without calls: to the action on a hit and on a miss, for each of `actions`; then without action after a miss and
    /// after a hit.
    Lookup {
        table: u16,
        actions: Vec<u32>,
        to: Vec<Id>,
    },
}

impl Exit {
    /// Calls `f` with every range of slots that it touches.
    pub fn touches(&self, program: &Program, f: &mut Visit) {
        match *self {
            Exit::Stop | Exit::Return | Exit::Goto(_) => {}
            Exit::Branch { a, b, .. } => {
                f(Touch::Reads, one(a));
                f(Touch::Reads, one(b));
            }
            Exit::Select { select, .. } => {
                for &(slot, limbs, _) in &program.selects[select].parts {
                    f(Touch::Reads, run(slot, limbs));
                }
            }
            Exit::Apply { table } | Exit::Lookup { table, .. } => {
                lookup(program, &program.tables[usize::from(table)], f);
            }
        }
    }

    /// The blocks that may follow.
    pub fn targets(&self) -> Vec<Id> {
        match self {
            Exit::Stop | Exit::Return | Exit::Apply { .. } => Vec::new(),
            Exit::Goto(to) => vec![*to],
            Exit::Branch { yes, no, .. } => vec![*yes, *no],
            Exit::Select { to, .. } | Exit::Lookup { to, .. } => to.clone(),
        }
    }

    /// Puts other blocks in their place.
    pub fn retarget(&mut self, mut f: impl FnMut(Id) -> Id) {
        match self {
            Exit::Stop | Exit::Return | Exit::Apply { .. } => {}
            Exit::Goto(to) => *to = f(*to),
            Exit::Branch { yes, no, .. } => {
                *yes = f(*yes);
                *no = f(*no);
            }
            Exit::Select { to, .. } | Exit::Lookup { to, .. } => {
                to.iter_mut().for_each(|to| *to = f(*to));
            }
        }
    }
}

/// All code of a program; `roots` as `Program::roots`.
#[derive(Clone, Debug)]
pub(crate) struct Flow {
    pub blocks: Vec<Block>,
    pub roots: Vec<Id>,
}

impl Flow {
    /// Blocks of a program whose tables may run `table_actions`.
    ///
    /// # Errors
    /// It would become too large.
    pub fn new(
        program: &Program,
        table_actions: &[Vec<u32>],
        most: usize,
    ) -> Result<Flow, NotCompiled> {
        let mut inliner = Inliner {
            program,
            table_actions,
            ids: HashMap::new(),
            pending: Vec::new(),
        };
        let roots = program.roots().map(|id| inliner.id(id, None)).to_vec();
        let mut blocks = Vec::new();
        let mut size = 0;
        while let Some(&(id, back)) = inliner.pending.get(blocks.len()) {
            let block = inliner.block(id, back);
            // One that only goes on becomes a part of another.
            size += block.ops.len() + usize::from(!matches!(block.exit, Exit::Goto(_)));
            let least = size.max(inliner.pending.len() / 2);
            if least > most {
                return Err(NotCompiled::TooLarge(least));
            }
            blocks.push(block);
        }
        let mut flow = Flow { blocks, roots };
        flow.tidy();
        Ok(flow)
    }

    /// Number of operations and ends.
    pub fn size(&self) -> usize {
        let blocks = self.blocks.iter().filter(|b| **b != Block::default());
        blocks.map(|b| b.ops.len() + 1).sum()
    }

    /// For each block, how many ends and roots lead to it.
    pub fn entries(&self) -> Vec<u32> {
        let mut entries = vec![0; self.blocks.len()];
        let targets = self.blocks.iter().flat_map(|b| b.exit.targets());
        for to in targets.chain(self.roots.iter().copied()) {
            entries[to] += 1;
        }
        entries
    }

    /// Blocks that `start` leads to, each in front of those that follow it but where the code comes back.
    pub fn order(&self, start: Id) -> Vec<Id> {
        // Depth first; a block is finished behind all that follow it.
        let mut found = vec![false; self.blocks.len()];
        found[start] = true;
        let mut path = vec![(start, self.blocks[start].exit.targets(), 0)];
        let mut order = Vec::new();
        while let Some((id, targets, next)) = path.last_mut() {
            match targets.get(*next) {
                Some(&to) => {
                    *next += 1;
                    if !std::mem::replace(&mut found[to], true) {
                        path.push((to, self.blocks[to].exit.targets(), 0));
                    }
                }
                None => {
                    order.push(*id);
                    path.pop();
                }
            }
        }
        order.reverse();
        order
    }

    /// Where a jump to `id` ends up: through blocks that do nothing.
    fn resolve(&self, mut id: Id) -> Id {
        for _ in 0..self.blocks.len() {
            match &self.blocks[id] {
                Block {
                    ops,
                    exit: Exit::Goto(to),
                } if ops.is_empty() => id = *to,
                _ => break,
            }
        }
        id
    }

    /// Blocks that do nothing go, and one that only one other goes on to becomes a part of that.
    pub fn tidy(&mut self) {
        let resolved: Vec<Id> = (0..self.blocks.len()).map(|id| self.resolve(id)).collect();
        for block in &mut self.blocks {
            block.exit.retarget(|id| resolved[id]);
        }
        self.roots.iter_mut().for_each(|id| *id = resolved[*id]);
        let mut found = vec![false; self.blocks.len()];
        for &root in &self.roots {
            self.order(root).into_iter().for_each(|id| found[id] = true);
        }
        for id in (0..found.len()).filter(|&id| !found[id]) {
            self.blocks[id] = Block::default();
        }
        let entries = self.entries();
        for id in 0..self.blocks.len() {
            while let Exit::Goto(to) = self.blocks[id].exit {
                if self.blocks[to] == Block::default() {
                    self.blocks[id].exit = Exit::Stop;
                } else if entries[to] == 1 && to != id {
                    let next = std::mem::take(&mut self.blocks[to]);
                    self.blocks[id].ops.extend(next.ops);
                    self.blocks[id].exit = next.exit;
                } else {
                    break;
                }
            }
        }
    }
}

struct Inliner<'p> {
    program: &'p Program,
    table_actions: &'p [Vec<u32>],
    /// By block of the program, and block to return to.
    ids: HashMap<(Id, Option<Id>), Id>,
    /// The same by id.
    pending: Vec<(Id, Option<Id>)>,
}

impl Inliner<'_> {
    fn id(&mut self, id: Id, back: Option<Id>) -> Id {
        *self.ids.entry((id, back)).or_insert_with(|| {
            self.pending.push((id, back));
            self.pending.len() - 1
        })
    }

    /// A copy of a block; `back` is where its action returns to.
    fn block(&mut self, id: Id, back: Option<Id>) -> Block {
        let Block { ops, exit } = &self.program.blocks[id];
        let ops = ops.iter().filter(|op| !op.is_note()).copied().collect();
        let exit = match exit {
            Exit::Return => Exit::Goto(back.expect("only actions return")),
            Exit::Apply { table } => self.lookup(*table),
            exit => {
                let mut exit = exit.clone();
                exit.retarget(|to| self.id(to, back));
                exit
            }
        };
        Block { ops, exit }
    }

    fn lookup(&mut self, table: u16) -> Exit {
        let program = self.program;
        let next = &program.tables[usize::from(table)].next;
        let actions = self.table_actions[usize::from(table)].clone();
        let mut to = Vec::new();
        for hit in [true, false] {
            for action in actions.iter().map(|&action| action as usize) {
                let back = self.id(next.to(hit, Some(action)), None);
                to.push(self.id(program.actions[action], Some(back)));
            }
        }
        for hit in [false, true] {
            to.push(self.id(next.to(hit, None), None));
        }
        Exit::Lookup { table, actions, to }
    }
}

/// For each node whether a search from node 0 on comes back to it on its way: every cycle goes through such a node.
/// `next` appends the nodes that may follow one.
pub(super) fn loop_heads(nodes: usize, mut next: impl FnMut(usize, &mut Vec<usize>)) -> Vec<bool> {
    #[derive(Clone, Copy, PartialEq)]
    enum Seen {
        Not,
        OnTheWay,
        Done,
    }
    let (mut seen, mut heads) = (vec![Seen::Not; nodes], vec![false; nodes]);
    // Nodes on the way, each with where its waiting followers begin. No recursion: a program may be long.
    let (mut way, mut waiting): (Vec<(usize, usize)>, Vec<usize>) = (Vec::new(), Vec::new());
    for start in 0..nodes {
        if seen[start] != Seen::Not {
            continue;
        }
        waiting.push(start);
        way.push((usize::MAX, 0));
        while let Some(&(node, first)) = way.last() {
            if waiting.len() == first {
                way.pop();
                if let Some(seen) = seen.get_mut(node) {
                    *seen = Seen::Done;
                }
                continue;
            }
            let Some(to) = waiting.pop() else { break };
            match seen[to] {
                Seen::Done => {}
                Seen::OnTheWay => heads[to] = true,
                Seen::Not => {
                    seen[to] = Seen::OnTheWay;
                    way.push((to, waiting.len()));
                    next(to, &mut waiting);
                }
            }
        }
    }
    heads
}

impl Flow {
    /// Sees that code that comes back to where it was passes a `Step` on its way.
    ///
    /// # Errors
    /// It does not; that would be a mistake of this crate.
    pub fn check_end(&self) -> Result<(), NotCompiled> {
        let blocks = &self.blocks;
        let heads = loop_heads(blocks.len(), |id, next| {
            if !blocks[id].ops.contains(&Op::Step) {
                next.extend(blocks[id].exit.targets());
            }
        });
        match heads.contains(&true) {
            true => Err(NotCompiled::Endless),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::loop_heads;

    fn heads(edges: &[&[usize]]) -> Vec<usize> {
        let heads = loop_heads(edges.len(), |node, next| next.extend(edges[node]));
        (0..edges.len()).filter(|&node| heads[node]).collect()
    }

    #[test]
    fn only_what_comes_back_is_a_head() {
        assert_eq!(heads(&[&[1, 2], &[3], &[3], &[]]), [0; 0]);
        assert_eq!(heads(&[&[1], &[2], &[1, 3], &[]]), [1]);
        assert_eq!(heads(&[&[0]]), [0]);
        // Unreachable from the first node.
        assert_eq!(heads(&[&[], &[2], &[1]]), [1]);
        // Two loops through one node, one of them inside the other.
        assert_eq!(heads(&[&[1], &[2], &[1, 0], &[]]), [0, 1]);
    }

    #[test]
    fn a_long_way_needs_no_stack() {
        let last = 1_000_000;
        let heads = loop_heads(last + 1, |node, next| {
            next.push(if node == last { 0 } else { node + 1 })
        });
        assert_eq!(heads.iter().filter(|head| **head).count(), 1);
        assert!(heads[0]);
    }
}
