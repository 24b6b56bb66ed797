// SPDX-License-Identifier: Apache-2.0
//! One direction of an emulated link, in virtual time: no I/O, the clock is an argument, chance is seeded.
//!
//! ```text
//!  transmit ──► queue ──► line (rate) ──► medium (loss, bit errors, outage) ──► propagation (delay, jitter, spike) ──► poll
//!               finite    one frame       a lost frame has used the line        order kept, unless `reorder`
//! ```
//!
//! - [`LinkOptions`]: what can be set, with units and ranges; changeable while frames are on their way.
//! - [`Link`]: a direction with the frames that are on it.
//! - [`LinkStreams`]: its chance; each impairment draws from a sub-stream of its own, so that a change of one
//!   setting leaves the fate that all others deal to the k-th frame as it was.
//! - [`LossModel`], [`BitErrors`]: the impairments; [`crate::line::Line`] is the line. Gilbert–Elliott bursts become a
//!   variant of `LossModel`, a delivery trace (Mahimahi) takes the place of the line; a hand-over is a [`Link::set`]
//!   at an instant.

mod bit_errors;
mod direction;
mod jitter;
mod loss;
mod options;
mod stats;
mod streams;

pub use bit_errors::{BitErrors, UNTOUCHED_BYTES};
pub use direction::{Exit, Link, Refused};
pub use jitter::JitterDistribution;
pub use loss::LossModel;
pub use options::{LinkOptionError, LinkOptions};
pub use stats::{DropReason, LinkStats};
pub use streams::LinkStreams;

use crate::line::Nanos;
