// SPDX-License-Identifier: Apache-2.0
//! Segments that are lost: who finds it, and which goes again next.

use super::{AtSend, Scoreboard, SentAt, TxSegment, EVER_RETRANS, LOST, RETRANS, SACKED};
use crate::seq::before;
use crate::Nanos;

impl Scoreboard {
    /// Marks a segment as lost; one whose retransmission was in flight is lost again.
    fn mark_lost(&mut self, index: usize) {
        let segment = &mut self.ring[index];
        if segment.has(SACKED) {
            return;
        }
        if segment.has(LOST) {
            if segment.has(RETRANS) {
                segment.marks &= !RETRANS;
                self.retrans_out -= 1;
                self.lost_ever += 1;
            }
        } else {
            segment.marks |= LOST;
            self.lost_out += 1;
            self.lost_ever += 1;
            // Of duplicate ACKs, which do not say for what they are: what is lost did not get through.
            self.sacked_out = self.sacked_out.min(self.packets_out() - self.lost_out);
        }
        self.retransmit_hint = self.retransmit_hint.min(index);
    }

    /// The receiver got the segment at `seq` corrupted: it is lost, a retransmission too. Not when it waits to be sent again
    /// already, nor when it was sent less than `least_rtt_ns` ago: then the copy before it is meant. Whether that is news.
    pub fn mark_named_lost(&mut self, seq: u32, now: Nanos, least_rtt_ns: Nanos) -> bool {
        let index = self
            .ring
            .partition_point(|segment| before(segment.seq, seq));
        let Some(segment) = self.ring.get(index) else {
            return false;
        };
        let waits = segment.marks & (LOST | RETRANS) == LOST;
        let is_older = segment.has(EVER_RETRANS) && now < segment.sent_ns + least_rtt_ns;
        if segment.seq != seq || segment.has(SACKED) || waits || is_older {
            return false;
        }
        self.mark_lost(index);
        true
    }

    /// NewReno and Reno: the first hole is the head. Does nothing when the head is already held to be lost.
    pub fn mark_head_lost(&mut self) {
        if self.ring.front().is_some_and(|head| !head.has(LOST)) {
            self.mark_lost(0);
        }
    }

    /// A timeout: everything that is not SACKed is lost, but what was sent after `recent_ns` and is not the head. A SACKed
    /// head means that the receiver dropped what it had SACKed (RFC 2018 §8): then everything is.
    pub fn mark_all_lost(&mut self, sack: bool, recent_ns: Nanos) {
        let reneged = self.ring.front().is_some_and(|head| head.has(SACKED));
        if reneged || !sack {
            self.sacked_out = 0;
            self.sacked_bytes = 0;
            self.lost_hint = 0;
            self.lost_hint_sacked = 0;
            self.last_blocks = [(0, 0); 4];
        }
        for index in 0..self.ring.len() {
            let segment = &mut self.ring[index];
            if reneged {
                segment.marks &= !SACKED;
            } else if index > 0 && segment.sent_ns > recent_ns {
                continue;
            }
            if segment.marks & (LOST | RETRANS) == RETRANS {
                segment.marks &= !RETRANS; // sent again while it was not held to be lost
                self.retrans_out -= 1;
            }
            self.mark_lost(index);
        }
        self.retransmit_hint = 0;
    }

    /// The losses were none (undo).
    pub fn unmark_all_lost(&mut self) {
        for segment in &mut self.ring {
            segment.marks &= !LOST;
        }
        self.lost_out = 0;
        self.retransmit_hint = self.ring.len();
        self.lost_hint = 0;
        self.lost_hint_sacked = 0;
    }

    /// RFC 6675 IsLost(): `dupack_threshold` SACKed segments lie above it.
    pub fn mark_lost_by_sack(&mut self, dupack_threshold: u32) {
        while self.lost_hint < self.ring.len()
            && self.lost_hint_sacked + dupack_threshold <= self.sacked_out
        {
            let segment = &self.ring[self.lost_hint];
            if segment.has(SACKED) {
                self.lost_hint_sacked += 1;
            } else if !segment.has(LOST) {
                self.mark_lost(self.lost_hint);
            }
            self.lost_hint += 1;
        }
    }

    /// RACK: what was sent before `newest`, and `patience_ns` or more before now, is lost, a retransmission too. When
    /// the last of those that have some time left is to be looked at again.
    pub fn mark_lost_by_time(
        &mut self,
        newest: SentAt,
        patience_ns: Nanos,
        now: Nanos,
    ) -> Option<Nanos> {
        let mut look_again = None;
        for index in 0..self.ring.len() {
            let segment = &self.ring[index];
            let sent = SentAt {
                sent_ns: segment.sent_ns,
                end_seq: segment.end_seq(),
            };
            let known = segment.has(SACKED) || segment.has(LOST) && !segment.has(RETRANS);
            if known || !newest.is_after(sent) {
                continue;
            }
            let until = segment.sent_ns + patience_ns;
            if until <= now {
                self.mark_lost(index);
            } else {
                look_again = look_again.max(Some(until));
            }
        }
        look_again
    }

    /// The first segment that is lost and not yet sent again.
    pub fn next_lost(&mut self) -> Option<usize> {
        if self.lost_out <= self.retrans_out {
            return None;
        }
        while let Some(segment) = self.ring.get(self.retransmit_hint) {
            if segment.marks & (LOST | RETRANS | SACKED) == LOST {
                return Some(self.retransmit_hint);
            }
            self.retransmit_hint += 1;
        }
        None
    }

    /// RFC 6675 §4 NextSeg() rule 3: the first segment below the highest SACK that is neither SACKed nor sent again, though
    /// too little is SACKed above to hold it lost. Those that are lost lie below `lost_hint`.
    pub fn next_doubtful(&self) -> Option<usize> {
        let mut sacked_above = self.sacked_out - self.lost_hint_sacked;
        for index in self.lost_hint..self.ring.len() {
            if sacked_above == 0 {
                break;
            }
            let segment = &self.ring[index];
            if segment.has(SACKED) {
                sacked_above -= 1;
            } else if !segment.has(RETRANS) {
                return Some(index);
            }
        }
        None
    }

    /// RFC 6675 §4 NextSeg() rule 4: the highest segment that is not SACKed, unless it was sent again already.
    pub fn last_unsacked(&self) -> Option<usize> {
        let last = self.ring.iter().rposition(|segment| !segment.has(SACKED))?;
        (!self.ring[last].has(RETRANS)).then_some(last)
    }

    /// Takes note of a retransmission and gives the segment to send.
    pub fn retransmit(&mut self, index: usize, now: Nanos, at_send: Option<AtSend>) -> TxSegment {
        let segment = &mut self.ring[index];
        if !segment.has(RETRANS) {
            self.retrans_out += 1;
        }
        segment.marks |= RETRANS | EVER_RETRANS;
        segment.sent_ns = now;
        if let (Some(place), Some(at_send)) = (self.at_sends.get_mut(index), at_send) {
            *place = at_send;
        }
        *segment
    }
}
