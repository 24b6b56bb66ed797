// SPDX-License-Identifier: Apache-2.0
//! The side tables that a program's operations (`op`) point into.
//!
//! Where the interpreter stops when a packet is traced: notes between the operations. Machine code has none.

use serde::Serialize;

use super::emit::Emitter;
use super::flow::{Block, Id};
use super::layout::{HeaderType, Slot, Stack};
use crate::json::Json;

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

/// What an operation on numbers of several limbs gives.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum WideKind {
    Alu(Alu),
    /// 1 where it holds, else 0; the operands say whether they are signed.
    Test(Test),
}

/// An operation on numbers of any size. The result is that of integers, in two's complement modulo 2^w, in so many limbs
/// from `d` on; the operands may lie there too.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct WideOp {
    pub kind: WideKind,
    pub d: Slot,
    pub limbs: u16,
    pub w: u32,
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
    /// Its inputs without the payload; None when a run is not whole bytes, or something has a length of its own.
    pub words: Option<Vec<WordRun>>,
}

impl Calculation {
    /// Its result depends on more than its inputs.
    pub fn has_state(&self) -> bool {
        matches!(self.algorithm.as_str(), "random" | "round_robin")
    }
}

/// Fields under one validity, one after another in words of 8 bytes (the last may be shorter).
#[derive(Clone, Debug)]
pub(crate) struct WordRun {
    pub valid: Slot,
    pub words: Vec<Word>,
}

/// The first `bytes` bytes of a big-endian word.
#[derive(Clone, Debug, Default)]
pub(crate) struct Word {
    pub bytes: u8,
    /// Part that constants contribute.
    pub constant: u64,
    /// Slot and left shift, a negative one to the right.
    pub fields: Vec<(Slot, i8)>,
}

/// A header that the deparser emits.
#[derive(Clone, Debug)]
pub(crate) struct Emitted {
    pub valid: Slot,
    pub base: Slot,
    pub ty: u16,
    /// None when it has a varbit field.
    pub words: Option<Vec<Word>>,
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
#[derive(Clone, Debug, Default)]
pub(crate) struct TableCode {
    /// The slots of all limbs of the key, and the bits of each that are looked up.
    pub key: Vec<(Slot, u64)>,
    pub next: Next,
    /// Direct meter: where the colour goes.
    pub meter: Option<(Slot, u8)>,
    /// Index of the action profile.
    pub profile: Option<u32>,
}

/// Where the code goes on behind a table: where a hit or a miss leads, else where the action does.
#[derive(Clone, Debug, Default)]
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
    pub headers: Vec<HeaderType>,
    pub stacks: Vec<Stack>,
    pub calculations: Vec<Calculation>,
    pub selects: Vec<Select>,
    pub tables: Vec<TableCode>,
    /// For each action profile, the calculation of its selector's hash.
    pub selectors: Vec<Option<u16>>,
    pub messages: Vec<Message>,
    /// What a trace shows: see `Op::Note`.
    pub notes: Vec<Note>,
    /// Digests: (slot, width) of the members.
    pub digests: Vec<Vec<(Slot, u32)>>,
    /// Field lists: (slot, slots).
    pub field_lists: Vec<Vec<(Slot, u16)>>,
    /// Emitted headers in order.
    pub deparser: Vec<Emitted>,
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
    /// The calculation that chooses among a group's members in a table.
    pub fn selector(&self, table: &TableCode) -> Option<u16> {
        table.profile.and_then(|at| self.selectors[at as usize])
    }

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

/// A place in the P4 source, as p4c wrote it into the JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Source {
    /// Relative to where p4c was called.
    pub file: String,
    /// From 1.
    pub line: u64,
    /// The piece of source there; long ones are cut by p4c.
    pub text: String,
}

impl Source {
    fn from_json(json: &Json) -> Option<Source> {
        let info = json.opt("source_info")?;
        Some(Source {
            file: info.str_at("filename").ok()?.to_string(),
            line: info.get("line").ok()?.u64().ok()?,
            text: info
                .str_at("source_fragment")
                .unwrap_or_default()
                .to_string(),
        })
    }
}

/// A name and where it stands.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Spot {
    pub name: String,
    pub source: Option<Source>,
}

impl Spot {
    /// `json` has its name under `key`.
    pub fn new(json: &Json, key: &'static str) -> Spot {
        Spot {
            name: json.str_at(key).unwrap_or_default().to_string(),
            source: Source::from_json(json),
        }
    }
}

/// What follows.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Note {
    /// A parser state.
    State(Spot),
    /// A condition.
    Condition(Spot),
    /// The condition held, or not.
    Decided(bool),
    /// A lookup in this table.
    Table(u16, Spot),
    /// An action without a lookup.
    Call(u32, Spot),
    /// The action that the lookup chose.
    Action(u32),
    /// A primitive of an action, parser state or deparser.
    Primitive(Spot),
    /// What follows marks the packet itself to be dropped, not a copy of its metadata.
    MarkToDrop,
    /// The end of a list of primitives.
    Done,
}

impl Emitter<'_> {
    /// A stop here.
    pub fn note(&mut self, note: Note) {
        let op = Op::Note {
            note: self.program.notes.len() as u32,
        };
        self.program.notes.push(note);
        self.op(op);
    }
}
