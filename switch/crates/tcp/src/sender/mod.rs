// SPDX-License-Identifier: Apache-2.0
//! The sending half: window, recovery and timers, built as Linux's sender is, with cwnd in packets.
//!
//! ```text
//!            dupACKs, SACK           threshold reached             ACK above high_seq
//!   Open ────────────────► Disorder ───────────────────► Recovery ────────────────────► Open
//!     └───────────────────────┴── timeout (or Tahoe) ──► Loss ──── ACK above high_seq ─► Open
//! ```
//!
//! - [`scoreboard`]: what is in flight; [`rtt`]: RTT and RTO.
//! - [`ack`]: an ACK comes in; [`alert`]: the states above; [`loss`]: timeouts and F-RTO; [`erto`]: E-RTO;
//!   [`rack`]: losses by time.
//! - [`rate`]: delivery-rate samples, and pacing.
//! - [`reduction`]: the window in recovery, its growth, and back where none was lost; [`transmit`]: what may be sent; [`persist`]: zero windows.
//!
//! Without SACK, duplicate ACKs are counted as SACKed segments. So "cwnd = ssthresh, and `sacked_out` grows" is
//! the inflated window of RFC 5681 §3.2 and RFC 6582 seen from the other side: in flight shrinks instead of cwnd growing,
//! and cwnd in a trace is never inflated.
//!
//! NOT here: tail loss probes, D-SACK, adaptive reordering, TSO, Nagle,
//! giving up (an endpoint retries for ever, at the back-off's maximum).

pub mod ack;
pub mod alert;
pub mod erto;
pub mod loss;
pub mod persist;
pub mod rack;
pub mod rate;
pub mod reduction;
pub mod rtt;
pub mod scoreboard;
pub mod transmit;

use crate::cc::{CaEvent, CaState, CcTcp, CongestionControl, INFINITE_SSTHRESH, UNPACED};
use crate::clock::Clock;
use crate::config::{Backoff, Recovery, SackLimit, TcpConfig};
use crate::segment::Ecn;
use crate::stats::{SenderView, Stats};
use crate::Nanos;
use erto::Erto;
use persist::Persist;
use rack::Rack;
use rate::{Pacer, RateEstimator};
use rtt::RttEstimator;
use scoreboard::Scoreboard;

/// Segments that a new connection has room for before its ring grows.
const RING_PACKETS: usize = 32;

/// What follows an ACK (Linux: REXMIT_NONE, REXMIT_LOST, REXMIT_NEW).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Rexmit {
    #[default]
    None,
    /// Lost segments first, as the window allows.
    Lost,
    /// F-RTO: new data first; lost segments only when there is none.
    New,
}

/// Where the stream's end stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Fin {
    #[default]
    Open,
    Wanted,
    Sent,
}

/// What the SYNs of both sides have settled.
#[derive(Clone, Copy, Debug)]
pub struct Negotiated {
    /// Both permit SACK and `recovery` is `sack`.
    pub sack: bool,
    pub timestamps: bool,
    /// RFC 3168.
    pub ecn: bool,
    /// Application bytes of a full segment.
    pub mss_bytes: u32,
}

/// What a control that needs ECN answers as a receiver.
#[derive(Clone, Copy, Debug)]
pub struct MarkAnswer {
    /// Our ACKs carry ECE from now on.
    pub echo: bool,
    /// Acknowledge at once, and, with the echo as it was, what came until `ack_before`.
    pub ack_now: bool,
    pub ack_before: u32,
}

pub struct Sender {
    cc: CongestionControl,
    /// What the control sees. Of its members, `in_flight`, `retrans_out`, `delivered` and `cwnd_limited` are brought up to date
    /// by `view()` before each call; the others are the sender's own state.
    tcp: CcTcp,
    board: Scoreboard,
    clock: Clock,
    rtt: RttEstimator,
    rack: Rack,
    stats: Stats,

    recovery: Recovery,
    negotiated: Negotiated,
    prr: bool,
    backoff: Backoff,
    frto_enabled: bool,
    erto_enabled: bool,
    sack_limit: SackLimit,
    sack_buffer_windows: u64,
    limited_transmit: bool,
    repairs_named: bool,
    dupack_threshold: u32,
    slow_start_after_idle: bool,
    /// Of data where ECN was agreed on.
    ect: Ecn,
    initial_window: u32,

    /// Bytes that the peer takes from snd_una on, and the segment that said so (RFC 9293 §3.10.7.4: SND.WL1).
    snd_wnd: u64,
    snd_wl1: u32,
    max_window: u64,

    /// Application bytes that wait; `u64::MAX`: endless.
    unsent: u64,
    fin: Fin,
    acked_bytes: u64,
    /// Packets that got through, duplicate ACKs counted.
    delivered: u64,

    prior_ssthresh: u32,
    /// A reduction that may still turn out to be spurious.
    undo_marker: bool,
    /// F-RTO is undecided.
    frto: bool,
    erto: Erto,
    /// snd_nxt at the first of the timeouts that E-RTO judges: what lies above is new data.
    erto_high_seq: u32,
    /// Timestamp of the episode's first retransmission (Eifel).
    retrans_stamp: Option<u32>,
    /// Timeouts since snd_una moved.
    backoffs: u32,
    prr_delivered: u32,
    prr_out: u32,

    /// The next new segment tells the receiver that the window was reduced (RFC 3168 §6.1.2).
    cwr_due: bool,
    rate: RateEstimator,
    pacer: Pacer,

    rexmit: Rexmit,
    /// The recovery's rescue retransmission was not used yet.
    rescue: bool,
    /// Retransmit the head whatever the window says.
    force_head: bool,
    rto_deadline: Option<Nanos>,
    persist: Persist,

    /// Congestion window validation as Linux does it.
    is_cwnd_limited: bool,
    max_packets_out: u32,
    cwnd_usage_seq: u32,
    burst_sent: bool,
    last_sent_ns: Nanos,
}

impl Sender {
    /// A sender that waits for the end of the handshake; `iss` is the SYN's sequence number.
    pub fn new(config: &TcpConfig, iss: u32, clock: Clock) -> Sender {
        let clamp = match config.cwnd_clamp_packets {
            0 => u32::MAX,
            packets => packets,
        };
        let next = iss.wrapping_add(1);
        let tcp = CcTcp {
            snd_cwnd: config.initial_window_packets.min(clamp),
            snd_ssthresh: match config.initial_ssthresh_packets {
                0 => INFINITE_SSTHRESH,
                packets => packets,
            },
            snd_cwnd_clamp: clamp,
            snd_una: next,
            snd_nxt: next,
            high_seq: next,
            mss_bytes: config.mss_bytes,
            rtt_us: -1,
            params: config.params(),
            pacing_rate: UNPACED,
            ..CcTcp::default()
        };
        Sender {
            cc: CongestionControl::new(config.cc),
            tcp,
            board: Scoreboard::with_capacity(RING_PACKETS),
            clock,
            rtt: RttEstimator::new(config),
            rack: Rack::new(config.rack),
            stats: Stats::default(),
            recovery: config.recovery,
            negotiated: Negotiated {
                sack: false,
                timestamps: false,
                ecn: false,
                mss_bytes: config.mss_bytes,
            },
            prr: config.prr && matches!(config.recovery, Recovery::Newreno | Recovery::Sack),
            backoff: config.backoff,
            frto_enabled: config.frto,
            erto_enabled: config.erto,
            sack_limit: config.sack_limit,
            sack_buffer_windows: config.sack_buffer_windows.into(),
            limited_transmit: config.limited_transmit,
            repairs_named: config.repairs_named,
            dupack_threshold: config.dupack_threshold,
            slow_start_after_idle: config.slow_start_after_idle,
            ect: if config.ect1 { Ecn::Ect1 } else { Ecn::Ect0 },
            initial_window: config.initial_window_packets,
            snd_wnd: 0,
            snd_wl1: 0,
            max_window: 0,
            unsent: 0,
            fin: Fin::Open,
            acked_bytes: 0,
            delivered: 0,
            prior_ssthresh: 0,
            undo_marker: false,
            frto: false,
            erto: Erto::Off,
            erto_high_seq: next,
            retrans_stamp: None,
            backoffs: 0,
            prr_delivered: 0,
            prr_out: 0,
            cwr_due: false,
            rate: RateEstimator::default(),
            pacer: Pacer::default(),
            rexmit: Rexmit::None,
            rescue: false,
            force_head: false,
            rto_deadline: None,
            persist: Persist::default(),
            is_cwnd_limited: false,
            max_packets_out: 0,
            cwnd_usage_seq: next,
            burst_sent: false,
            last_sent_ns: 0,
        }
    }

    /// The handshake is over. `rtt_ns` is its round trip, None when a SYN was retransmitted (Karn); then so often.
    pub fn establish(
        &mut self,
        negotiated: Negotiated,
        window: u64,
        seq: u32,
        rtt_ns: Option<Nanos>,
        syn_retransmits: u32,
        now: Nanos,
    ) {
        self.negotiated = negotiated;
        self.tcp.now_ns = now;
        self.tcp.mss_bytes = negotiated.mss_bytes;
        self.snd_wnd = window;
        self.max_window = window;
        self.snd_wl1 = seq;
        match rtt_ns {
            Some(rtt_ns) => self.rtt.sample(rtt_ns, self.tcp.snd_una, self.tcp.snd_nxt),
            None if syn_retransmits > 0 => self.rtt.syn_was_lost(),
            None => {}
        }
        if syn_retransmits > 1 {
            self.tcp.snd_cwnd = 1; // RFC 5681 §3.1, from the second on as in Linux
        }
        self.view();
        self.cc.init(&mut self.tcp);
    }

    /// Application bytes to send; `u64::MAX` is endless.
    pub fn write(&mut self, bytes: u64) {
        if self.fin == Fin::Open {
            self.note_lull();
            self.unsent = self.unsent.saturating_add(bytes);
        }
    }

    /// What was written and not sent yet is not sent.
    pub fn discard_unsent(&mut self) {
        self.unsent = 0;
    }

    /// FIN behind what waits; an endless source ends here.
    pub fn close(&mut self) {
        if self.fin == Fin::Open {
            self.fin = Fin::Wanted;
            if self.unsent == u64::MAX {
                self.unsent = 0;
            }
        }
    }

    pub fn fin_acknowledged(&self) -> bool {
        self.fin == Fin::Sent && self.tcp.snd_una == self.tcp.snd_nxt
    }

    pub fn snd_una(&self) -> u32 {
        self.tcp.snd_una
    }

    pub fn snd_nxt(&self) -> u32 {
        self.tcp.snd_nxt
    }

    pub fn acked_bytes(&self) -> u64 {
        self.acked_bytes
    }

    /// Application bytes that were written and not yet sent; `u64::MAX`: endless.
    pub fn unsent_bytes(&self) -> u64 {
        self.unsent
    }

    pub fn rtt(&mut self) -> &mut RttEstimator {
        &mut self.rtt
    }

    pub fn stats(&self) -> Stats {
        if !self.cc.has_ena() {
            return self.stats;
        }
        let ena = self.cc.ena_counts();
        Stats {
            window_reductions: ena.reduced.into(),
            ena_kept: ena.kept.into(),
            ena_reduced: ena.reduced.into(),
            ena_allowed: ena.allowed.into(),
            ena_restored: ena.restored.into(),
            ..self.stats
        }
    }

    pub fn stats_mut(&mut self) -> &mut Stats {
        &mut self.stats
    }

    pub fn next_timer(&self) -> Option<Nanos> {
        [
            self.rto_deadline,
            self.persist.deadline(),
            self.rack.deadline(),
            self.pacer.deadline(),
        ]
        .into_iter()
        .flatten()
        .min()
    }

    pub fn sender_view(&self) -> SenderView {
        SenderView {
            snd_cwnd: self.tcp.snd_cwnd,
            snd_ssthresh: self.tcp.snd_ssthresh,
            srtt_ns: self.rtt.srtt_ns(),
            rttvar_ns: self.rtt.rttvar_ns(),
            min_rtt_ns: self.rtt.min_rtt_ns(),
            rto_ns: self.rtt.rto_ns(),
            in_flight: self.board.in_flight(),
            ca_state: self.ca_state(),
        }
    }

    fn sack(&self) -> bool {
        self.negotiated.sack
    }

    fn ca_state(&self) -> CaState {
        match self.tcp.ca_state {
            0 => CaState::Open,
            1 => CaState::Disorder,
            2 => CaState::Cwr,
            3 => CaState::Recovery,
            _ => CaState::Loss,
        }
    }

    /// Brings what the control sees up to date.
    fn view(&mut self) {
        self.tcp.in_flight = self.board.in_flight();
        self.tcp.retrans_out = self.board.retrans_out();
        self.tcp.cwnd_limited = u32::from(self.cwnd_limits());
        self.tcp.delivered = self.delivered as u32; // modulo 2^32, as the kernel counts
        self.tcp.delivered_ce = self.stats.delivered_ce as u32;
        self.tcp.app_limited = self.rate.app_limited();
        self.tcp.lost = self.board.lost_ever() as u32;
        self.tcp.lost_out = self.board.lost_out();
        self.tcp.window_packets = (self.snd_wnd / u64::from(self.tcp.mss_bytes.max(1))) as u32;
        self.tcp.srtt_us = (self.rtt.srtt_ns() / 1000).min(u64::from(u32::MAX)) as u32;
    }

    fn set_ca_state(&mut self, state: CaState) {
        self.view();
        self.cc.set_state(&mut self.tcp, state);
        self.tcp.ca_state = state as u32;
    }

    fn cwnd_event(&mut self, event: CaEvent) {
        self.view();
        self.cc.cwnd_event(&mut self.tcp, event);
    }

    fn ssthresh(&mut self) -> u32 {
        self.stats.window_reductions += 1;
        self.view();
        self.cc.ssthresh(&mut self.tcp)
    }

    pub fn has_ecn(&self) -> bool {
        self.negotiated.ecn
    }

    /// The ECN field of data: whether it may be marked on its way. RFC 3168 §6.1.5: `again`, a retransmission, not; a control
    /// that needs ECN has these marked as well (Linux: tcp_ecn_send).
    pub fn ecn_of_data(&self, again: bool) -> Ecn {
        if self.negotiated.ecn && (!again || self.cc.needs_ecn()) {
            self.ect
        } else {
            Ecn::NotEct
        }
    }

    pub fn take_cwr(&mut self) -> bool {
        std::mem::take(&mut self.cwr_due)
    }

    /// Data came in, `marked` or not, and our ACKs echo `echo`: what the control makes of it. None: it has no rule of its own.
    pub fn on_mark(
        &mut self,
        now: Nanos,
        marked: bool,
        rcv_nxt: u32,
        echo: bool,
    ) -> Option<MarkAnswer> {
        if !self.cc.needs_ecn() {
            return None;
        }
        self.tcp.now_ns = now;
        self.tcp.rcv_nxt = rcv_nxt;
        self.tcp.ecn_echo = u32::from(echo);
        self.tcp.ack_now = 0;
        self.cwnd_event(match marked {
            true => CaEvent::EcnIsCe,
            false => CaEvent::EcnNoCe,
        });
        Some(MarkAnswer {
            echo: self.tcp.ecn_echo != 0,
            ack_now: self.tcp.ack_now != 0,
            ack_before: self.tcp.ack_before,
        })
    }

    /// The RTO begins anew, or ends with nothing in flight (RFC 6298 §5.1 to §5.3).
    fn restart_rto(&mut self, now: Nanos) {
        self.rto_deadline =
            (self.board.packets_out() > 0).then(|| self.clock.after(now, self.rtt.rto_ns()));
    }
}
