// SPDX-License-Identifier: Apache-2.0
//! What chance does to a frame on a link: bit errors, loss, bursts of both, jitter.

use super::streams::{unit, unit_above_zero, Stream};
use super::{LinkOptions, LinkStreams, Nanos};
use crate::names::named;
use std::f64::consts::TAU;
use std::ops::Range;

/// The Ethernet header is never touched. Everything behind it may be ([`ErrorsIn::Frame`]): IP and transport headers as
/// well as payload. A real receiver's NIC would drop the frame by its FCS; here it is delivered, so that the checksums
/// of IP, TCP and UDP have to find the error, as on links that hand damaged packets on.
pub const UNTOUCHED_BYTES: usize = 14;

named! {
    /// Which bits of a frame may be flipped.
    pub enum ErrorsIn ("errors_in") {
        /// All behind the Ethernet header.
        #[default]
        Frame = "frame",
        /// Those behind a TCP or UDP header: whose packet it is can still be told. All else arrives whole, pure ACKs too.
        Payload = "payload",
    }
}

/// An error process with a fixed bit error rate, bits independent of each other, at a cost that does not grow with a frame's length:
/// draws the distance to the next error (geometric), which runs on over the borders of frames.
#[derive(Debug, Clone, PartialEq)]
pub struct BitErrors {
    ber: f64,
    /// 1 / ln(1 - ber); meaningless while ber is 0.
    inverse_log: f64,
    /// Good bits before the next error.
    gap_bits: u64,
}

impl BitErrors {
    /// No errors.
    pub fn none() -> Self {
        Self {
            ber: 0.0,
            inverse_log: 0.0,
            gap_bits: u64::MAX,
        }
    }

    pub fn ber(&self) -> f64 {
        self.ber
    }

    /// Changes the rate; draws anew (the process has no memory), unless the rate is as before.
    pub(super) fn set(&mut self, ber: f64, stream: &mut Stream) {
        if ber == self.ber {
            return;
        }
        self.ber = ber;
        if ber == 0.0 {
            self.gap_bits = u64::MAX;
        } else {
            self.inverse_log = 1.0 / libm::log1p(-ber);
            self.gap_bits = self.draw_gap(stream);
        }
    }

    /// P(gap >= k) = (1 - ber)^k.
    fn draw_gap(&self, stream: &mut Stream) -> u64 {
        (libm::log(unit_above_zero(stream.draw())) * self.inverse_log) as u64
    }

    /// Flips bits in `exposed` of `frame`; returns how many. Not `in_force`: passes over the frame and leaves it whole, so
    /// that what happens to later frames does not depend on that.
    pub(super) fn apply(
        &mut self,
        frame: &mut [u8],
        exposed: Range<usize>,
        in_force: bool,
        stream: &mut Stream,
    ) -> u32 {
        if self.ber == 0.0 {
            return 0;
        }
        let bits = exposed.len() as u64 * 8;
        let mut flips = 0;
        while self.gap_bits < bits {
            if in_force {
                let at = exposed.start + (self.gap_bits / 8) as usize;
                frame[at] ^= 0x80 >> (self.gap_bits % 8);
                flips += 1;
            }
            let gap = self.draw_gap(stream);
            self.gap_bits = self.gap_bits.saturating_add(1).saturating_add(gap);
        }
        self.gap_bits -= bits;
        flips
    }
}

/// Which frames are lost: each on its own, whatever its length, with the probability of the state that it meets. One draw for each frame offered, also
/// while the probability is 0: so the k-th frame meets the same draw in every run of a seed, and a larger probability
/// loses a superset.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct LossModel {
    /// In the good state, and where there is no other.
    pub good: f64,
    pub bad: f64,
}

impl LossModel {
    /// Whether the next frame is lost.
    #[inline]
    pub(super) fn is_lost(self, bad: bool, stream: &mut Stream) -> bool {
        let probability = if bad { self.bad } else { self.good };
        if probability == 0.0 {
            stream.skip(1);
            return false;
        }
        unit(stream.draw()) < probability
    }
}

/// Gilbert–Elliott: a chain of two states, good and bad, that every frame moves by one step (Elliott 1963), or that moves in time.
///
/// Moved by frames, a frame first moves it, then meets the state that it is in. Mean stay in the bad state: 1/leave
/// frames; share of the frames that meet it: enter / (enter + leave). It makes one draw for each frame offered, also while it
/// is off (enter 0), so that the k-th frame meets the same draw in every run of a seed.
///
/// Moved by time, stays are exponential, drawn from a stream of their own: bursts come at the same instants whatever is sent.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct GilbertElliott {
    enter: f64,
    leave: f64,
    bad: bool,
    /// Mean stays in the good state and in the bad one; 0: it does not move in time.
    means: [Nanos; 2],
    /// The end of this stay.
    until: Nanos,
}

impl GilbertElliott {
    /// New settings from `now` on; the state stays, unless there is no bad one any more.
    pub(super) fn set(&mut self, now: Nanos, options: &LinkOptions, streams: &mut LinkStreams) {
        (self.enter, self.leave) = (options.ge_enter, options.ge_leave);
        let means = [options.ge_good_ns, options.ge_bad_ns];
        self.bad &= self.enter > 0.0 || means[0] > 0;
        if self.means != means {
            self.means = means;
            // The rest of an exponential stay is one.
            self.until = now;
            self.stay(&mut streams.stays);
        }
    }

    /// In time it begins at `now`, in the good state.
    pub(super) fn begin(&mut self, now: Nanos, streams: &mut LinkStreams) {
        if self.means[0] > 0 {
            (self.bad, self.until) = (false, now);
            self.stay(&mut streams.stays);
        }
    }

    fn stay(&mut self, stream: &mut Stream) {
        let mean = self.means[usize::from(self.bad)];
        if mean > 0 {
            let stay = -unit_above_zero(stream.draw()).ln() * mean as f64;
            self.until = self.until.saturating_add(stay.round() as Nanos);
        }
    }

    /// A frame comes at `now`: moves the chain; whether the frame meets the bad state.
    #[inline]
    pub(super) fn step(&mut self, now: Nanos, streams: &mut LinkStreams) -> bool {
        if self.enter == 0.0 {
            streams.bursts.skip(1);
            return self.means[0] > 0 && self.at(now, &mut streams.stays);
        }
        let u = unit(streams.bursts.draw());
        if self.bad {
            self.bad = u >= self.leave;
        } else {
            self.bad = u < self.enter;
        }
        self.bad
    }

    fn at(&mut self, now: Nanos, stream: &mut Stream) -> bool {
        while self.until <= now {
            self.bad = !self.bad;
            self.stay(stream);
        }
        self.bad
    }
}

named! {
    /// How the delay deviates from its mean.
    pub enum JitterDistribution ("jitter_distribution") {
        /// Evenly within ± `jitter_ns`.
        #[default]
        Uniform = "uniform",
        /// Normal with standard deviation `jitter_ns`; a negative delay becomes 0.
        Normal = "normal",
    }
}

/// The draws of one frame: always two, whatever the distribution, made when the frame is offered.
#[derive(Debug, Clone, Copy)]
pub(super) struct JitterDraw([u64; 2]);

impl JitterDraw {
    pub(super) fn next(stream: &mut Stream) -> Self {
        Self([stream.draw(), stream.draw()])
    }

    /// The same for a frame whose delay is the mean.
    #[inline]
    pub(super) fn none(stream: &mut Stream) -> Self {
        stream.skip(2);
        Self([0; 2])
    }

    /// The frame's delay with this mean and this jitter.
    #[inline]
    pub(super) fn delay_ns(
        self,
        [delay, jitter]: [Nanos; 2],
        distribution: JitterDistribution,
    ) -> Nanos {
        match jitter {
            0 => delay,
            _ => self.jittered_ns([delay, jitter], distribution),
        }
    }

    fn jittered_ns(self, [delay, jitter]: [Nanos; 2], distribution: JitterDistribution) -> Nanos {
        let [first, second] = self.0;
        let deviation = match distribution {
            JitterDistribution::Uniform => 2.0 * unit(first) - 1.0,
            // Box–Muller: a fixed number of draws, unlike the ziggurat.
            JitterDistribution::Normal => {
                libm::sqrt(-2.0 * libm::log(unit_above_zero(first))) * libm::cos(TAU * unit(second))
            }
        };
        let delay = delay as f64 + deviation * jitter as f64;
        libm::round(delay) as Nanos // a negative number becomes 0
    }
}
