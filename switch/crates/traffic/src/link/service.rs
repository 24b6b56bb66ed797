// SPDX-License-Identifier: Apache-2.0
//! What frames wait for, of a link as of a switch's port: a line of a rate, which a series may move, the opportunities of a
//! trace, or grants.

use super::dama::DamaLine;
use super::options::RATE_BPS;
use super::series::{Playing, Series};
use super::trace::TraceLine;
use super::{LinkOptions, Nanos};
use crate::line::Line;
use std::sync::Arc;

/// A line.
#[derive(Debug)]
pub struct Service {
    line: Kind,
    /// What moves the rate.
    rate: Option<Box<Playing>>,
    /// When the rate is another one: never without a series.
    next_change: Nanos,
}

#[derive(Debug)]
enum Kind {
    Rate(Line),
    Trace(TraceLine),
    Dama(DamaLine),
}

impl Service {
    /// A free line of this rate (0: unlimited).
    ///
    /// # Panics
    /// When the rate is above [`crate::line::RATE_BPS_MAX`].
    pub fn new(rate_bps: u64) -> Self {
        Self {
            line: Kind::Rate(Line::new(rate_bps)),
            rate: None,
            next_change: Nanos::MAX,
        }
    }

    /// A free line whose rate follows a series, which begins now.
    fn following(now: Nanos, playing: Playing) -> Self {
        let mut service = Self::new(0);
        match playing.trace() {
            Some(trace) => service.line = Kind::Trace(TraceLine::new(trace.clone(), now)),
            None => {
                service.rate = Some(Box::new(playing));
                service.change_rate(now);
            }
        }
        service
    }

    /// The line of a direction with these options, which begins now; `playing` is what its rate follows.
    pub(super) fn of(now: Nanos, options: &LinkOptions, playing: Option<Playing>) -> Self {
        match playing {
            Some(playing) => Self::following(now, playing),
            None if options.dama_frame_ns > 0 => Self {
                line: Kind::Dama(DamaLine::new(now, options)),
                ..Self::new(0)
            },
            None => Self::new(options.rate_bps),
        }
    }

    /// No frame takes any time.
    #[inline]
    pub fn is_unlimited(&self) -> bool {
        matches!(&self.line, Kind::Rate(line) if line.rate_bps() == 0)
    }

    /// First whole nanosecond at which the line is free, if its rate stays.
    #[inline]
    pub fn free_at(&self) -> Nanos {
        match &self.line {
            Kind::Rate(line) => line.free_at(),
            Kind::Trace(line) => line.free_at(),
            Kind::Dama(line) => line.free_at(),
        }
    }

    /// The line is not free before this instant, whatever happens to its rate.
    #[inline]
    pub fn busy_until(&self) -> Nanos {
        self.free_at().min(self.next_change)
    }

    /// What moves the rate.
    pub fn playing(&self) -> Option<&Playing> {
        self.rate.as_deref()
    }

    /// From when to `until` the rate is what, bit/s (0: the line stands); of a trace on average, for each 100 ms. None: it is
    /// a number.
    pub fn rates(&self, until: Nanos) -> Option<Vec<(Nanos, f64)>> {
        match (&self.rate, &self.line) {
            (Some(rate), _) => Some(rate.values(until)),
            (None, Kind::Trace(line)) => Some(line.rates(until)),
            (None, Kind::Rate(_) | Kind::Dama(_)) => None,
        }
    }

    /// Brings the rate up to `now`, each change at its instant; whether the line is free at `now`.
    #[inline]
    pub fn is_free(&mut self, now: Nanos) -> bool {
        while self.next_change <= now && self.next_change < self.free_at() {
            self.change_rate(self.next_change);
        }
        self.free_at() <= now
    }

    #[cold]
    fn change_rate(&mut self, now: Nanos) {
        if let (Kind::Rate(line), Some(rate)) = (&mut self.line, &mut self.rate) {
            let (value, until) = rate.step(now);
            self.next_change = until;
            match libm::round(value) as u64 {
                0 => line.stand(now),
                rate_bps => line.set_rate(now, rate_bps),
            }
        }
    }

    /// Puts a frame on the line at `start`, when it is free.
    #[inline]
    pub fn occupy(&mut self, start: Nanos, len_bytes: u32) {
        if self.next_change <= start {
            self.change_rate(start);
        }
        match &mut self.line {
            Kind::Rate(line) => line.occupy(start, len_bytes),
            Kind::Trace(line) => line.occupy(start, len_bytes),
            Kind::Dama(line) => line.occupy(start, len_bytes),
        }
    }

    /// A frame has come that is to be put on the line, now or later.
    #[inline]
    pub(super) fn request(&mut self, now: Nanos, len_bytes: u32) {
        if let Kind::Dama(line) = &mut self.line {
            line.request(now, len_bytes);
        }
    }

    /// Changes from `old` to `new` options: as [`Self::set_rate`] and [`Self::follow`] do. With other grants all that is on the
    /// line and what waits, of these lengths, is asked for anew.
    pub(super) fn change(
        &mut self,
        now: Nanos,
        [old, new]: [&LinkOptions; 2],
        play: impl Fn(&Arc<Series>) -> Playing,
        on_line_bytes: Option<u32>,
        waiting: impl Iterator<Item = u32>,
    ) {
        let dama = |of: &LinkOptions| match of.dama_frame_ns {
            0 => None,
            frame => Some((frame, of.dama_delay_ns, of.dama_cra_bps, of.rate_bps)),
        };
        let (before, series) = (&old.series[RATE_BPS], &new.series[RATE_BPS]);
        if dama(old) != dama(new) {
            *self = Self::of(now, new, series.as_ref().map(play));
            for len_bytes in on_line_bytes.into_iter().chain(waiting) {
                self.request(now, len_bytes);
            }
            if let Some(len_bytes) = on_line_bytes {
                self.occupy(now, len_bytes);
            }
        } else if before != series || (series.is_none() && old.rate_bps != new.rate_bps) {
            match series {
                Some(series) => self.follow(now, play(series), on_line_bytes),
                None => self.set_rate(now, new.rate_bps, on_line_bytes),
            }
        }
    }

    /// Another rate from now on; the frame on the line, if there is one, goes on at it. After a trace it begins anew.
    pub fn set_rate(&mut self, now: Nanos, rate_bps: u64, on_line_bytes: Option<u32>) {
        self.is_free(now);
        match &mut self.line {
            Kind::Rate(line) => {
                line.set_rate(now, rate_bps);
                (self.rate, self.next_change) = (None, Nanos::MAX);
            }
            _ => self.replace(now, Self::new(rate_bps), on_line_bytes),
        }
    }

    /// The rate follows a series from now on. The frame on the line goes on at its first rate; with a trace, or after one,
    /// it begins anew.
    pub fn follow(&mut self, now: Nanos, playing: Playing, on_line_bytes: Option<u32>) {
        self.is_free(now);
        match (&self.line, playing.trace()) {
            (Kind::Rate(_), None) => {
                self.rate = Some(Box::new(playing));
                self.change_rate(now);
            }
            _ => self.replace(now, Self::following(now, playing), on_line_bytes),
        }
    }

    fn replace(&mut self, now: Nanos, new: Self, on_line_bytes: Option<u32>) {
        *self = new;
        if let Some(len_bytes) = on_line_bytes {
            self.occupy(now, len_bytes);
        }
    }
}
