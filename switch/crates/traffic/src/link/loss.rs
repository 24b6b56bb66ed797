// SPDX-License-Identifier: Apache-2.0
//! Which frames are lost, without regard to their length.

use super::streams::{draw, unit};
use rand_xoshiro::Xoshiro256PlusPlus;

/// A loss process. Each variant makes one draw for each frame offered, also while its probability is 0: so the
/// k-th frame meets the same draw in every run of a seed, and a larger probability loses a superset.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum LossModel {
    /// Each frame on its own, with this probability.
    Independent { probability: f64 },
}

impl LossModel {
    /// Whether the next frame is lost.
    pub(super) fn is_lost(&mut self, stream: &mut Xoshiro256PlusPlus) -> bool {
        let u = unit(draw(stream));
        match self {
            Self::Independent { probability } => u < *probability,
        }
    }
}
