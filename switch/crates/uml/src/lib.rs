// SPDX-License-Identifier: Apache-2.0
//! Real Linux hosts in virtual time: one User-mode Linux whose clock and network are ours (docs/kernel-time.md).
//!
//! ```text
//!   this process                                                     User-mode Linux
//!   Machine ── RUN(t, frames?) ─► time socket ─────────────────────► idle loop runs on
//!      │    ◄─ WAIT ──────────────────────────────────────────────── nothing more to do before free_until
//!      │       shared memory: the time, free_until, when the guest wants to run
//!   Network ◄► rings in the guest's memory ◄───────────────────────► virtio-net, set up over vhost-user, a socket an interface
//! ```
//!
//! Only one of the two runs at a time, so both share a core, and nothing depends on the machine's speed.
//!
//! | module | idea |
//! |---|---|
//! | `machine` | `Machine`: the process, whose turn it is, and the `Network` between its interfaces |
//! | `calendar` | time-travel messages and the memory of shared-memory scheduling |
//! | `interface` | a virtio-net device, set up over vhost-user |
//! | `ring` | a split virtqueue, the device's side |
//! | `plan` | what the guest is to do |
//! | `memory` | memory that is shared with the guest |
//! | `error` | what went wrong |

mod calendar;
mod error;
mod interface;
mod machine;
mod memory;
pub mod plan;
mod ring;

pub use error::MachineError;
pub use interface::InterfaceCounts;
pub use machine::{interrupt_waits, Machine, Network, Options};

/// Nanoseconds of virtual time.
pub type Nanos = u64;
