// SPDX-License-Identifier: Apache-2.0
//! `Emitter`: appends operations to a program's blocks; hands out constants, temporaries and blocks.

use std::collections::HashMap;

use super::code::{Element, Op, Operand, Program, Test, WideKind, WideOp};
use super::expr::HeaderRef;
use super::flow::{Block, Exit, Id};
use super::layout::{Layout, Slot, ONE, ZERO};
use super::lower::To;

/// A block that is filled later.
pub(crate) type Label = Id;

/// Where control flow ends: an empty block.
pub(crate) const END: Label = 0;

/// What cannot be compiled; the caller adds the JSON path.
pub(crate) type Emit<T> = Result<T, String>;

pub(crate) struct Emitter<'x> {
    pub layout: &'x Layout,
    pub program: Program,
    /// First slot of the action args.
    pub args: Slot,
    next_slot: u32,
    constants: HashMap<Vec<u64>, Slot>,
    free: HashMap<usize, Vec<Slot>>,
    used: Vec<(usize, Slot)>,
    /// The block at hand; None behind an exit.
    at: Option<Id>,
    fixed_elements: HashMap<usize, u16>,
}

impl<'x> Emitter<'x> {
    /// An empty program whose slots begin with `layout` and `arg_limbs` args.
    pub fn new(layout: &'x Layout, arg_limbs: usize) -> Emit<Emitter<'x>> {
        let mut emitter = Emitter {
            layout,
            program: Program::default(),
            args: layout.end as Slot,
            next_slot: layout.end,
            constants: HashMap::from([(vec![0], ZERO), (vec![1], ONE)]),
            free: HashMap::new(),
            used: Vec::new(),
            at: None,
            fixed_elements: HashMap::new(),
        };
        emitter.slots(arg_limbs)?;
        emitter.program.args = emitter.args;
        emitter.program.arg_limbs = arg_limbs as u16;
        emitter.label();
        Ok(emitter)
    }

    /// Appends an operation.
    pub fn op(&mut self, op: Op) {
        self.program.operations += usize::from(!op.is_note());
        let at = self.at.unwrap_or_else(|| self.here());
        self.program.blocks[at].ops.push(op);
    }

    /// Ends the block at hand.
    pub fn exit(&mut self, exit: Exit) {
        self.program.operations += 1;
        let at = self.at.unwrap_or_else(|| self.here());
        self.program.blocks[at].exit = exit;
        self.at = None;
    }

    pub fn jump(&mut self, to: Label) {
        self.exit(Exit::Goto(to));
    }

    /// The code ends here.
    pub fn end(&mut self) {
        self.exit(Exit::Stop);
    }

    /// On at `yes` where the test holds, else here.
    pub fn branch_if(&mut self, test: Test, a: Slot, b: Slot, yes: Label) {
        let no = self.label();
        self.exit(Exit::Branch {
            test,
            a,
            b,
            yes,
            no,
        });
        self.at = Some(no);
    }

    /// Once around a loop.
    pub fn step(&mut self) {
        self.op(Op::Step);
    }

    pub fn calculate(&mut self, calculation: u16, d: Slot, w: u8) {
        self.op(Op::Calculate { calculation, d, w });
    }

    /// Operations so far.
    pub fn operations(&self) -> usize {
        self.program.operations
    }

    /// A label to be placed later.
    pub fn label(&mut self) -> Label {
        self.program.blocks.push(Block::default());
        self.program.blocks.len() - 1
    }

    /// A label here.
    pub fn here(&mut self) -> Label {
        let label = self.label();
        self.place(label);
        label
    }

    /// Puts `label` here.
    pub fn place(&mut self, label: Label) {
        if let Some(before) = self.at.replace(label) {
            self.program.blocks[before].exit = Exit::Goto(label);
        }
    }

    fn slots(&mut self, count: usize) -> Emit<Slot> {
        let slot = self.next_slot;
        match u32::try_from(count).ok().and_then(|n| slot.checked_add(n)) {
            Some(next) if next <= u32::from(Slot::MAX) => self.next_slot = next,
            _ => {
                return Err(format!(
                    "the program needs more than {} words a packet",
                    Slot::MAX
                ))
            }
        }
        Ok(slot as Slot)
    }

    /// A temporary of `limbs` limbs, until `end_statement`.
    pub fn temp(&mut self, limbs: usize) -> Emit<Slot> {
        let slot = match self.free.entry(limbs).or_default().pop() {
            Some(slot) => slot,
            None => self.slots(limbs)?,
        };
        self.used.push((limbs, slot));
        Ok(slot)
    }

    /// Gives all temporaries back.
    pub fn end_statement(&mut self) {
        for (limbs, slot) in self.used.drain(..) {
            self.free.entry(limbs).or_default().push(slot);
        }
    }

    /// A constant of one limb.
    pub fn constant(&mut self, value: u64) -> Emit<Slot> {
        self.wide_constant(&[value])
    }

    /// A constant.
    pub fn wide_constant(&mut self, limbs: &[u64]) -> Emit<Slot> {
        if let Some(&slot) = self.constants.get(limbs) {
            return Ok(slot);
        }
        let slot = self.slots(limbs.len())?;
        self.constants.insert(limbs.to_vec(), slot);
        Ok(slot)
    }

    /// Appends an operation on several limbs; its result is modulo 2^w.
    pub fn wide(&mut self, kind: WideKind, (d, limbs, w): To, a: Operand, b: Operand) {
        let limbs = limbs as u16;
        let op = WideOp {
            kind,
            d,
            limbs,
            w,
            a,
            b,
        };
        self.op(Op::Wide { op });
    }

    /// The block of a header; code for its index, when it has one, is appended.
    pub fn element(&mut self, header: &HeaderRef) -> Emit<u16> {
        let layout = self.layout;
        let element = match header {
            HeaderRef::Fixed(index) => {
                if let Some(&element) = self.fixed_elements.get(index) {
                    return Ok(element);
                }
                let header = &layout.headers[*index];
                let id = index16(self.program.elements.len(), "headers")?;
                self.fixed_elements.insert(*index, id);
                Element {
                    base: header.base,
                    stride: 0,
                    count: 1,
                    index: ZERO,
                    header: header.ty as u16,
                    siblings: header.siblings.clone().into(),
                    metadata: header.metadata,
                }
            }
            HeaderRef::Element {
                stack,
                member,
                index,
            } => {
                let index = self.modular(index, 1, None)?;
                let stack = &layout.stacks[*stack];
                let member = &stack.members[*member];
                Element {
                    base: stack.base + member.offset,
                    stride: stack.stride,
                    count: stack.count,
                    index,
                    header: member.ty as u16,
                    siblings: member.siblings.clone().into(),
                    metadata: false,
                }
            }
        };
        let id = index16(self.program.elements.len(), "header references")?;
        self.program.elements.push(element);
        Ok(id)
    }

    /// The blocks of two headers of one type.
    pub fn two_elements(&mut self, a: &HeaderRef, b: &HeaderRef) -> Emit<(u16, u16)> {
        let (a, b) = (self.element(a)?, self.element(b)?);
        let ty = |element: u16| self.program.elements[usize::from(element)].header;
        match ty(a) == ty(b) {
            true => Ok((a, b)),
            false => Err("the headers are of different types".into()),
        }
    }

    /// Makes the template of a fresh packet; the constants are by slot.
    pub fn resolve(mut self) -> (Program, HashMap<Slot, u64>) {
        let program = &mut self.program;
        let mut template = vec![0u64; self.next_slot as usize];
        let mut constants = HashMap::new();
        for (limbs, &slot) in &self.constants {
            for (slot, &limb) in (slot..).zip(limbs) {
                template[usize::from(slot)] = limb;
                constants.insert(slot, limb);
            }
        }
        program.template = template.into();
        program.headers_start = self.layout.headers_start as usize;
        program.state_end = self.layout.end as usize;
        (self.program, constants)
    }
}

/// A 16-bit index, or an error that names what there is too much of.
pub(crate) fn index16(index: usize, what: &str) -> Emit<u16> {
    u16::try_from(index).map_err(|_| format!("the program has more than 65536 {what}"))
}
