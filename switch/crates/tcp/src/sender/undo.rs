// SPDX-License-Identifier: Apache-2.0
//! Reductions that turn out to have been for nothing: back to the window before (Eifel, RFC 3522 and 4015; F-RTO).

use super::ack::AckFlags;
use super::Sender;
use crate::cc::CaState;
use crate::seq::before;

impl Sender {
    /// Eifel: the ACK echoes a timestamp from before the first retransmission, so the original got through.
    fn original_was_delayed(&self, flags: &AckFlags) -> bool {
        match (self.negotiated.timestamps, self.retrans_stamp, flags.tsecr) {
            (true, Some(retransmitted), Some(tsecr)) => before(tsecr, retransmitted),
            _ => false,
        }
    }

    pub(super) fn may_undo(&self, flags: &AckFlags) -> bool {
        self.undo_marker && self.original_was_delayed(flags)
    }

    fn undo_reduction(&mut self, unmark_lost: bool) {
        if unmark_lost {
            self.board.unmark_all_lost();
        }
        if self.prior_ssthresh > 0 {
            self.view();
            self.tcp.snd_cwnd = self
                .cc
                .undo_cwnd(&mut self.tcp)
                .min(self.tcp.snd_cwnd_clamp);
            self.tcp.snd_ssthresh = self.tcp.snd_ssthresh.max(self.prior_ssthresh);
        }
        self.undo_marker = false;
    }

    /// The end of Recovery or Loss, with undo when it was spurious. True: the state is held (no SACK, and nothing above
    /// high_seq was acknowledged yet).
    pub(super) fn try_undo_recovery(&mut self, flags: &AckFlags) -> bool {
        if self.may_undo(flags) {
            self.count_spurious();
            self.undo_reduction(false);
        }
        if self.is_at_high_seq() {
            return true;
        }
        self.set_ca_state(CaState::Open);
        false
    }

    /// A partial ACK in Recovery for a segment that had only been late. True: recovery goes no further.
    pub(super) fn try_undo_partial(&mut self, flags: &AckFlags) -> bool {
        if !self.may_undo(flags) {
            return false;
        }
        if self.board.retrans_out() > 0 {
            return true; // wait for the retransmissions before the window is put back
        }
        self.count_spurious();
        self.retrans_stamp = None;
        self.undo_reduction(true);
        self.keep_open();
        true
    }

    /// An ACK in Loss: spurious by Eifel, or `by_frto`. Whether it was undone.
    pub(super) fn try_undo_loss(&mut self, flags: &AckFlags, by_frto: bool) -> bool {
        if !by_frto && !self.may_undo(flags) {
            return false;
        }
        self.count_spurious();
        self.undo_reduction(true);
        self.backoffs = 0;
        self.frto = false;
        if !self.is_at_high_seq() && (by_frto || self.sack()) {
            self.set_ca_state(CaState::Open);
        }
        true
    }

    fn count_spurious(&mut self) {
        if self.ca_state() == CaState::Loss {
            self.stats.spurious_timeouts += 1;
            self.stats.bw_est_pps += u64::from(self.cc.bw_est());
        } else {
            self.stats.spurious_recoveries += 1;
        }
    }

    fn is_at_high_seq(&mut self) -> bool {
        let held = !self.sack() && self.tcp.snd_una == self.tcp.high_seq;
        if held && self.board.retrans_out() == 0 {
            self.retrans_stamp = None;
        }
        held
    }
}
