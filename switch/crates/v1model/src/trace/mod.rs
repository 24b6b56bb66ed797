// SPDX-License-Identifier: Apache-2.0
//! One packet's way through a program, step by step; the program's state is afterwards as it was.
//!
//! The interpreter runs the program as it is written, with a recorder as its `Observer`; the pipeline that carries packets
//! lends its state for the time of a trace.
//!
//! | file | idea |
//! |---|---|
//! | `mod` | `Tracer`; the steps that are shown |
//! | `record` | from what the interpreter sees to steps; what a packet changed, put back |

mod record;

use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};
use std::sync::Arc;

use serde::Serialize;

use crate::compile::code::{Note, Op, Program};
use crate::compile::Compiled;
use crate::error::LoadError;
use crate::pipeline::Pipeline;
use crate::state::State;

pub(crate) use record::Recorder;

/// Who looks on while the interpreter works; `()` sees nothing, at no cost.
pub(crate) trait Observer {
    /// A part begins on these slots.
    fn begin(&mut self, _slots: &[u64]) {}
    /// These are the slots now.
    fn settle(&mut self, _slots: &[u64]) {}
    /// A note of the program.
    fn note(&mut self, _scene: Scene<'_>, _note: &Note) {}
    /// This operation is next.
    fn before(&mut self, _scene: Scene<'_>, _op: &Op) {}
}

impl Observer for () {}

/// What the interpreter has at hand.
#[derive(Clone, Copy)]
pub(crate) struct Scene<'s> {
    pub program: &'s Program,
    pub state: &'s State,
    pub slots: &'s [u64],
}

/// Steps that one control shows at most; those beyond are counted.
pub const STEPS_MAX: usize = 4096;

/// A program that records what packets do.
pub struct Tracer {
    pipeline: Pipeline,
}

/// The compiled program of a pipeline, for tracers of it.
#[derive(Clone)]
pub struct Traced(pub(crate) Arc<Compiled>);

impl Tracer {
    /// Of the program of `Pipeline::traced`.
    ///
    /// # Errors
    /// Its state takes more memory than there is.
    pub fn new(program: Traced) -> Result<Tracer, LoadError> {
        Ok(Tracer {
            pipeline: Pipeline::noted(program.0)?,
        })
    }

    /// Runs `f` on a pipeline that records and has the state of `real`, which has its own again afterwards, unchanged.
    /// None when `real` is another program.
    ///
    /// Packets of `f` are made by the pipeline that it gets. Steps come from `Pipeline::take_steps`.
    pub fn with<R>(
        &mut self,
        real: &mut Pipeline,
        f: impl FnOnce(&mut Pipeline) -> R,
    ) -> Option<R> {
        let own = &mut self.pipeline;
        // Another program of the same schema has other calculations: its state would not fit.
        if own.program_id() != real.program_id() {
            return None;
        }
        std::mem::swap(&mut own.state, &mut real.state);
        // A panic goes on when the state is back.
        let result = catch_unwind(AssertUnwindSafe(|| f(own)));
        own.undo();
        std::mem::swap(&mut own.state, &mut real.state);
        Some(result.unwrap_or_else(|panic| {
            own.take_steps();
            resume_unwind(panic)
        }))
    }
}

pub use crate::compile::code::Source;

/// A value with its width in bits; `0x`, as many digits as it has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Value {
    /// P4 name: of a field, key, or parameter.
    pub name: String,
    /// Bits.
    pub width: u32,
    /// Hexadecimal.
    pub value: String,
}

/// A field that got another value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Change {
    /// P4 name; `ipv4.$valid$` is a header's validity.
    pub name: String,
    /// Bits.
    pub width: u32,
    /// Before.
    pub from: String,
    /// After.
    pub to: String,
}

/// What the program keeps, or the switch does for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Use {
    /// A counter's cell, with its value before.
    Counter {
        /// P4 name.
        name: String,
        /// Cell; beyond the array nothing is counted.
        index: u64,
        /// Packets; None beyond the array.
        packets: Option<u64>,
        /// Bytes.
        bytes: Option<u64>,
    },
    /// A meter's cell and its answer: 0 green, 1 yellow, 2 red.
    Meter {
        /// P4 name.
        name: String,
        /// Cell.
        index: u64,
        /// None beyond the array.
        color: Option<u64>,
    },
    /// A register's cell was read.
    RegisterRead {
        /// P4 name.
        name: String,
        /// Cell.
        index: u64,
        /// None beyond the array.
        value: Option<String>,
    },
    /// A register's cell was written.
    RegisterWrite {
        /// P4 name.
        name: String,
        /// Cell.
        index: u64,
        /// Before; None beyond the array, where nothing is written.
        from: Option<String>,
        /// After.
        to: String,
    },
    /// A hash over fields.
    Hash {
        /// Algorithm.
        algorithm: String,
    },
    /// A random number.
    Random,
    /// A message to the control plane.
    Digest {
        /// Of the P4 struct.
        name: String,
    },
    /// A copy was asked for.
    Clone {
        /// Clone session.
        session: u64,
    },
    /// Another round from the parser.
    Resubmit,
    /// Another round from the parser, after egress.
    Recirculate,
    /// The frame is cut.
    Truncate {
        /// To so many bytes.
        bytes: u64,
    },
    /// Marked to be dropped when the control ends.
    MarkToDrop,
    /// The control ends here.
    Exit,
    /// The parser met an error.
    ParserError,
}

/// A primitive of an action, with what it did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Line {
    /// BMv2's name of it.
    pub op: String,
    /// Where it stands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<Source>,
    /// Fields that it changed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<Change>,
    /// Externs that it used.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub uses: Vec<Use>,
}

/// The kinds of a step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "step", rename_all = "snake_case")]
pub enum Kind {
    /// A parser state, with the headers that it extracted.
    State {
        /// Fields by header.
        extracted: Vec<Extracted>,
    },
    /// A condition.
    Condition {
        /// Whether it held.
        result: bool,
    },
    /// A lookup.
    Table {
        /// The key, field by field.
        key: Vec<Value>,
        /// Whether an entry was found.
        hit: bool,
        /// The entry's own key, and its priority where it has one.
        #[serde(skip_serializing_if = "Option::is_none")]
        entry: Option<String>,
        /// What runs: the entry's action, or the default; None when nothing does.
        action: Option<String>,
        /// Its arguments.
        args: Vec<Value>,
        /// Packets that the direct counter had counted before.
        #[serde(skip_serializing_if = "Option::is_none")]
        packets: Option<u64>,
    },
    /// An action without a lookup.
    Action {
        /// P4 name.
        action: String,
    },
    /// The deparser's own primitives.
    Deparser,
}

/// A header as the parser found it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Extracted {
    /// P4 name.
    pub header: String,
    /// In order.
    pub fields: Vec<Value>,
}

/// One step, with what was done in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Step {
    /// Of the state, condition or table.
    pub name: String,
    /// Where it stands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<Source>,
    /// Which kind.
    #[serde(flatten)]
    pub kind: Kind,
    /// Fields that it changed outside of any primitive.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<Change>,
    /// Externs outside of any primitive.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub uses: Vec<Use>,
    /// Primitives in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lines: Vec<Line>,
}

/// The field that decides about drops.
const EGRESS_SPEC: &str = "standard_metadata.egress_spec";

/// Where a packet was last marked to be dropped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Place {
    /// Table, condition or state.
    pub step: String,
    /// Action, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action: Option<String>,
    /// The primitive in the P4 source.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<Source>,
}

impl Place {
    /// The last primitive of `steps` that said drop: `mark_to_drop`, or `drop_port` in `egress_spec`.
    pub fn find_drop(steps: &[Step], drop_port: u32) -> Option<Place> {
        let drop_port = format!("{drop_port:#x}");
        let drops = |line: &Line| {
            let dropped = |c: &Change| c.name == EGRESS_SPEC && c.to == drop_port;
            line.uses.contains(&Use::MarkToDrop) || line.changes.iter().any(dropped)
        };
        steps.iter().rev().find_map(|step| {
            let last = step.lines.iter().rposition(drops)?;
            // An action with an `inout` copy of the metadata marks the copy, and copies it back behind.
            let (line, before) = step.lines[..=last].split_last()?;
            let copy = before.iter().rev().find(|l| l.op == "mark_to_drop");
            let copy = copy.filter(|_| !line.uses.contains(&Use::MarkToDrop));
            let line = copy.unwrap_or(line);
            let action = match &step.kind {
                Kind::Table { action, .. } => action.clone(),
                Kind::Action { action } => Some(action.clone()),
                _ => None,
            };
            Some(Place {
                step: step.name.clone(),
                action,
                source: line.source.clone(),
            })
        })
    }
}
