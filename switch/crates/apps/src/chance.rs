// SPDX-License-Identifier: Apache-2.0
//! The chance of a flow: one seeded generator with sub-streams; the same numbers on every machine.

use crate::config::Distribution;
use rand_xoshiro::rand_core::{RngCore, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// (share of flows that are no larger, size in packets of 1460 bytes), straight lines between them, as the simulations of
/// pFabric (SIGCOMM 2013) have them.
const WEB_SEARCH: [(f64, f64); 12] = [
    (0.0, 6.0),
    (0.15, 6.0),
    (0.2, 13.0),
    (0.3, 19.0),
    (0.4, 33.0),
    (0.53, 53.0),
    (0.6, 133.0),
    (0.7, 667.0),
    (0.8, 1_333.0),
    (0.9, 3_333.0),
    (0.97, 6_667.0),
    (1.0, 20_000.0),
];
const DATA_MINING: [(f64, f64); 9] = [
    (0.0, 1.0),
    (0.5, 1.0),
    (0.6, 2.0),
    (0.7, 3.0),
    (0.8, 7.0),
    (0.9, 267.0),
    (0.95, 2_107.0),
    (0.99, 66_667.0),
    (1.0, 666_667.0),
];

/// The size below which a share `u` of the flows is, where their mean is 1.
fn quantile(points: &[(f64, f64)], u: f64) -> f64 {
    let above = points.iter().position(|point| point.0 >= u).unwrap_or(0);
    let ((u0, x0), (u1, x1)) = (points[above.max(1) - 1], points[above.max(1)]);
    (x0 + (x1 - x0) * (u - u0) / (u1 - u0)) / mean_packets(points)
}

fn mean_packets(points: &[(f64, f64)]) -> f64 {
    points
        .windows(2)
        .map(|two| (two[1].0 - two[0].0) * (two[0].1 + two[1].1) / 2.0)
        .sum()
}

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
            Distribution::WebSearch => mean * quantile(&WEB_SEARCH, u),
            Distribution::DataMining => mean * quantile(&DATA_MINING, u),
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
        assert!((mean_of(Distribution::WebSearch, 2.0) - 100.0).abs() < 1.0);
        assert!((mean_of(Distribution::DataMining, 2.0) - 100.0).abs() < 8.0); // 1 % of the flows have 7 in 10 bytes
    }

    #[test]
    fn sizes_are_those_that_were_published() {
        // pFabric's ns-2 scripts say 1138 and 5117.
        assert!((mean_packets(&WEB_SEARCH) - 1_138.0).abs() < 4.0);
        assert!((mean_packets(&DATA_MINING) - 5_117.0).abs() < 1.0);
        let size = |points, u| quantile(points, u) * mean_packets(points);
        for (u, packets) in [(0.1, 6.0), (0.4, 33.0), (0.65, 400.0), (1.0, 20_000.0)] {
            assert!((size(&WEB_SEARCH, u) - packets).abs() < 1e-6);
        }
        for (u, packets) in [(0.3, 1.0), (0.55, 1.5), (0.95, 2_107.0)] {
            assert!((size(&DATA_MINING, u) - packets).abs() < 1e-6);
        }
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
