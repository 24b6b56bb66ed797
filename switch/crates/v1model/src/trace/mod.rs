// SPDX-License-Identifier: Apache-2.0
//! One packet's way through a program, step by step; the program's state is afterwards as it was.
//!
//! The interpreter runs the program as it is written, with a recorder as its `Observer`; the pipeline that carries packets
//! lends its state for the time of a trace.
//!
//! | file | idea |
//! |---|---|
//! | `mod` | `Tracer` |
//! | `steps` | what is shown |
//! | `record` | from what the interpreter sees to steps; what a packet changed, put back |

mod record;
mod steps;

pub use steps::{Change, Extracted, Kind, Line, Place, Source, Step, Use, Value};

pub(crate) use record::Recorder;

use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};

use crate::compile::code::{Op, Program};
use crate::compile::notes::Note;
use crate::error::LoadError;
use crate::pipeline::Pipeline;
use crate::state::State;

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

impl Tracer {
    /// The program of this JSON.
    ///
    /// # Errors
    /// As `Pipeline::from_json`.
    pub fn from_json(json: &[u8]) -> Result<Tracer, LoadError> {
        Ok(Tracer {
            pipeline: Pipeline::noted(json)?,
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
        if own.schema != real.schema {
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
