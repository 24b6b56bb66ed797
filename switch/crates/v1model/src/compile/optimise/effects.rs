// SPDX-License-Identifier: Apache-2.0
//! What each operation reads, may write, and writes whatever happens: all that the passes know of operations.

use std::collections::HashMap;
use std::ops::Range;

use crate::compile::code::{Calculation, Element, Input, Op, Program, TableCode};
use crate::compile::layout::Slot;
use crate::pipeline::Std;

/// How an operation touches slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Touch {
    Reads,
    /// Perhaps, or only in part.
    MayWrite,
    /// Whatever happens.
    Writes,
}

/// The program around the operations.
pub(super) struct Effects {
    pub program: Program,
    /// Size and width in bits of each register array.
    pub registers: Vec<(u64, u32)>,
    /// Limbs of the action args.
    pub arg_limbs: u16,
    /// The largest value that each slot ever holds.
    pub most: Vec<u64>,
    /// Copies of calculations by the original and the slots that they read instead.
    pub copies: HashMap<(u16, Vec<Slot>), u16>,
}

fn run(first: Slot, count: u16) -> Range<usize> {
    usize::from(first)..usize::from(first) + usize::from(count)
}

fn one(slot: Slot) -> Range<usize> {
    run(slot, 1)
}

impl Effects {
    /// Calls `f` with every range of slots that `op` touches.
    pub fn of(&self, op: &Op, f: &mut dyn FnMut(Touch, Range<usize>)) {
        use Touch::{MayWrite, Reads, Writes};
        match *op {
            Op::Move { d, a, .. }
            | Op::Not { d, a, .. }
            | Op::SignExtend { d, a, .. }
            | Op::SatU { d, a, .. }
            | Op::SatSU { d, a, .. }
            | Op::SatS { d, a, .. } => {
                f(Reads, one(a));
                f(Writes, one(d));
            }
            Op::Add { d, a, b, .. }
            | Op::Sub { d, a, b, .. }
            | Op::Mul { d, a, b, .. }
            | Op::And { d, a, b, .. }
            | Op::Or { d, a, b, .. }
            | Op::Xor { d, a, b, .. }
            | Op::Shl { d, a, b, .. }
            | Op::ShrU { d, a, b, .. }
            | Op::ShrS { d, a, b, .. }
            | Op::DivU { d, a, b, .. }
            | Op::ModU { d, a, b, .. } => {
                f(Reads, one(a));
                f(Reads, one(b));
                f(Writes, one(d));
            }
            Op::MoveWide { d, a, limbs } => {
                f(Reads, run(a, limbs));
                f(Writes, run(d, limbs));
            }
            Op::Wide { index } => {
                let wide = &self.program.wide[usize::from(index)];
                f(Reads, run(wide.a.slot, wide.a.limbs));
                f(Reads, run(wide.b.slot, wide.b.limbs));
                f(Writes, run(wide.d, wide.limbs));
            }
            Op::LoadElement {
                d, element, limbs, ..
            } => {
                self.element(element, Reads, f);
                f(Writes, run(d, limbs));
            }
            Op::StoreElement {
                a, element, limbs, ..
            } => {
                f(Reads, run(a, limbs));
                self.element(element, MayWrite, f);
            }
            Op::SetValid { header } | Op::SetInvalid { header } => {
                self.element(header, Reads, f);
                self.element(header, MayWrite, f);
            }
            Op::CopyHeader { d, a } => {
                self.element(a, Reads, f);
                self.element(d, MayWrite, f);
            }
            Op::SetHeadersEqual { d, a, b } => {
                self.element(a, Reads, f);
                self.element(b, Reads, f);
                f(Writes, one(d));
            }
            Op::Push { stack, n } | Op::Pop { stack, n } => {
                f(Reads, one(n));
                self.stack(stack, f);
            }
            Op::Count { index, .. } => f(Reads, one(index)),
            Op::Meter { index, d, .. } => {
                f(Reads, one(index));
                f(MayWrite, one(d));
            }
            Op::RegisterRead {
                register, index, d, ..
            } => {
                f(Reads, one(index));
                let definite = self.in_range(register, self.most[usize::from(index)]);
                f(if definite { Writes } else { MayWrite }, one(d));
            }
            Op::RegisterReadWide {
                index, d, limbs, ..
            } => {
                f(Reads, one(index));
                f(MayWrite, run(d, limbs));
            }
            Op::RegisterWrite { index, a, .. } => {
                f(Reads, one(index));
                f(Reads, one(a));
            }
            Op::RegisterWriteWide {
                index, a, limbs, ..
            } => {
                f(Reads, one(index));
                f(Reads, run(a, limbs));
            }
            Op::Hash {
                calculation,
                d,
                base,
                size,
                ..
            } => {
                self.calculation(calculation, f);
                f(Reads, one(base));
                f(Reads, one(size));
                f(Writes, one(d));
            }
            Op::Random { d, low, high, .. } => {
                f(Reads, one(low));
                f(Reads, one(high));
                f(MayWrite, one(d));
            }
            Op::Clone { session, .. } => f(Reads, one(session)),
            Op::Truncate { a } => f(Reads, one(a)),
            Op::MarkToDrop => {
                for field in [Std::EgressSpec, Std::McastGrp] {
                    if let Some((slot, _)) = self.program.std[field as usize] {
                        f(Writes, one(slot));
                    }
                }
            }
            Op::Log { message } => self.message(message, f),
            Op::Assert { a, message } => {
                f(Reads, one(a));
                self.message(message, f);
            }
            Op::Extract { header } => {
                self.element(header, MayWrite, f);
                self.parser_error(f);
            }
            Op::ExtractVarbit { header, bits } => {
                f(Reads, one(bits));
                self.element(header, MayWrite, f);
                self.parser_error(f);
            }
            Op::ExtractNext { stack, .. } => {
                self.stack(stack, f);
                self.parser_error(f);
            }
            Op::ExtractNextVarbit { stack, bits, .. } => {
                f(Reads, one(bits));
                self.stack(stack, f);
                self.parser_error(f);
            }
            Op::Lookahead { d, width, .. } => {
                f(MayWrite, run(d, width.div_ceil(64)));
                self.parser_error(f);
            }
            Op::Advance { bits } => {
                f(Reads, one(bits));
                self.parser_error(f);
            }
            Op::ParserError { code } => {
                f(Reads, one(code));
                self.parser_error(f);
            }
            // Ends of blocks and requests that touch no slot.
            Op::Digest { .. }
            | Op::Resubmit { .. }
            | Op::Recirculate { .. }
            | Op::Exit
            | Op::CheckExit => {}
            Op::MoveRun { .. }
            | Op::Jump { .. }
            | Op::BrEq { .. }
            | Op::BrNe { .. }
            | Op::BrLtU { .. }
            | Op::BrLeU { .. }
            | Op::BrLtS { .. }
            | Op::BrLeS { .. }
            | Op::Select { .. }
            | Op::Apply { .. }
            | Op::Call { .. }
            | Op::Return
            | Op::ReturnOrExit
            | Op::Note { .. }
            | Op::End => unreachable!("{op:?} is not within a block"),
        }
    }

    /// True when an index of at most `most` is always one of the register array's.
    pub fn in_range(&self, register: u16, most: u64) -> bool {
        most < self.registers[usize::from(register)].0
    }

    /// A copy of calculation `index` that reads other slots; None when there are too many.
    pub fn add_calculation(&mut self, index: u16, copy: Calculation) -> Option<u16> {
        let slot = |input: &Input| match *input {
            Input::Field { slot, .. } => slot,
            Input::Header { base, .. } => base,
            Input::Constant { .. } => 0,
        };
        let key = (index, copy.inputs.iter().map(slot).collect());
        if let Some(&known) = self.copies.get(&key) {
            return Some(known);
        }
        let new = u16::try_from(self.program.calculations.len()).ok()?;
        self.program.calculations.push(copy);
        self.copies.insert(key, new);
        Some(new)
    }

    /// True when a calculation's result depends on more than its inputs.
    pub fn has_state(&self, calculation: u16) -> bool {
        let algorithm = &self.program.calculations[usize::from(calculation)].algorithm;
        matches!(algorithm.as_str(), "random" | "round_robin")
    }

    /// What a lookup reads and writes besides the action that follows.
    pub fn lookup(&self, table: &TableCode, f: &mut dyn FnMut(Touch, Range<usize>)) {
        for &(slot, limbs) in &table.key {
            f(Touch::Reads, run(slot, limbs));
        }
        if let Some(selector) = table.selector {
            self.calculation(selector, f);
        }
        if let Some((slot, _)) = table.meter {
            f(Touch::MayWrite, one(slot));
        }
        f(Touch::MayWrite, run(self.program.args, self.arg_limbs));
    }

    /// Inputs of a calculation.
    fn calculation(&self, calculation: u16, f: &mut dyn FnMut(Touch, Range<usize>)) {
        inputs(&self.program, calculation, &mut |range| {
            f(Touch::Reads, range)
        });
    }

    fn parser_error(&self, f: &mut dyn FnMut(Touch, Range<usize>)) {
        if let Some((slot, _)) = self.program.std[Std::ParserError as usize] {
            f(Touch::MayWrite, one(slot));
        }
    }

    fn message(&self, message: u16, f: &mut dyn FnMut(Touch, Range<usize>)) {
        for value in &self.program.messages[usize::from(message)].values {
            f(Touch::Reads, run(value.slot, value.limbs));
        }
    }

    /// The block of a header, or the whole stack; when written, the validity of its siblings as well.
    fn element(&self, element: u16, touch: Touch, f: &mut dyn FnMut(Touch, Range<usize>)) {
        let Element {
            base,
            stride,
            count,
            index,
            header,
            siblings,
            ..
        } = &self.program.elements[usize::from(element)];
        let slots = self.program.headers[usize::from(*header)].slots;
        f(Touch::Reads, one(*index));
        let last = stride * count.saturating_sub(1);
        f(touch, run(*base, last + slots));
        if touch != Touch::Reads {
            for &sibling in siblings {
                let first = (i32::from(*base) + sibling) as usize;
                f(touch, first..first + usize::from(last) + 1);
            }
        }
    }

    fn stack(&self, stack: u16, f: &mut dyn FnMut(Touch, Range<usize>)) {
        let stack = &self.program.stacks[usize::from(stack)];
        for touch in [Touch::Reads, Touch::MayWrite] {
            f(touch, run(stack.base, stack.stride * stack.count));
            f(touch, one(stack.next));
        }
    }
}

/// The slots that a calculation reads.
pub(super) fn inputs(program: &Program, calculation: u16, f: &mut dyn FnMut(Range<usize>)) {
    for input in &program.calculations[usize::from(calculation)].inputs {
        match *input {
            Input::Field {
                slot,
                width,
                valid,
                varbit_bits,
            } => {
                f(run(slot, width.div_ceil(64) as u16));
                f(one(valid));
                if let Some(bits) = varbit_bits {
                    f(one(bits));
                }
            }
            Input::Constant { .. } => {}
            Input::Header { base, valid, ty } => {
                f(run(base, program.headers[usize::from(ty)].slots));
                f(one(valid));
            }
        }
    }
}

/// An operation without any effect but the slots that it writes.
pub(super) fn is_pure(op: &Op, effects: &Effects) -> bool {
    if let Op::Hash { calculation, .. } = op {
        return !effects.has_state(*calculation);
    }
    matches!(
        op,
        Op::Move { .. }
            | Op::MoveWide { .. }
            | Op::Add { .. }
            | Op::Sub { .. }
            | Op::Mul { .. }
            | Op::And { .. }
            | Op::Or { .. }
            | Op::Xor { .. }
            | Op::Not { .. }
            | Op::Shl { .. }
            | Op::ShrU { .. }
            | Op::ShrS { .. }
            | Op::DivU { .. }
            | Op::ModU { .. }
            | Op::SignExtend { .. }
            | Op::SatU { .. }
            | Op::SatSU { .. }
            | Op::SatS { .. }
            | Op::Wide { .. }
            | Op::LoadElement { .. }
            | Op::SetHeadersEqual { .. }
            | Op::RegisterRead { .. }
            | Op::RegisterReadWide { .. }
    )
}

/// An operation that may leave the code at once, for good.
pub(super) fn may_leave(op: &Op) -> bool {
    matches!(
        op,
        Op::Extract { .. }
            | Op::ExtractVarbit { .. }
            | Op::ExtractNext { .. }
            | Op::ExtractNextVarbit { .. }
            | Op::Lookahead { .. }
            | Op::Advance { .. }
            | Op::ParserError { .. }
            | Op::CheckExit
    )
}
