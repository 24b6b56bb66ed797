// SPDX-License-Identifier: Apache-2.0
//! The links and switches of a topology in one thread: frames between the interfaces of hosts, through all that is between.
//!
//! ```text
//!  control socket ──► request ──► Network (links, switches, frames; virtual time, no I/O)
//!                                  ▲ offer            │ departures
//!               packet rings ── interface        interface ── sendmmsg
//! ```
//!
//! - [`config`]: `links.json`, with settings as the control socket has them; [`traces`]: the files of traces.
//! - [`network`]: all links and switches, and the frames on their way; [`lateness`]: how late they left, and timers in
//!   time.
//! - [`capture`]: links whose frames go into files.
//! - [`request`]: what the control socket understands; [`control`]: the socket itself.
//! - [`setup`]: from the configuration to [`run`], the loop.

pub mod capture;
pub mod config;
pub mod lateness;
pub mod network;
pub mod request;
pub mod run;
pub mod setup;
