// SPDX-License-Identifier: Apache-2.0
//! How much earlier than needed to ask for a wake-up: the machine's own wake-up latency, learnt while running.
//!
//! An idle virtual CPU takes some 50 µs to come back from a timer. The loop asks for its wake-up that much early
//! and polls for the rest, so that it is in time and yet seldom awake for nothing. Polling has a budget: a
//! real-time thread that never sleeps would starve others, and be stopped for 50 ms of each second by the kernel.

use traffic::Nanos;

/// One step of the estimate.
const STEP: Nanos = 250;
/// A latency above the estimate moves it this many steps up, one below a single step down: the estimate settles
/// where one in four is above, the 75th percentile. A higher one would poll longer for nothing.
const STEPS_UP: Nanos = 3;

/// An estimate of the 75th percentile of the wake-up latency.
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

/// Share of the time that may go into polling: one part in this many.
const BUDGET_SHARE: Nanos = 4;
/// Budget that can be saved up.
const BUDGET_MAX: i64 = 5_000_000;

/// Time that may still go into polling instead of sleeping.
#[derive(Debug, Clone)]
pub struct SpinBudget {
    /// Nanoseconds; negative is a debt that has to be earned first.
    left: i64,
    last: Nanos,
}

impl SpinBudget {
    /// A full budget.
    pub fn new(now: Nanos) -> Self {
        Self {
            left: BUDGET_MAX,
            last: now,
        }
    }

    /// Whether there is budget left at `now`.
    pub fn allows(&mut self, now: Nanos) -> bool {
        let earned = now.saturating_sub(self.last) / BUDGET_SHARE;
        if earned > 0 {
            self.left = self.left.saturating_add_unsigned(earned).min(BUDGET_MAX);
            self.last = now;
        }
        self.left > 0
    }

    /// Polling has taken this long.
    pub fn spend(&mut self, duration: Nanos) {
        self.left = self.left.saturating_sub_unsigned(duration);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_estimate_settles_at_the_third_quartile() {
        let mut latency = WakeupLatency::new(100_000);
        let mut sum = 0;
        for k in 0..20_000u64 {
            // 5, 15, …, 95 µs, mixed: three quarters are below 80.
            latency.learn(1_000_000, 1_000_000 + 10_000 * (1 + k * 7 % 10) - 5_000);
            if k >= 10_000 {
                sum += latency.lead();
            }
        }
        let mean = sum / 10_000;
        assert!((65_000..=85_000).contains(&mean), "{mean}");
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

    #[test]
    fn polling_takes_a_quarter_of_the_time_at_most() {
        let mut budget = SpinBudget::new(0);
        let (mut now, mut looked) = (0u64, 0u64);
        while now < 10_000_000_000 {
            if budget.allows(now) {
                budget.spend(1_000);
                looked += 1_000;
            }
            now += 1_000;
        }
        assert!(looked <= 2_500_000_000 + 6_000_000, "{looked}");
        assert!(looked >= 2_400_000_000, "{looked}");
    }

    #[test]
    fn a_budget_saved_up_is_bounded() {
        let mut budget = SpinBudget::new(0);
        assert!(budget.allows(1 << 50));
        budget.spend(BUDGET_MAX as u64);
        assert!(!budget.allows(1 << 50));
    }
}
