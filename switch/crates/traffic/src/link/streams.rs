// SPDX-License-Identifier: Apache-2.0
//! The chance of a link direction: one seeded stream, with a sub-stream for each impairment.

use super::{Seeds, VARYING};
use crate::derived_seed;
use rand_xoshiro::rand_core::{RngCore, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// A generator whose draws that nobody needs are made later, many at a time: that is quicker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Stream {
    generator: Xoshiro256PlusPlus,
    owed: u32,
}

/// So many draws are put off at most: they take a few microseconds.
const OWED_MAX: u32 = 4096;

impl Stream {
    fn new(generator: Xoshiro256PlusPlus) -> Stream {
        Stream { generator, owed: 0 }
    }

    /// The next draw.
    #[inline]
    pub(super) fn draw(&mut self) -> u64 {
        if self.owed > 0 {
            self.catch_up();
        }
        self.generator.next_u64()
    }

    /// As so many draws of which nobody needs the results.
    #[inline]
    pub(super) fn skip(&mut self, draws: u32) {
        self.owed += draws;
        if self.owed >= OWED_MAX {
            self.catch_up();
        }
    }

    #[cold]
    fn catch_up(&mut self) {
        for _ in 0..std::mem::take(&mut self.owed) {
            self.generator.next_u64();
        }
    }
}

/// Seeded generators of one link direction. The same seed and name give the same bits on every machine.
#[derive(Debug, Clone, PartialEq, Eq)]
#[repr(C)]
pub struct LinkStreams {
    /// So many frames met no chance: their draws are still to be made.
    owed_frames: u64,
    /// Of so many they are made at once.
    owed_frames_max: u64,
    pub(super) loss: Stream,
    pub(super) bit_errors: Stream,
    pub(super) jitter: Stream,
    /// Of the Gilbert–Elliott chain, and of the bit errors in its bad state.
    pub(super) bursts: Stream,
    pub(super) bad_bit_errors: Stream,
    /// Of bursts in time.
    pub(super) stays: Stream,
    pub(super) duplicates: Stream,
    /// Of what the series of [`super::VARYING`] draw.
    pub(super) series: [Seeds; 4],
}

impl LinkStreams {
    /// The streams of the direction `name` (such as `s1-s2/a_to_b`): they depend on the run's seed and this
    /// name only, so a link that is added changes nothing for the others.
    pub fn new(seed: u64, name: &str) -> Self {
        let mut generator = Xoshiro256PlusPlus::seed_from_u64(derived_seed(seed, name));
        // A jump is 2^128 draws: the sub-streams never meet.
        let mut next = || {
            let stream = Stream::new(generator.clone());
            generator.jump();
            stream
        };
        Self {
            loss: next(),
            bit_errors: next(),
            jitter: next(),
            bursts: next(),
            bad_bit_errors: next(),
            stays: next(),
            duplicates: next(),
            series: VARYING.map(|setting| {
                // A path has one length, forth and back.
                let link = name.rsplit_once('/').filter(|_| setting == "delay");
                let of = link.map_or(name, |(link, _)| link);
                Seeds::new(seed, &format!("{of}/{setting}"))
            }),
            owed_frames: 0,
            owed_frames_max: OWED_MAX.into(),
        }
    }

    /// The same for a link in virtual time: draws are made only when one is needed, however many there are then. By the clock of
    /// the wall that would be a pause.
    pub fn in_virtual_time(mut self) -> Self {
        self.owed_frames_max = u64::MAX;
        self
    }

    /// A frame makes its draws, of which nobody needs the results.
    #[inline]
    pub(super) fn skip_frame(&mut self) {
        self.owed_frames += 1;
        if self.owed_frames >= self.owed_frames_max {
            self.settle_frames();
        }
    }

    /// Before a draw of one of the streams that each frame draws from.
    #[inline]
    pub(super) fn settle(&mut self) {
        if self.owed_frames > 0 {
            self.settle_frames();
        }
    }

    /// The streams do not wait for each other: one loop for all is quicker than one for each.
    #[cold]
    fn settle_frames(&mut self) {
        for _ in 0..std::mem::take(&mut self.owed_frames) {
            self.loss.generator.next_u64();
            self.bursts.generator.next_u64();
            self.duplicates.generator.next_u64();
            self.jitter.generator.next_u64();
            self.jitter.generator.next_u64();
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
            first.loss.draw(),
            first.bit_errors.draw(),
            first.jitter.draw(),
        );
        assert!(loss != errors && errors != jitter && loss != jitter);
    }

    #[test]
    fn skipped_draws_are_draws() {
        let LinkStreams {
            loss: mut drawn, ..
        } = LinkStreams::new(1, "s1-s2/a_to_b");
        let mut skipped = drawn.clone();
        for draws in [1, 2, OWED_MAX - 1, OWED_MAX, 3 * OWED_MAX] {
            (0..draws).for_each(|_| skipped.skip(1));
            for _ in 0..draws {
                drawn.draw();
            }
            assert_eq!(skipped.draw(), drawn.draw());
        }
    }

    #[test]
    fn units_keep_their_borders() {
        assert_eq!(unit(0), 0.0);
        assert!(unit(u64::MAX) < 1.0);
        assert!(unit_above_zero(0) > 0.0);
        assert_eq!(unit_above_zero(u64::MAX), 1.0);
    }
}
