// SPDX-License-Identifier: Apache-2.0
//! What each operation reads, may write, and writes whatever happens: all that the passes and the check know of it.

use std::ops::Range;

use super::code::{Element, Input, Op, Program, TableCode};
use super::layout::Slot;
use crate::pipeline::Std;

/// How an operation touches slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Touch {
    Reads,
    /// Perhaps, or only in part.
    MayWrite,
    /// Whatever happens.
    Writes,
}

fn span(first: Slot, count: usize) -> Range<usize> {
    usize::from(first)..usize::from(first) + count
}

fn run(first: Slot, count: u16) -> Range<usize> {
    span(first, count.into())
}

pub(super) fn one(slot: Slot) -> Range<usize> {
    run(slot, 1)
}

/// An operation on the frame's bytes that are not parsed yet: where these are too few, the code ends behind it.
pub(crate) fn parses(op: &Op) -> bool {
    matches!(
        op,
        Op::Extract { .. }
            | Op::ExtractVarbit { .. }
            | Op::ExtractNext { .. }
            | Op::ExtractNextVarbit { .. }
            | Op::Lookahead { .. }
            | Op::Advance { .. }
    )
}

/// An operation that reads or changes what other packets do too.
pub(crate) fn has_state(program: &Program, op: &Op) -> bool {
    match *op {
        Op::Hash { calculation, .. } => program.calculations[usize::from(calculation)].has_state(),
        _ => matches!(
            op,
            Op::Count { .. }
                | Op::Meter { .. }
                | Op::RegisterRead { .. }
                | Op::RegisterReadWide { .. }
                | Op::RegisterWrite { .. }
                | Op::RegisterWriteWide { .. }
                | Op::Random { .. }
        ),
    }
}

/// An operation that may leave the code at once, for good.
pub(crate) fn may_leave(op: &Op) -> bool {
    parses(op) || matches!(op, Op::ParserError { .. } | Op::CheckExit | Op::Step)
}

/// Calls `f` with every range of slots that `op` touches.
pub(crate) fn touches(program: &Program, op: &Op, f: &mut dyn FnMut(Touch, Range<usize>)) {
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
            let wide = &program.wide[usize::from(index)];
            f(Reads, run(wide.a.slot, wide.a.limbs));
            f(Reads, run(wide.b.slot, wide.b.limbs));
            f(Writes, run(wide.d, wide.limbs));
        }
        Op::LoadElement {
            d, element, limbs, ..
        } => {
            touch_element(program, element, Reads, f);
            f(Writes, run(d, limbs));
        }
        Op::StoreElement {
            a, element, limbs, ..
        } => {
            f(Reads, run(a, limbs));
            touch_element(program, element, MayWrite, f);
        }
        Op::SetValid { header } | Op::SetInvalid { header } => {
            touch_element(program, header, Reads, f);
            touch_element(program, header, MayWrite, f);
        }
        Op::CopyHeader { d, a } => {
            touch_element(program, a, Reads, f);
            touch_element(program, d, MayWrite, f);
        }
        Op::SetHeadersEqual { d, a, b } => {
            touch_element(program, a, Reads, f);
            touch_element(program, b, Reads, f);
            f(Writes, one(d));
        }
        Op::Push { stack, n } | Op::Pop { stack, n } => {
            f(Reads, one(n));
            touch_stack(program, stack, f);
        }
        Op::Count { index, .. } => f(Reads, one(index)),
        Op::Meter { index, d, .. } => {
            f(Reads, one(index));
            f(MayWrite, one(d));
        }
        Op::RegisterRead { index, d, .. } => {
            f(Reads, one(index));
            f(MayWrite, one(d));
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
            touch_calculation(program, calculation, f);
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
        Op::Log { message } => touch_message(program, message, f),
        Op::Assert { a, message } => {
            f(Reads, one(a));
            touch_message(program, message, f);
        }
        Op::Extract { header } => {
            touch_element(program, header, MayWrite, f);
            parser_error(program, f);
        }
        Op::ExtractVarbit { header, bits } => {
            f(Reads, one(bits));
            touch_element(program, header, MayWrite, f);
            parser_error(program, f);
        }
        Op::ExtractNext { stack, .. } => {
            touch_stack(program, stack, f);
            parser_error(program, f);
        }
        Op::ExtractNextVarbit { stack, bits, .. } => {
            f(Reads, one(bits));
            touch_stack(program, stack, f);
            parser_error(program, f);
        }
        Op::Lookahead { d, width, .. } => {
            f(MayWrite, run(d, width.div_ceil(64)));
            parser_error(program, f);
        }
        Op::Advance { bits } => {
            f(Reads, one(bits));
            parser_error(program, f);
        }
        Op::ParserError { code } => {
            f(Reads, one(code));
            parser_error(program, f);
        }
        // Its fields are sampled when the control has ended.
        Op::Digest { digest } => {
            for &(slot, width) in &program.digests[digest.index()] {
                f(Reads, run(slot, width.div_ceil(64) as u16));
            }
        }
        // Requests that touch no slot.
        Op::Resubmit { .. } | Op::Recirculate { .. } | Op::Exit | Op::CheckExit | Op::Step => {}
        Op::MoveRun { first, count } => {
            let first = first as usize;
            for &(d, a, _) in &program.moves[first..first + usize::from(count)] {
                f(Reads, one(a));
                f(Writes, one(d));
            }
        }
        Op::BrEq { a, b, .. }
        | Op::BrNe { a, b, .. }
        | Op::BrLtU { a, b, .. }
        | Op::BrLeU { a, b, .. }
        | Op::BrLtS { a, b, .. }
        | Op::BrLeS { a, b, .. } => {
            f(Reads, one(a));
            f(Reads, one(b));
        }
        Op::Select { select } => {
            for &(slot, limbs, _) in &program.selects[usize::from(select)].parts {
                f(Reads, run(slot, limbs));
            }
        }
        Op::Apply { table } | Op::Call { table, .. } => {
            lookup(program, &program.tables[usize::from(table)], f);
        }
        Op::Jump { .. } | Op::Return | Op::ReturnOrExit | Op::Note { .. } | Op::End => {}
    }
}

/// What a lookup reads and writes besides the action that follows.
pub(super) fn lookup(program: &Program, table: &TableCode, f: &mut dyn FnMut(Touch, Range<usize>)) {
    for &(slot, limbs) in &table.key {
        f(Touch::Reads, run(slot, limbs));
    }
    if let Some(selector) = table.selector {
        touch_calculation(program, selector, f);
    }
    if let Some((slot, _)) = table.meter {
        f(Touch::MayWrite, one(slot));
    }
    f(Touch::MayWrite, run(program.args, program.arg_limbs));
}

/// Inputs of a calculation.
fn touch_calculation(program: &Program, calculation: u16, f: &mut dyn FnMut(Touch, Range<usize>)) {
    inputs(program, calculation, &mut |range| f(Touch::Reads, range));
}

fn parser_error(program: &Program, f: &mut dyn FnMut(Touch, Range<usize>)) {
    if let Some((slot, _)) = program.std[Std::ParserError as usize] {
        f(Touch::MayWrite, one(slot));
    }
}

fn touch_message(program: &Program, message: u16, f: &mut dyn FnMut(Touch, Range<usize>)) {
    for value in &program.messages[usize::from(message)].values {
        f(Touch::Reads, run(value.slot, value.limbs));
    }
}

/// The block of a header, or the whole stack; when written, the validity of its siblings as well.
fn touch_element(
    program: &Program,
    element: u16,
    touch: Touch,
    f: &mut dyn FnMut(Touch, Range<usize>),
) {
    let Element {
        base,
        stride,
        count,
        index,
        header,
        siblings,
        ..
    } = &program.elements[usize::from(element)];
    let slots = program.headers[usize::from(*header)].slots;
    f(Touch::Reads, one(*index));
    let last = usize::from(*stride) * usize::from(count.saturating_sub(1));
    f(touch, span(*base, last + usize::from(slots)));
    if touch != Touch::Reads {
        for &sibling in siblings {
            // One in front of the first slot is as wrong as one behind the last.
            let first = u32::try_from(i32::from(*base) + sibling).unwrap_or(u32::MAX) as usize;
            f(touch, first..first + last + 1);
        }
    }
}

fn touch_stack(program: &Program, stack: u16, f: &mut dyn FnMut(Touch, Range<usize>)) {
    let stack = &program.stacks[usize::from(stack)];
    for touch in [Touch::Reads, Touch::MayWrite] {
        let slots = usize::from(stack.stride) * usize::from(stack.count);
        f(touch, span(stack.base, slots));
        f(touch, one(stack.next));
    }
}

/// The slots that a calculation reads.
pub(crate) fn inputs(program: &Program, calculation: u16, f: &mut dyn FnMut(Range<usize>)) {
    for input in &program.calculations[usize::from(calculation)].inputs {
        match *input {
            Input::Field {
                slot,
                width,
                valid,
                varbit_bits,
            } => {
                f(span(slot, crate::bits::limbs_for(width)));
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
