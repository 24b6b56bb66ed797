// SPDX-License-Identifier: Apache-2.0
//! An acknowledgment comes in: what it takes out, its RTT sample, and the window that follows.

use super::scoreboard::AckedSegments;
use super::{Fin, Sender};
use crate::cc::CaState;
use crate::config::Backoff;
use crate::segment::options::SackBlocks;
use crate::seq::{after, before};
use crate::Nanos;

/// The acknowledging part of a segment.
#[derive(Clone, Copy, Debug)]
pub struct Ack<'a> {
    pub seq: u32,
    pub ack: u32,
    /// Scaled, bytes.
    pub window: u64,
    /// The segment takes sequence numbers, so it is no duplicate ACK.
    pub has_data: bool,
    pub sack: &'a SackBlocks,
    /// Where a segment begins that came in corrupted.
    pub ena: Option<u32>,
    /// The receiver echoes a congestion mark.
    pub ece: bool,
    /// The echoed timestamp.
    pub tsecr: Option<u32>,
}

/// What an ACK was found to be (Linux: the FLAG_… bits).
#[derive(Clone, Copy, Debug)]
pub(super) struct AckFlags {
    pub una_advanced: bool,
    pub dupack: bool,
    pub newly_sacked: u32,
    pub original_acked: bool,
    /// Something that was sent after the head, as it is now, was acknowledged: the head is a hole.
    pub head_overtaken: bool,
    pub tsecr: Option<u32>,
    /// It echoes a congestion mark.
    pub ece: bool,
}

impl Sender {
    /// Takes an ACK that is not above snd_nxt; older ones than snd_una are ignored.
    pub fn on_ack(&mut self, now: Nanos, ack: &Ack) {
        self.tcp.now_ns = now;
        let prior_una = self.tcp.snd_una;
        if before(ack.ack, prior_una) {
            return;
        }
        if let (Some(seq), true) = (ack.ena, self.cc.has_ena()) {
            self.stats.ena_notified += 1;
            self.cc.notified(seq, ack.ack);
        }
        let una_advanced = after(ack.ack, prior_una);
        let window_updated = self.update_window(ack);
        let prior_packets = self.board.packets_out();
        if una_advanced {
            if self.backoffs > 0 && self.backoff == Backoff::Reset {
                self.rtt.end_back_off();
            }
            self.backoffs = 0;
            self.count_acked_bytes(prior_una, ack.ack);
            self.tcp.snd_una = ack.ack;
        }
        self.persist.answered();
        if prior_packets == 0 {
            return;
        }

        let ece = ack.ece && self.negotiated.ecn;
        let (prior_delivered, prior_lost) = (self.delivered, self.board.lost_ever());
        let (prior_ce, prior_in_flight) = (self.stats.delivered_ce, self.board.in_flight());
        let mut acked = AckedSegments::default();
        if self.sack() && !ack.sack.is_empty() {
            let (una, nxt, high_seq) = (self.tcp.snd_una, self.tcp.snd_nxt, self.tcp.high_seq);
            self.board
                .sack(ack.sack.as_slice(), una, nxt, high_seq, &mut acked);
        }
        if una_advanced {
            self.board
                .acknowledge(ack.ack, self.tcp.high_seq, &mut acked);
        }
        self.count_delivered(&mut acked);
        self.note_delivered(now, &acked);
        if ece {
            self.stats.delivered_ce = prior_ce + self.delivered - prior_delivered;
        }
        let rtt_ns = self.rtt_sample(now, ack.tsecr, &acked);
        let not_dup = una_advanced || ack.has_data || window_updated;
        let repairs = ack.ena.filter(|_| self.repairs_named && self.cc.has_ena());
        let least_rtt_ns = self.rtt.min_rtt_ns();
        let named = repairs.is_some_and(|seq| self.board.mark_named_lost(seq, now, least_rtt_ns));
        self.restart_rto_after(now, &acked, rtt_ns.is_some());
        self.view();
        self.tcp.rtt_us = rtt_ns.map_or(-1, |rtt_ns| (rtt_ns / 1000).min(i32::MAX as u64) as i32);
        self.cc.pkts_acked(&mut self.tcp);

        self.stats.dupacks += u64::from(!not_dup);
        let odd = !not_dup || named || acked.newly_sacked > 0 || ece;
        if odd || self.ca_state() != CaState::Open {
            self.alert(AckFlags {
                una_advanced,
                dupack: !not_dup && !named, // it tells of a segment that did not get through
                newly_sacked: acked.newly_sacked,
                original_acked: acked.original_acked,
                head_overtaken: self.head_is_overtaken(&acked),
                tsecr: ack.tsecr,
                ece,
            });
        }
        let delivered = (self.delivered - prior_delivered) as u32;
        let losses = (self.board.lost_ever() - prior_lost) as u32;
        if ece {
            self.stats.delivered_ce = prior_ce + u64::from(delivered);
        }
        self.sample_rate(now, &acked, delivered, losses, prior_in_flight);
        let lost = losses > 0;
        if !self.erto_holds_window() {
            self.control_window(una_advanced, delivered, lost);
        }
    }

    /// RFC 9293 §3.10.7.4. Whether the segment carried news of the window (Linux: FLAG_WIN_UPDATE).
    fn update_window(&mut self, ack: &Ack) -> bool {
        let same = ack.seq == self.snd_wl1
            && (ack.window > self.snd_wnd || ack.window == 0 && self.snd_wnd != 0);
        let news = after(ack.ack, self.tcp.snd_una) || after(ack.seq, self.snd_wl1) || same;
        if news {
            self.snd_wl1 = ack.seq;
            self.snd_wnd = ack.window;
            self.max_window = self.max_window.max(ack.window);
        }
        news
    }

    fn count_acked_bytes(&mut self, prior_una: u32, ack: u32) {
        let fin = self.fin == Fin::Sent && ack == self.tcp.snd_nxt;
        self.acked_bytes += u64::from(ack.wrapping_sub(prior_una) - u32::from(fin));
    }

    fn count_delivered(&mut self, acked: &mut AckedSegments) {
        if self.sack() {
            self.delivered += u64::from(acked.newly_delivered + acked.newly_sacked);
        } else if acked.packets > 0 {
            self.delivered += u64::from(self.board.remove_dupacks(acked.packets));
            if acked.retransmitted_acked {
                acked.original_acked = false; // which of the two came through cannot be told without SACK
            }
        }
    }

    fn head_is_overtaken(&self, acked: &AckedSegments) -> bool {
        let newest = acked.newest_original.into_iter().chain(acked.newest_repair);
        let sent_ns = newest.map(|sent| sent.sent_ns).max();
        self.board.head().map(|head| head.sent_ns) < sent_ns
    }

    /// The estimator gets the RTT of the first segment acknowledged, the control that of the last (returned): a delayed
    /// ACK waited since the first. Never from a segment that was sent twice (Karn), unless timestamps tell.
    fn rtt_sample(
        &mut self,
        now: Nanos,
        tsecr: Option<u32>,
        acked: &AckedSegments,
    ) -> Option<Nanos> {
        let original =
            (!acked.retransmitted_acked).then_some((acked.first_sent_ns, acked.last_sent_ns));
        let sent = match original {
            Some((Some(first), Some(last))) => {
                Some((first, acked.last_sacked_sent_ns.unwrap_or(last)))
            }
            _ => acked.first_sacked_sent_ns.zip(acked.last_sacked_sent_ns),
        };
        let (first_ns, last_ns) = match (sent, tsecr) {
            (Some((first, last)), _) => (
                self.clock.between(first, now),
                self.clock.between(last, now),
            ),
            (None, Some(tsecr)) if acked.packets > 0 && self.negotiated.timestamps => {
                let ticks = self.clock.timestamp(now).wrapping_sub(tsecr);
                let rtt_ns = u64::from(ticks).max(1) * self.clock.timestamp_tick_ns();
                (rtt_ns, rtt_ns)
            }
            _ => return None,
        };
        self.rtt
            .sample(first_ns, self.tcp.snd_una, self.tcp.snd_nxt);
        Some(last_ns)
    }

    /// RFC 6298 §5.3; a SACK restarts it too, when what it reports was sent before the head was (else a lost head would
    /// put off its own timeout).
    fn restart_rto_after(&mut self, now: Nanos, acked: &AckedSegments, sampled: bool) {
        let sack_is_older = match (acked.first_sacked_sent_ns, self.board.head()) {
            (Some(sacked), Some(head)) => sampled && sacked < head.sent_ns,
            _ => false,
        };
        if acked.packets > 0 || sack_is_older {
            self.restart_rto(now);
        }
    }
}
