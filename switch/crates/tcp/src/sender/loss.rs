// SPDX-License-Identifier: Apache-2.0
//! Timeouts: the Loss state, and F-RTO (RFC 5682) to find those that were spurious.

use super::ack::AckFlags;
use super::{Rexmit, Sender};
use crate::cc::{CaEvent, CaState};
use crate::seq::{after, before};
use crate::Nanos;

impl Sender {
    /// The retransmission timer ran out (RFC 6298 §5.4 to §5.6).
    pub(super) fn on_rto(&mut self, now: Nanos) {
        if self.board.packets_out() == 0 {
            self.rto_deadline = None;
            return;
        }
        self.stats.timeouts += 1;
        let new_data_first = self.erto_applies();
        self.enter_loss(now);
        self.backoffs += 1;
        self.rexmit = Rexmit::None;
        self.force_head = !(new_data_first && self.begin_erto(now));
        self.rtt.back_off();
        self.restart_rto(now);
    }

    /// All that is in flight is lost, with RACK what was sent a round trip ago (RFC 8985 §6.3). ssthresh is reduced once for each
    /// window of data (RFC 5681 §3.1).
    fn enter_loss(&mut self, now: Nanos) {
        let first_recovery = self.ca_state() < CaState::Recovery;
        let again = self.ca_state() == CaState::Loss && self.backoffs == 0;
        self.board.mark_all_lost(self.sack(), self.recent_ns(now));
        if self.ca_state() <= CaState::Disorder
            || !after(self.tcp.high_seq, self.tcp.snd_una)
            || again
        {
            self.prior_ssthresh = self.current_ssthresh();
            self.tcp.prior_cwnd = self.tcp.snd_cwnd;
            self.tcp.snd_ssthresh = self.ssthresh();
            self.cwnd_event(CaEvent::Loss);
            self.undo_marker = true;
            self.retrans_stamp = None;
        }
        self.tcp.snd_cwnd = self.board.in_flight() + 1;
        self.tcp.snd_cwnd_cnt = 0;
        self.cwr_due = self.negotiated.ecn;
        self.set_ca_state(CaState::Loss);
        self.tcp.high_seq = self.tcp.snd_nxt;
        // RFC 5682 §2.1 step 1: not while a recovery is going on, unless this timeout repeats one.
        self.frto = self.frto_enabled && (first_recovery || self.backoffs > 0);
    }

    /// Tahoe's fast retransmit: as a timeout, but the timer was not needed and nothing is backed off.
    pub(super) fn enter_tahoe(&mut self) {
        self.prior_ssthresh = self.current_ssthresh();
        self.tcp.prior_cwnd = self.tcp.snd_cwnd;
        self.tcp.snd_ssthresh = self.ssthresh();
        self.undo_marker = true;
        self.retrans_stamp = None;
        self.board.mark_all_lost(false, Nanos::MAX);
        self.tcp.snd_cwnd = 1;
        self.tcp.snd_cwnd_cnt = 0;
        self.set_ca_state(CaState::Loss);
        self.tcp.high_seq = self.tcp.snd_nxt;
        self.frto = false;
        self.force_head = true;
    }

    /// An ACK within Loss.
    pub(super) fn process_loss(&mut self, flags: &AckFlags) {
        if self.erto_holds_window() && self.judge_erto(flags) {
            return;
        }
        let recovered = !before(self.tcp.snd_una, self.tcp.high_seq);
        if flags.una_advanced && self.try_undo_loss(flags, false) {
            self.after_undo(flags);
            return;
        }
        if self.frto {
            // RFC 5682 §2.1 step 3.b: data that was never retransmitted got through, so the timeout was spurious.
            if flags.original_acked && self.try_undo_loss(flags, true) {
                self.after_undo(flags);
                return;
            }
            if after(self.tcp.snd_nxt, self.tcp.high_seq) {
                if flags.newly_sacked > 0 || flags.dupack {
                    self.frto = false; // step 3.a: the loss was real
                }
            } else if flags.una_advanced && !recovered {
                // Step 2.b: new data, whose ACK will tell; deferred until the window has grown for this ACK.
                self.tcp.high_seq = self.tcp.snd_nxt;
                if self.may_send_new_data() {
                    self.rexmit = Rexmit::New;
                    return;
                }
                self.frto = false;
            }
        }
        if recovered {
            self.try_undo_recovery(flags); // step 2.a, and the usual end of Loss
            self.after_undo(flags);
            return;
        }
        if !self.sack() {
            if after(self.tcp.snd_nxt, self.tcp.high_seq) && flags.dupack {
                self.add_dupack(); // the new data of step 2.b arrived: lets retransmissions out
            } else if flags.una_advanced {
                self.board.reset_dupacks();
            }
        } else if self.rack.on {
            let before = self.board.retrans_out();
            self.find_losses();
            if self.board.retrans_out() < before {
                // A retransmission was lost too: congestion once more (RFC 5681 §4.3; Linux: FLAG_LOST_RETRANS).
                self.enter_recovery(flags.ece);
            }
        }
        self.rexmit = Rexmit::Lost;
    }

    /// Back in Open, and the same ACK may show that something is odd.
    pub(super) fn after_undo(&mut self, flags: &AckFlags) {
        if self.ca_state() == CaState::Open {
            self.retrans_stamp = None;
            self.watch(flags);
        }
    }
}
