// SPDX-License-Identifier: Apache-2.0
//! What can be set on a direction of a link, with ranges.

use super::{ErrorsIn, JitterDistribution, Nanos, Trace};
use serde::Deserialize;
use std::ops::RangeInclusive;
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
#[derive(Debug, Clone, PartialEq)]
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

/// A setting that is out of its range. `key` is the field's name.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{key}: {value} is out of range; allowed: {allowed}")]
pub struct LinkOptionError {
    pub key: &'static str,
    pub value: String,
    pub allowed: String,
}

fn check<T: PartialOrd + ToString>(
    key: &'static str,
    value: T,
    range: &RangeInclusive<T>,
    unit: &str,
) -> Result<(), LinkOptionError> {
    if range.contains(&value) {
        return Ok(());
    }
    Err(LinkOptionError {
        key,
        value: value.to_string(),
        allowed: format!(
            "{} to {}{unit}",
            range.start().to_string(),
            range.end().to_string()
        ),
    })
}

impl LinkOptions {
    pub const DELAY_NS: RangeInclusive<Nanos> = 0..=60_000_000_000;
    /// Besides 0, unlimited.
    pub const RATE_BPS: RangeInclusive<u64> = 1_000..=400_000_000_000;
    pub const LOSS: RangeInclusive<f64> = 0.0..=1.0;
    pub const BER: RangeInclusive<f64> = 0.0..=1.0;
    pub const QUEUE_PACKETS: RangeInclusive<usize> = 1..=1_000_000;
    pub const PROBABILITY: RangeInclusive<f64> = 0.0..=1.0;
    /// A stay of a million frames on average is the longest: from 0 there is no way back.
    pub const GE_LEAVE: RangeInclusive<f64> = 1e-6..=1.0;

    /// Checks all ranges, and that the jitter does not exceed the delay.
    ///
    /// # Errors
    /// The first setting that is out of range (NaN is out of every range).
    pub fn check(&self) -> Result<(), LinkOptionError> {
        check("delay_ns", self.delay_ns, &Self::DELAY_NS, " ns")?;
        check(
            "jitter_ns",
            self.jitter_ns,
            &(0..=self.delay_ns),
            " ns (the delay)",
        )?;
        if self.rate_bps != 0 {
            check(
                "rate_bps",
                self.rate_bps,
                &Self::RATE_BPS,
                " bit/s, or 0 for unlimited",
            )?;
        }
        check("loss", self.loss, &Self::LOSS, "")?;
        check("ber", self.ber, &Self::BER, "")?;
        check(
            "queue_packets",
            self.queue_packets,
            &Self::QUEUE_PACKETS,
            " packets",
        )?;
        check("ge_enter", self.ge_enter, &Self::PROBABILITY, "")?;
        check("ge_leave", self.ge_leave, &Self::GE_LEAVE, "")?;
        check("ge_loss", self.ge_loss, &Self::PROBABILITY, "")?;
        check("ge_ber", self.ge_ber, &Self::BER, "")?;
        match &self.trace {
            Some(trace) if self.rate_bps != 0 => Err(LinkOptionError {
                key: "trace",
                value: trace.source().to_owned(),
                allowed: format!(
                    "with rate_bps 0 only (it is {}): the trace is the rate",
                    self.rate_bps
                ),
            }),
            _ => Ok(()),
        }
    }

    /// The least delay that a frame can meet.
    pub(super) fn delay_min_ns(&self) -> Nanos {
        match self.jitter_distribution {
            _ if self.jitter_ns == 0 => self.delay_ns,
            JitterDistribution::Uniform => self.delay_ns.saturating_sub(self.jitter_ns),
            JitterDistribution::Normal => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_range_is_checked_and_told() {
        let bad = |change: fn(&mut LinkOptions)| {
            let mut options = LinkOptions::default();
            change(&mut options);
            options.check().unwrap_err().to_string()
        };
        assert_eq!(
            bad(|o| o.delay_ns = 60_000_000_001),
            "delay_ns: 60000000001 is out of range; allowed: 0 to 60000000000 ns"
        );
        assert_eq!(
            bad(|o| o.jitter_ns = 1),
            "jitter_ns: 1 is out of range; allowed: 0 to 0 ns (the delay)"
        );
        assert_eq!(
            bad(|o| o.rate_bps = 999),
            "rate_bps: 999 is out of range; allowed: 1000 to 400000000000 bit/s, or 0 for unlimited"
        );
        assert_eq!(
            bad(|o| o.loss = 1.5),
            "loss: 1.5 is out of range; allowed: 0 to 1"
        );
        assert_eq!(
            bad(|o| o.loss = f64::NAN),
            "loss: NaN is out of range; allowed: 0 to 1"
        );
        assert_eq!(
            bad(|o| o.ber = -0.1),
            "ber: -0.1 is out of range; allowed: 0 to 1"
        );
        assert_eq!(
            bad(|o| o.ge_enter = 2.0),
            "ge_enter: 2 is out of range; allowed: 0 to 1"
        );
        assert_eq!(
            bad(|o| o.ge_leave = 0.0),
            "ge_leave: 0 is out of range; allowed: 0.000001 to 1"
        );
        assert_eq!(
            bad(|o| {
                o.rate_bps = 2_000_000;
                o.trace = Some(Arc::new(Trace::new("lte.trace", vec![1]).unwrap()));
            }),
            "trace: lte.trace is out of range; allowed: with rate_bps 0 only (it is 2000000): the trace is the rate"
        );
        assert_eq!(
            bad(|o| o.queue_packets = 0),
            "queue_packets: 0 is out of range; allowed: 1 to 1000000 packets"
        );
    }
}
