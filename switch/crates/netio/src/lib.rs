// SPDX-License-Identifier: Apache-2.0
//! Real time: packet sockets, and what a loop that drives switches and links needs of the kernel.
//!
//! - [`clock`]: `CLOCK_MONOTONIC`, and the kernel's packet stamps on it.
//! - [`poll`]: waiting for descriptors or an instant; an event descriptor to end the wait from elsewhere.
//! - [`socket`]: packet sockets on interfaces.
//! - [`link_watch`]: the kernel's notifications that an interface came, went or changed (rtnetlink).
//! - [`own_socket`]: a unix-domain socket that only its owner may connect to, JSON line by line.
//! - [`panics`]: what a binary does at a panic.
//! - [`moderation`]: pausing where frames come densely.
//! - [`rest`]: short rests of a real-time thread, instead of long ones by the kernel.
//! - [`tx_batch`]: frames gathered for one system call.

pub mod clock;
mod ethernet;
mod link_state;
pub mod link_watch;
pub mod moderation;
pub mod open_files;
pub mod own_socket;
pub mod panics;
pub mod poll;
mod port_io;
pub mod rest;
mod send_thread;
pub mod socket;
pub mod thread;
pub mod tx_batch;
pub mod wake;

pub use ethernet::{ethernet, Ethernet};
pub use link_state::{link_flags, set_link_up, LinkFlags};
pub use port_io::{Change, PortBinding, PortIo};
