// SPDX-License-Identifier: Apache-2.0
//! The handshake: SYN, SYN-ACK, their retransmission, and the options that both sides settle (RFC 9293 §3.5).

use super::{Connection, State};
use crate::config::{Recovery, TcpConfig};
use crate::receiver::window_shift;
use crate::segment::options::{Options, SackBlocks, TIMESTAMPS_LEN};
use crate::segment::Flags;
use crate::segment::Segment;
use crate::sender::Negotiated;
use crate::Nanos;

/// The MSS of a peer that names none (RFC 9293 §3.7.1).
const DEFAULT_MSS_BYTES: u32 = 536;

/// What we offer, what we agreed on, and the timer of the SYN.
pub(super) struct Handshake {
    iss: u32,
    irs: u32,
    mss_bytes: u32,
    sack: bool,
    timestamps: bool,
    /// We ask for ECN, and grant it to a peer that asks.
    ecn: bool,
    window_shift: Option<u8>,
    negotiated: Negotiated,
    /// A SYN (or SYN-ACK) is to be sent.
    due: bool,
    sent_ns: Option<Nanos>,
    deadline: Option<Nanos>,
    retransmits: u32,
}

impl Handshake {
    pub fn new(config: &TcpConfig, iss: u32) -> Handshake {
        Handshake {
            iss,
            irs: 0,
            mss_bytes: config.mss_bytes,
            sack: config.recovery == Recovery::Sack,
            timestamps: config.timestamps,
            ecn: config.ecn || config.cc.needs_ecn(),
            window_shift: config
                .window_scale
                .then(|| window_shift(config.receive_buffer_bytes())),
            negotiated: Negotiated {
                sack: false,
                timestamps: false,
                ecn: false,
                mss_bytes: config.mss_bytes,
            },
            due: true,
            sent_ns: None,
            deadline: None,
            retransmits: 0,
        }
    }

    pub fn iss(&self) -> u32 {
        self.iss
    }

    pub fn irs(&self) -> u32 {
        self.irs
    }

    pub fn deadline(&self) -> Option<Nanos> {
        self.deadline
    }

    /// Asks for the SYN-ACK once more: its SYN came again.
    pub fn repeat(&mut self) {
        self.due = true;
    }

    /// What a SYN, or a SYN-ACK, says of ECN.
    pub fn ecn_flags(&self, synack: bool) -> Flags {
        match (synack, self.ecn, self.negotiated.ecn) {
            (false, true, _) => Flags::ECE | Flags::CWR,
            (true, _, true) => Flags::ECE,
            _ => Flags::NONE,
        }
    }

    /// Options of a SYN whose timestamp is `stamp`, or of the SYN-ACK that answers `accepted`.
    fn options(&self, stamp: u32, accepted: Option<u32>, synack: bool) -> Options {
        let timestamps = if synack {
            self.negotiated.timestamps
        } else {
            self.timestamps
        };
        let room = if self.timestamps {
            TIMESTAMPS_LEN as u32
        } else {
            0
        };
        Options {
            // `mss_bytes` is what the application sees; the option counts the options of data segments (RFC 6691).
            mss: Some((self.mss_bytes + room) as u16),
            window_scale: self.window_shift,
            sack_permitted: if synack {
                self.negotiated.sack
            } else {
                self.sack
            },
            sack: SackBlocks::default(),
            timestamps: timestamps.then(|| (stamp, accepted.unwrap_or(0))),
            ena: None,
        }
    }
}

impl Connection {
    /// The peer's SYN: settles the options, each of which both sides must offer.
    pub(super) fn take_syn(&mut self, syn: &Segment) {
        let handshake = &mut self.handshake;
        handshake.irs = syn.seq;
        let timestamps = handshake
            .timestamps
            .then_some(syn.options.timestamps)
            .flatten();
        let (shift, snd_wscale) = match (handshake.window_shift, syn.options.window_scale) {
            (Some(ours), Some(theirs)) => (ours, theirs),
            _ => {
                handshake.window_shift = None;
                (0, 0)
            }
        };
        let peer_mss = syn.options.mss.map_or(DEFAULT_MSS_BYTES, u32::from);
        let offered = match syn.flags.ack() {
            true => Flags::ECE,
            false => Flags::ECE | Flags::CWR,
        };
        let overhead = if timestamps.is_some() {
            TIMESTAMPS_LEN as u32
        } else {
            0
        };
        handshake.negotiated = Negotiated {
            sack: handshake.sack && syn.options.sack_permitted,
            timestamps: timestamps.is_some(),
            ecn: handshake.ecn && syn.flags.contains(offered),
            mss_bytes: handshake
                .mss_bytes
                .min(peer_mss.saturating_sub(overhead))
                .max(1),
        };
        self.timestamps = timestamps.is_some();
        self.snd_wscale = snd_wscale;
        let sack = handshake.negotiated.sack;
        self.receiver
            .establish(syn.seq, shift, sack, timestamps.map(|(value, _)| value));
    }

    /// Both SYNs are acknowledged. `window` is the last segment's, in bytes.
    pub(super) fn establish(&mut self, now: Nanos, segment: &Segment, window: u64) {
        let handshake = &mut self.handshake;
        let rtt_ns = handshake
            .sent_ns
            .filter(|_| handshake.retransmits == 0)
            .map(|sent_ns| self.clock.between(sent_ns, now));
        handshake.deadline = None;
        handshake.due = false;
        // Behind the SYN, so that a first duplicate ACK is one: its sequence number alone is no news of the window.
        let seq = segment.seq.wrapping_add(u32::from(segment.flags.syn()));
        self.sender.establish(
            handshake.negotiated,
            window,
            seq,
            rtt_ns,
            handshake.retransmits,
            now,
        );
        self.state = State::Established;
    }

    pub(super) fn on_handshake_timer(&mut self, now: Nanos) {
        if self
            .handshake
            .deadline
            .is_some_and(|deadline| deadline <= now)
        {
            self.handshake.deadline = None;
            self.handshake.due = true;
            self.sender.rtt().back_off();
            self.sender.stats_mut().timeouts += 1;
        }
    }

    /// The SYN or SYN-ACK, when one is due.
    pub(super) fn poll_handshake(&mut self, now: Nanos) -> Option<Segment> {
        if !std::mem::take(&mut self.handshake.due) {
            return None;
        }
        let rto_ns = self.sender.rtt().rto_ns();
        if self.handshake.sent_ns.replace(now).is_some() {
            self.handshake.retransmits += 1;
            self.sender.stats_mut().retransmits += 1;
        }
        self.handshake.deadline = Some(self.clock.after(now, rto_ns));
        let synack = self.state == State::SynReceived;
        let options =
            self.handshake
                .options(self.clock.timestamp(now), self.receiver.ts_recent(), synack);
        Some(self.syn_segment(options, synack))
    }
}
