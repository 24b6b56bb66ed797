// SPDX-License-Identifier: Apache-2.0
//! v1model's `random`: uniform numbers from a seeded generator, so that a run can be repeated.

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

/// A seeded source of uniform random numbers.
#[derive(Clone)]
pub struct Random(SmallRng);

impl Random {
    pub fn new(seed: u64) -> Self {
        Random(SmallRng::seed_from_u64(seed))
    }

    /// A number in `low ..= high`, every one as likely; `None` if `low > high`, where BMv2 leaves the destination
    /// untouched.
    #[inline]
    pub fn uniform(&mut self, low: u64, high: u64) -> Option<u64> {
        if low > high {
            return None;
        }
        Some(self.0.random_range(low..=high))
    }

    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        self.0.random()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn same_seed_same_numbers() {
        let draw = |seed| {
            let mut r = Random::new(seed);
            (0..32)
                .map(|_| r.uniform(0, 1_000_000).unwrap())
                .collect::<Vec<_>>()
        };
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7), draw(8));
    }

    #[test]
    fn bounds_are_included_and_kept() {
        let mut r = Random::new(1);
        let mut seen = [0u32; 4];
        for _ in 0..4000 {
            let v = r.uniform(10, 13).unwrap();
            seen[(v - 10) as usize] += 1;
        }
        // Mean 1000, standard deviation 27: seven of them are no accident.
        assert!(seen.iter().all(|&n| (800..1200).contains(&n)), "{seen:?}");
        assert_eq!(r.uniform(5, 5), Some(5));
        assert_eq!(r.uniform(6, 5), None);
        let _ = r.uniform(0, u64::MAX).unwrap();
    }
}
