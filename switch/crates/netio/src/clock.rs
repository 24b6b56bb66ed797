// SPDX-License-Identifier: Apache-2.0
//! The one clock, `CLOCK_MONOTONIC` in nanoseconds, and the way from the kernel's packet stamps to it.

use rustix::thread::clock_nanosleep_absolute;
use rustix::time::{clock_gettime, ClockId, Timespec};

/// Nanoseconds of `CLOCK_MONOTONIC`.
pub type Nanos = u64;

fn read(clock: ClockId) -> Nanos {
    let time = clock_gettime(clock);
    time.tv_sec as Nanos * 1_000_000_000 + time.tv_nsec as Nanos
}

/// Nanoseconds as the system takes them.
pub(crate) fn timespec(time: Nanos) -> Timespec {
    Timespec {
        tv_sec: (time / 1_000_000_000) as i64,
        tv_nsec: (time % 1_000_000_000) as i64,
    }
}

/// Now, in nanoseconds of `CLOCK_MONOTONIC`.
pub fn monotonic_now() -> Nanos {
    read(ClockId::Monotonic)
}

/// Sleeps until an instant, or a signal.
pub fn sleep_until(instant: Nanos) {
    let _ = clock_nanosleep_absolute(ClockId::Monotonic, &timespec(instant));
}

/// Both clocks read together: turns packet stamps (`CLOCK_REALTIME`) into `CLOCK_MONOTONIC`.
/// Read it anew for every batch; then a step of the wall clock spoils one batch at most.
#[derive(Debug, Clone, Copy)]
pub struct ClockPair {
    pub monotonic: Nanos,
    realtime: Nanos,
}

/// A stamp older than this is a stepped wall clock, not a frame that waited.
const STAMP_AGE_MAX: Nanos = 1_000_000_000;
/// And so is one that is further ahead than this, not a frame that came after the reading.
const STAMP_AHEAD_MAX: Nanos = 1_000_000;

/// Reads further apart than this are read again: the thread was interrupted in between.
const READ_GAP_MAX: Nanos = 1_000;
const READ_TRIES: usize = 4;

impl ClockPair {
    pub fn read() -> Self {
        let mut before = monotonic_now();
        let mut tries = 0;
        loop {
            let realtime = read(ClockId::Realtime);
            let after = monotonic_now();
            tries += 1;
            if after - before <= READ_GAP_MAX || tries == READ_TRIES {
                return Self {
                    monotonic: before + (after - before) / 2,
                    realtime,
                };
            }
            before = after;
        }
    }

    /// The stamp on `CLOCK_MONOTONIC`, later than the reading for a frame that came after it; the reading for a stamp that
    /// cannot be right.
    #[inline]
    pub fn monotonic_of(&self, realtime_stamp: Nanos) -> Nanos {
        match self.realtime.checked_sub(realtime_stamp) {
            Some(age) if age < STAMP_AGE_MAX => self.monotonic.saturating_sub(age),
            None if realtime_stamp - self.realtime < STAMP_AHEAD_MAX => {
                self.monotonic + (realtime_stamp - self.realtime)
            }
            _ => self.monotonic,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_keep_their_age() {
        let pair = ClockPair {
            monotonic: 5_000_000_000,
            realtime: 1_700_000_000_000_000_000,
        };
        assert_eq!(pair.monotonic_of(pair.realtime - 250), pair.monotonic - 250);
        assert_eq!(
            pair.monotonic_of(pair.realtime + 10),
            pair.monotonic + 10,
            "a frame that came after the reading"
        );
        assert_eq!(
            pair.monotonic_of(pair.realtime + 3_000_000_000),
            pair.monotonic,
            "a clock stepped back"
        );
        assert_eq!(
            pair.monotonic_of(pair.realtime - 3_000_000_000),
            pair.monotonic,
            "a stepped clock"
        );
    }
}
