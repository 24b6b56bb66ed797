// SPDX-License-Identifier: Apache-2.0
//! BMv2 JSON of a v1model program, compiled to a pipeline: no I/O, no clock, no threads.
//!
//! | module | idea |
//! |---|---|
//! | `pipeline` | `Pipeline`, the packet path as the device drives it |
//! | `packet`, `effects` | what goes through it, and what it asks for |
//! | `control`, `schema`, `entry`, `bits` | the control-plane API and its values |
//! | `json`, `compile`, `exec` | JSON model, its lowering to flat code, the interpreter of that |
//! | `native`, `engine` | the same code as machine code; which of both runs a program |
//! | `trace` | one packet's way, step by step, without leaving a trace of its own |
//! | `fault` | the net below the checks of a program |
//! | `memory` | large memory in huge pages; cache lines asked for in time |
//! | `table`, `externs` | match structures; counters, meters, registers, hashes |

pub mod bits;
mod compile;
pub mod control;
pub mod effects;
mod engine;
pub mod entry;
pub mod error;
mod exec;
pub mod externs;
pub mod fault;
mod json;
mod memory;
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

pub use bits::Bits;
pub use compile::recent::ProgramId;
pub use control::{ControlResult, GroupMember, Takeover};
pub use effects::{Again, CloneRequest, DigestSink, Effects, LogSink};
pub use engine::{Engine, ENGINE_VARIABLE};
pub use entry::{
    ActionCall, Entry, EntryAction, EntryKey, EntryStats, KeyMatch, MeterConfig, Nanos,
};
pub use error::{ControlError, ErrorKind, LoadError};
pub use memory::prefetch_all;
pub use packet::{FrameBuffer, Packet, PacketAddresses};
pub use pipeline::{FieldRef, Pipeline, Std, BUDGET_BYTES};
pub use schema::*;
pub use table::{AsKey, Key, Profile, Table, ValueSet};
