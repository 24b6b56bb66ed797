// SPDX-License-Identifier: Apache-2.0
//! The persist timer: probes of a window that is shut (RFC 9293 §3.8.6.1).
//!
//! As Linux's, a probe is an empty segment below snd_una, which every receiver has to answer.

use crate::clock::Clock;
use crate::Nanos;

/// Longest time between two probes.
const MAX_PROBE_NS: Nanos = 120_000_000_000;

#[derive(Debug, Default)]
pub struct Persist {
    deadline: Option<Nanos>,
    backoff: u32,
    probe: bool,
}

impl Persist {
    /// Data waits, nothing is in flight, and the window takes none: the timer runs.
    pub fn watch(&mut self, stuck: bool, now: Nanos, rto_ns: Nanos, clock: Clock) {
        if !stuck {
            self.stop();
        } else if self.deadline.is_none() {
            self.deadline = Some(clock.after(now, self.interval_ns(rto_ns)));
        }
    }

    pub fn stop(&mut self) {
        *self = Persist::default();
    }

    /// An ACK came; if the window is still shut the next probe has its time already.
    pub fn answered(&mut self) {
        self.probe = false;
    }

    pub fn on_timer(&mut self, now: Nanos, rto_ns: Nanos, clock: Clock) {
        if self.deadline.is_some_and(|deadline| deadline <= now) {
            self.probe = true;
            self.backoff += 1;
            self.deadline = Some(clock.after(now, self.interval_ns(rto_ns)));
        }
    }

    pub fn take_probe(&mut self) -> bool {
        std::mem::take(&mut self.probe)
    }

    pub fn deadline(&self) -> Option<Nanos> {
        self.deadline
    }

    fn interval_ns(&self, rto_ns: Nanos) -> Nanos {
        rto_ns
            .saturating_mul(1 << self.backoff.min(16))
            .min(MAX_PROBE_NS)
    }
}
