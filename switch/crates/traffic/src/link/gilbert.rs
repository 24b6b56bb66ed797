// SPDX-License-Identifier: Apache-2.0
//! Gilbert–Elliott: a chain of two states, good and bad, that every frame moves by one step (Elliott 1963), or that moves in time.

use super::streams::{unit, unit_above_zero, Stream};
use super::{LinkOptions, LinkStreams, Nanos};

/// The chain. Moved by frames, a frame first moves it, then meets the state that it is in. Mean stay in the bad state: 1/leave
/// frames; share of the frames that meet it: enter / (enter + leave). It makes one draw for each frame offered, also while it
/// is off (enter 0), so that the k-th frame meets the same draw in every run of a seed.
///
/// Moved by time, stays are exponential, drawn from a stream of their own: bursts come at the same instants whatever is sent.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct GilbertElliott {
    enter: f64,
    leave: f64,
    bad: bool,
    /// Mean stays in the good state and in the bad one; 0: it does not move in time.
    means: [Nanos; 2],
    /// The end of this stay.
    until: Nanos,
}

impl GilbertElliott {
    /// New settings from `now` on; the state stays, unless there is no bad one any more.
    pub(super) fn set(&mut self, now: Nanos, options: &LinkOptions, streams: &mut LinkStreams) {
        (self.enter, self.leave) = (options.ge_enter, options.ge_leave);
        let means = [options.ge_good_ns, options.ge_bad_ns];
        self.bad &= self.enter > 0.0 || means[0] > 0;
        if self.means != means {
            self.means = means;
            // The rest of an exponential stay is one.
            self.until = now;
            self.stay(&mut streams.stays);
        }
    }

    /// In time it begins at `now`, in the good state.
    pub(super) fn begin(&mut self, now: Nanos, streams: &mut LinkStreams) {
        if self.means[0] > 0 {
            (self.bad, self.until) = (false, now);
            self.stay(&mut streams.stays);
        }
    }

    fn stay(&mut self, stream: &mut Stream) {
        let mean = self.means[usize::from(self.bad)];
        if mean > 0 {
            let stay = -unit_above_zero(stream.draw()).ln() * mean as f64;
            self.until = self.until.saturating_add(stay.round() as Nanos);
        }
    }

    /// A frame comes at `now`: moves the chain; whether the frame meets the bad state.
    #[inline]
    pub(super) fn step(&mut self, now: Nanos, streams: &mut LinkStreams) -> bool {
        if self.enter == 0.0 {
            streams.bursts.skip(1);
            return self.means[0] > 0 && self.at(now, &mut streams.stays);
        }
        let u = unit(streams.bursts.draw());
        if self.bad {
            self.bad = u >= self.leave;
        } else {
            self.bad = u < self.enter;
        }
        self.bad
    }

    fn at(&mut self, now: Nanos, stream: &mut Stream) -> bool {
        while self.until <= now {
            self.bad = !self.bad;
            self.stay(stream);
        }
        self.bad
    }
}
