// SPDX-License-Identifier: Apache-2.0
//! What frames wait for: a line of a rate, the opportunities of a trace, or grants.

use super::dama::DamaLine;
use super::trace::TraceLine;
use super::{LinkOptions, Nanos};
use crate::line::Line;

/// The line of a direction.
#[derive(Debug)]
pub(super) enum Service {
    Rate(Line),
    Trace(TraceLine),
    Dama(DamaLine),
}

impl Service {
    /// A free line with these options' rate or trace, which begins now.
    pub(super) fn new(now: Nanos, options: &LinkOptions) -> Self {
        match &options.trace {
            Some(trace) => Self::Trace(TraceLine::new(trace.clone(), now)),
            None if options.dama_frame_ns > 0 => Self::Dama(DamaLine::new(now, options)),
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
            Self::Dama(line) => line.free_at(),
        }
    }

    /// Puts a frame on the line at `start`, when it is free.
    #[inline]
    pub(super) fn occupy(&mut self, start: Nanos, len_bytes: u32) {
        match self {
            Self::Rate(line) => line.occupy(start, len_bytes),
            Self::Trace(line) => line.occupy(start, len_bytes),
            Self::Dama(line) => line.occupy(start, len_bytes),
        }
    }

    /// A frame has come that is to be put on the line, now or later.
    #[inline]
    pub(super) fn request(&mut self, now: Nanos, len_bytes: u32) {
        if let Self::Dama(line) = self {
            line.request(now, len_bytes);
        }
    }

    /// Changes from `old` to `new` options. The frame on the line, if there is one, goes on at a new rate; between a
    /// rate and a trace, or two traces, it begins anew, and so do grants; for what waits too, which `waiting` has.
    pub(super) fn change(
        &mut self,
        now: Nanos,
        old: &LinkOptions,
        new: &LinkOptions,
        on_line_bytes: Option<u32>,
        waiting: impl Iterator<Item = u32>,
    ) {
        let dama = |of: &LinkOptions| match of.dama_frame_ns {
            0 => None,
            frame => Some((frame, of.dama_delay_ns, of.dama_cra_bps, of.rate_bps)),
        };
        if (&old.trace, dama(old)) == (&new.trace, dama(new)) {
            if let Self::Rate(line) = self {
                if old.rate_bps != new.rate_bps {
                    line.set_rate(now, new.rate_bps);
                }
            }
            return;
        }
        *self = Self::new(now, new);
        for len_bytes in on_line_bytes.into_iter().chain(waiting) {
            self.request(now, len_bytes);
        }
        if let Some(len_bytes) = on_line_bytes {
            self.occupy(now, len_bytes);
        }
    }
}
