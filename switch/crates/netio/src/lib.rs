// SPDX-License-Identifier: Apache-2.0
//! Real time: packet sockets, and what a loop that drives switches and links needs of the kernel.
//!
//! - [`clock`]: `CLOCK_MONOTONIC`, and the kernel's packet stamps on it.
//! - [`poll`]: waiting for descriptors or an instant; an event descriptor to end the wait from elsewhere.
//! - [`socket`]: packet sockets on interfaces.
//! - [`interface`]: what is known of an interface by name, and the notifications that one changed (rtnetlink).
//! - [`own_socket`]: a unix-domain socket that only its owner may connect to, JSON line by line.
//! - [`process`]: open files, and what a binary does at a panic.
//! - [`thread`]: scheduling of the packet thread, its short rests, and its pauses where frames come densely.
//! - [`tx_batch`]: frames gathered for one system call.

pub mod clock;
mod ethernet;
pub mod interface;
pub mod own_socket;
pub mod poll;
mod port_io;
pub mod process;
mod send_thread;
pub mod socket;
pub mod thread;
pub mod tx_batch;

pub use ethernet::{ethernet, Ethernet};
pub use interface::{link_flags, set_link_up, LinkFlags};
pub use port_io::{Change, PortBinding, PortIo};
