// SPDX-License-Identifier: Apache-2.0
//! How late frames leave after they are due, and how much earlier than needed to ask for a wake-up: the machine's own wake-up
//! latency, learnt while running.
//!
//! An idle virtual CPU takes some 50 µs to come back from a timer. The loop asks for its wake-up that much early
//! and polls for the rest, so that it is in time and yet seldom awake for nothing. Polling has a budget: a
//! real-time thread that never sleeps would starve others, and be stopped for 50 ms of each second by the kernel.

use traffic::Nanos;

/// Buckets for each doubling.
const STEPS: usize = 8;
const STEP_BITS: u32 = STEPS.trailing_zeros();

/// A histogram of durations of fixed size, 12 % wide at every scale.
#[derive(Debug, Clone)]
pub struct Lateness {
    counts: Vec<u64>,
    total: u64,
    max: Nanos,
}

impl Default for Lateness {
    fn default() -> Self {
        Self {
            counts: vec![0; 64 * STEPS],
            total: 0,
            max: 0,
        }
    }
}

/// Below STEPS each number has its own bucket; above, the leading bits choose.
fn bucket(ns: Nanos) -> usize {
    if ns < STEPS as u64 {
        return ns as usize;
    }
    let exponent = 63 - ns.leading_zeros();
    let step = (ns >> (exponent - STEP_BITS)) as usize & (STEPS - 1);
    (exponent - STEP_BITS + 1) as usize * STEPS + step
}

/// The largest duration of a bucket.
fn upper(bucket: usize) -> Nanos {
    if bucket < STEPS {
        return bucket as Nanos;
    }
    let shift = bucket / STEPS - 1;
    let base = (STEPS + bucket % STEPS) as u128;
    (((base + 1) << shift) - 1) as Nanos
}

impl Lateness {
    pub fn add(&mut self, ns: Nanos) {
        self.counts[bucket(ns)] += 1;
        self.total += 1;
        self.max = self.max.max(ns);
    }

    pub fn max(&self) -> Nanos {
        self.max
    }

    /// An upper bound of the quantile `q` (0 to 1), at most 12.5 % above it; 0 when nothing was added.
    pub fn quantile(&self, q: f64) -> Nanos {
        let rank = (q * self.total as f64).ceil() as u64;
        let mut seen = 0;
        for (i, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= rank && seen > 0 {
                return upper(i).min(self.max);
            }
        }
        self.max
    }
}

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
    fn buckets_cover_every_duration_in_order() {
        let mut last = 0;
        for ns in (0..10_000).chain([u64::MAX / 2, u64::MAX]) {
            let b = bucket(ns);
            assert!(b >= last && b < 64 * STEPS);
            assert!(upper(b) >= ns);
            assert!(upper(b) as f64 <= ns as f64 * 1.125 + 1.0);
            last = b;
        }
    }

    #[test]
    fn quantiles_of_a_ramp() {
        let mut lateness = Lateness::default();
        assert_eq!(lateness.quantile(0.99), 0);
        for ns in 1..=1000 {
            lateness.add(ns * 100);
        }
        assert!((50_000..=56_250).contains(&lateness.quantile(0.5)));
        assert!((99_000..=100_000).contains(&lateness.quantile(0.99)));
        assert_eq!(lateness.max(), 100_000);
    }

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
