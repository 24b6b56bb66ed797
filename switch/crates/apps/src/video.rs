// SPDX-License-Identifier: Apache-2.0
//! The player of an adaptive video: how much of it waits to be played, and at which rate its next segment is asked for.
//!
//! BBA-0 of Huang, Johari, McKeown, Trunnell, Watson: A Buffer-Based Approach to Rate Adaptation, SIGCOMM 2014, Algorithm 1.

use crate::config::Video;
use crate::Nanos;

/// What a player has.
#[derive(Clone, Debug, Default)]
pub(crate) struct Player {
    /// When what it has is played.
    plays_until: Nanos,
    /// Place of the last rate in the ladder.
    rate: usize,
}

impl Player {
    /// A segment is there; returns when the next one is asked for: at once, or when the buffer has room for it.
    pub(crate) fn take(&mut self, video: &Video, now: Nanos) -> Nanos {
        // Where nothing waited, it stood still until now.
        self.plays_until = self.plays_until.max(now).saturating_add(video.segment_ns);
        let before = video.buffer_ns.saturating_sub(video.segment_ns);
        now.max(self.plays_until.saturating_sub(before))
    }

    /// Bytes of the segment to ask for.
    pub(crate) fn ask(&mut self, video: &Video, now: Nanos) -> u64 {
        self.rate = next_rate(video, self.rate, self.plays_until.saturating_sub(now));
        let bits = u128::from(video.bitrates_bps[self.rate]) * u128::from(video.segment_ns);
        u64::try_from(bits / 8_000_000_000).unwrap_or(u64::MAX / 2)
    }
}

/// Algorithm 1: the place of the next rate, from the last one's and the time that waits to be played.
fn next_rate(video: &Video, last: usize, buffered: Nanos) -> usize {
    let rates = &video.bitrates_bps;
    let highest = rates.len() - 1;
    if buffered <= video.reservoir_ns {
        return 0;
    }
    if buffered >= video.reservoir_ns + video.cushion_ns {
        return highest;
    }
    // f(B) rises from R_min at the reservoir's end to R_max at the cushion's; both sides times the cushion, so that nothing is rounded.
    let f = u128::from(rates[highest] - rates[0]) * u128::from(buffered - video.reservoir_ns);
    let rate = |i: usize| u128::from(rates[i] - rates[0]) * u128::from(video.cushion_ns);
    if f >= rate(highest.min(last + 1)) {
        (0..=highest).rfind(|i| rate(*i) < f).unwrap_or(0)
    } else if f <= rate(last.saturating_sub(1)) {
        (0..=highest).find(|i| rate(*i) > f).unwrap_or(highest)
    } else {
        last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: Nanos = 1_000_000_000;

    fn video() -> Video {
        Video {
            bitrates_bps: vec![1_000_000, 2_000_000, 3_000_000, 5_000_000],
            segment_ns: 4 * S,
            buffer_ns: 20 * S,
            reservoir_ns: 6 * S,
            cushion_ns: 8 * S,
        }
    }

    /// f(B) is 1 Mbit/s at 6 s and grows by 500 kbit/s a second to 5 Mbit/s at 14 s.
    #[test]
    fn the_rate_follows_the_buffer_and_stays_between_its_neighbours() {
        let cases = [
            // last, buffered (ms), next
            (3, 0, 0),
            (3, 6_000, 0),
            (0, 6_001, 0), // f is above R_min, but below the next rate
            (0, 7_999, 0),
            (0, 8_000, 0), // f reaches the next rate; the largest below f is the last one
            (0, 8_001, 1), // above: that one
            (0, 10_001, 2), // several steps at once
            (1, 9_000, 1),
            (2, 9_000, 2), // between the rates below and above: stays
            (2, 8_000, 2), // f is the rate below: the smallest above f
            (2, 7_999, 1),
            (3, 9_000, 2), // f is below the rate below
            (3, 7_000, 1),
            (0, 14_000, 3),
            (0, 60_000, 3),
        ];
        for (last, buffered_ms, next) in cases {
            let found = next_rate(&video(), last, buffered_ms * 1_000_000);
            assert_eq!(found, next, "last {last}, {buffered_ms} ms buffered");
        }
    }

    #[test]
    fn a_full_buffer_waits_for_room_and_an_empty_one_stands_still() {
        let video = video();
        let mut player = Player::default();
        assert_eq!(player.ask(&video, 0), 500_000); // 1 Mbit/s for 4 s
        for number in 0..3 {
            assert_eq!(player.take(&video, 3 * S + number), 3 * S + number);
        }
        // From 3 s it plays; at 3 s and a bit it has 12 s, and a fourth makes 16 s: just room for one more.
        assert_eq!(player.take(&video, 4 * S), 4 * S);
        assert_eq!(player.ask(&video, 4 * S), 2_500_000); // 15 s: all of the ladder
                                                          // A fifth makes 19 s at 4 s: room at 7 s.
        assert_eq!(player.take(&video, 4 * S), 7 * S);
        // Nothing came until 30 s, when 23 s were over: what comes then is played from then on.
        assert_eq!(player.take(&video, 30 * S), 30 * S);
        assert_eq!(player.plays_until, 34 * S);
    }
}
