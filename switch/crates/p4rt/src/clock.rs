// SPDX-License-Identifier: Apache-2.0
//! The clock of digest lists and of the timestamps in messages: this machine's, or the simulation's.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Instant, SystemTime};

use v1model::Nanos;

/// Where time comes from.
pub enum Clock {
    /// This machine's clocks; `now` counts from when the server was made.
    Wall(Instant),
    /// Virtual time, as its owner set it last.
    Virtual(AtomicU64),
}

impl Clock {
    pub fn wall() -> Self {
        Self::Wall(Instant::now())
    }

    pub fn virtual_time() -> Self {
        Self::Virtual(AtomicU64::new(0))
    }

    /// Nanoseconds since the server was made, or virtual time.
    pub fn now(&self) -> Nanos {
        match self {
            Self::Wall(started) => {
                Nanos::try_from(started.elapsed().as_nanos()).unwrap_or(Nanos::MAX)
            }
            Self::Virtual(now) => now.load(Ordering::Relaxed),
        }
    }

    /// What messages carry as `timestamp`: nanoseconds since the Unix epoch, or virtual time.
    pub fn timestamp_ns(&self) -> i64 {
        let ns = match self {
            Self::Wall(_) => SystemTime::now()
                .duration_since(SystemTime::UNIX_EPOCH)
                .unwrap_or_default()
                .as_nanos(),
            Self::Virtual(_) => u128::from(self.now()),
        };
        i64::try_from(ns).unwrap_or(i64::MAX)
    }

    pub fn is_virtual(&self) -> bool {
        matches!(self, Self::Virtual(_))
    }

    /// Sets virtual time; this machine's clock does not listen.
    pub fn set(&self, at: Nanos) {
        if let Self::Virtual(now) = self {
            now.store(at, Ordering::Relaxed);
        }
    }
}
