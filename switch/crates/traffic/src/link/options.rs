// SPDX-License-Identifier: Apache-2.0
//! What can be set on a direction of a link, with ranges.

use super::{ErrorsIn, JitterDistribution, Nanos, Series};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// What a delay spike blocks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SpikeBlocks {
    /// What is due, behind the line: at the end all of it comes at once.
    #[default]
    Delivery,
    /// The line: nothing starts on it, frames wait in its queue, and leave at the line's rate at the end.
    Line,
}

/// Settings of one direction, in the unit that a name ends in. What each is, and its range: [`super::schema`].
/// The default is a perfect line: no delay, no rate limit, no loss; in the bad state of a burst all is lost, as in
/// tc-netem's gemodel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[repr(C)] // the delay in front
pub struct LinkOptions {
    pub delay_ns: Nanos,
    pub jitter_ns: Nanos,
    pub jitter_distribution: JitterDistribution,
    pub reorder: bool,
    pub rate_bps: u64,
    pub loss: f64,
    pub ber: f64,
    pub errors_in: ErrorsIn,
    pub spare_retransmissions: bool,
    pub queue_packets: usize,
    pub ge_enter: f64,
    pub ge_leave: f64,
    pub ge_loss: f64,
    pub ge_ber: f64,
    pub ge_good_ns: Nanos,
    pub ge_bad_ns: Nanos,
    pub duplicate: f64,
    pub dama_frame_ns: Nanos,
    pub dama_delay_ns: Nanos,
    pub dama_cra_bps: u64,
    /// Those of [`VARYING`] that are functions of time. Beside it `delay_ns` is the least and `jitter_ns` the largest, `rate_bps`
    /// and `loss` are the means.
    #[serde(skip)]
    pub series: [Option<Arc<Series>>; 4],
}

/// The settings that may be functions of time.
pub const VARYING: [&str; 4] = ["delay", "jitter", "rate_bps", "loss"];
pub(super) const RATE_BPS: usize = 2;
pub(super) const LOSS: usize = 3;

impl Default for LinkOptions {
    fn default() -> Self {
        Self {
            delay_ns: 0,
            jitter_ns: 0,
            jitter_distribution: JitterDistribution::Uniform,
            reorder: false,
            rate_bps: 0,
            loss: 0.0,
            ber: 0.0,
            errors_in: ErrorsIn::Frame,
            spare_retransmissions: false,
            queue_packets: 1000,
            ge_enter: 0.0,
            ge_leave: 1.0,
            ge_loss: 1.0,
            ge_ber: 0.0,
            ge_good_ns: 0,
            ge_bad_ns: 0,
            duplicate: 0.0,
            dama_frame_ns: 0,
            dama_delay_ns: 0,
            dama_cra_bps: 0,
            series: [const { None }; 4],
        }
    }
}

impl LinkOptions {
    /// The least delay that a frame can meet.
    pub fn delay_min_ns(&self) -> Nanos {
        match self.jitter_distribution {
            _ if self.jitter_ns == 0 => self.delay_ns,
            JitterDistribution::Uniform => self.delay_ns.saturating_sub(self.jitter_ns),
            JitterDistribution::Normal => 0,
        }
    }
}
