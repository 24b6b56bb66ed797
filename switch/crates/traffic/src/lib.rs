// SPDX-License-Identifier: Apache-2.0
//! Queues, schedulers, shared buffer and link models: no I/O, the clock is an argument.
//!
//! | module | idea |
//! |---|---|
//! | `line` | when a line of a given bit rate is free again, exact to the nanosecond over any run |
//! | `link_layer` | what a frame takes on the line: bytes, Ethernet, ATM cells |
//! | `limits` | how much may wait: packets, bytes, cells; the buffer that ports share |
//! | `scheduler` | which of a port's queues is served next |
//! | `round_robin` | WRR and DRR: shares by weight |
//! | `fq` | the scheduler of FQ-CoDel: new and old queues |
//! | `wheel` | the calendar of rounds that those use |
//! | `bit_set` | a set of small numbers: queues that hold something, rounds that are used |
//! | `ring` | the slab that all queues of a port live in |
//! | `seeds` | the seed of each thing in a run that chance moves |
//! | `names` | options that are one of a few words |
//! | `link` | one direction of an emulated link: delay, jitter, rate, loss, bit errors, spike, outage |
//! | `calendar` | which of many entities acts next |
//! | `port_queues` | one port: queues, scheduler, limits and line together |

#![forbid(unsafe_code)]

mod bit_set;
pub mod calendar;
mod fq;
pub mod limits;
pub mod line;
pub mod link;
pub mod link_layer;
mod names;
pub mod port_queues;
mod ring;
mod round_robin;
pub mod scheduler;
mod seeds;
mod wheel;

pub use limits::{cells_of, QueueLimits, SharedBuffer, Usage, UNLIMITED};
pub use line::{Line, Nanos};
pub use link_layer::LinkLayer;
pub use names::UnknownName;
pub use port_queues::{Dequeued, DropReason, PortQueues, QueueStats, QUEUES_MAX};
pub use scheduler::SchedulerKind;
pub use seeds::derived_seed;
