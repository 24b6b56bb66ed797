// SPDX-License-Identifier: Apache-2.0
//! Short rests of a real-time thread that would otherwise be stopped for long.
//!
//! Linux lets real-time threads have 95 % of a processor (`sched_rt_runtime_us` of `sched_rt_period_us`). One that never
//! sleeps, because it spins or because it has more frames than it can carry, is stopped for 50 ms of each second then. So it
//! rests by itself, a little more than it must, a few ten microseconds at a time; the others have their share all the same.

use std::fs;

use crate::clock::{monotonic_now, sleep_until, Nanos};
use crate::thread::is_realtime;

/// After so long there is a rest, if one is owed.
const SPAN: Nanos = 1_000_000;
/// Parts of a thousand that are rested beyond what the kernel asks for.
const BEYOND: u64 = 10;

/// Watches how long a thread sleeps.
#[derive(Debug, Default)]
pub struct Rest {
    /// To be rested, parts of a thousand; 0: none.
    share: u64,
    /// Since when it is watched, and how long it slept since.
    since: Nanos,
    slept: Nanos,
}

impl Rest {
    /// For the thread that calls: none is owed unless it is a real-time one that the kernel limits.
    pub fn for_this_thread() -> Rest {
        let number = |name: &str| {
            let text = fs::read_to_string(format!("/proc/sys/kernel/{name}")).ok()?;
            text.trim().parse::<u64>().ok()
        };
        let limits = number("sched_rt_runtime_us").zip(number("sched_rt_period_us"));
        Rest {
            share: match limits {
                Some((runtime, period)) if is_realtime() => share(runtime, period),
                _ => 0,
            },
            since: monotonic_now(),
            slept: 0,
        }
    }

    /// Does `sleep` at `now`, which counts as rest.
    pub fn during<R>(&mut self, now: Nanos, sleep: impl FnOnce() -> R) -> R {
        let result = sleep();
        if self.share > 0 {
            self.slept += monotonic_now().saturating_sub(now);
        }
        result
    }

    /// Rests where it is owed at `now`.
    #[inline]
    pub fn take(&mut self, now: Nanos) {
        if self.share == 0 || now < self.since + SPAN {
            return;
        }
        if let Some(until) = self.owed(now) {
            sleep_until(until);
        }
        (self.since, self.slept) = (monotonic_now(), 0);
    }

    /// Until when to rest.
    fn owed(&self, now: Nanos) -> Option<Nanos> {
        // Of the whole that ends with the rest.
        let awake = (now - self.since).saturating_sub(self.slept);
        let wanted = awake * self.share / (1_000 - self.share);
        let owed = wanted.checked_sub(self.slept)?;
        (owed > 0).then_some(now + owed)
    }
}

/// What to rest of a thousand parts where so much of a period is allowed.
fn share(runtime: u64, period: u64) -> u64 {
    match period.checked_sub(runtime) {
        Some(rest) if rest > 0 && runtime > 0 => (1_000 * rest).div_ceil(period).min(490) + BEYOND,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_little_more_than_the_kernel_asks_for() {
        assert_eq!(share(950_000, 1_000_000), 60);
        assert_eq!(share(1_000_000, 1_000_000), 0);
        // No real-time threads at all: then this is none.
        assert_eq!(share(0, 1_000_000), 0);
        assert_eq!(share(1, 1_000_000), 500);
    }

    #[test]
    fn sleep_counts() {
        let rest = |slept| Rest {
            share: 60,
            since: 5_000_000,
            slept,
        };
        let now = 5_940_000;
        assert_eq!(rest(0).owed(now), Some(6_000_000));
        assert_eq!(rest(60_000).owed(6_000_000), None);
        assert_eq!(rest(30_000).owed(5_970_000), Some(6_000_000));
        assert_eq!(rest(900_000).owed(now), None);
    }

    #[test]
    fn who_is_not_real_time_owes_nothing() {
        let mut rest = Rest::for_this_thread();
        assert_eq!(rest.share, 0);
        let now = monotonic_now();
        rest.take(now + 10 * SPAN);
        assert!(monotonic_now() < now + 10 * SPAN);
    }
}
