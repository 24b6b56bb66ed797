// SPDX-License-Identifier: Apache-2.0
//! The segments in flight and what is known of each: Linux's retransmission queue with its counters.
//!
//! `packets_out` is the ring's length; `sacked_out` counts SACKed segments, or duplicate ACKs when there is no SACK;
//! in flight = packets_out − (sacked_out + lost_out) + retrans_out. [`lost`]: what is lost, and what goes again.

mod lost;

use super::rack::SentAt;
use crate::seq::{after, before};
use crate::Nanos;
use std::collections::VecDeque;

/// The receiver has it (a SACK block said so).
const SACKED: u8 = 1;
/// Held to be lost.
const LOST: u8 = 2;
/// A retransmission is in flight.
const RETRANS: u8 = 4;
/// Was retransmitted at least once.
const EVER_RETRANS: u8 = 8;

/// A segment that was sent and not yet acknowledged.
#[derive(Clone, Copy, Debug)]
pub struct TxSegment {
    pub seq: u32,
    /// Payload bytes; a FIN takes one more sequence number.
    pub len: u32,
    /// When it was last sent.
    pub sent_ns: Nanos,
    pub fin: bool,
    marks: u8,
}

/// The sender when it sent a segment (draft-cheng-iccrg-delivery-rate-estimation-00 §3.2: P.delivered, …).
#[derive(Clone, Copy, Debug, Default)]
pub struct AtSend {
    /// Packets delivered, modulo 2^32, and when that was last counted up.
    pub delivered: u32,
    pub delivered_ns: Nanos,
    /// When the segment was sent that was the newest one delivered.
    pub first_sent_ns: Nanos,
    /// The application was the limit.
    pub app_limited: bool,
}

impl TxSegment {
    pub fn new(seq: u32, len: u32, fin: bool, sent_ns: Nanos) -> TxSegment {
        TxSegment {
            seq,
            len,
            sent_ns,
            fin,
            marks: 0,
        }
    }

    /// It was sent more than once.
    pub fn is_retransmission(&self) -> bool {
        self.has(EVER_RETRANS)
    }

    pub fn end_seq(&self) -> u32 {
        self.seq.wrapping_add(self.len + u32::from(self.fin))
    }

    fn seq_len(&self) -> u64 {
        u64::from(self.len) + u64::from(self.fin)
    }

    fn has(&self, marks: u8) -> bool {
        self.marks & marks != 0
    }
}

/// What an ACK told about the ring.
#[derive(Clone, Copy, Default, Debug)]
pub struct AckedSegments {
    /// Segments that the cumulative ACK took out.
    pub packets: u32,
    /// Of these, segments that no SACK had reported before.
    pub newly_delivered: u32,
    /// Segments that SACK blocks reported now.
    pub newly_sacked: u32,
    /// One of the segments taken out had been retransmitted.
    pub retransmitted_acked: bool,
    /// A segment sent once, below `high_seq`, was acknowledged or SACKed now: an original got through.
    pub original_acked: bool,
    /// When the first and the last segment that were sent only once and are acknowledged now had been sent.
    pub first_sent_ns: Option<Nanos>,
    pub last_sent_ns: Option<Nanos>,
    /// When the first and the last segment that were sent only once and are SACKed now had been sent.
    pub first_sacked_sent_ns: Option<Nanos>,
    pub last_sacked_sent_ns: Option<Nanos>,
    /// Of all that got through by this ACK, what was sent last: of those sent once, and of those sent again.
    pub newest_original: Option<SentAt>,
    pub newest_repair: Option<SentAt>,
    /// Of all that got through by this ACK, the segment that was sent last, where rates are sampled.
    pub newest: Option<(TxSegment, AtSend)>,
}

impl AckedSegments {
    fn note(&mut self, segment: &TxSegment, at_send: Option<&AtSend>) {
        let sent = SentAt {
            sent_ns: segment.sent_ns,
            end_seq: segment.end_seq(),
        };
        let newest = match segment.has(EVER_RETRANS) {
            true => &mut self.newest_repair,
            false => &mut self.newest_original,
        };
        *newest = SentAt::latest(*newest, sent);
        let Some(at_send) = at_send else { return };
        let is_newest = self.newest.is_none_or(|(newest, _)| {
            sent.is_after(SentAt {
                sent_ns: newest.sent_ns,
                end_seq: newest.end_seq(),
            })
        });
        if is_newest {
            self.newest = Some((*segment, *at_send));
        }
    }
}

#[derive(Debug, Default)]
pub struct Scoreboard {
    ring: VecDeque<TxSegment>,
    /// What the delivery-rate samples of the same segments are reckoned from; empty where nobody asks for rates.
    at_sends: VecDeque<AtSend>,
    sacked_out: u32,
    /// Payload bytes (and a FIN's number) of the segments that SACK blocks reported.
    sacked_bytes: u64,
    lost_out: u32,
    retrans_out: u32,
    /// Segments marked lost since the connection began.
    lost_ever: u64,
    /// No segment below this index is lost and waits for its retransmission.
    retransmit_hint: usize,
    /// Segments below this index were looked at by `mark_lost_by_sack`; so many of them are SACKed.
    lost_hint: usize,
    lost_hint_sacked: u32,
    /// The blocks of the last ACK, so that a block is walked only where it grew.
    last_blocks: [(u32, u32); 4],
}

impl Scoreboard {
    pub fn with_capacity(packets: usize) -> Scoreboard {
        Scoreboard {
            ring: VecDeque::with_capacity(packets),
            ..Scoreboard::default()
        }
    }

    pub fn packets_out(&self) -> u32 {
        self.ring.len() as u32
    }

    pub fn sacked_out(&self) -> u32 {
        self.sacked_out
    }

    pub fn sacked_bytes(&self) -> u64 {
        self.sacked_bytes
    }

    pub fn lost_out(&self) -> u32 {
        self.lost_out
    }

    pub fn retrans_out(&self) -> u32 {
        self.retrans_out
    }

    pub fn lost_ever(&self) -> u64 {
        self.lost_ever
    }

    pub fn left_out(&self) -> u32 {
        self.sacked_out + self.lost_out
    }

    pub fn in_flight(&self) -> u32 {
        debug_assert!(
            self.left_out() <= self.packets_out(),
            "more left than was sent: {self:?}"
        );
        (self.packets_out() + self.retrans_out).saturating_sub(self.left_out())
    }

    /// Whether a retransmission is in flight, or its ACK may still be.
    pub fn any_retransmitted(&self) -> bool {
        self.retrans_out > 0 || self.ring.front().is_some_and(|head| head.has(EVER_RETRANS))
    }

    pub fn head(&self) -> Option<&TxSegment> {
        self.ring.front()
    }

    /// A segment leaves for the first time; all of a connection have `at_send`, or none.
    pub fn push(&mut self, segment: TxSegment, at_send: Option<AtSend>) {
        self.ring.push_back(segment);
        self.at_sends.extend(at_send);
    }

    // ---- acknowledged -----------------------------------------------------------------------------------------------

    /// Takes out what `ack` covers; a segment covered in part loses its front.
    pub fn acknowledge(&mut self, ack: u32, high_seq: u32, acked: &mut AckedSegments) {
        while let Some(segment) = self.ring.front_mut() {
            if after(segment.end_seq(), ack) {
                if after(ack, segment.seq) {
                    let covered = ack.wrapping_sub(segment.seq).min(segment.len);
                    segment.len -= covered;
                    if segment.has(SACKED) {
                        self.sacked_bytes -= u64::from(covered);
                    }
                    segment.seq = ack;
                }
                break;
            }
            let segment = *segment;
            self.ring.pop_front();
            let at_send = self.at_sends.pop_front();
            acked.packets += 1;
            if segment.has(EVER_RETRANS) {
                acked.retransmitted_acked = true;
            } else if !segment.has(SACKED) {
                acked.first_sent_ns.get_or_insert(segment.sent_ns);
                acked.last_sent_ns = Some(segment.sent_ns);
                acked.original_acked |= !after(segment.end_seq(), high_seq);
            }
            if segment.has(SACKED) {
                self.sacked_out -= 1;
                self.sacked_bytes -= segment.seq_len();
                self.lost_hint_sacked -= u32::from(self.lost_hint > 0);
            } else {
                acked.newly_delivered += 1;
                acked.note(&segment, at_send.as_ref());
            }
            self.retrans_out -= u32::from(segment.has(RETRANS));
            self.lost_out -= u32::from(segment.has(LOST));
            self.retransmit_hint = self.retransmit_hint.saturating_sub(1);
            self.lost_hint = self.lost_hint.saturating_sub(1);
        }
    }

    /// Marks what SACK blocks report. Blocks that are not within `[snd_una, snd_nxt]` are ignored (RFC 2883 reports
    /// duplicates below `snd_una`; this endpoint sends none).
    pub fn sack(
        &mut self,
        blocks: &[(u32, u32)],
        snd_una: u32,
        snd_nxt: u32,
        high_seq: u32,
        acked: &mut AckedSegments,
    ) {
        let mut seen = [(0, 0); 4];
        for (slot, &(left, right)) in seen.iter_mut().zip(blocks) {
            if !before(left, right) || before(left, snd_una) || after(right, snd_nxt) {
                continue;
            }
            *slot = (left, right);
            let (mut from, mut to) = (left, right);
            for &(old_left, old_right) in &self.last_blocks {
                if old_left == old_right {
                    continue;
                }
                if !before(from, old_left) && !after(to, old_right) {
                    (from, to) = (right, right);
                } else if !before(from, old_left) && before(from, old_right) {
                    from = old_right;
                } else if before(from, old_left) && after(to, old_left) && !after(to, old_right) {
                    to = old_left;
                }
            }
            if before(from, to) {
                self.sack_range(from, to, high_seq, acked);
            }
        }
        self.last_blocks = seen;
    }

    fn sack_range(&mut self, left: u32, right: u32, high_seq: u32, acked: &mut AckedSegments) {
        let mut index = self
            .ring
            .partition_point(|segment| before(segment.seq, left));
        while let Some(segment) = self.ring.get_mut(index) {
            if after(segment.end_seq(), right) {
                break;
            }
            if !segment.has(SACKED) {
                if !segment.has(EVER_RETRANS) {
                    acked.original_acked |= !after(segment.end_seq(), high_seq);
                    acked.first_sacked_sent_ns.get_or_insert(segment.sent_ns);
                    acked.last_sacked_sent_ns = Some(segment.sent_ns);
                }
                self.lost_out -= u32::from(segment.has(LOST));
                self.retrans_out -= u32::from(segment.has(RETRANS));
                segment.marks &= !(LOST | RETRANS);
                segment.marks |= SACKED;
                self.sacked_out += 1;
                self.sacked_bytes += segment.seq_len();
                self.lost_hint_sacked += u32::from(index < self.lost_hint);
                acked.newly_sacked += 1;
                acked.note(segment, self.at_sends.get(index));
            }
            index += 1;
        }
    }

    // ---- without SACK: duplicate ACKs stand for segments that got through ----------------------------------------------

    /// A duplicate ACK: one more segment left the network, but at least one is missing. Whether it counted.
    pub fn add_dupack(&mut self) -> bool {
        let holes = self.lost_out.max(1).min(self.packets_out());
        let counts = self.sacked_out + holes < self.packets_out();
        self.sacked_out += u32::from(counts);
        counts
    }

    /// An ACK took out `packets`: one was the hole, the others had each sent a duplicate ACK. How many got through.
    pub fn remove_dupacks(&mut self, packets: u32) -> u32 {
        let delivered = packets.saturating_sub(self.sacked_out).max(1);
        self.sacked_out = self.sacked_out.saturating_sub(packets - 1);
        let holes = self.lost_out.max(1).min(self.packets_out());
        self.sacked_out = self.sacked_out.min(self.packets_out() - holes);
        delivered
    }

    pub fn reset_dupacks(&mut self) {
        self.sacked_out = 0;
    }
}
