// SPDX-License-Identifier: Apache-2.0
//! The chance of a flow: one seeded generator with sub-streams; the same numbers on every machine.

use crate::config::Distribution;
use rand_xoshiro::rand_core::{RngCore, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// A sub-stream.
#[derive(Clone, Debug)]
pub struct Chance(Xoshiro256PlusPlus);

impl Chance {
    /// The application's and the initial sequence numbers' streams of the flow `name`: they depend on the run's seed and
    /// this name only, so a flow that is added changes nothing for the others.
    pub fn of_flow(seed: u64, name: &str) -> (Chance, Chance) {
        let seed = traffic::derived_seed(seed, &format!("flow/{name}"));
        let app = Xoshiro256PlusPlus::seed_from_u64(seed);
        // A jump is 2^128 draws: the sub-streams never meet.
        let mut sequence_numbers = app.clone();
        sequence_numbers.jump();
        (Chance(app), Chance(sequence_numbers))
    }

    /// 32 random bits.
    pub fn bits32(&mut self) -> u32 {
        (self.0.next_u64() >> 32) as u32
    }

    /// A number in (0, 1]: fit for a logarithm.
    fn unit_above_zero(&mut self) -> f64 {
        ((self.0.next_u64() >> 11) + 1) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// A positive number with this mean: one draw, whatever the distribution. `shape` is Pareto's.
    pub fn draw(&mut self, distribution: Distribution, mean: f64, shape: f64) -> f64 {
        let u = self.unit_above_zero();
        match distribution {
            Distribution::Fixed => mean,
            Distribution::Exponential => -mean * libm::log(u),
            // The mean of a Pareto distribution is shape · x_min / (shape - 1).
            Distribution::Pareto => mean * (shape - 1.0) / shape / libm::pow(u, 1.0 / shape),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mean_of(distribution: Distribution, shape: f64) -> f64 {
        let (mut chance, _) = Chance::of_flow(1, "x");
        let n = 200_000;
        (0..n)
            .map(|_| chance.draw(distribution, 100.0, shape))
            .sum::<f64>()
            / f64::from(n)
    }

    #[test]
    fn each_distribution_has_its_mean() {
        assert_eq!(mean_of(Distribution::Fixed, 2.0), 100.0);
        assert!((mean_of(Distribution::Exponential, 2.0) - 100.0).abs() < 1.0);
        assert!((mean_of(Distribution::Pareto, 3.0) - 100.0).abs() < 1.0);
    }

    #[test]
    fn a_pareto_variable_has_its_tail() {
        // P(X > 2 x_min) = 2^-shape; x_min = 100 · (1.5 - 1) / 1.5.
        let (mut chance, _) = Chance::of_flow(1, "x");
        let above = (0..100_000)
            .filter(|_| chance.draw(Distribution::Pareto, 100.0, 1.5) > 200.0 / 3.0)
            .count() as f64;
        assert!((above / 1e5 - libm::pow(2.0, -1.5)).abs() < 0.01);
    }

    #[test]
    fn seed_and_name_fix_the_numbers() {
        let first = |seed, name| Chance::of_flow(seed, name).0.bits32();
        assert_eq!(first(1, "a"), first(1, "a"));
        assert_ne!(first(1, "a"), first(1, "b"));
        assert_ne!(first(1, "a"), first(2, "a"));
        let (mut app, mut isn) = Chance::of_flow(1, "a");
        assert_ne!(app.bits32(), isn.bits32());
    }
}
