// SPDX-License-Identifier: Apache-2.0
//! Losses by time (RACK, RFC 8985, as Linux has it): a segment that was sent before one that got through is lost, once it
//! had time enough. Finds lost retransmissions too, which RFC 6675 leaves to the timer.
//!
//! ```text
//!  newest: of what was acknowledged or SACKed, the segment that was sent last; its RTT
//!  sent before it ──► RTT + reordering window gone by? ─► lost, at once      else ─► the timer looks again then
//! ```
//! The reordering window is a quarter of the smallest RTT before a recovery, and none in it or when `dupack_threshold`
//! segments are SACKed. NOT Linux's: the window does not adapt (no D-SACK here), and reordering is never held to be seen.

use super::scoreboard::AckedSegments;
use super::Sender;
use crate::cc::CaState;
use crate::seq::after;
use crate::Nanos;

/// When a segment was sent, and its end, which tells those apart that were sent at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SentAt {
    pub sent_ns: Nanos,
    pub end_seq: u32,
}

impl SentAt {
    /// RFC 8985 §6.2 step 2: RACK_sent_after.
    pub fn is_after(self, other: SentAt) -> bool {
        self.sent_ns > other.sent_ns
            || self.sent_ns == other.sent_ns && after(self.end_seq, other.end_seq)
    }

    /// The later one of two.
    pub fn latest(one: Option<SentAt>, other: SentAt) -> Option<SentAt> {
        Some(one.filter(|one| one.is_after(other)).unwrap_or(other))
    }
}

#[derive(Debug, Default)]
pub(super) struct Rack {
    pub(super) on: bool,
    newest: Option<SentAt>,
    rtt_ns: Nanos,
    /// Of the last ACK.
    now: Nanos,
    /// When to look again.
    deadline: Option<Nanos>,
}

impl Rack {
    pub fn new(on: bool) -> Rack {
        Rack {
            on,
            ..Rack::default()
        }
    }

    pub fn deadline(&self) -> Option<Nanos> {
        self.deadline
    }
}

impl Sender {
    /// An ACK showed these to have got through. A retransmission whose ACK came sooner than any before may be the original's.
    pub(super) fn note_delivered(&mut self, now: Nanos, acked: &AckedSegments) {
        self.rack.now = now;
        self.rack.deadline = None;
        let min_rtt_ns = self.rtt.min_rtt_ns();
        let repaired = acked
            .newest_repair
            .filter(|repair| now - repair.sent_ns >= min_rtt_ns);
        // In the order of their numbers, as Linux walks its queue: the RTT is that of the last one.
        let mut sent = [acked.newest_original, repaired];
        if let [Some(original), Some(repaired)] = sent {
            if after(original.end_seq, repaired.end_seq) {
                sent.reverse();
            }
        }
        for sent in sent.into_iter().flatten() {
            self.rack.rtt_ns = now - sent.sent_ns;
            self.rack.newest = SentAt::latest(self.rack.newest, sent);
        }
    }

    /// Marks what is lost, by RACK or by RFC 6675 IsLost().
    pub(super) fn find_losses(&mut self) {
        let newest = match self.rack.newest {
            _ if !self.rack.on => return self.board.mark_lost_by_sack(self.dupack_threshold),
            Some(newest) => newest,
            None => return,
        };
        let patience_ns = self.rack.rtt_ns + self.reordering_window_ns();
        self.rack.deadline = self
            .board
            .mark_lost_by_time(newest, patience_ns, self.rack.now);
    }

    /// What was sent later than this has not had its round trip yet. Without RACK nothing is spared.
    pub(super) fn recent_ns(&self, now: Nanos) -> Nanos {
        match self.finds_by_time() {
            true => now - self.rack.rtt_ns,
            false => Nanos::MAX,
        }
    }

    fn reordering_window_ns(&self) -> Nanos {
        let sure = self.ca_state() >= CaState::Recovery
            || self.board.sacked_out() >= self.dupack_threshold;
        if sure {
            return 0;
        }
        (self.rtt.min_rtt_ns() / 4).min(self.rtt.srtt_ns())
    }

    /// The time to look again has come: what is lost now is repaired.
    pub(super) fn on_reordering_timer(&mut self, now: Nanos) {
        if self.rack.deadline.is_none_or(|deadline| deadline > now) {
            return;
        }
        self.rack.now = now;
        let prior_lost = self.board.lost_ever();
        self.find_losses();
        if self.board.lost_ever() == prior_lost {
            return;
        }
        self.repair_what_is_lost(false);
        if self.in_reduction() && !self.cc.owns_cwnd() {
            self.control_window(false, 1, true);
        }
    }
}
