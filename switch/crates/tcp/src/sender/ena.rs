// SPDX-License-Identifier: Apache-2.0
//! The sending side of ENA (paper 003): a segment that the receiver names was corrupted, so it is sent again and the
//! window stays.
//!
//! A named segment is no reason to leave Open or Disorder: it counts as lost and repaired, duplicate ACKs and SACKs for
//! which it accounts mean nothing else, and for every other loss the rules hold as without ENA. So with Tahoe one segment
//! goes again instead of all. What was repaired is forgotten with the segment, once snd_una has passed it.
//!
//! ```text
//!  ACK names S ─► S in flight and not SACKed? ─► never sent again, or the name is newer than that? ─► S goes again, at once
//! ```

use super::ack::AckFlags;
use super::scoreboard::AckedSegments;
use super::Sender;
use crate::cc::CaState;
use crate::config::Recovery;
use crate::seq::before;
use crate::Nanos;

/// What the sender remembers of names.
#[derive(Debug)]
pub(super) struct Ena {
    on: bool,
    /// A segment to retransmit whatever the window says.
    due: Option<Due>,
    /// Segments below belong to the recovery that was counted last.
    counted_to: u32,
}

#[derive(Clone, Copy, Debug)]
enum Due {
    /// The one that begins here.
    Named(u32),
    /// The first one that is lost and was not sent again.
    NextLost,
}

impl Ena {
    pub fn new(on: bool, snd_una: u32) -> Ena {
        Ena {
            on,
            due: None,
            counted_to: snd_una,
        }
    }

    pub fn is_on(&self) -> bool {
        self.on
    }

    pub fn send_next_lost(&mut self) {
        self.due = Some(Due::NextLost);
    }
}

impl Sender {
    /// An ACK names a corrupted segment; `not_dup` and `acked` are what else it said. Whether the segment goes again.
    pub(super) fn on_name(
        &mut self,
        now: Nanos,
        seq: u32,
        not_dup: bool,
        acked: &AckedSegments,
    ) -> bool {
        self.stats.ena_notified += 1;
        let Some(index) = self.board.find(seq) else {
            return false;
        };
        let repeated = self
            .board
            .retransmitted_ns(index)
            .is_some_and(|sent_ns| !self.is_newer(now, sent_ns, not_dup, acked));
        if repeated || !self.board.name(index) {
            return false;
        }
        self.ena.due = Some(Due::Named(seq));
        let recovering = self.ca_state() > CaState::Disorder;
        if !recovering && !before(seq, self.ena.counted_to) {
            self.stats.ena_kept += 1;
            self.ena.counted_to = self.tcp.snd_nxt;
        }
        true
    }

    /// Whether a name tells of a retransmission sent at `sent_ns`, and not of what came before it (ACKs repeat a name for
    /// a round trip): the ACK shows that a segment sent later has arrived; or nothing but the retransmission can have
    /// caused it.
    fn is_newer(&self, now: Nanos, sent_ns: Nanos, not_dup: bool, acked: &AckedSegments) -> bool {
        if acked.last_sent_ns.max(acked.last_sacked_sent_ns) > Some(sent_ns) {
            return true;
        }
        let age_ns = now - sent_ns;
        let could_be = age_ns >= self.rtt.min_rtt_ns();
        if self.sack() {
            return could_be && !not_dup && acked.newly_sacked == 0;
        }
        // Duplicate ACKs do not say for what: either none is left to come but this one, or it is late by a quarter of a
        // round trip (the reordering that RFC 8985 §6.2 allows for).
        let alone = could_be && self.board.left_out() >= self.board.packets_out();
        let late_ns = self.rtt.srtt_ns() + self.rtt.min_rtt_ns() / 4;
        !not_dup && (alone || age_ns >= late_ns)
    }

    /// The index of the segment to send at once, if there is one.
    pub(super) fn take_due(&mut self) -> Option<usize> {
        match self.ena.due.take()? {
            Due::Named(seq) => self
                .board
                .find(seq)
                .filter(|&index| self.board.retransmitted_ns(index).is_none()),
            Due::NextLost => self.board.next_lost(),
        }
    }

    /// An ACK for a segment that was sent again, up to one that was sent before that and that nobody named: it was
    /// dropped. Tahoe and Reno do not look at partial ACKs.
    pub(super) fn drop_is_shown(&self, flags: &AckFlags) -> bool {
        self.ena.on
            && flags.una_advanced
            && matches!(self.recovery, Recovery::Newreno | Recovery::Sack)
            && flags
                .repair_sent_ns
                .is_some_and(|repair_ns| self.board.head_is_overtaken(repair_ns))
    }
}
