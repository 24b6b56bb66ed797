// SPDX-License-Identifier: Apache-2.0
//! Gilbert–Elliott: a chain of two states, good and bad, that every frame moves by one step (Elliott 1963).

use super::streams::{unit, Stream};

/// The chain. A frame first moves it, then meets the state that it is in. Mean stay in the bad state: 1/leave frames;
/// share of the frames that meet it: enter / (enter + leave). It makes one draw for each frame offered, also while it
/// is off (enter 0), so that the k-th frame meets the same draw in every run of a seed.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct GilbertElliott {
    enter: f64,
    leave: f64,
    bad: bool,
}

impl GilbertElliott {
    /// New probabilities; the state stays, unless there is no bad one any more.
    pub(super) fn set(&mut self, enter: f64, leave: f64) {
        (self.enter, self.leave) = (enter, leave);
        self.bad &= enter > 0.0;
    }

    /// Moves the chain; whether the frame meets the bad state.
    #[inline]
    pub(super) fn step(&mut self, stream: &mut Stream) -> bool {
        if self.enter == 0.0 {
            stream.skip(1);
            return false;
        }
        let u = unit(stream.draw());
        if self.bad {
            self.bad = u >= self.leave;
        } else {
            self.bad = u < self.enter;
        }
        self.bad
    }
}
