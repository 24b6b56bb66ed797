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
use super::{Rexmit, Sender};
use crate::cc::CaState;
use crate::config::Recovery;
use crate::seq::before;
use crate::Nanos;

/// Bytes of a packet in which a flipped bit hides whose segment it was: the IPv4 header (a router drops the packet), the
/// ports, the sequence number, and half a byte of data offset; times two.
const HIDING_HALF_BYTES: u64 = 2 * (20 + 4 + 4) + 1;
/// Bytes of the IPv4 and TCP headers.
const HEADERS_BYTES: u64 = 40;
/// So many names are remembered (exponentially): the time in which the share of hidden corruption is judged.
const MEMORY_NAMES: u64 = 128;
/// So many losses at once that nobody named are never hidden corruption, which hits one here and one there.
const BURST: u64 = 4;
/// Packets that may always go at once (RFC 6928: the initial window).
const HARMLESS_BURST: u32 = 10;
/// A name in the units of `names` and `unnamed`.
const ONE: u64 = 1 << 16;

/// What the sender remembers of names.
#[derive(Debug)]
pub(super) struct Ena {
    on: bool,
    /// A segment to retransmit whatever the window says.
    due: Option<Due>,
    /// Segments below belong to the recovery that was counted last.
    counted_to: u32,
    /// `Scoreboard::lost_ever` up to which losses were counted.
    lost_seen: u64,
    /// Of late: segments that were named, and segments that were lost and not named.
    names: u64,
    unnamed: u64,
    /// While a stall's burst is spread: segments that may still be sent.
    allowance: Option<u32>,
    /// ssthresh before a reduction for a single loss that nobody named.
    doubtful_ssthresh: Option<u32>,
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
            lost_seen: 0,
            names: 0,
            unnamed: 0,
            allowance: None,
            doubtful_ssthresh: None,
        }
    }

    pub fn is_on(&self) -> bool {
        self.on
    }

    pub fn send_next_lost(&mut self) {
        self.due = Some(Due::NextLost);
    }

    fn count_name(&mut self) {
        self.names += ONE - self.names / MEMORY_NAMES;
        self.unnamed -= self.unnamed / MEMORY_NAMES;
    }

    /// Whether losses that nobody named are likelier corruption that hid itself than drops: of late there were less than
    /// twice as many as corruption hides on average beside the segments that were named. Without names: never.
    fn is_hidden(&self, mss_bytes: u32) -> bool {
        let packet_half_bytes = 2 * (u64::from(mss_bytes) + HEADERS_BYTES);
        let shown = packet_half_bytes.saturating_sub(HIDING_HALF_BYTES);
        self.unnamed * shown <= 2 * self.names * HIDING_HALF_BYTES
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
        if repeated {
            return false;
        }
        match self.board.name(index) {
            None => return false,
            Some(true) => {
                self.ena.count_name();
                self.reconsider_reduction();
            }
            Some(false) => {}
        }
        self.ena.due = Some(Due::Named(seq));
        self.count_kept(seq);
        true
    }

    /// A recovery that leaves the window as it was: one for each window of data, none within a recovery that reduced it.
    fn count_kept(&mut self, seq: u32) {
        if self.ca_state() <= CaState::Disorder && !before(seq, self.ena.counted_to) {
            self.stats.ena_kept += 1;
            self.ena.counted_to = self.tcp.snd_nxt;
        }
    }

    /// Corruption alone holds snd_una back: what arrives behind it is progress, as if the hole were not there.
    pub(super) fn grows_past_corruption(&self, delivered: u32) -> bool {
        delivered > 0 && self.board.head_is_named() && self.ca_state() <= CaState::Disorder
    }

    /// An ACK for a repaired segment may open the whole window at once, where the peer's window has held the sender. A
    /// third of it goes, and the rest at slow start's pace, two for each ACK: the window stays, the burst does not fill
    /// the queue on the way (RFC 6582 §3.2 step 3 asks for such a measure).
    pub(super) fn spread_burst(&mut self, repaired: bool) {
        if let Some(allowance) = &mut self.ena.allowance {
            *allowance += 2;
        }
        let share = (self.tcp.snd_cwnd / 3).max(HARMLESS_BURST);
        let room = self.tcp.snd_cwnd.saturating_sub(self.board.in_flight());
        if self.ena.on && repaired && room > share && self.ca_state() <= CaState::Disorder {
            self.ena.allowance = Some(self.ena.allowance.unwrap_or(share).min(share));
        }
    }

    /// A new segment is about to be sent: whether the burst's turn allows it.
    pub(super) fn burst_allows(&self) -> bool {
        self.ena.allowance != Some(0) || self.board.in_flight() == 0
    }

    pub(super) fn note_burst(&mut self) {
        self.ena.allowance = match self.ena.allowance {
            Some(allowance) if self.board.in_flight() < self.tcp.snd_cwnd => {
                Some(allowance.saturating_sub(1))
            }
            _ => None,
        };
    }

    /// Losses from here on are this ACK's.
    pub(super) fn begin_counting_drops(&mut self) {
        self.ena.lost_seen = self.board.lost_ever();
    }

    /// The losses that this ACK has shown so far and that nobody named.
    fn count_drops(&mut self) -> u64 {
        let lost_ever = self.board.lost_ever();
        let drops = lost_ever - self.ena.lost_seen;
        self.ena.lost_seen = lost_ever;
        drops
    }

    /// Losses that nobody named are about to begin a recovery: are they likelier corruption that hid itself?
    pub(super) fn is_hidden_corruption(&mut self) -> bool {
        if !self.ena.on || !self.ena_presumes {
            return false;
        }
        let drops = self.count_drops();
        self.ena.unnamed += drops.min(BURST) * ONE;
        let is_hidden = drops < BURST && self.ena.is_hidden(self.negotiated.mss_bytes);
        if !is_hidden {
            let ssthresh = self
                .ena
                .doubtful_ssthresh
                .max(Some(self.current_ssthresh()));
            self.ena.doubtful_ssthresh = ssthresh.filter(|_| drops == 1);
        }
        is_hidden
    }

    /// A timeout is about to reduce the window. It may be for a last segment whose header was hit, or whose name was.
    pub(super) fn doubt_timeout(&mut self) {
        if self.ena.on && self.ena_presumes && self.backoffs == 0 {
            self.ena.unnamed += ONE;
            self.ena.doubtful_ssthresh = self
                .ena
                .doubtful_ssthresh
                .max(Some(self.current_ssthresh()));
        }
    }

    /// Within a recovery that reduced the window: a second loss that nobody named leaves no doubt.
    pub(super) fn count_drops_in_recovery(&mut self) {
        if self.count_drops() > 0 {
            self.ena.doubtful_ssthresh = None;
        }
    }

    /// Names since a reduction may show that it was for hidden corruption: then ssthresh is what it was before.
    fn reconsider_reduction(&mut self) {
        if self.ca_state() <= CaState::Disorder && self.ena.is_hidden(self.negotiated.mss_bytes) {
            if let Some(ssthresh) = self.ena.doubtful_ssthresh.take() {
                self.tcp.snd_ssthresh = self.tcp.snd_ssthresh.max(ssthresh);
            }
        }
    }

    /// The losses in the scoreboard, the head or those that SACKs show, are repaired as if they had been named.
    pub(super) fn presume_corruption(&mut self) {
        self.stats.ena_presumed += u64::from(self.board.lost_out() - self.board.named_out());
        self.board.name_all_lost();
        self.count_kept(self.tcp.snd_una);
        self.ena.send_next_lost();
        self.rexmit = Rexmit::Lost;
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
