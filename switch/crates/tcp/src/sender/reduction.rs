// SPDX-License-Identifier: Apache-2.0
//! The congestion window after an ACK: growth by the control, PRR (RFC 6937) or a fixed ssthresh in recovery. And back to the
//! window before where a reduction turns out to have been for nothing (Eifel, RFC 3522 and 4015; F-RTO).

use super::ack::AckFlags;
use super::Sender;
use crate::cc::{CaEvent, CaState, INFINITE_SSTHRESH};
use crate::seq::before;

impl Sender {
    /// Linux: tcp_cong_control. `delivered`: packets that this ACK showed to have got through; `lost`: it marked some lost.
    pub(super) fn control_window(&mut self, una_advanced: bool, delivered: u32, lost: bool) {
        self.view();
        if self.cc.owns_cwnd() {
            self.cc.cong_control(&mut self.tcp);
            self.rate.set_app_limited(self.tcp.app_limited);
        } else if self.in_reduction() {
            if self.prr {
                self.proportional_reduction(una_advanced, delivered, lost);
            }
        } else if una_advanced {
            self.cc.cong_avoid(&mut self.tcp, delivered);
        }
    }

    pub(super) fn in_reduction(&self) -> bool {
        matches!(self.ca_state(), CaState::Recovery | CaState::Cwr)
    }

    /// The control names the new ssthresh; high_seq ends the recovery.
    pub(super) fn begin_reduction(&mut self) {
        self.tcp.high_seq = self.tcp.snd_nxt;
        self.tcp.snd_cwnd_cnt = 0;
        self.tcp.prior_cwnd = self.tcp.snd_cwnd;
        self.prr_delivered = 0;
        self.prr_out = 0;
        self.tcp.snd_ssthresh = self.ssthresh();
        self.cwr_due = self.negotiated.ecn;
    }

    /// cwnd = ssthresh at the end of a recovery, unless it was undone or the control owns the window.
    pub(super) fn end_reduction(&mut self) {
        if self.cc.owns_cwnd() {
            return;
        }
        let for_mark = self.ca_state() == CaState::Cwr;
        if self.tcp.snd_ssthresh < INFINITE_SSTHRESH && (self.undo_marker || for_mark) {
            self.tcp.snd_cwnd = self.tcp.snd_ssthresh;
        }
        self.cwnd_event(CaEvent::CompleteCwr);
    }

    /// RFC 6937 §3 with its slow-start reduction bound (PRR-SSRB) as in Linux: one packet more only for an ACK that
    /// advances snd_una and shows no new loss.
    fn proportional_reduction(&mut self, una_advanced: bool, delivered: u32, lost: bool) {
        if delivered == 0 || self.tcp.prior_cwnd == 0 {
            return;
        }
        self.prr_delivered += delivered;
        let in_flight = self.board.in_flight();
        let (ssthresh, prior) = (
            u64::from(self.tcp.snd_ssthresh),
            u64::from(self.tcp.prior_cwnd),
        );
        let send = if u64::from(in_flight) > ssthresh {
            let share = (ssthresh * u64::from(self.prr_delivered)).div_ceil(prior);
            share.saturating_sub(u64::from(self.prr_out))
        } else {
            let catch_up = self
                .prr_delivered
                .saturating_sub(self.prr_out)
                .max(delivered);
            let bonus = u32::from(una_advanced && !lost);
            u64::from(catch_up + bonus).min(ssthresh - u64::from(in_flight))
        };
        let at_least = u64::from(self.prr_out == 0); // the fast retransmit itself
        self.tcp.snd_cwnd = in_flight + send.max(at_least) as u32;
    }

    /// ssthresh to go back to: three quarters of a window that has grown past it (Linux: tcp_current_ssthresh).
    pub(super) fn current_ssthresh(&self) -> u32 {
        if self.in_reduction() {
            self.tcp.snd_ssthresh
        } else {
            self.tcp
                .snd_ssthresh
                .max(self.tcp.snd_cwnd / 2 + self.tcp.snd_cwnd / 4)
        }
    }
}

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
