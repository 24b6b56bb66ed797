// SPDX-License-Identifier: Apache-2.0
//! The congestion window after an ACK: growth by the control, PRR (RFC 6937) or a fixed ssthresh in recovery.

use super::Sender;
use crate::cc::{CaEvent, CaState, INFINITE_SSTHRESH};

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
