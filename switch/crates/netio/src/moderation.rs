// SPDX-License-Identifier: Apache-2.0
//! When to pause instead of waiting for the next frame: as network cards moderate interrupts.
//!
//! At some hundred thousand frames a second a thread that sleeps until the next frame is woken for each one, and takes
//! the processor from who sends them. Where frames come faster than `DENSE_GAP`, the thread pauses for `PAUSE` and
//! finds a batch. Frames carry the kernel's stamp of arrival, so the device's time does not see the pause; what leaves
//! leaves at most `PAUSE` late, and never later than a departure that is due.

use crate::clock::Nanos;

/// Mean gap between frames below which pausing pays.
const DENSE_GAP: Nanos = 20_000;
/// Length of a pause.
pub const PAUSE: Nanos = 30_000;
/// A gap longer than this says no more than this.
const GAP_MAX: Nanos = 1_000_000;

/// Watches how dense frames come.
#[derive(Debug, Default)]
pub struct Moderation {
    last_sleep: Nanos,
    frames: u64,
    /// Moving mean of the gap between frames, ns; 0 before the first.
    gap: Nanos,
}

impl Moderation {
    /// Notes frames received.
    #[inline]
    pub fn received(&mut self, frames: usize) {
        self.frames += frames as u64;
    }

    /// The thread has nothing to do at `now`: until when it should pause, or None: wait for a frame.
    pub fn pause_until(&mut self, now: Nanos) -> Option<Nanos> {
        let elapsed = (now - self.last_sleep).min(GAP_MAX);
        let gap = elapsed
            .checked_div(self.frames)
            .unwrap_or_else(|| elapsed.max(PAUSE));
        self.last_sleep = now;
        self.frames = 0;
        self.gap = (self.gap * 3 + gap) / 4;
        (self.gap < DENSE_GAP).then_some(now + PAUSE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Feeds one frame each `gap` and asks after each; the answer after a while.
    fn after(gap: Nanos) -> Option<Nanos> {
        let mut moderation = Moderation::default();
        let mut answer = None;
        for i in 1..100 {
            moderation.received(1);
            answer = moderation.pause_until(i * gap);
        }
        answer
    }

    #[test]
    fn dense_frames_are_paused_for_and_sparse_ones_waited_for() {
        assert_eq!(after(5_000), Some(99 * 5_000 + PAUSE));
        assert_eq!(after(100_000), None);
    }

    #[test]
    fn silence_ends_the_pauses() {
        let mut moderation = Moderation::default();
        moderation.received(1_000);
        assert!(moderation.pause_until(1_000_000).is_some());
        let pauses =
            (1..100).take_while(|i| moderation.pause_until(1_000_000 + i * PAUSE).is_some());
        assert!(pauses.count() < 10);
    }
}
