// SPDX-License-Identifier: Apache-2.0
//! What may be sent now: retransmissions, then new data; and whether the window was the limit.

use super::scoreboard::TxSegment;
use super::{Fin, Rexmit, Sender};
use crate::cc::{CaEvent, CaState};
use crate::config::SackLimit;
use crate::seq::{after, before};
use crate::Nanos;

impl Sender {
    /// The next segment to send; None ends the burst.
    pub fn next_segment(&mut self, now: Nanos) -> Option<TxSegment> {
        self.tcp.now_ns = now;
        if self.force_head {
            self.force_head = false;
            if self.board.packets_out() > 0 {
                return Some(self.retransmit(0, now));
            }
        }
        if self.is_paced_out(now) {
            self.end_burst(now);
            return None;
        }
        if let Some(segment) = self.next_retransmission(now) {
            return Some(segment);
        }
        if let Some(segment) = self.next_new(now) {
            return Some(segment);
        }
        if let Some(index) = self.next_in_doubt() {
            return Some(self.retransmit(index, now));
        }
        if self.rexmit == Rexmit::New {
            self.rexmit = Rexmit::None;
            if !after(self.tcp.snd_nxt, self.tcp.high_seq) {
                self.frto = false; // nothing new could be sent: RFC 5682 §2.1 step 2.b, last case
                self.rexmit = Rexmit::Lost;
                if let Some(segment) = self.next_retransmission(now) {
                    return Some(segment);
                }
            }
        }
        self.end_burst(now);
        None
    }

    fn next_retransmission(&mut self, now: Nanos) -> Option<TxSegment> {
        if self.rexmit != Rexmit::Lost {
            return None;
        }
        if self.board.in_flight() < self.tcp.snd_cwnd {
            if let Some(index) = self.board.next_lost() {
                return Some(self.retransmit(index, now));
            }
        }
        self.rexmit = Rexmit::None;
        None
    }

    /// RFC 6675 §4 NextSeg() rules 3 and 4, when the window has room for what is neither lost nor new: first a segment that
    /// may be lost, then, once a recovery, the last one, of whose loss no SACK would tell. NOT rule 4 where the peer's window
    /// alone holds new data back: that will tell. None with RACK: Linux has neither rule.
    fn next_in_doubt(&mut self) -> Option<usize> {
        let recovers = self.sack() && !self.rack.on && self.ca_state() == CaState::Recovery;
        if !recovers || self.board.in_flight() >= self.tcp.snd_cwnd {
            return None;
        }
        if let Some(index) = self.board.next_doubtful() {
            return Some(index);
        }
        if !self.rescue || self.has_new_data() {
            return None;
        }
        self.rescue = false;
        self.board.last_unsacked()
    }

    fn retransmit(&mut self, index: usize, now: Nanos) -> TxSegment {
        if self.board.in_flight() == 0 {
            self.cwnd_event(CaEvent::TxStart);
        }
        let at_send = self.at_send(now);
        let segment = self.board.retransmit(index, now, at_send);
        self.stats.retransmits += 1;
        self.stats.bytes_retransmitted += u64::from(segment.len);
        self.retrans_stamp.get_or_insert(self.clock.timestamp(now));
        self.sent(now, index == 0);
        self.pace(now, segment.len);
        segment
    }

    fn next_new(&mut self, now: Nanos) -> Option<TxSegment> {
        let (len, fin) = self.new_segment_len()?;
        if self.board.in_flight() == 0 {
            self.restart_after_idle(now);
            self.cwnd_event(CaEvent::TxStart);
        }
        let segment = TxSegment::new(self.tcp.snd_nxt, len, fin, now);
        let at_send = self.at_send(now);
        let first = self.board.packets_out() == 0;
        self.board.push(segment, at_send);
        self.tcp.snd_nxt = segment.end_seq();
        if self.unsent != u64::MAX {
            self.unsent -= u64::from(len);
        }
        if fin {
            self.fin = Fin::Sent;
        }
        self.persist.stop();
        self.sent(now, first);
        self.pace(now, len);
        Some(segment)
    }

    fn sent(&mut self, now: Nanos, restart_rto: bool) {
        if restart_rto {
            self.restart_rto(now);
        }
        if self.in_reduction() {
            self.prr_out += 1;
        }
        self.burst_sent = true;
        self.last_sent_ns = now;
    }

    pub(super) fn has_new_data(&self) -> bool {
        self.unsent > 0 || self.fin == Fin::Wanted
    }

    /// Bytes that the peer's window still takes. `SackLimit::Outstanding`: what was SACKed takes no room, up to the buffer.
    fn window_room(&self) -> u64 {
        let sent = u64::from(self.tcp.snd_nxt.wrapping_sub(self.tcp.snd_una));
        match self.sack_limit {
            SackLimit::Outstanding if self.sack() => {
                let outstanding = sent - self.board.sacked_bytes();
                let within_buffer = (self.sack_buffer_windows * self.snd_wnd).saturating_sub(sent);
                self.snd_wnd.saturating_sub(outstanding).min(within_buffer)
            }
            _ => self.snd_wnd.saturating_sub(sent),
        }
    }

    /// For F-RTO: is there new data, and would the peer take it?
    pub(super) fn may_send_new_data(&self) -> bool {
        self.unsent > 0 && self.window_room() > 0
    }

    /// Payload length and FIN of the next new segment, if one may be sent.
    pub(super) fn new_segment_len(&self) -> Option<(u32, bool)> {
        if !self.has_new_data() || self.packets_counted() >= self.tcp.snd_cwnd {
            return None;
        }
        let mss = u64::from(self.negotiated.mss_bytes);
        let len = self.unsent.min(mss).min(self.window_room());
        let fin = self.fin == Fin::Wanted && len == self.unsent;
        let all = len == self.unsent;
        // RFC 9293 §3.8.6.2.1: not in dribs and drabs; with nothing in flight whatever the window takes.
        let worth_it =
            len == mss || all || 2 * len >= self.max_window || self.board.packets_out() == 0;
        ((len > 0 && worth_it) || (fin && len == 0)).then_some((len as u32, fin))
    }

    /// What new data is held against cwnd: without limited transmit (RFC 3042) duplicate ACKs let none out.
    fn packets_counted(&self) -> u32 {
        let early = matches!(self.ca_state(), CaState::Open | CaState::Disorder);
        let held_back = if early && !self.limited_transmit {
            self.board.sacked_out()
        } else {
            0
        };
        self.board.in_flight() + held_back
    }

    /// RFC 5681 §4.1: after an idle RTO the window is at most the initial one; Linux halves it for each RTO.
    fn restart_after_idle(&mut self, now: Nanos) {
        let rto_ns = self.rtt.rto_ns();
        let mut idle_ns = now - self.last_sent_ns;
        if !self.slow_start_after_idle
            || self.cc.owns_cwnd()
            || self.board.packets_out() > 0
            || idle_ns <= rto_ns
        {
            return;
        }
        self.cwnd_event(CaEvent::CwndRestart);
        self.tcp.snd_ssthresh = self.current_ssthresh();
        let restart = self.initial_window.min(self.tcp.snd_cwnd);
        while idle_ns > rto_ns && self.tcp.snd_cwnd > restart {
            self.tcp.snd_cwnd /= 2;
            idle_ns -= rto_ns;
        }
        self.tcp.snd_cwnd = self.tcp.snd_cwnd.max(restart);
    }

    fn end_burst(&mut self, now: Nanos) {
        let full = self.has_new_data() && self.board.in_flight() >= self.tcp.snd_cwnd;
        if self.burst_sent || full {
            self.validate_cwnd(self.board.in_flight() >= self.tcp.snd_cwnd);
        }
        self.burst_sent = false;
        self.pacer.end_burst();
        let stuck = self.unsent > 0 && self.board.packets_out() == 0;
        self.persist
            .watch(stuck, now, self.rtt.rto_ns(), self.clock);
    }

    /// Remembers whether the window was the limit, for a round trip (Linux: tcp_cwnd_validate).
    fn validate_cwnd(&mut self, limited: bool) {
        let packets_out = self.board.packets_out();
        let round_is_over = !before(self.tcp.snd_una, self.cwnd_usage_seq);
        if round_is_over || limited || (!self.is_cwnd_limited && packets_out > self.max_packets_out)
        {
            self.is_cwnd_limited = limited;
            self.max_packets_out = packets_out;
            self.cwnd_usage_seq = self.tcp.snd_nxt;
        }
    }

    /// Linux: tcp_is_cwnd_limited. In slow start half a window in use is enough.
    pub(super) fn cwnd_limits(&self) -> bool {
        self.is_cwnd_limited
            || (self.tcp.snd_cwnd < self.tcp.snd_ssthresh
                && self.tcp.snd_cwnd < 2 * self.max_packets_out)
    }

    /// The peer's window is shut and the persist timer ran out: the sequence number of a probe.
    pub fn next_probe(&mut self) -> Option<u32> {
        if !self.persist.take_probe() {
            return None;
        }
        self.stats.window_probes += 1;
        Some(self.tcp.snd_una.wrapping_sub(1))
    }

    /// RTO, RACK's, pacing and persist timer.
    pub fn on_timer(&mut self, now: Nanos) {
        if self.pacer.on_timer(now) && self.board.lost_out() > self.board.retrans_out() {
            self.rexmit = Rexmit::Lost;
        }
        self.tcp.now_ns = now;
        if self.rto_deadline.is_some_and(|deadline| deadline <= now) {
            self.on_rto(now);
        }
        self.on_reordering_timer(now);
        self.persist.on_timer(now, self.rtt.rto_ns(), self.clock);
    }
}
