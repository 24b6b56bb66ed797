// SPDX-License-Identifier: Apache-2.0
//! Delivery-rate samples (draft-cheng-iccrg-delivery-rate-estimation-00, as Linux's tcp_rate.c), and pacing.
//!
//! ```text
//!  a segment leaves:  it keeps what was delivered by then, and when        (AtSend)
//!  its ACK comes:     delivered since then over the longer of the two:     time to send them, time until their ACKs came
//! ```

use super::scoreboard::{AckedSegments, AtSend};
use super::Sender;
use crate::cc::{Rate, UNPACED};
use crate::seq::after;
use crate::Nanos;

/// Linux paces from the eleventh data segment on.
const UNPACED_SEGMENTS: u64 = 10;
const SECOND_NS: u128 = 1_000_000_000;

#[derive(Debug, Default)]
pub(super) struct RateEstimator {
    /// When the segment was sent that is the newest one delivered.
    first_sent_ns: Nanos,
    /// When the last packet was counted as delivered.
    delivered_ns: Nanos,
    /// Samples of what was sent before `delivered` has passed this are the application's rate; 0: they are not.
    app_limited: u32,
}

impl RateEstimator {
    pub(super) fn app_limited(&self) -> u32 {
        self.app_limited
    }

    /// A control may hold its own rate for no measure of the path (BBR's PROBE_RTT).
    pub(super) fn set_app_limited(&mut self, until: u32) {
        self.app_limited = until;
    }
}

impl Sender {
    /// What a segment that leaves now keeps (the draft's §3.2); None where the control asks for no rates.
    pub(super) fn at_send(&mut self, now: Nanos) -> Option<AtSend> {
        if !self.cc.owns_cwnd() {
            return None;
        }
        if self.board.packets_out() == 0 {
            self.rate.first_sent_ns = now;
            self.rate.delivered_ns = now;
        }
        Some(AtSend {
            delivered: self.delivered as u32,
            delivered_ns: self.rate.delivered_ns,
            first_sent_ns: self.rate.first_sent_ns,
            app_limited: self.rate.app_limited != 0,
        })
    }

    /// The application writes: was there nothing to send, with room in the window, until now (the draft's §3.4)?
    pub(super) fn note_lull(&mut self) {
        let in_flight = self.board.in_flight();
        if self.unsent < u64::from(self.negotiated.mss_bytes)
            && in_flight < self.tcp.snd_cwnd
            && self.board.lost_out() <= self.board.retrans_out()
        {
            self.rate.app_limited = (self.delivered as u32).wrapping_add(in_flight).max(1);
        }
    }

    /// The sample of an ACK, where the control asks for one (the draft's §3.3): `delivered` and `losses` are packets that it told of.
    pub(super) fn sample_rate(
        &mut self,
        now: Nanos,
        acked: &AckedSegments,
        delivered: u32,
        losses: u32,
        prior_in_flight: u32,
    ) {
        if !self.cc.owns_cwnd() {
            return;
        }
        let total = self.delivered as u32;
        if self.rate.app_limited != 0 && after(total, self.rate.app_limited) {
            self.rate.app_limited = 0;
        }
        if delivered > 0 {
            self.rate.delivered_ns = now;
        }
        let mut rate = Rate {
            delivered: -1,
            interval_us: -1,
            prior_in_flight,
            acked_sacked: delivered,
            losses,
            ..Rate::default()
        };
        if let Some((newest, sent)) = &acked.newest {
            self.rate.first_sent_ns = newest.sent_ns;
            let sending_ns = newest.sent_ns - sent.first_sent_ns;
            let interval_ns = sending_ns.max(now - sent.delivered_ns);
            rate.prior_delivered = sent.delivered;
            rate.delivered = total.wrapping_sub(sent.delivered) as i32;
            rate.app_limited = u32::from(sent.app_limited);
            rate.ack_delayed = u32::from(
                acked.packets == 1
                    && newest.len < self.negotiated.mss_bytes
                    && sent.delivered.wrapping_add(1) == total,
            );
            // Shorter than any RTT: a retransmission's original was acknowledged.
            if interval_ns >= self.rtt.min_rtt_ns() {
                rate.interval_us = (interval_ns / 1000).min(i32::MAX as u64) as i32;
            }
        }
        self.tcp.rate = rate;
    }

    /// Whether pacing holds the next segment back; the timer will say when not any more.
    pub(super) fn is_paced_out(&mut self, now: Nanos) -> bool {
        let out = self.tcp.pacing_rate != UNPACED
            && self.pacer.next_ns > now
            && self.pacer.burst_left == 0;
        let waits = self.has_new_data() || self.board.lost_out() > self.board.retrans_out();
        self.pacer.waits = out && waits;
        out
    }

    /// A segment of `len` bytes leaves: when the next one may (Linux: tcp_update_skb_after_send).
    pub(super) fn pace(&mut self, now: Nanos, len: u32) {
        let rate = self.tcp.pacing_rate;
        if rate == UNPACED || rate == 0 || self.stats.data_segments_sent < UNPACED_SEGMENTS {
            self.pacer.next_ns = self.pacer.next_ns.max(now);
            return;
        }
        if self.pacer.burst_left == 0 {
            self.view();
            let packets = self.cc.burst(&mut self.tcp);
            self.pacer.begin_burst(now, packets);
        }
        let len_ns = (u128::from(len) * SECOND_NS / u128::from(rate)) as Nanos;
        self.pacer.sent(len_ns);
    }
}

/// When the next burst may leave.
#[derive(Debug, Default)]
pub(super) struct Pacer {
    next_ns: Nanos,
    /// Something would go but for `next_ns`.
    waits: bool,
    /// Segments that may still leave with the last one, when it left, how late that was, and how long all take so far.
    burst_left: u32,
    burst_ns: Nanos,
    late_ns: Nanos,
    taken_ns: Nanos,
}

impl Pacer {
    pub(super) fn deadline(&self) -> Option<Nanos> {
        self.waits.then_some(self.next_ns)
    }

    /// Whether the time has come that something waited for.
    pub(super) fn on_timer(&mut self, now: Nanos) -> bool {
        let due = self.waits && self.next_ns <= now;
        self.waits &= !due;
        due
    }

    pub(super) fn end_burst(&mut self) {
        self.burst_left = 0;
    }

    fn begin_burst(&mut self, now: Nanos, packets: u32) {
        self.burst_left = packets;
        self.burst_ns = self.next_ns.max(now);
        self.late_ns = self.burst_ns - self.next_ns;
        self.taken_ns = 0;
    }

    /// What left late makes up for it by up to half its own time.
    fn sent(&mut self, len_ns: Nanos) {
        self.burst_left -= 1;
        self.taken_ns += len_ns;
        self.next_ns = self.burst_ns + self.taken_ns - self.late_ns.min(self.taken_ns / 2);
    }
}
