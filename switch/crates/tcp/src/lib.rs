// SPDX-License-Identifier: Apache-2.0
//! A TCP endpoint without I/O and clock: segments in, segments out, `now` is an argument.
//!
//! ```text
//!  bytes ◄─► segment ◄─► Connection ─┬─ handshake, states (RFC 9293)
//!                                    ├─ sender: Linux's states, a scoreboard of packets ── cc ── hosts/cc/*.h
//!                                    └─ receiver: reassembly, ACK policy, window
//! ```
//!
//! - [`segment`]: headers with options and checksums; payloads are zeros, only their length is kept.
//! - [`config`]: the options of an endpoint; [`clock`]: its host's ticks; [`stats`]: what it counts and shows.
//! - [`cc`]: congestion control through the C headers that the BPF programs include, in the shape of `tcp_congestion_ops`.
//! - [`connection`]: the endpoint, over [`sender`] and [`receiver`].

pub mod cc;
pub mod clock;
pub mod config;
pub mod connection;
pub mod receiver;
pub mod segment;
pub mod sender;
pub mod seq;
pub mod stats;

pub use config::{Backoff, ConfigError, Naming, Recovery, RtoRule, SackLimit, TcpConfig};
pub use connection::{reset_for, Connection, State};
pub use segment::options::{Options, SackBlocks};
pub use segment::{Damaged, Flags, ParseError, Segment};
pub use stats::{SenderView, Stats};

/// Nanoseconds of virtual time.
pub type Nanos = u64;
