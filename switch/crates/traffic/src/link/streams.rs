// SPDX-License-Identifier: Apache-2.0
//! The chance of a link direction: one seeded stream, with a sub-stream for each impairment.

use crate::derived_seed;
use rand_xoshiro::rand_core::{RngCore, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Seeded generators of one link direction. The same seed and name give the same bits on every machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkStreams {
    pub(super) loss: Xoshiro256PlusPlus,
    pub(super) bit_errors: Xoshiro256PlusPlus,
    pub(super) jitter: Xoshiro256PlusPlus,
    /// Of the Gilbert–Elliott chain, and of the bit errors in its bad state.
    pub(super) bursts: Xoshiro256PlusPlus,
    pub(super) bad_bit_errors: Xoshiro256PlusPlus,
}

impl LinkStreams {
    /// The streams of the direction `name` (such as `s1-s2/a_to_b`): they depend on the run's seed and this
    /// name only, so a link that is added changes nothing for the others.
    pub fn new(seed: u64, name: &str) -> Self {
        let loss = Xoshiro256PlusPlus::seed_from_u64(derived_seed(seed, name));
        // A jump is 2^128 draws: the sub-streams never meet.
        let after = |stream: &Xoshiro256PlusPlus| {
            let mut next = stream.clone();
            next.jump();
            next
        };
        let bit_errors = after(&loss);
        let jitter = after(&bit_errors);
        let bursts = after(&jitter);
        let bad_bit_errors = after(&bursts);
        Self {
            loss,
            bit_errors,
            jitter,
            bursts,
            bad_bit_errors,
        }
    }
}

/// A draw as a number in [0, 1), 53 bits.
pub(super) fn unit(draw: u64) -> f64 {
    (draw >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
}

/// A draw as a number in (0, 1]: fit for a logarithm.
pub(super) fn unit_above_zero(draw: u64) -> f64 {
    ((draw >> 11) + 1) as f64 * (1.0 / (1u64 << 53) as f64)
}

/// The next draw of a sub-stream.
pub(super) fn draw(stream: &mut Xoshiro256PlusPlus) -> u64 {
    stream.next_u64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_fixed_by_seed_and_name() {
        let mut first = LinkStreams::new(1, "s1-s2/a_to_b");
        assert_eq!(first, LinkStreams::new(1, "s1-s2/a_to_b"));
        assert_ne!(first, LinkStreams::new(1, "s1-s2/b_to_a"));
        assert_ne!(first, LinkStreams::new(2, "s1-s2/a_to_b"));
        let (loss, errors, jitter) = (
            draw(&mut first.loss),
            draw(&mut first.bit_errors),
            draw(&mut first.jitter),
        );
        assert!(loss != errors && errors != jitter && loss != jitter);
    }

    #[test]
    fn units_keep_their_borders() {
        assert_eq!(unit(0), 0.0);
        assert!(unit(u64::MAX) < 1.0);
        assert!(unit_above_zero(0) > 0.0);
        assert_eq!(unit_above_zero(u64::MAX), 1.0);
    }
}
