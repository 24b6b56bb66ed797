// SPDX-License-Identifier: Apache-2.0
//! Code as basic blocks with explicit exits. The front end makes them as the program is written, where an action is called and
//! returns; the optimiser and machine code work on a copy in which every call is a copy of the action.

use std::collections::HashMap;

use super::code::{Op, Program, Test};
use super::layout::Slot;
use super::touch::{lookup, one, run, Touch, Visit};
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
            entries: entries(program),
            ids: HashMap::new(),
            pending: Vec::new(),
        };
        let roots = program.roots().map(|id| inliner.id(id, None)).to_vec();
        let mut blocks = Vec::new();
        let mut size = 0;
        while let Some(&(id, back)) = inliner.pending.get(blocks.len()) {
            let block = inliner.block(id, back);
            size += block.ops.len() + 1;
            if size > most {
                return Err(NotCompiled::too_large(program));
            }
            blocks.push(block);
        }
        Ok(Flow { blocks, roots })
    }

    /// Number of operations and ends.
    pub fn size(&self) -> usize {
        self.blocks.iter().map(|b| b.ops.len() + 1).sum()
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

/// How many exits, tables, actions and roots lead to each block of a program.
fn entries(program: &Program) -> Vec<u32> {
    let mut entries = vec![0; program.blocks.len()];
    let exits = program.blocks.iter().flat_map(|b| b.exit.targets());
    let tables = program.tables.iter().flat_map(|t| t.next.targets());
    let actions = program.actions.iter().copied();
    for to in exits.chain(tables).chain(actions).chain(program.roots()) {
        entries[to] += 1;
    }
    entries
}

struct Inliner<'p> {
    program: &'p Program,
    table_actions: &'p [Vec<u32>],
    entries: Vec<u32>,
    /// By block of the program, and block to return to.
    ids: HashMap<(Id, Option<Id>), Id>,
    /// The same by id.
    pending: Vec<(Id, Option<Id>)>,
}

impl Inliner<'_> {
    fn id(&mut self, mut id: Id, back: Option<Id>) -> Id {
        let blocks = &self.program.blocks;
        let is_empty = |block: &Block| block.ops.iter().all(Op::is_note);
        // A loop of jumps has no end.
        for _ in 0..blocks.len() {
            match blocks[id].exit {
                Exit::Goto(to) if is_empty(&blocks[id]) => id = to,
                _ => break,
            }
        }
        *self.ids.entry((id, back)).or_insert_with(|| {
            self.pending.push((id, back));
            self.pending.len() - 1
        })
    }

    /// A copy of a block, with those that only it leads to; `back` is where its action returns to.
    fn block(&mut self, mut id: Id, back: Option<Id>) -> Block {
        let blocks = &self.program.blocks;
        let mut ops = Vec::new();
        let exit = loop {
            ops.extend(blocks[id].ops.iter().filter(|op| !op.is_note()));
            match &blocks[id].exit {
                Exit::Goto(to) if self.entries[*to] == 1 => id = *to,
                exit => break exit,
            }
        };
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
