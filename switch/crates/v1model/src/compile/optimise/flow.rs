// SPDX-License-Identifier: Apache-2.0
//! The code as blocks with explicit ends: taken from a program, in which actions are called, with every call made a
//! copy of the action.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use crate::compile::code::{Op, Pc, Program, Test};
use crate::compile::layout::Slot;
use crate::compile::touch::{lookup, one, run, Touch};
use crate::native::NotCompiled;

/// Index of a block.
pub(crate) type Id = usize;

/// Straight code and how it ends.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Block {
    pub ops: Vec<Op>,
    pub exit: Exit,
}

/// The end of a block.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Exit {
    Stop,
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
    /// A lookup: to the action on a hit and on a miss, for each of `actions`; then without action after a miss and
    /// after a hit.
    Lookup {
        table: u16,
        actions: Vec<u32>,
        to: Vec<Id>,
    },
}

impl Exit {
    /// Calls `f` with every range of slots that it touches.
    pub fn touches(&self, program: &Program, f: &mut dyn FnMut(Touch, Range<usize>)) {
        match *self {
            Exit::Stop | Exit::Goto(_) => {}
            Exit::Branch { a, b, .. } => {
                f(Touch::Reads, one(a));
                f(Touch::Reads, one(b));
            }
            Exit::Select { select, .. } => {
                for &(slot, limbs, _) in &program.selects[select].parts {
                    f(Touch::Reads, run(slot, limbs));
                }
            }
            Exit::Lookup { table, .. } => lookup(program, &program.tables[usize::from(table)], f),
        }
    }

    /// The blocks that may follow.
    pub fn targets(&self) -> Vec<Id> {
        match self {
            Exit::Stop => Vec::new(),
            Exit::Goto(to) => vec![*to],
            Exit::Branch { yes, no, .. } => vec![*yes, *no],
            Exit::Select { to, .. } | Exit::Lookup { to, .. } => to.clone(),
        }
    }

    /// Puts other blocks in their place.
    pub fn retarget(&mut self, mut f: impl FnMut(Id) -> Id) {
        match self {
            Exit::Stop => {}
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

/// All code of a program; `roots` are the starts of parser, ingress, egress, deparser and the checksums' conditions.
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
        let conditions = program.checksums.iter().filter_map(|c| c.condition);
        let starts = [
            program.parser_start,
            program.ingress_start,
            program.egress_start,
            program.deparser_start,
        ];
        let roots: Vec<Pc> = starts
            .into_iter()
            .chain(conditions.map(|(pc, _)| pc))
            .collect();
        let mut reader = Reader {
            program,
            table_actions,
            leaders: HashSet::new(),
            ids: HashMap::new(),
            pending: Vec::new(),
        };
        reader.find_leaders(&roots);
        let roots = roots.iter().map(|&pc| reader.id(pc, None)).collect();
        let mut blocks = Vec::new();
        let mut size = 0;
        while let Some(&(pc, back)) = reader.pending.get(blocks.len()) {
            let block = reader.block(pc, back);
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
        let nothing = || Block {
            ops: Vec::new(),
            exit: Exit::Stop,
        };
        let mut found = vec![false; self.blocks.len()];
        for &root in &self.roots {
            self.order(root).into_iter().for_each(|id| found[id] = true);
        }
        for id in (0..found.len()).filter(|&id| !found[id]) {
            self.blocks[id] = nothing();
        }
        let entries = self.entries();
        for id in 0..self.blocks.len() {
            while let Exit::Goto(to) = self.blocks[id].exit {
                if self.blocks[to] == nothing() {
                    self.blocks[id].exit = Exit::Stop;
                } else if entries[to] == 1 && to != id {
                    let next = std::mem::replace(&mut self.blocks[to], nothing());
                    self.blocks[id].ops.extend(next.ops);
                    self.blocks[id].exit = next.exit;
                } else {
                    break;
                }
            }
        }
    }
}

struct Reader<'p> {
    program: &'p Program,
    table_actions: &'p [Vec<u32>],
    /// Operations to which something jumps.
    leaders: HashSet<Pc>,
    /// By first operation, and block to return to.
    ids: HashMap<(Pc, Option<Id>), Id>,
    /// The same by id.
    pending: Vec<(Pc, Option<Id>)>,
}

impl Reader<'_> {
    fn find_leaders(&mut self, roots: &[Pc]) {
        self.leaders.extend(roots);
        for op in &self.program.ops {
            self.leaders.extend(op.jump());
        }
        for select in &self.program.selects {
            self.leaders.extend(&select.to);
        }
    }

    fn id(&mut self, mut pc: Pc, back: Option<Id>) -> Id {
        // A loop of jumps has no end.
        for _ in 0..self.program.ops.len() {
            match self.program.ops[pc as usize] {
                Op::Jump { to } => pc = to,
                Op::Note { .. } => pc += 1,
                _ => break,
            }
        }
        *self.ids.entry((pc, back)).or_insert_with(|| {
            self.pending.push((pc, back));
            self.pending.len() - 1
        })
    }

    /// The block at `pc`; `back` is where its action returns to.
    fn block(&mut self, start: Pc, back: Option<Id>) -> Block {
        let mut ops = Vec::new();
        let mut pc = start;
        loop {
            if pc != start && self.leaders.contains(&pc) {
                let exit = Exit::Goto(self.id(pc, back));
                return Block { ops, exit };
            }
            let op = self.program.ops[pc as usize];
            let exit = match op {
                Op::Branch { test, a, b, to } => Exit::Branch {
                    test,
                    a,
                    b,
                    yes: self.id(to, back),
                    no: self.id(pc + 1, back),
                },
                Op::Jump { to } => Exit::Goto(self.id(to, back)),
                Op::End => Exit::Stop,
                Op::Return | Op::ReturnOrExit => {
                    if op == Op::ReturnOrExit {
                        ops.push(Op::CheckExit);
                    }
                    Exit::Goto(back.expect("only actions return"))
                }
                Op::Select { select } => {
                    let select = usize::from(select);
                    let program = self.program;
                    let to = program.selects[select].to.iter();
                    let to = to.map(|to| self.id(*to, back)).collect();
                    Exit::Select { select, to }
                }
                Op::Apply { table } => self.lookup(table),
                Op::Note { .. } => {
                    pc += 1;
                    continue;
                }
                op => {
                    ops.push(op);
                    pc += 1;
                    continue;
                }
            };
            return Block { ops, exit };
        }
    }

    fn lookup(&mut self, table: u16) -> Exit {
        let program = self.program;
        let code = &program.tables[usize::from(table)];
        let actions = self.table_actions[usize::from(table)].clone();
        let mut to = Vec::new();
        for hit in [true, false] {
            for action in actions.iter().map(|&action| action as usize) {
                let back = self.id(code.next.to(hit, Some(action)), None);
                to.push(self.id(program.actions[action], Some(back)));
            }
        }
        for hit in [false, true] {
            to.push(self.id(code.next.to(hit, None), None));
        }
        Exit::Lookup { table, actions, to }
    }
}
