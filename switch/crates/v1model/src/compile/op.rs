// SPDX-License-Identifier: Apache-2.0
//! The table of operations: what each has, reads and writes, said once. From it come the enum, its operands, and what the
//! optimiser, machine code and traces know of an operation: the slots that it reads, may write, and writes whatever happens.

use std::ops::Range;

use super::alu::Alu;
use super::code::{Element, Input, Program, TableCode, WideOp};
use super::layout::{Slot, ZERO};
use crate::pipeline::Std;
use crate::schema::{DigestId, FieldListId};

/// What an operation names.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Part {
    /// So many slots that are read.
    Reads(Slot, u16),
    ReadsLength(Option<Slot>),
    /// Written whatever happens.
    Writes(Slot, u16),
    /// Written perhaps, or only in part.
    MayWrite(Slot, u16),
    /// The field for the parser's error, perhaps.
    ParserError,
    /// A header in `Program::elements`, or its stack.
    ReadsHeader(u16),
    /// The same, with the validity of its siblings.
    ChangesHeader(u16),
    /// A header stack, which changes.
    Stack(u16),
    Calculation(u16),
    Digest(DigestId),
    Message(u16),
}

/// Without any effect but on the slots that it writes (a calculation may have state nevertheless).
pub(crate) const PURE: u8 = 1;
/// It reads or changes what other packets do too.
pub(crate) const STATE: u8 = 2;
/// It works on the frame's bytes that are not parsed yet: where these are too few, the code ends behind it.
pub(crate) const PARSES: u8 = 4;
/// It may leave the code at once.
pub(crate) const LEAVES: u8 = 8;
/// A trace shows it apart from the operations in front of it.
pub(crate) const SHOWN: u8 = 16;

/// `Name(operands) { fields } [parts] flags;`: operands are slots of one limb that are read as numbers.
macro_rules! operations {
    ({$($(#[$doc:meta])* $name:ident ($($operand:ident),*) {$($field:ident: $ty:ty),*} [$($part:expr),*] $flags:expr;)*}
     {$($(#[$unit_doc:meta])* $unit:ident $unit_flags:expr;)*}) => {
        /// One operation. `d` is written; `w` cuts the result to its low bits.
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub(crate) enum Op {
            $($(#[$doc])* $name { $($operand: Slot,)* $($field: $ty),* },)*
            $($(#[$unit_doc])* $unit,)*
        }

        impl Op {
            /// Calls `f` with all that the operation names.
            #[allow(unused_variables)]
            pub fn parts(&self, f: &mut dyn FnMut(Part)) {
                use Part::*;
                match *self {
                    $(Op::$name { $($operand,)* $($field),* } => {
                        $(f(Reads($operand, 1));)*
                        $(f($part);)*
                    })*
                    $(Op::$unit => {})*
                }
            }

            /// The slots of one limb that it reads as numbers, to be changed.
            pub fn operands(&mut self) -> Vec<&mut Slot> {
                match self {
                    $(Op::$name { $($operand,)* .. } => vec![$($operand),*],)*
                    $(Op::$unit => Vec::new(),)*
                }
            }

            fn flags(&self) -> u8 {
                match self {
                    $(Op::$name { .. } => $flags,)*
                    $(Op::$unit => $unit_flags,)*
                }
            }
        }
    };
}

operations! {{
    // Moves and arithmetic modulo 2^w.
    Alu(a, b) { alu: Alu, d: Slot, w: u8 } [Writes(d, 1)] PURE;
    Wide() { op: WideOp }
        [Reads(op.a.slot, op.a.limbs), Reads(op.b.slot, op.b.limbs), Writes(op.d, op.limbs)] PURE;

    // Headers and elements of stacks, by `Program::elements`.
    LoadElement() { d: Slot, element: u16, offset: u16, limbs: u16 }
        [ReadsHeader(element), Writes(d, limbs)] PURE;
    StoreElement() { a: Slot, element: u16, offset: u16, limbs: u16 }
        [Reads(a, limbs), ChangesHeader(element)] 0;
    SetValid() { header: u16 } [ReadsHeader(header), ChangesHeader(header)] 0;
    SetInvalid() { header: u16 } [ReadsHeader(header), ChangesHeader(header)] 0;
    CopyHeader() { d: u16, a: u16 } [ReadsHeader(a), ChangesHeader(d)] 0;
    SetHeadersEqual() { d: Slot, a: u16, b: u16 }
        [ReadsHeader(a), ReadsHeader(b), Writes(d, 1)] PURE;
    Push(n) { stack: u16 } [Stack(stack)] 0;
    Pop(n) { stack: u16 } [Stack(stack)] 0;

    // Externs. Where there is no result, because a cell is beyond the array, the `limbs` slots from `d` on stay as they are.
    Count(index) { counter: u16 } [] STATE | SHOWN;
    Meter(index) { meter: u16, d: Slot, limbs: u16, w: u32 } [MayWrite(d, limbs)] STATE | SHOWN;
    RegisterRead(index) { register: u16, d: Slot, limbs: u16, w: u32 }
        [MayWrite(d, limbs)] PURE | STATE | SHOWN;
    RegisterWrite(index) { register: u16, a: Slot, limbs: u16 } [Reads(a, limbs)] STATE | SHOWN;
    Calculate() { calculation: u16, d: Slot, w: u8 }
        [Calculation(calculation), Writes(d, 1)] PURE | SHOWN;
    /// There is no result where `low` is above `high`.
    Random(low, high) { d: Slot, limbs: u16, w: u32 } [MayWrite(d, limbs)] STATE | SHOWN;

    // Requests to the switch.
    /// Its fields are sampled when the control has ended.
    Digest() { digest: DigestId } [Digest(digest)] SHOWN;
    Clone(session) { list: Option<FieldListId> } [] SHOWN;
    Resubmit() { list: Option<FieldListId> } [] SHOWN;
    Recirculate() { list: Option<FieldListId> } [] SHOWN;
    Truncate(a) {} [] SHOWN;
    Log() { message: u16 } [Message(message)] 0;
    Assert(a) { message: u16 } [Message(message)] 0;

    // Parser; `bits` has the length of the varbit field, where the header has one.
    Extract() { header: u16, bits: Option<Slot> }
        [ReadsLength(bits), ChangesHeader(header), ParserError] PARSES | LEAVES | SHOWN;
    ExtractNext() { stack: u16, member: u16, bits: Option<Slot> }
        [ReadsLength(bits), Stack(stack), ParserError] PARSES | LEAVES | SHOWN;
    Lookahead() { d: Slot, offset: u32, width: u16 }
        [MayWrite(d, width.div_ceil(64)), ParserError] PARSES | LEAVES | SHOWN;
    Advance(bits) {} [ParserError] PARSES | LEAVES | SHOWN;
    ParserError(code) {} [ParserError] LEAVES | SHOWN;

    /// A trace stops here; nothing else: `Program::notes`.
    Note() { note: u32 } [] 0;

} {
    /// The control ends with this action.
    Exit SHOWN;
    /// Leave the control when `exit` was called (at the end of an action).
    CheckExit LEAVES;
    /// Once around a loop: every way round passes one. When there were `exec::STEPS_MAX`, the code ends here.
    Step LEAVES;
}}

impl Op {
    pub const fn alu(alu: Alu, d: Slot, a: Slot, b: Slot, w: u8) -> Op {
        Op::Alu { a, b, alu, d, w }
    }

    /// d = a.
    pub const fn copy(d: Slot, a: Slot) -> Op {
        Op::alu(Alu::Move, d, a, ZERO, 64)
    }

    pub fn is_note(&self) -> bool {
        matches!(self, Op::Note { .. })
    }

    /// The register array and the index of a read, which is a write of `d` where the index is in range.
    pub fn register_read(&self) -> Option<(u16, Slot)> {
        match *self {
            Op::RegisterRead {
                register, index, ..
            } => Some((register, index)),
            _ => None,
        }
    }

    pub fn parses(&self) -> bool {
        self.flags() & PARSES != 0
    }

    pub fn may_leave(&self) -> bool {
        self.flags() & LEAVES != 0
    }

    pub fn is_shown(&self) -> bool {
        self.flags() & SHOWN != 0
    }

    /// A calculation of it depends on more than its inputs.
    fn calculates_with_state(&self, program: &Program) -> bool {
        let mut has = false;
        self.parts(&mut |part| {
            if let Part::Calculation(index) = part {
                has |= program.calculations[usize::from(index)].has_state();
            }
        });
        has
    }

    pub fn is_pure(&self, program: &Program) -> bool {
        self.flags() & PURE != 0 && !self.calculates_with_state(program)
    }

    pub fn has_state(&self, program: &Program) -> bool {
        self.flags() & STATE != 0 || self.calculates_with_state(program)
    }
}

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
