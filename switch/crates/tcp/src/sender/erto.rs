// SPDX-License-Identifier: Apache-2.0
//! E-RTO: the first timeouts in a row send new data instead of the head, so a spurious one costs no retransmission.
//!
//! ```text
//!  timeout ──► one new segment ──► first ACK: for that segment ───────► spurious: undo, nothing was retransmitted
//!     ▲ 3 in a row at most │        └─ below it ─► second ACK: no dup ─► spurious
//!     └────────────────────┘        duplicate ACK, first or second ────► real: the head, then slow start
//! ```
//!
//! As with F-RTO, only for a timeout that does not fall into a recovery. Without new data, with a window that takes none,
//! and from the fourth timeout in a row on: an ordinary timeout.
//! NOT the paper's with SACK and with timestamps: a SACK for data from before the timeout, or an echo from before
//! it, shows at once that it was spurious, as the kernel has it.

use super::ack::AckFlags;
use super::Sender;
use crate::cc::CaState;
use crate::seq::after;
use crate::Nanos;

/// So many timeouts in a row send new data.
pub const ERTO_TIMEOUTS: u32 = 3;

/// How far a timeout is judged that was answered by new data.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Erto {
    /// There is none.
    #[default]
    Off,
    /// No ACK since.
    Probing,
    /// One ACK came, below the new data.
    Waiting,
}

/// What an ACK says of it.
enum Verdict {
    Undecided,
    Spurious,
    Real,
}

impl Sender {
    /// Before a timeout is acted on: may it send new data instead of the head? If not, nothing is judged any more.
    pub(super) fn erto_applies(&mut self) -> bool {
        let first = self.backoffs == 0 && self.ca_state() < CaState::Recovery;
        let again = (1..ERTO_TIMEOUTS).contains(&self.backoffs) && self.erto == Erto::Probing;
        let applies = self.erto_enabled && (first || again);
        if !applies {
            self.erto = Erto::Off;
        }
        applies
    }

    /// The state is Loss, nothing is in flight and the window is one packet: new data leaves in the head's place, or
    /// there is none that would fit. Whether it does.
    pub(super) fn begin_erto(&mut self, now: Nanos) -> bool {
        if !self.may_send_new_data() || self.new_segment_len().is_none() {
            self.erto = Erto::Off;
            return false;
        }
        if self.erto == Erto::Off {
            self.erto_high_seq = self.tcp.high_seq;
        }
        self.erto = Erto::Probing;
        self.frto = false;
        self.retrans_stamp.get_or_insert(self.clock.timestamp(now));
        self.stats.erto_probes += 1;
        true
    }

    /// An ACK within Loss while a timeout is judged. True: nothing else is to be done.
    pub(super) fn judge_erto(&mut self, flags: &AckFlags) -> bool {
        match self.erto_verdict(flags) {
            Verdict::Undecided => true,
            Verdict::Spurious => {
                self.erto = Erto::Off;
                self.try_undo_loss(flags, true);
                self.after_undo(flags);
                true
            }
            Verdict::Real => {
                self.erto = Erto::Off;
                false
            }
        }
    }

    fn erto_verdict(&mut self, flags: &AckFlags) -> Verdict {
        if flags.una_advanced {
            let second = self.erto == Erto::Waiting;
            let new_data = after(self.tcp.snd_una, self.erto_high_seq);
            if second || new_data || self.may_undo(flags) {
                return Verdict::Spurious;
            }
            self.erto = Erto::Waiting;
            return Verdict::Undecided;
        }
        if flags.newly_sacked > 0 && flags.original_acked {
            return Verdict::Spurious;
        }
        if flags.newly_sacked > 0 || flags.dupack {
            return Verdict::Real;
        }
        Verdict::Undecided // news of the window
    }

    /// While a timeout is judged the window does not grow, so that no second segment leaves.
    pub(super) fn erto_holds_window(&self) -> bool {
        self.erto != Erto::Off
    }
}
