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

mod dama;
mod direction;
mod files;
mod impairments;
mod medium;
mod options;
mod segments;
mod series;
mod service;
mod settings;
mod streams;
mod trace;

pub use direction::{Exit, Link, Refused};
pub use impairments::{
    BitErrors, ErrorsIn, GilbertElliott, JitterDistribution, LossModel, UNTOUCHED_BYTES,
};
pub use options::{LinkOptions, SpikeBlocks, VARYING};
pub use series::{Playing, Rate, Seeds, Series};
pub use service::Service;
pub use settings::{keys, number_of, schema, LinkOptionError, LinkSettings, Range, Unit};
pub use streams::LinkStreams;
pub use trace::{Trace, TraceError, OPPORTUNITIES_MAX, OPPORTUNITY_BYTES};

use crate::line::Nanos;

/// Why the link did not deliver a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DropReason {
    /// The queue before the line was full.
    QueueFull,
    /// Lost by chance.
    Loss,
    /// The last bit entered the medium during an outage.
    Outage,
}

/// Counts since the link was made, as they are shown by name. `offered = delivered + all drops + frames still on the link`, always.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
#[repr(C)]
pub struct LinkStats {
    pub offered_packets: u64,
    pub offered_bytes: u64,
    /// Copies, offered like all others.
    pub duplicated_packets: u64,
    pub delivered_packets: u64,
    pub delivered_bytes: u64,
    pub dropped_queue_full: u64,
    pub dropped_loss: u64,
    pub dropped_outage: u64,
    /// Frames delivered with at least one flipped bit, and the bits flipped in them.
    pub corrupted_packets: u64,
    pub flipped_bits: u64,
    /// Frames offered that met the bad state of the Gilbert–Elliott chain, whatever became of them.
    pub bad_state_packets: u64,
}

impl LinkStats {
    fn count_drop(&mut self, reason: DropReason) {
        match reason {
            DropReason::QueueFull => self.dropped_queue_full += 1,
            DropReason::Loss => self.dropped_loss += 1,
            DropReason::Outage => self.dropped_outage += 1,
        }
    }

    pub fn dropped_packets(&self) -> u64 {
        self.dropped_queue_full + self.dropped_loss + self.dropped_outage
    }
}
