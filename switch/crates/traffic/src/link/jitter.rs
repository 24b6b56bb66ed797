// SPDX-License-Identifier: Apache-2.0
//! Random deviation of the propagation delay.

use super::streams::{unit, unit_above_zero, Stream};
use super::Nanos;
use crate::names::named;
use std::f64::consts::TAU;

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
