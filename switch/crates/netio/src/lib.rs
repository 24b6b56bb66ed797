// SPDX-License-Identifier: Apache-2.0
//! Real time: packet sockets and the loop that drives a device.
//!
//! - [`clock`]: `CLOCK_MONOTONIC`, and the kernel's packet stamps on it.
//! - [`poll`]: waiting for descriptors or an instant.
//! - [`socket`]: packet sockets on interfaces.

pub mod clock;
pub mod poll;
pub mod socket;
