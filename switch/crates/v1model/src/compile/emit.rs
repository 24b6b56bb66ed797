// SPDX-License-Identifier: Apache-2.0
//! `Emitter`: appends operations to a program; hands out constants, temporaries and labels.

use std::collections::HashMap;

use super::code::{Element, Op, Operand, Pc, Program, WideKind, WideOp};
use super::expr::HeaderRef;
use super::layout::{Layout, Slot, ONE, ZERO};

/// A place in the code that is known later; until `finish` it stands where a `Pc` will.
pub(crate) type Label = Pc;

/// Where control flow ends; operation 0.
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
    labels: Vec<Option<Pc>>,
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
            labels: vec![Some(0)],
            fixed_elements: HashMap::new(),
        };
        emitter.slots(arg_limbs)?;
        emitter.program.args = emitter.args;
        emitter.program.arg_limbs = arg_limbs as u16;
        emitter.program.ops.push(Op::End);
        Ok(emitter)
    }

    /// Appends an operation.
    pub fn op(&mut self, op: Op) {
        self.program.ops.push(op);
    }

    pub fn jump(&mut self, to: Label) {
        self.op(Op::Jump { to });
    }

    /// The code ends here.
    pub fn end(&mut self) {
        self.op(Op::End);
    }

    /// Once around a loop.
    pub fn step(&mut self) {
        self.op(Op::Step);
    }

    /// The register's value; where `index` is beyond the array `d` stays as it is.
    pub fn read_register(&mut self, register: u16, index: Slot, d: Slot, limbs: usize, w: u8) {
        self.op(Op::RegisterRead {
            register,
            index,
            d,
            limbs: limbs as u16,
            w,
        });
    }

    /// Operations so far.
    pub fn operations(&self) -> usize {
        self.program.ops.len() - self.program.notes.len()
    }

    /// A label to be placed later.
    pub fn label(&mut self) -> Label {
        self.labels.push(None);
        (self.labels.len() - 1) as Label
    }

    /// A label here.
    pub fn here(&mut self) -> Label {
        let label = self.label();
        self.place(label);
        label
    }

    /// Puts `label` here.
    pub fn place(&mut self, label: Label) {
        self.labels[label as usize] = Some(self.program.ops.len() as Pc);
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

    /// Appends an operation on several limbs.
    pub fn wide(
        &mut self,
        kind: WideKind,
        d: Slot,
        limbs: usize,
        a: Operand,
        b: Operand,
    ) -> Emit<()> {
        let index = index16(self.program.wide.len(), "wide operations")?;
        self.program.wide.push(WideOp {
            kind,
            d,
            limbs: limbs as u16,
            a,
            b,
        });
        self.op(Op::Wide { index });
        Ok(())
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

    /// Puts the places of labels into the code and makes the template of a fresh packet; the constants are by slot.
    pub fn resolve(mut self) -> (Program, HashMap<Slot, u64>) {
        self.end();
        let labels = &self.labels;
        let fix = |pc: &mut Pc| *pc = labels[*pc as usize].expect("every label is placed");
        let program = &mut self.program;
        for op in &mut program.ops {
            op.target().into_iter().for_each(fix);
        }
        for table in &mut program.tables {
            table.next.targets().for_each(fix);
        }
        for select in &mut program.selects {
            select.to.iter_mut().for_each(fix);
        }
        for checksum in &mut program.checksums {
            if let Some((pc, _)) = &mut checksum.condition {
                fix(pc);
            }
        }
        program.actions.iter_mut().for_each(fix);
        for start in [
            &mut program.parser_start,
            &mut program.ingress_start,
            &mut program.egress_start,
            &mut program.deparser_start,
        ] {
            fix(start);
        }
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
