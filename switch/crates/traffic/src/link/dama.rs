// SPDX-License-Identifier: Apache-2.0
//! A line whose capacity is granted on request (DAMA, as DVB-RCS2's return link): what comes to the terminal is asked for by
//! volume (VBDC) at the next frame's start, and granted a round trip later; a constant rate (CRA) needs no request.
//!
//! ```text
//!  arrival   request            grant: the terminal sends
//!  ──┴────────┬──────────────────┬─────────────►
//!             │ frame k          │ frame k + ⌈delay/frame⌉
//! ```
//!
//! A frame's period carries what the line's rate does at most; grants above wait for the next one. What a frame grants and nobody
//! uses is lost. A packet may lie in several frames.

use super::{LinkOptions, Nanos};
use std::collections::VecDeque;

/// Nano-bits: one bit is 10^9 of them, so that a rate in bit/s times a time in ns is a number of them.
type Work = u128;

fn work_of(len_bytes: u32) -> Work {
    Work::from(len_bytes) * 8_000_000_000
}

/// The line of a terminal.
#[derive(Debug)]
pub(super) struct DamaLine {
    rate_bps: Work,
    frame_ns: Nanos,
    /// From a request to its grant.
    delay_frames: u64,
    /// What a frame's period carries, and what of it needs no request.
    capacity: Work,
    constant: Work,
    /// Frame 0 starts then.
    begin: Nanos,
    /// Requested: in which frame it is granted, and how much.
    requests: VecDeque<(u64, Work)>,
    /// Granted, above what the frames until now had room for.
    waiting: Work,
    /// The frame until which grants are taken in, what it was given, and what is left of that.
    frame: u64,
    given: Work,
    left: Work,
    free_at: Nanos,
}

impl DamaLine {
    /// A line without a request, whose frames start now.
    pub(super) fn new(now: Nanos, options: &LinkOptions) -> DamaLine {
        let frame_ns = options.dama_frame_ns;
        let carries = |rate_bps: u64| Work::from(rate_bps) * Work::from(frame_ns);
        DamaLine {
            rate_bps: Work::from(options.rate_bps),
            frame_ns,
            delay_frames: options.dama_delay_ns.div_ceil(frame_ns),
            capacity: carries(options.rate_bps),
            constant: carries(options.dama_cra_bps),
            begin: now,
            requests: VecDeque::new(),
            waiting: 0,
            frame: 0,
            given: carries(options.dama_cra_bps),
            left: carries(options.dama_cra_bps),
            free_at: now,
        }
    }

    pub(super) fn free_at(&self) -> Nanos {
        self.free_at
    }

    /// A packet has come to the terminal, which asks for its volume.
    pub(super) fn request(&mut self, now: Nanos, len_bytes: u32) {
        let at = (now.saturating_sub(self.begin)).div_ceil(self.frame_ns);
        self.ask(at + self.delay_frames, work_of(len_bytes));
    }

    fn ask(&mut self, granted_in: u64, work: Work) {
        match self.requests.back_mut() {
            // Frames before were used by those that came before, if not for want of a grant.
            _ if granted_in <= self.frame => {
                self.waiting += work;
                self.give();
            }
            Some((frame, asked)) if *frame >= granted_in => *asked += work,
            _ => self.requests.push_back((granted_in, work)),
        }
    }

    /// What is granted and has room in this frame is given to it.
    fn give(&mut self) {
        let granted = self.waiting.min(self.capacity - self.given);
        self.waiting -= granted;
        self.given += granted;
        self.left += granted;
    }

    /// Puts a packet on the free line at `start`.
    pub(super) fn occupy(&mut self, start: Nanos, len_bytes: u32) {
        let (mut at, mut left) = (start.max(self.free_at).max(self.begin), work_of(len_bytes));
        loop {
            let frame = (at - self.begin) / self.frame_ns;
            self.enter(frame);
            let end = self.begin + (frame + 1) * self.frame_ns;
            let usable = self.left.min(Work::from(end - at) * self.rate_bps);
            if left <= usable {
                self.left -= left;
                self.free_at = at + left.div_ceil(self.rate_bps) as Nanos;
                return;
            }
            left -= usable;
            self.left = 0;
            at = end;
            if self.requests.is_empty() && self.waiting == 0 && self.constant == 0 {
                // Nobody has asked for it.
                self.ask(frame + 1 + self.delay_frames, left);
            }
        }
    }

    /// Takes in the grants of all frames until this one.
    fn enter(&mut self, frame: u64) {
        while self.frame < frame {
            self.frame += 1;
            while let Some((_, asked)) = self.requests.front().filter(|(at, _)| *at <= self.frame) {
                self.waiting += asked;
                self.requests.pop_front();
            }
            (self.given, self.left) = (self.constant, self.constant);
            self.give();
            if self.frame < frame && self.waiting == 0 && self.requests.is_empty() {
                // Until `frame` there is nothing but the constant rate.
                self.frame = frame;
            }
        }
    }
}
