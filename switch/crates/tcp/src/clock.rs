// SPDX-License-Identifier: Apache-2.0
//! The clock of a host, which counts whole ticks (Linux: jiffies).
//!
//! A timer of n ticks fires with the nth tick from now, so up to a tick early (Linux to 4.7: `mod_timer(jiffies + n)`), and a time that
//! is measured is a number of ticks, one at least (`tcp_rtt_estimator()`). With a tick of 1 ns the clock is exact.

use crate::Nanos;
use std::net::IpAddr;

/// Nanoseconds of a tick of the timestamp clock at least (RFC 7323 §5.4: 1 ms to 1 s).
const TIMESTAMP_TICK_NS: Nanos = 1_000_000;

#[derive(Clone, Copy, Debug)]
pub struct Clock {
    tick_ns: Nanos,
    /// The ticks of two hosts do not come at the same instants.
    phase_ns: Nanos,
}

impl Clock {
    /// The clock of the host `ip`, from which the phase of its ticks follows.
    pub fn new(tick_ns: Nanos, ip: IpAddr) -> Clock {
        let last = match ip {
            IpAddr::V4(ip) => ip.to_bits(),
            IpAddr::V6(ip) => ip.to_bits() as u32,
        };
        let scattered = last.wrapping_mul(0x9E37_79B1); // 2^32 over the golden ratio
        Clock {
            tick_ns,
            phase_ns: (u64::from(scattered) * tick_ns) >> 32,
        }
    }

    fn ticks(self, at: Nanos) -> u64 {
        (at + self.phase_ns) / self.tick_ns
    }

    /// When a timer fires that is set now.
    pub fn after(self, now: Nanos, wait_ns: Nanos) -> Nanos {
        let due = self.ticks(now) + wait_ns.div_ceil(self.tick_ns);
        due.saturating_mul(self.tick_ns)
            .saturating_sub(self.phase_ns)
    }

    /// The time between two instants as the host sees it.
    pub fn between(self, from: Nanos, to: Nanos) -> Nanos {
        (self.ticks(to) - self.ticks(from)).max(1) * self.tick_ns
    }

    /// Nanoseconds of a tick of the timestamp clock.
    pub fn timestamp_tick_ns(self) -> Nanos {
        self.tick_ns.max(TIMESTAMP_TICK_NS)
    }

    /// The timestamp clock's value (RFC 7323 §5.4); it begins at 1, since an echo of 0 means none.
    pub fn timestamp(self, now: Nanos) -> u32 {
        ((now + self.phase_ns) / self.timestamp_tick_ns() + 1) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Nanos = 1_000_000;

    #[test]
    fn a_tick_of_a_nanosecond_is_exact() {
        let clock = Clock::new(1, [10, 0, 0, 1].into());
        assert_eq!(clock.after(123, 456), 579);
        assert_eq!((clock.between(100, 350), clock.between(100, 100)), (250, 1));
        assert_eq!(clock.timestamp(5 * MS), 6);
    }

    #[test]
    fn timers_fire_with_a_tick_and_times_are_whole_ticks() {
        let clock = Clock {
            tick_ns: 10 * MS,
            phase_ns: 3 * MS, // ticks at 7, 17, 27 ms
        };
        assert_eq!(clock.after(0, 1), 7 * MS);
        assert_eq!(clock.after(6 * MS, 10 * MS), 7 * MS);
        assert_eq!(clock.after(7 * MS, 10 * MS), 17 * MS);
        assert_eq!(clock.after(8 * MS, 11 * MS), 27 * MS);
        assert_eq!(clock.between(6 * MS, 8 * MS), 10 * MS);
        assert_eq!(clock.between(8 * MS, 9 * MS), 10 * MS); // one at least
        assert_eq!(clock.between(8 * MS, 27 * MS), 20 * MS);
        assert_eq!((clock.timestamp(6 * MS), clock.timestamp(7 * MS)), (1, 2));
    }

    #[test]
    fn two_hosts_tick_at_different_instants() {
        let of = |last| Clock::new(10 * MS, [10, 0, 0, last].into()).after(0, 1);
        assert_ne!(of(1), of(2));
    }
}
