// SPDX-License-Identifier: Apache-2.0
//! Where the interpreter stops when a packet is traced: notes between the operations. Machine code has none.

use serde::Serialize;

use super::code::Op;
use super::emit::Emitter;
use crate::json::Json;

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
