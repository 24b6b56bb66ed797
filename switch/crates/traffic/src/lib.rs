// SPDX-License-Identifier: Apache-2.0
//! Queues, schedulers, shared buffer and link models: no I/O, the clock is an argument.
//!
//! | module | idea |
//! |---|---|
//! | `line` | when a line of a given bit rate is free again, exact to the nanosecond over any run |
//! | `limits` | how much may wait: packets, bytes, cells; the buffer that ports share |
//! | `scheduler` | which of a port's queues is served next |
//! | `ring` | the slab that all queues of a port live in |
//! | `link` | one direction of an emulated link: delay, jitter, rate, loss, bit errors, spike, outage |
//! | `port_queues` | one port: queues, scheduler, limits and line together |

pub mod limits;
pub mod line;
pub mod link;
pub mod port_queues;
mod ring;
pub mod scheduler;

pub use limits::{cells_of, QueueLimits, SharedBuffer, Usage, UNLIMITED};
pub use line::{Line, Nanos};
pub use port_queues::{Dequeued, DropReason, PortQueues, QueueStats};
pub use scheduler::{Backlog, Scheduler, StrictPriority};
