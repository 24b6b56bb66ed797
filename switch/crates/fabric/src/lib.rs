// SPDX-License-Identifier: Apache-2.0
//! Switches and links with the frames on them, and the calendar of all that acts: no I/O, the clock is an argument.
//! `netsim` drives it in virtual time, `wire` by the wall clock.
//!
//! - [`Fabric`]: the links' directions, the frames, the calendar.
//! - [`Switch`]: a device, and where its ports lead.
//! - [`Frames`]: buffers of frames for reuse.

#![forbid(unsafe_code)]

mod fabric;
mod switch;

pub use fabric::{Actor, Fabric, FrameId, Frames, Passage, See, Sink, Tap, Wire};
pub use switch::{Outlet, Switch};
