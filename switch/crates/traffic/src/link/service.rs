// SPDX-License-Identifier: Apache-2.0
//! What frames wait for: a line of a rate, or the opportunities of a trace.

use super::trace::TraceLine;
use super::{LinkOptions, Nanos};
use crate::line::Line;

/// The line of a direction.
#[derive(Debug)]
pub(super) enum Service {
    Rate(Line),
    Trace(TraceLine),
}

impl Service {
    /// A free line with these options' rate or trace, which begins now.
    pub(super) fn new(now: Nanos, options: &LinkOptions) -> Self {
        match &options.trace {
            Some(trace) => Self::Trace(TraceLine::new(trace.clone(), now)),
            None => Self::Rate(Line::new(options.rate_bps)),
        }
    }

    /// No frame takes any time.
    #[inline]
    pub(super) fn is_unlimited(&self) -> bool {
        matches!(self, Self::Rate(line) if line.rate_bps() == 0)
    }

    /// First whole nanosecond at which the line is free.
    #[inline]
    pub(super) fn free_at(&self) -> Nanos {
        match self {
            Self::Rate(line) => line.free_at(),
            Self::Trace(line) => line.free_at(),
        }
    }

    /// Puts a frame on the line at `start`, when it is free.
    #[inline]
    pub(super) fn occupy(&mut self, start: Nanos, len_bytes: u32) {
        match self {
            Self::Rate(line) => line.occupy(start, len_bytes),
            Self::Trace(line) => line.occupy(start, len_bytes),
        }
    }

    /// Changes from `old` to `new` options. The frame on the line, if there is one, goes on at a new rate; between a
    /// rate and a trace, or two traces, it begins anew.
    pub(super) fn change(
        &mut self,
        now: Nanos,
        old: &LinkOptions,
        new: &LinkOptions,
        on_line_bytes: Option<u32>,
    ) {
        if old.trace == new.trace {
            if let Self::Rate(line) = self {
                if old.rate_bps != new.rate_bps {
                    line.set_rate(now, new.rate_bps);
                }
            }
            return;
        }
        *self = Self::new(now, new);
        if let Some(len_bytes) = on_line_bytes {
            self.occupy(now, len_bytes);
        }
    }
}
