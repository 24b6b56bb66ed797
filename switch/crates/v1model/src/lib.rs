// SPDX-License-Identifier: Apache-2.0
//! BMv2 JSON of a v1model program, compiled to a pipeline: no I/O, no clock, no threads.
//!
//! | module | idea |
//! |---|---|
//! | `pipeline` | `Pipeline`, the packet path as the device drives it; which engine runs a program |
//! | `packet` | what goes through it, and what it asks for |
//! | `control`, `schema`, `bits` | the control-plane API and its values |
//! | `json`, `compile`, `exec` | JSON model, its lowering to flat code, the interpreter of that |
//! | `native` | the same code as machine code |
//! | `trace` | one packet's way, step by step, without leaving a trace of its own |
//! | `error` | what is refused, and the net below the checks of a program |
//! | `table`, `externs` | match structures; counters, meters, registers, hashes |
//!
//! # A new operation
//!
//! *Of numbers, in expressions*: its name in the JSON in `compile/expr`, with a variant of `Expr` (`Expr::Arith` where it
//! has two operands: then see `arith_range`), and a variant of `Alu` in `compile/alu`. `cargo test` then names the rest: its
//! range, its lowering (which of its operands must be exact, which only in their low bits), one limb and several
//! (`exec/wide`), machine code, and the generators of the tests. `Alu::upper_bound` may stay at all ones; several limbs need
//! no machine code, as the interpreter does what `native` does not translate.
//!
//! *A primitive of actions*: a row in `compile/op`, its name in the JSON in `compile/action`, an arm in `exec`, and,
//! where it is to be fast, one in `native`.
//!
//! | test | shows |
//! |---|---|
//! | `compile/tests` | expressions, in both engines, against integers of any size |
//! | `compile/optimise/pass_tests` | each `Alu` alone, in both engines; each pass of the optimiser |
//! | `compile/optimise/tests` | whole programs, in both engines, the same packets |
//! | `tests/all/primitives` | primitives in programs that the test writes as JSON (`tests/common/minimal`) |

pub mod bits;
mod compile;
pub mod control;
pub mod error;
mod exec;
pub mod externs;
mod json;

#[cfg(test)]
#[path = "../tests/common/minimal.rs"]
mod minimal;
mod native;
pub mod packet;
pub mod pipeline;
pub mod schema;
mod state;
mod table;
pub mod trace;

pub use bits::{
    ActionCall, Bits, Entry, EntryAction, EntryKey, EntryStats, KeyMatch, MeterConfig, Nanos,
};
pub use compile::ProgramId;
pub use control::{GroupMember, Kept, Takeover};
pub use error::{ControlError, ControlResult, ErrorKind, LoadError};
pub use externs::cells::prefetch_all;
pub use packet::{
    Again, CloneRequest, DigestSink, Effects, FrameBuffer, LogSink, Packet, PacketAddresses,
};
pub use pipeline::{Engine, FieldRef, Pipeline, Std, BUDGET_BYTES, ENGINE_VARIABLE};
pub use schema::*;
pub use table::{AsKey, Key, Profile, Table, ValueSet};
