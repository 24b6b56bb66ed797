// SPDX-License-Identifier: Apache-2.0
//! What can be set on a direction of a link, with ranges.

use super::{ErrorsIn, JitterDistribution, Nanos, Trace};
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

/// Settings of one direction. The default is a perfect line: no delay, no rate limit, no loss.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LinkOptions {
    /// Propagation delay.
    pub delay_ns: Nanos,
    /// Half width (uniform) or standard deviation (normal) of the delay around `delay_ns`; not above `delay_ns`.
    pub jitter_ns: Nanos,
    pub jitter_distribution: JitterDistribution,
    /// Lets a frame with a small delay overtake; otherwise it waits for the one before it.
    pub reorder: bool,
    /// Rate of the line in bit/s of Ethernet frame (no preamble, no FCS); 0 is unlimited.
    pub rate_bps: u64,
    /// Probability that a frame is lost.
    pub loss: f64,
    /// Probability that a bit of those that `errors_in` names is flipped.
    pub ber: f64,
    /// Where `ber` and `ge_ber` hold.
    pub errors_in: ErrorsIn,
    /// Data that a TCP flow sends again on this link is not hit.
    pub spare_retransmissions: bool,
    /// Frames that may wait for the line, the one on it not counted. With neither rate nor trace they wait
    /// only while a spike blocks the line.
    pub queue_packets: usize,
    /// Gilbert–Elliott: probabilities per frame of entering and of leaving the bad state; 0: there is none. `loss` and
    /// `ber` hold in the good state, `ge_loss` and `ge_ber` in the bad one. Defaults as tc-netem's gemodel: all is lost in it.
    pub ge_enter: f64,
    pub ge_leave: f64,
    pub ge_loss: f64,
    pub ge_ber: f64,
    /// Takes the place of the rate, which must be 0 then.
    #[serde(skip)]
    pub trace: Option<Arc<Trace>>,
}

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
            trace: None,
        }
    }
}

impl LinkOptions {
    /// The least delay that a frame can meet.
    pub(super) fn delay_min_ns(&self) -> Nanos {
        match self.jitter_distribution {
            _ if self.jitter_ns == 0 => self.delay_ns,
            JitterDistribution::Uniform => self.delay_ns.saturating_sub(self.jitter_ns),
            JitterDistribution::Normal => 0,
        }
    }
}
