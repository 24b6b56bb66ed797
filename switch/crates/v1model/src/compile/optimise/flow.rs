// SPDX-License-Identifier: Apache-2.0
//! The code as blocks with explicit ends: taken from a program, in which actions are called, with every call made a
//! copy of the action; and put back as flat code.

use std::collections::{HashMap, HashSet};

use crate::compile::code::{Exits, Op, Pc, Program, Select, Test};
use crate::compile::layout::Slot;

/// Index of a block.
pub(super) type Id = usize;

/// Straight code and how it ends.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Block {
    pub ops: Vec<Op>,
    pub exit: Exit,
}

/// The end of a block.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Exit {
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
pub(super) struct Flow {
    pub blocks: Vec<Block>,
    pub roots: Vec<Id>,
}

/// Where the machine starts, in the order of `Flow::roots`.
fn starts(program: &mut Program) -> Vec<&mut Pc> {
    let conditions = program
        .checksums
        .iter_mut()
        .filter_map(|c| c.condition.as_mut().map(|(pc, _)| pc));
    [
        &mut program.parser_start,
        &mut program.ingress_start,
        &mut program.egress_start,
        &mut program.deparser_start,
    ]
    .into_iter()
    .chain(conditions)
    .collect()
}

impl Flow {
    /// Blocks of a program whose tables may run `table_actions`. None when it would become too large.
    pub fn new(program: &mut Program, table_actions: &[Vec<u32>], most: usize) -> Option<Flow> {
        let roots: Vec<Pc> = starts(program).into_iter().map(|pc| *pc).collect();
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
                return None;
            }
            blocks.push(block);
        }
        Some(Flow { blocks, roots })
    }

    /// True when flat code can name all its selects and lookups.
    pub fn fits(&self) -> bool {
        let count =
            |wanted: fn(&Exit) -> bool| self.blocks.iter().filter(|b| wanted(&b.exit)).count();
        let selects = count(|exit| matches!(exit, Exit::Select { .. }));
        let lookups = count(|exit| matches!(exit, Exit::Lookup { .. }));
        selects.max(lookups) <= 1 << 16
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

    /// Puts the code into `program`; what it had is gone.
    pub fn put(mut self, program: &mut Program) {
        let resolved: Vec<Id> = (0..self.blocks.len()).map(|id| self.resolve(id)).collect();
        for block in &mut self.blocks {
            block.exit.retarget(|id| resolved[id]);
        }
        self.roots.iter_mut().for_each(|id| *id = resolved[*id]);
        let mut writer = Writer {
            flow: &self,
            ops: vec![Op::End],
            places: vec![None; self.blocks.len()],
            waiting: self.roots.iter().rev().copied().collect(),
            selects: Vec::new(),
            exits: Vec::new(),
        };
        while let Some(id) = writer.waiting.pop() {
            writer.trace(id, program);
        }
        writer.ops.push(Op::End);
        let Writer {
            mut ops,
            places,
            mut selects,
            mut exits,
            ..
        } = writer;
        let fix = |pc: &mut Pc| *pc = places[*pc as usize].expect("every block is placed");
        ops.iter_mut().filter_map(Op::target).for_each(fix);
        selects
            .iter_mut()
            .flat_map(Select::targets_mut)
            .for_each(fix);
        for exits in &mut exits {
            exits.targets_mut().for_each(fix);
        }
        let roots: Vec<Pc> = self
            .roots
            .iter()
            .map(|&id| places[id].expect("a root is placed"))
            .collect();
        // Code that ends at once is operation 0: then `deparse` need not run it.
        for (start, root) in starts(program).into_iter().zip(roots) {
            *start = if ops[root as usize] == Op::End {
                0
            } else {
                root
            };
        }
        program.ops = ops;
        program.selects = selects;
        program.exits = exits;
        // `Call`s lead to their own exits.
        program.actions.clear();
        for table in &mut program.tables {
            table.next_hit.clear();
            table.next_miss.clear();
            (table.next_none, table.next_hit_none) = (0, 0);
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
            self.leaders.extend(select.targets());
        }
    }

    fn id(&mut self, pc: Pc, back: Option<Id>) -> Id {
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
                Op::ParserError { .. } => {
                    ops.push(op);
                    Exit::Stop
                }
                Op::Return | Op::ReturnOrExit => {
                    if op == Op::ReturnOrExit {
                        ops.push(Op::CheckExit);
                    }
                    Exit::Goto(back.expect("only actions return"))
                }
                Op::Select { select } => {
                    let select = usize::from(select);
                    let program = self.program;
                    let to = program.selects[select].targets();
                    let to = to.map(|to| self.id(*to, back)).collect();
                    Exit::Select { select, to }
                }
                Op::Apply { table } => self.lookup(table),
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
        for next in [&code.next_hit, &code.next_miss] {
            for &action in &actions {
                let back = self.id(next[action as usize], None);
                to.push(self.id(program.actions[action as usize], Some(back)));
            }
        }
        to.push(self.id(code.next_none, None));
        to.push(self.id(code.next_hit_none, None));
        Exit::Lookup { table, actions, to }
    }
}

struct Writer<'f> {
    flow: &'f Flow,
    /// Targets are ids of blocks until the end.
    ops: Vec<Op>,
    places: Vec<Option<Pc>>,
    waiting: Vec<Id>,
    selects: Vec<Select>,
    exits: Vec<Exits>,
}

impl Writer<'_> {
    /// Writes blocks from `id` on, each followed by one that comes after it.
    fn trace(&mut self, mut id: Id, program: &Program) {
        while self.places[id].is_none() {
            self.places[id] = Some(self.ops.len() as Pc);
            let block = &self.flow.blocks[id];
            self.ops.extend_from_slice(&block.ops);
            let next = match &block.exit {
                Exit::Stop => None,
                Exit::Goto(to) => Some(*to),
                Exit::Branch {
                    test,
                    a,
                    b,
                    yes,
                    no,
                } => {
                    if self.places[*no].is_some() && self.places[*yes].is_none() {
                        self.ops.push(opposite(*test, *a, *b, *no as Pc));
                        self.waiting.push(*no);
                        Some(*yes)
                    } else {
                        self.ops.push(Op::branch(*test, *a, *b, *yes as Pc));
                        self.waiting.push(*yes);
                        Some(*no)
                    }
                }
                Exit::Select { select, to } => {
                    let mut copy = program.selects[*select].clone();
                    for (place, id) in copy.targets_mut().zip(to) {
                        *place = *id as Pc;
                    }
                    self.selects.push(copy);
                    let select = (self.selects.len() - 1) as u16;
                    self.ops.push(Op::Select { select });
                    self.waiting.extend(to.iter().rev());
                    return;
                }
                Exit::Lookup { table, actions, to } => {
                    let exits = Exits::new(actions, to);
                    self.exits.push(exits);
                    let exits = (self.exits.len() - 1) as u16;
                    self.ops.push(Op::Call {
                        table: *table,
                        exits,
                    });
                    self.waiting.extend(to.iter().rev());
                    return;
                }
            };
            match next {
                None => {
                    if !matches!(self.ops.last(), Some(Op::ParserError { .. })) {
                        self.ops.push(Op::End);
                    }
                    return;
                }
                Some(next) if self.places[next].is_some() => {
                    // To end is as short as to jump to the end.
                    let end = &self.flow.blocks[next];
                    self.ops
                        .push(if end.ops.is_empty() && end.exit == Exit::Stop {
                            Op::End
                        } else {
                            Op::Jump { to: next as Pc }
                        });
                    return;
                }
                Some(next) => id = next,
            }
        }
    }
}

/// Not a < b is b <= a.
fn opposite(test: Test, a: Slot, b: Slot, to: Pc) -> Op {
    let (test, a, b) = match test {
        Test::Eq => (Test::Ne, a, b),
        Test::Ne => (Test::Eq, a, b),
        Test::LtU => (Test::LeU, b, a),
        Test::LeU => (Test::LtU, b, a),
        Test::LtS => (Test::LeS, b, a),
        Test::LeS => (Test::LtS, b, a),
    };
    Op::branch(test, a, b, to)
}
