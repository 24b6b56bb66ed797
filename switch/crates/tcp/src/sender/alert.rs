// SPDX-License-Identifier: Apache-2.0
//! The states of loss recovery: what a duplicate, a SACK or a partial ACK makes of them (Linux: tcp_fastretrans_alert).

use super::ack::AckFlags;
use super::{Rexmit, Sender};
use crate::cc::CaState;
use crate::config::Recovery;
use crate::seq::{after, before};

impl Sender {
    /// For every ACK that is dubious: a duplicate, one with new SACKs, or any outside of Open.
    pub(super) fn alert(&mut self, flags: AckFlags) {
        if flags.ece {
            self.prior_ssthresh = 0; // marks are congestion: no undo
        }
        if self.board.packets_out() == 0 && !self.sack() {
            self.board.reset_dupacks();
        }
        if self.ca_state() == CaState::Open {
            self.retrans_stamp = None;
        } else if self.ca_state() == CaState::Recovery
            && !before(self.tcp.snd_una, self.tcp.high_seq)
        {
            if self.recovery_is_over(&flags) {
                return;
            }
        } else if self.ca_state() == CaState::Cwr && after(self.tcp.snd_una, self.tcp.high_seq) {
            self.end_reduction(); // what told the receiver of it has arrived
            self.set_ca_state(CaState::Open);
        } else if self.ca_state() == CaState::Recovery
            && self.recovery == Recovery::Reno
            && flags.una_advanced
        {
            self.leave_reno_recovery(); // RFC 5681 §3.2 step 6: the first ACK for new data
        }
        match self.ca_state() {
            CaState::Recovery => {
                if self.go_on_recovering(&flags) {
                    self.rexmit = Rexmit::Lost;
                }
            }
            CaState::Loss => self.process_loss(&flags),
            CaState::Open | CaState::Disorder | CaState::Cwr => self.watch(&flags),
        }
    }

    /// high_seq is acknowledged. Without SACK the state is held until something above it is, lest duplicate ACKs for
    /// segments that were needlessly sent begin another recovery (RFC 6582 §3.2 step 1). True: held.
    fn recovery_is_over(&mut self, flags: &AckFlags) -> bool {
        if !self.sack() {
            self.board.reset_dupacks();
        }
        if self.recovery == Recovery::Reno {
            self.leave_reno_recovery();
            return false;
        }
        if self.try_undo_recovery(flags) {
            return true;
        }
        self.end_reduction();
        false
    }

    fn leave_reno_recovery(&mut self) {
        self.board.reset_dupacks();
        self.set_ca_state(CaState::Open);
        self.end_reduction();
        self.undo_marker = false;
        self.retrans_stamp = None;
    }

    /// Within Recovery, below high_seq. Whether lost segments may be sent.
    fn go_on_recovering(&mut self, flags: &AckFlags) -> bool {
        if !flags.una_advanced {
            if !self.sack() && flags.dupack {
                self.add_dupack();
            }
        } else if self.try_undo_partial(flags) {
            return false;
        } else if !self.sack() && (flags.head_overtaken || !self.repairs_named) {
            // RFC 6582 §3.2 step 5: a partial ACK shows the next hole. Not where a segment above high_seq was named, and so
            // sent again, before this recovery began.
            self.board.mark_head_lost();
            self.force_head = !self.prr && !self.cc.owns_cwnd();
        }
        if self.sack() {
            self.find_losses();
        }
        true
    }

    /// Open or Disorder: is it time to recover?
    pub(super) fn watch(&mut self, flags: &AckFlags) {
        if self.sack() {
            self.find_losses();
        } else {
            if flags.una_advanced {
                self.board.reset_dupacks();
            }
            if flags.dupack {
                self.add_dupack();
            }
        }
        if !self.finds_by_time() && self.board.sacked_out() >= self.dupack_threshold {
            self.board.mark_head_lost();
        }
        if self.board.lost_out() == 0 {
            if flags.ece {
                self.enter_cwr();
            }
            self.keep_open();
            return;
        }
        self.repair_what_is_lost(flags.ece);
    }

    /// RACK alone says what is lost: no count of duplicates does.
    pub(super) fn finds_by_time(&self) -> bool {
        self.sack() && self.rack.on
    }

    /// Duplicates, SACKs or time showed a loss: recovery begins or goes on. With a mark in the same ACK there is no undo.
    pub(super) fn repair_what_is_lost(&mut self, has_mark: bool) {
        if self.ca_state() >= CaState::Recovery {
            self.rexmit = Rexmit::Lost;
            return;
        }
        if self.recovery == Recovery::Tahoe {
            self.stats.fast_retransmits += 1;
            self.enter_tahoe();
            return;
        }
        self.enter_recovery(has_mark);
        self.rexmit = Rexmit::Lost;
    }

    pub(super) fn add_dupack(&mut self) {
        self.delivered += u64::from(self.board.add_dupack());
    }

    /// A mark was echoed: the window is reduced as for a loss, once a round trip (RFC 3168 §6.1.2).
    fn enter_cwr(&mut self) {
        self.prior_ssthresh = 0;
        if self.ca_state() >= CaState::Cwr {
            return;
        }
        self.undo_marker = false;
        self.begin_reduction();
        self.set_ca_state(CaState::Cwr);
        if !self.prr && !self.cc.owns_cwnd() {
            self.tcp.snd_cwnd = self.tcp.snd_ssthresh;
        }
    }

    /// Open with nothing odd in flight, else Disorder; a reduction for a mark goes on.
    pub(super) fn keep_open(&mut self) {
        if self.ca_state() == CaState::Cwr {
            return;
        }
        let retransmitted = self.board.any_retransmitted();
        if !retransmitted {
            self.retrans_stamp = None;
        }
        let disorder = self.board.left_out() > 0 || retransmitted;
        let state = if disorder {
            CaState::Disorder
        } else {
            CaState::Open
        };
        if self.ca_state() != state {
            self.set_ca_state(state);
            self.tcp.high_seq = self.tcp.snd_nxt;
        }
    }

    /// Fast retransmit and fast recovery begin (RFC 5681 §3.2 steps 2 and 3, RFC 6675 §5 step 4).
    pub(super) fn enter_recovery(&mut self, has_mark: bool) {
        self.stats.fast_retransmits += 1;
        self.undo_marker = true;
        if !self.finds_by_time() {
            self.board.mark_head_lost();
        }
        if !self.in_reduction() {
            self.prior_ssthresh = if has_mark { 0 } else { self.current_ssthresh() };
            self.begin_reduction();
        }
        self.set_ca_state(CaState::Recovery);
        self.rescue = true;
        if !self.prr && !self.cc.owns_cwnd() {
            self.tcp.snd_cwnd = self.tcp.snd_ssthresh;
            self.force_head = true; // whatever is in flight: RFC 6675 §5 step 4.3
        }
    }
}
