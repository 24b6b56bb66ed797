// SPDX-License-Identifier: Apache-2.0
//! Which frames are lost, without regard to their length.

use super::streams::{unit, Stream};

/// Each frame on its own, with the probability of the state that it meets. One draw for each frame offered, also
/// while the probability is 0: so the k-th frame meets the same draw in every run of a seed, and a larger probability
/// loses a superset.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct LossModel {
    /// In the good state, and where there is no other.
    pub good: f64,
    pub bad: f64,
}

impl LossModel {
    /// Whether the next frame is lost.
    #[inline]
    pub(super) fn is_lost(self, bad: bool, stream: &mut Stream) -> bool {
        let probability = if bad { self.bad } else { self.good };
        if probability == 0.0 {
            stream.skip(1);
            return false;
        }
        unit(stream.draw()) < probability
    }
}
