// SPDX-License-Identifier: Apache-2.0
//! One direction of an emulated link, in virtual time: no I/O, the clock is an argument, chance is seeded.
//!
//! ```text
//!  transmit ──► queue ──► line (rate, trace) ──► medium (loss, bit errors, bursts, outage) ──► propagation (delay, jitter, spike) ──► poll
//!               finite    one frame, spike       a lost frame has used the line                order kept, unless `reorder`
//! ```
//!
//! - [`LinkOptions`]: what can be set; changeable while frames are on their way. [`LinkSettings`]: some of them, read from JSON.
//! - [`Link`]: a direction with the frames that are on it.
//! - [`LinkStreams`]: its chance; each impairment draws from a sub-stream of its own, so that a change of one
//!   setting leaves the fate that all others deal to the k-th frame as it was.
//! - [`LossModel`], [`BitErrors`]: the impairments, each with one rate in the good state of [`GilbertElliott`] and one in
//!   its bad state.
//! - [`crate::line::Line`] is the line of a rate; a delivery [`Trace`] (Mahimahi) takes its place.
//! - A delay, jitter, rate or loss is a number or a [`Series`], a function of time.
//! - A hand-over is a [`Link::set`] at an instant.

mod bit_errors;
mod dama;
mod direction;
mod files;
mod gilbert;
mod jitter;
mod loss;
mod options;
mod segments;
mod series;
mod service;
mod settings;
mod stats;
mod streams;
mod trace;

pub use bit_errors::{BitErrors, ErrorsIn, UNTOUCHED_BYTES};
pub use direction::{Exit, Link, Refused};
pub use gilbert::GilbertElliott;
pub use jitter::JitterDistribution;
pub use loss::LossModel;
pub use options::{LinkOptions, SpikeBlocks, VARYING};
pub use series::{Playing, Rate, Seeds, Series};
pub use service::Service;
pub use settings::{keys, number_of, schema, LinkOptionError, LinkSettings, Range, Unit};
pub use stats::{DropReason, LinkStats};
pub use streams::LinkStreams;
pub use trace::{Trace, TraceError, OPPORTUNITIES_MAX, OPPORTUNITY_BYTES};

use crate::line::Nanos;
