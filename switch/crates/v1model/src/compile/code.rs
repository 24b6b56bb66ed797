// SPDX-License-Identifier: Apache-2.0
//! The side tables that a program's operations (`op`) point into.

use super::flow::{Block, Id};
use super::layout::Slot;
use super::notes::Note;

pub(crate) use super::alu::{Alu, Test};
pub(crate) use super::op::Op;

/// An operand of a wide operation: `limbs` limbs from `slot`, extended by zeros or by the sign.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Operand {
    pub slot: Slot,
    pub limbs: u16,
    pub signed: bool,
}

impl Operand {
    pub fn new(slot: Slot, limbs: usize, signed: bool) -> Operand {
        Operand {
            slot,
            limbs: limbs as u16,
            signed,
        }
    }
}

/// Operations on numbers of several limbs, in two's complement modulo 2^(64·limbs).
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum WideKind {
    /// Shifts by the value of `b`, unsigned; the operand `a` says whether it is signed.
    Alu(Alu),
    /// `a`, cut to its low bits, so many.
    Mask(u32),
    /// d = 0 or 1.
    SetEq,
    SetLt,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct WideOp {
    pub kind: WideKind,
    pub d: Slot,
    /// Limbs of the result.
    pub limbs: u16,
    pub a: Operand,
    pub b: Operand,
}

/// A header block, fixed or chosen at run time: base + index·stride + offset.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Element {
    /// Base of element 0 (of the member in question).
    pub base: Slot,
    pub stride: u16,
    /// 1 for a fixed header (then `index` is the constant 0).
    pub count: u16,
    pub index: Slot,
    pub header: u16,
    pub siblings: Box<[i32]>,
    /// Metadata is always valid: setting validity does nothing.
    pub metadata: bool,
}

/// How the bits of a header type are read from and written to a frame.
#[derive(Clone, Debug, Default)]
pub(crate) struct HeaderIo {
    /// Slots of a block.
    pub slots: u16,
    /// Bytes without the varbit field.
    pub fixed_bytes: u32,
    /// Fields in front of the varbit field, or all.
    pub head: Vec<FieldIo>,
    /// `head` for the fast path: pieces of at most 8 bytes that begin and end at bytes; None when a
    /// field is misaligned.
    pub pieces: Option<Vec<Piece>>,
    /// The varbit field: block offset, most bits.
    pub varbit: Option<(u16, u32)>,
    /// Fields behind it, offsets counted from its end.
    pub tail: Vec<FieldIo>,
}

/// One field in a header.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FieldIo {
    /// In the block.
    pub offset: u16,
    /// First bit, from the header's (or the tail's) start.
    pub bit: u32,
    pub width: u32,
}

/// Up to 8 bytes of a header and the fields in it.
#[derive(Clone, Debug)]
pub(crate) struct Piece {
    /// First byte.
    pub byte: u32,
    /// 1..=8.
    pub bytes: u8,
    /// (block offset, left shift in the 8-byte big-endian word).
    pub fields: Vec<(u16, u8)>,
}

/// One piece of a hash's or checksum's input.
#[derive(Clone, Debug)]
pub(crate) enum Input {
    /// A field; skipped when its header is invalid.
    Field {
        slot: Slot,
        width: u32,
        valid: Slot,
        varbit_bits: Option<Slot>,
    },
    /// `width` bits of this value.
    Constant { limbs: Box<[u64]>, width: u32 },
    /// A whole header, skipped when invalid; (base slot, header type).
    Header { base: Slot, valid: Slot, ty: u16 },
}

/// A hash or checksum over fields.
#[derive(Clone, Debug)]
pub(crate) struct Calculation {
    pub algorithm: String,
    pub inputs: Vec<Input>,
    pub payload: bool,
    /// Every run of fields with one validity as words of up to 64 bits, byte-aligned; None when not possible.
    pub words: Option<Vec<WordRun>>,
}

impl Calculation {
    /// Its result depends on more than its inputs.
    pub fn has_state(&self) -> bool {
        matches!(self.algorithm.as_str(), "random" | "round_robin")
    }
}

/// Fields under one validity, combined to 64-bit words (the last may be shorter).
#[derive(Clone, Debug)]
pub(crate) struct WordRun {
    pub valid: Slot,
    pub words: Vec<Word>,
}

/// (slot, left shift) of the fields of a word of `bytes` bytes; a negative shift is one to the right.
#[derive(Clone, Debug)]
pub(crate) struct Word {
    pub bytes: u8,
    /// Part that constants contribute.
    pub constant: u64,
    pub fields: Vec<(Slot, i8)>,
}

/// A `select`: parts of the key, then cases in order.
#[derive(Clone, Debug)]
pub(crate) struct Select {
    /// (slot, limbs, width) of each part.
    pub parts: Vec<(Slot, u16, u32)>,
    pub cases: Vec<Case>,
}

#[derive(Clone, Debug)]
pub(crate) enum Case {
    /// Values and masks limb by limb over all parts.
    Masked {
        values: Vec<u64>,
        masks: Vec<u64>,
    },
    ValueSet(u32),
}

/// A table as the packet path sees it.
#[derive(Clone, Debug)]
pub(crate) struct TableCode {
    /// Key fields: first slot, limbs.
    pub key: Vec<(Slot, u16)>,
    /// The slots of all their limbs in order.
    pub key_slots: Vec<Slot>,
    /// Masks over the key's limbs, when some are static.
    pub masks: Option<Vec<u64>>,
    pub next: Next,
    /// Direct meter: where the colour goes.
    pub meter: Option<(Slot, u8)>,
    /// Index of the action profile.
    pub profile: Option<u32>,
    /// Calculation of the selector's hash.
    pub selector: Option<u16>,
}

/// Where the code goes on behind a table: where a hit or a miss leads, else where the action does.
#[derive(Clone, Debug)]
pub(crate) struct Next {
    pub hit: Option<Id>,
    pub miss: Option<Id>,
    pub by_action: Vec<Id>,
    pub no_action: Id,
}

impl Next {
    pub fn to(&self, hit: bool, action: Option<usize>) -> Id {
        let found = if hit { self.hit } else { self.miss };
        found.unwrap_or_else(|| action.map_or(self.no_action, |action| self.by_action[action]))
    }

    /// All of them.
    pub fn targets(&self) -> impl Iterator<Item = Id> + '_ {
        let found = self.hit.iter().chain(&self.miss).chain(&self.by_action);
        found.copied().chain([self.no_action])
    }
}

/// A message of `log_msg` or of a failed assertion: text between the values, values.
#[derive(Clone, Debug, Default)]
pub(crate) struct Message {
    pub texts: Vec<String>,
    pub values: Vec<Operand>,
}

/// Of `Program::places`.
pub(crate) const NOT_EMITTED: u8 = 63;

/// A compiled program: immutable.
#[derive(Clone, Debug, Default)]
pub(crate) struct Program {
    /// As the program is written; the first one ends the code.
    pub blocks: Vec<Block>,
    /// Operations and exits of all blocks.
    pub operations: usize,
    /// Operations that machine code has the interpreter do.
    pub fallback: Vec<Op>,
    /// Where each action begins, by action.
    pub actions: Vec<Id>,
    pub elements: Vec<Element>,
    pub headers: Vec<HeaderIo>,
    pub stacks: Vec<StackCode>,
    pub calculations: Vec<Calculation>,
    pub selects: Vec<Select>,
    pub tables: Vec<TableCode>,
    pub messages: Vec<Message>,
    /// What a trace shows: see `Op::Note`.
    pub notes: Vec<Note>,
    /// Digests: (slot, width) of the members.
    pub digests: Vec<Vec<(Slot, u32)>>,
    /// Field lists: (slot, slots).
    pub field_lists: Vec<Vec<(Slot, u16)>>,
    /// Emitted headers in order: validity slot, base, header type.
    pub deparser: Vec<(Slot, Slot, u16)>,
    /// For each of `elements`, its place in `deparser`; `NOT_EMITTED` for what is not one fixed header of it.
    pub places: Vec<u8>,
    pub parser_start: Id,
    /// Verification of checksums, behind the parser.
    pub verify_start: Id,
    pub ingress_start: Id,
    pub egress_start: Id,
    /// Update of checksums, and the deparser's primitives; 0 when there are none.
    pub deparser_start: Id,
    /// Slots as they are in a fresh packet.
    pub template: Box<[u64]>,
    /// Those below are metadata.
    pub headers_start: usize,
    pub state_end: usize,
    /// First slot of the action args, and their number.
    pub args: Slot,
    pub arg_limbs: u16,
    pub error_codes: ErrorCodes,
    pub std: [Option<(Slot, u8)>; 17],
    pub drop_port: u64,
}

impl Program {
    /// Where the code of each part begins.
    pub fn roots(&self) -> [Id; 5] {
        [
            self.parser_start,
            self.ingress_start,
            self.egress_start,
            self.deparser_start,
            self.verify_start,
        ]
    }
}

/// A header stack: base of element 0, stride, count, slot of the next free index, member blocks.
#[derive(Clone, Debug)]
pub(crate) struct StackCode {
    pub base: Slot,
    pub stride: u16,
    pub count: u16,
    pub next: Slot,
    /// (offset in an element, header type, siblings).
    pub members: Vec<(u16, u16, Box<[i32]>)>,
}

/// Numbers of the core library's errors in this program.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ErrorCodes {
    pub no_error: u64,
    pub packet_too_short: u64,
    pub stack_out_of_bounds: u64,
    pub header_too_short: u64,
    pub parser_invalid_argument: u64,
    pub parser_timeout: u64,
}
