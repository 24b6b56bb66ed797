// SPDX-License-Identifier: Apache-2.0
//! One v1model switch: pipeline, traffic manager, replication and packet I/O; the clock is an argument.
//!
//! | module | idea |
//! |---|---|
//! | `device` | `Device`: what the outside calls, and ports |
//! | `config` | options of the device and of a port, checked |
//! | `path` | what happens to a packet between reception and transmission, in simple_switch's order |
//! | `observe` | who looks on: nobody, or a trace |
//! | `ahead` | frames in a row, parsed before they are handled |
//! | `ports` | one port: queues, frame on the line, counts |
//! | `pre` | packet replication engine: multicast groups, clone sessions |
//! | `events` | what the device tells the control plane: bounded buffers, what did not fit is counted |
//! | `stats` | counts and reasons of drops |
//! | `pool` | packets for reuse |
//! | `trace`, `live_trace` | one packet's way, shown and not gone; the same of the next real ones |
//! | `handle` | closures from other threads, run between two packets |

#![forbid(unsafe_code)]

mod ahead;
pub mod config;
mod device;
pub mod events;
pub mod handle;
pub mod live_trace;
mod observe;
mod path;
mod pool;
mod ports;
pub mod pre;
mod replace;
pub mod stats;
pub mod trace;

pub use config::{DeviceConfig, PortChange, PortConfig, Rate};
pub use device::{Device, Transmit};
pub use events::{Event, MissedEvents};
pub use handle::{Calls, DeviceGone, DeviceHandle};
pub use pre::{
    CloneSession, Copies, MulticastGroup, Replica, Replication, REPLICAS_ALL_MAX, REPLICAS_MAX,
};
pub use replace::{Before, Next};
pub use stats::{
    Accounts, Addressed, DeviceStats, DropReason, PortStats, PORT_REFUSALS, QUEUE_DROPS,
};
pub use traffic::{
    LinkLayer, QueueLimits, QueueStats, SchedulerKind, UnknownName, Usage, UNLIMITED,
};
pub use v1model::{prefetch_all, FrameBuffer, Nanos, Packet};
