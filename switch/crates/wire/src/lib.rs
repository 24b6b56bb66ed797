// SPDX-License-Identifier: Apache-2.0
//! The link emulator: frames between the interface pairs of all emulated links of a topology, in one thread.
//!
//! ```text
//!  control socket ──► request ──► Emulator (links, frame pool; virtual time, no I/O)
//!                                  ▲ offer            │ collect
//!               packet rings ── port                 port ── sendmmsg
//! ```
//!
//! - [`config`]: `links.json`, with settings as the control socket has them; [`traces`]: the files of traces.
//! - [`emulator`]: all links and the frames on them; [`pool`] where these lie; [`lateness`] how late they left.
//! - [`request`]: what the control socket understands; [`control`]: the socket itself.
//! - [`port`]: an interface that may go and come back; [`run`]: the loop; [`realtime`]: scheduling; [`wakeup`]: timers in time.

pub mod config;
pub mod control;
pub mod emulator;
pub mod lateness;
pub mod pool;
pub mod port;
pub mod realtime;
pub mod request;
pub mod run;
pub mod traces;
pub mod wakeup;
