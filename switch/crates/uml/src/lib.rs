// SPDX-License-Identifier: Apache-2.0
//! Real Linux hosts in virtual time: one User-mode Linux whose clock and network are ours (docs/kernel-time.md).
//!
//! ```text
//!   this process                                                     User-mode Linux
//!   Machine ── RUN(t) ─► time socket ──────────────────────────────► idle loop runs on
//!      │    ◄─ WAIT ──────────────────────────────────────────────── nothing more to do before free_until
//!      │       shared memory: the time, free_until, when the guest wants to run
//!      └──── ◄► frames with their instants, in the shared memory ◄─► interfaces eth0, eth1, …
//! ```
//!
//! Only one of the two runs at a time, so both share a core, and nothing depends on the machine's speed.
//!
//! | module | idea |
//! |---|---|
//! | `machine` | `Machine`: the process, and whose turn it is |
//! | `calendar` | time-travel messages and the memory of shared-memory scheduling |
//! | `frames` | frames to and from the interfaces, each with its instant |
//! | `plan` | what the guest is to do |
//! | `memory` | memory that is shared with the guest |
//! | `error` | what went wrong |

mod calendar;
mod error;
mod frames;
mod machine;
mod memory;
pub mod plan;

pub use error::MachineError;
pub use frames::LineCounts;
pub use machine::{interrupt_waits, Machine, Options};

/// Nanoseconds of virtual time.
pub type Nanos = u64;
