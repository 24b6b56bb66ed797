// SPDX-License-Identifier: Apache-2.0
//! The table of operations: what each has, reads, writes and names, said once. From it come the enum, its operands, what
//! the optimiser knows of an operation (`touches`), and what the check sees (`check`).

use super::alu::Alu;
use super::code::{Program, WideOp};
use super::layout::{Slot, ZERO};
use crate::schema::{DigestId, FieldListId, Schema};

/// What an operation names: slots of a packet, and entries of a program's or schema's lists.
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
    /// 1 to 64 bits.
    Width(u32),
    /// A header in `Program::elements`, or its stack.
    ReadsHeader(u16),
    /// The same, with the validity of its siblings.
    ChangesHeader(u16),
    /// So many slots of the header's block, from an offset on.
    Field(u16, u16, u16),
    /// Two headers of one size.
    SameSize(u16, u16),
    /// A header stack, which changes.
    Stack(u16),
    Member(u16, u16),
    Counter(u16),
    Meter(u16),
    /// A register array, and for how many limbs of a cell there is room.
    Register(u16, u16),
    Calculation(u16),
    Digest(DigestId),
    FieldList(Option<FieldListId>),
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

/// `Name(operands) { fields } [parts] flags;`: operands are slots of one limb that are read as numbers.
macro_rules! operations {
    ({$($(#[$doc:meta])* $name:ident ($($operand:ident),*) {$($field:ident: $ty:ty),*} [$($part:expr),*] $flags:expr;)*}
     {$($(#[$unit_doc:meta])* $unit:ident $unit_flags:expr;)*}) => {
        /// One operation. `d` is written; `w` cuts the result to its low bits (64: not at all). Numbers of one limb only,
        /// unless the name says otherwise.
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
    Alu(a, b) { alu: Alu, d: Slot, w: u8 } [Writes(d, 1), Width(w.into()), Width(alu.extended_from())] PURE;
    MoveWide() { d: Slot, a: Slot, limbs: u16 } [Reads(a, limbs), Writes(d, limbs)] PURE;
    Wide() { op: WideOp }
        [Reads(op.a.slot, op.a.limbs), Reads(op.b.slot, op.b.limbs), Writes(op.d, op.limbs)] PURE;

    // Headers and elements of stacks, by `Program::elements`.
    LoadElement() { d: Slot, element: u16, offset: u16, limbs: u16 }
        [ReadsHeader(element), Field(element, offset, limbs), Writes(d, limbs)] PURE;
    StoreElement() { a: Slot, element: u16, offset: u16, limbs: u16 }
        [Reads(a, limbs), Field(element, offset, limbs), ChangesHeader(element)] 0;
    SetValid() { header: u16 } [ReadsHeader(header), ChangesHeader(header)] 0;
    SetInvalid() { header: u16 } [ReadsHeader(header), ChangesHeader(header)] 0;
    CopyHeader() { d: u16, a: u16 } [SameSize(d, a), ReadsHeader(a), ChangesHeader(d)] 0;
    SetHeadersEqual() { d: Slot, a: u16, b: u16 }
        [SameSize(a, b), ReadsHeader(a), ReadsHeader(b), Writes(d, 1)] PURE;
    Push(n) { stack: u16 } [Stack(stack)] 0;
    Pop(n) { stack: u16 } [Stack(stack)] 0;

    // Externs. Where a cell is beyond the array, `d` stays as it is.
    Count(index) { counter: u16 } [Counter(counter)] STATE;
    Meter(index) { meter: u16, d: Slot, w: u8 } [Meter(meter), MayWrite(d, 1), Width(w.into())] STATE;
    RegisterRead(index) { register: u16, d: Slot, limbs: u16, w: u8 }
        [Register(register, limbs), MayWrite(d, limbs), Width(w.into())] PURE | STATE;
    RegisterWrite(index, a) { register: u16 } [Register(register, 1)] STATE;
    RegisterWriteWide(index) { register: u16, a: Slot, limbs: u16 }
        [Register(register, limbs), Reads(a, limbs)] STATE;
    Calculate() { calculation: u16, d: Slot, w: u8 }
        [Calculation(calculation), Writes(d, 1), Width(w.into())] PURE;
    /// `d` stays as it is where `low` is above `high`.
    Random(low, high) { d: Slot, w: u8 } [MayWrite(d, 1), Width(w.into())] STATE;

    // Requests to the switch.
    /// Its fields are sampled when the control has ended.
    Digest() { digest: DigestId } [Digest(digest)] 0;
    Clone(session) { list: Option<FieldListId> } [FieldList(list)] 0;
    Resubmit() { list: Option<FieldListId> } [FieldList(list)] 0;
    Recirculate() { list: Option<FieldListId> } [FieldList(list)] 0;
    Truncate(a) {} [] 0;
    Log() { message: u16 } [Message(message)] 0;
    Assert(a) { message: u16 } [Message(message)] 0;

    // Parser; `bits` has the length of the varbit field, where the header has one.
    Extract() { header: u16, bits: Option<Slot> }
        [ReadsLength(bits), ChangesHeader(header), ParserError] PARSES | LEAVES;
    ExtractNext() { stack: u16, member: u16, bits: Option<Slot> }
        [ReadsLength(bits), Stack(stack), Member(stack, member), ParserError] PARSES | LEAVES;
    Lookahead() { d: Slot, offset: u32, width: u16 }
        [MayWrite(d, width.div_ceil(64)), ParserError] PARSES | LEAVES;
    Advance(bits) {} [ParserError] PARSES | LEAVES;
    ParserError(code) {} [ParserError] LEAVES;

    /// A trace stops here; nothing else: `Program::notes`.
    Note() { note: u32 } [] 0;

} {
    /// The control ends with this action.
    Exit 0;
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

    /// The calculation whose value it takes, to be changed.
    pub fn calculation(&mut self) -> Option<&mut u16> {
        match self {
            Op::Calculate { calculation, .. } => Some(calculation),
            _ => None,
        }
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

    /// The slot of one limb that gets the operation's result, and the bits that this is cut to; None where `alu` says more.
    pub fn result(&self) -> Option<(Slot, u8)> {
        match *self {
            Op::RegisterRead { d, limbs: 1, w, .. } | Op::Calculate { d, w, .. } => Some((d, w)),
            _ => None,
        }
    }

    pub fn parses(&self) -> bool {
        self.flags() & PARSES != 0
    }

    pub fn may_leave(&self) -> bool {
        self.flags() & LEAVES != 0
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

    /// Sees that what the operation names is there.
    ///
    /// # Errors
    /// What is not.
    pub fn check(&self, program: &Program, schema: &Schema) -> Result<(), String> {
        let mut wrong = None;
        self.parts(&mut |part| {
            if wrong.is_none() && !part.is_there(program, schema) {
                wrong = Some(format!("{part:?} is not there"));
            }
        });
        wrong.map_or(Ok(()), Err)
    }
}

impl Part {
    fn is_there(self, program: &Program, schema: &Schema) -> bool {
        fn has<T>(list: &[T], index: u16) -> bool {
            usize::from(index) < list.len()
        }
        let size = |element: u16| {
            let element = program.elements.get(usize::from(element));
            element.map(|e| program.headers[usize::from(e.header)].slots)
        };
        match self {
            // `touches` has them as slots.
            Part::Reads(..)
            | Part::ReadsLength(_)
            | Part::Writes(..)
            | Part::MayWrite(..)
            | Part::ParserError => true,
            Part::Width(w) => (1..=64).contains(&w),
            Part::ReadsHeader(element) | Part::ChangesHeader(element) => {
                has(&program.elements, element)
            }
            Part::Field(element, offset, limbs) => size(element)
                .is_some_and(|slots| u32::from(offset) + u32::from(limbs) <= slots.into()),
            Part::SameSize(a, b) => size(a).is_some() && size(a) == size(b),
            Part::Stack(stack) => has(&program.stacks, stack),
            Part::Member(stack, member) => has(&program.stacks[usize::from(stack)].members, member),
            Part::Counter(counter) => has(&schema.counters, counter),
            Part::Meter(meter) => has(&schema.meters, meter),
            Part::Register(register, limbs) => {
                let known = schema.registers.get(usize::from(register));
                known.is_some_and(|r| crate::bits::limbs_for(r.width) <= usize::from(limbs))
            }
            Part::Calculation(calculation) => has(&program.calculations, calculation),
            Part::Digest(digest) => digest.index() < program.digests.len(),
            Part::FieldList(list) => {
                list.is_none_or(|list| list.index() < program.field_lists.len())
            }
            Part::Message(message) => has(&program.messages, message),
        }
    }
}
