// SPDX-License-Identifier: Apache-2.0
//! What operations read, may write, and write whatever happens, as ranges of slots; sets of slots.

use std::ops::Range;

use super::code::{Element, Input, Op, Program, TableCode};
use super::layout::Slot;
use super::op::Part;
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

/// A set of slots, one bit each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SlotSet {
    words: Vec<u64>,
}

impl SlotSet {
    /// The empty set, of slots below `slots`.
    pub fn new(slots: usize) -> SlotSet {
        SlotSet {
            words: vec![0; slots.div_ceil(64)],
        }
    }

    pub fn contains(&self, slot: usize) -> bool {
        self.words[slot / 64] >> (slot % 64) & 1 == 1
    }

    pub fn add(&mut self, slot: usize) {
        self.words[slot / 64] |= 1 << (slot % 64);
    }

    pub fn remove(&mut self, slot: usize) {
        self.words[slot / 64] &= !(1 << (slot % 64));
    }

    /// The union with `other`.
    pub fn add_all(&mut self, other: &SlotSet) {
        for (word, more) in self.words.iter_mut().zip(&other.words) {
            *word |= more;
        }
    }

    /// Adds what is in `other` and not in `except`; true when that is more.
    pub fn add_others(&mut self, other: &SlotSet, except: &SlotSet) -> bool {
        let mut more = 0;
        let theirs = other.words.iter().zip(&except.words);
        for (word, (other, except)) in self.words.iter_mut().zip(theirs) {
            let new = other & !except & !*word;
            *word |= new;
            more |= new;
        }
        more != 0
    }
}

/// Sees a range of slots that is touched.
pub(crate) type Visit<'v> = dyn FnMut(Touch, Range<usize>) + 'v;

fn span(first: Slot, count: usize) -> Range<usize> {
    usize::from(first)..usize::from(first) + count
}

pub(crate) fn run(first: Slot, count: u16) -> Range<usize> {
    span(first, count.into())
}

pub(crate) fn one(slot: Slot) -> Range<usize> {
    run(slot, 1)
}

/// Calls `f` with every range of slots that `op` touches.
pub(crate) fn touches(program: &Program, op: &Op, f: &mut Visit) {
    use Touch::{MayWrite, Reads, Writes};
    op.parts(&mut |part| match part {
        Part::Reads(slot, count) => f(Reads, run(slot, count)),
        Part::ReadsLength(slot) => slot.into_iter().for_each(|slot| f(Reads, one(slot))),
        Part::Writes(slot, count) => f(Writes, run(slot, count)),
        Part::MayWrite(slot, count) => f(MayWrite, run(slot, count)),
        Part::ParserError => {
            if let Some((slot, _)) = program.std[Std::ParserError as usize] {
                f(MayWrite, one(slot));
            }
        }
        Part::ReadsHeader(element) => touch_element(program, element, Reads, f),
        Part::ChangesHeader(element) => touch_element(program, element, MayWrite, f),
        Part::Stack(stack) => touch_stack(program, stack, f),
        Part::Calculation(calculation) => {
            inputs(program, calculation, &mut |range| f(Reads, range));
        }
        Part::Digest(digest) => {
            for &(slot, width) in &program.digests[digest.index()] {
                f(Reads, span(slot, crate::bits::limbs_for(width)));
            }
        }
        Part::Message(message) => {
            for value in &program.messages[usize::from(message)].values {
                f(Reads, run(value.slot, value.limbs));
            }
        }
    });
}

/// What a lookup reads and writes besides the action that follows.
pub(crate) fn lookup(program: &Program, table: &TableCode, f: &mut Visit) {
    for &(slot, _) in &table.key {
        f(Touch::Reads, one(slot));
    }
    if let Some(selector) = program.selector(table) {
        inputs(program, selector, &mut |range| f(Touch::Reads, range));
    }
    if let Some((slot, _)) = table.meter {
        f(Touch::MayWrite, one(slot));
    }
    f(Touch::MayWrite, run(program.args, program.arg_limbs));
}

/// The block of a header, or the whole stack; when written, the validity of its siblings as well.
fn touch_element(program: &Program, element: u16, touch: Touch, f: &mut Visit) {
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

fn touch_stack(program: &Program, stack: u16, f: &mut Visit) {
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
