// SPDX-License-Identifier: Apache-2.0
//! How much earlier than needed to ask for a wake-up: the machine's own wake-up latency, learnt while running.
//!
//! An idle virtual CPU takes some 50 µs to come back from a timer. The loop asks for its wake-up that much early
//! and looks for the rest, so that it is in time and yet seldom awake for nothing.

use traffic::Nanos;

/// One step of the estimate.
const STEP: Nanos = 250;
/// A latency above the estimate moves it this many steps up, one below a single step down: the estimate settles
/// where one in ten is above, the 90th percentile.
const STEPS_UP: Nanos = 9;

/// An estimate of the 90th percentile of the wake-up latency.
#[derive(Debug, Clone)]
pub struct WakeupLatency {
    estimate: Nanos,
    max: Nanos,
}

impl WakeupLatency {
    /// An estimate that never exceeds `max`; 0 switches it off.
    pub fn new(max: Nanos) -> Self {
        Self {
            estimate: max / 2,
            max,
        }
    }

    /// How much earlier to ask.
    pub fn lead(&self) -> Nanos {
        self.estimate
    }

    /// Learns that a wake-up asked for `asked` came at `came`.
    pub fn learn(&mut self, asked: Nanos, came: Nanos) {
        self.estimate = if came.saturating_sub(asked) > self.estimate {
            (self.estimate + STEPS_UP * STEP).min(self.max)
        } else {
            self.estimate.saturating_sub(STEP)
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_estimate_settles_at_the_ninetieth_percentile() {
        let mut latency = WakeupLatency::new(100_000);
        let mut sum = 0;
        for k in 0..20_000u64 {
            // 10, 20, …, 100 µs, mixed; the 90th percentile lies between 90 and 100.
            latency.learn(1_000_000, 1_000_000 + 10_000 * (1 + k * 7 % 10) - 5_000);
            if k >= 10_000 {
                sum += latency.lead();
            }
        }
        let mean = sum / 10_000;
        assert!((80_000..=96_000).contains(&mean), "{mean}");
    }

    #[test]
    fn the_estimate_stays_in_its_bounds() {
        let mut latency = WakeupLatency::new(20_000);
        for _ in 0..1000 {
            latency.learn(0, 1_000_000);
        }
        assert_eq!(latency.lead(), 20_000);
        for _ in 0..1000 {
            latency.learn(5, 5);
        }
        assert_eq!(latency.lead(), 0);
        assert_eq!(WakeupLatency::new(0).lead(), 0);
    }
}
