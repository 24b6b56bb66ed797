// SPDX-License-Identifier: Apache-2.0
//! How late frames leave after they are due: a histogram of fixed size, 12 % wide at every scale.

use traffic::Nanos;

/// Buckets for each doubling.
const STEPS: usize = 8;
const STEP_BITS: u32 = STEPS.trailing_zeros();

/// A histogram of durations.
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
}
