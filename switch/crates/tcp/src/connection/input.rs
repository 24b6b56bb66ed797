// SPDX-License-Identifier: Apache-2.0
//! A segment comes in: the checks of RFC 9293 §3.10.7 in their order.

use super::{Connection, State};
use crate::segment::{Damaged, Ecn, Flags, Segment};
use crate::sender::ack::Ack;
use crate::seq::after;
use crate::Nanos;

impl Connection {
    /// Takes a segment of this connection (the host has matched addresses and ports).
    pub fn on_segment(&mut self, now: Nanos, segment: &Segment) {
        self.sender.stats_mut().segments_received += 1;
        match self.state {
            State::Closed => self.reject(segment),
            State::SynSent => self.on_segment_in_syn_sent(now, segment),
            State::SynReceived => self.on_segment_in_syn_received(now, segment),
            _ => self.on_segment_synchronised(now, segment),
        }
    }

    /// Takes a TCP segment whose checksum is wrong: with ENA it is named to the peer, if it is one of this connection.
    pub fn on_corrupted(&mut self, _now: Nanos, bytes: &[u8]) {
        let receives = matches!(
            self.state,
            State::Established | State::FinWait1 | State::FinWait2
        );
        let (local, remote) = (self.local_port, self.remote_port);
        let ours = |damaged: &Damaged| damaged.dst_port == local && damaged.src_port == remote;
        let Some(damaged) = Damaged::parse(bytes).filter(ours).filter(|_| receives) else {
            return;
        };
        if self.receiver.on_corrupted(damaged.seq, damaged.seq_len) {
            self.sender.stats_mut().ena_corrupted += 1;
        }
    }

    /// RFC 9293 §3.10.7.3.
    fn on_segment_in_syn_sent(&mut self, now: Nanos, segment: &Segment) {
        let acks_syn = segment.flags.ack() && segment.ack == self.handshake.iss().wrapping_add(1);
        if segment.flags.ack() && !acks_syn {
            self.reject(segment);
        } else if segment.flags.rst() {
            if acks_syn {
                self.enter_closed();
            }
        } else if segment.flags.syn() {
            self.take_syn(segment);
            if acks_syn {
                self.establish(now, segment, u64::from(segment.window));
                self.receiver.request_ack();
            } else {
                self.state = State::SynReceived; // both sides opened at once
                self.handshake.repeat();
            }
        }
    }

    fn on_segment_in_syn_received(&mut self, now: Nanos, segment: &Segment) {
        if segment.flags.syn() && segment.seq == self.handshake.irs() && !segment.flags.rst() {
            self.handshake.repeat();
            if !segment.flags.ack() {
                return;
            }
        }
        if segment.flags.rst() {
            if segment.seq == self.receiver.rcv_nxt() {
                self.enter_closed();
            }
        } else if segment.flags.ack() {
            if segment.ack != self.handshake.iss().wrapping_add(1) {
                self.reject(segment);
                return;
            }
            self.establish(now, segment, self.scaled_window(segment));
            self.on_segment_synchronised(now, segment);
        }
    }

    /// RFC 9293 §3.10.7.4.
    fn on_segment_synchronised(&mut self, now: Nanos, segment: &Segment) {
        let acceptable = self.receiver.is_acceptable(segment.seq, segment.seq_len());
        if segment.flags.rst() {
            if segment.seq == self.receiver.rcv_nxt() {
                self.enter_closed();
            } else if acceptable {
                self.answer_unacceptable(); // RFC 5961 §3.2: a challenge ACK
            }
            return;
        }
        // RFC 5961 §4.2 for the SYN.
        if !acceptable || segment.flags.syn() {
            if segment.flags.fin() && self.state == State::TimeWait {
                self.enter_time_wait(now);
            }
            self.answer_unacceptable();
            return;
        }
        if !segment.flags.ack() {
            return;
        }
        if after(segment.ack, self.sender.snd_nxt()) {
            self.answer_unacceptable();
            return;
        }
        if let Some((tsval, _)) = segment.options.timestamps {
            self.receiver.note_timestamp(segment.seq, tsval);
        }
        self.sender.on_ack(
            now,
            &Ack {
                seq: segment.seq,
                ack: segment.ack,
                window: self.scaled_window(segment),
                has_data: segment.seq_len() > 0,
                sack: &segment.options.sack,
                ena: segment.options.ena,
                ece: segment.flags.contains(Flags::ECE),
                tsecr: segment
                    .options
                    .timestamps
                    .map(|(_, tsecr)| tsecr)
                    .filter(|&tsecr| tsecr != 0),
            },
        );
        self.after_ack(now);
        if segment.seq_len() > 0 && self.state != State::Closed {
            let ack_was_delayed = self.receiver.ack_is_delayed();
            self.receiver.on_data(
                now,
                segment.seq,
                segment.payload_len,
                segment.flags.fin(),
                self.sender.stats_mut(),
            );
            if self.sender.has_ecn() && segment.payload_len > 0 {
                self.note_mark(now, segment, ack_was_delayed);
            }
            self.after_data(now);
        }
    }

    /// The receiver's half of ECN (RFC 3168 §6.1.3): a mark is echoed until the sender says that it has reduced its window;
    /// a congestion control that asks for ECN may have its own rule (DCTCP, RFC 8257 §3.2).
    fn note_mark(&mut self, now: Nanos, segment: &Segment, ack_was_delayed: bool) {
        let (marked, prior) = (segment.ecn == Ecn::Ce, self.receiver.echoes_mark());
        if segment.flags.contains(Flags::CWR) {
            self.receiver.set_echo(false);
            self.receiver.request_ack(); // the sender's window may be a single packet
        }
        let rcv_nxt = self.receiver.rcv_nxt();
        if let Some(event) = self.sender.on_mark(now, marked, rcv_nxt, prior) {
            if event.ack_now {
                if ack_was_delayed {
                    self.receiver.set_echo(prior);
                    self.receiver.acknowledge_before(event.ack_before);
                }
                self.receiver.request_ack();
            }
            self.receiver.set_echo(event.echo);
        } else if marked && !self.receiver.echoes_mark() {
            self.receiver.set_echo(true);
            self.receiver.request_ack();
        }
    }

    fn answer_unacceptable(&mut self) {
        self.sender.stats_mut().unacceptable += 1;
        self.receiver.request_ack();
    }

    /// Our FIN was acknowledged?
    fn after_ack(&mut self, now: Nanos) {
        if !self.sender.fin_acknowledged() {
            return;
        }
        match self.state {
            State::FinWait1 => self.state = State::FinWait2,
            State::Closing => self.enter_time_wait(now),
            State::LastAck => self.enter_closed(),
            _ => {}
        }
    }

    /// The peer's FIN arrived in order?
    fn after_data(&mut self, now: Nanos) {
        if !self.receiver.fin_received() {
            return;
        }
        match self.state {
            State::Established => self.state = State::CloseWait,
            State::FinWait1 => self.state = State::Closing,
            State::FinWait2 => self.enter_time_wait(now),
            _ => {}
        }
    }

    fn scaled_window(&self, segment: &Segment) -> u64 {
        u64::from(segment.window) << self.snd_wscale
    }
}

/// The RST (RFC 9293 §3.5.2) that answers a segment which belongs to no connection; None for a RST.
pub fn reset_for(segment: &Segment) -> Option<Segment> {
    if segment.flags.rst() {
        return None;
    }
    let reply = Segment {
        src_port: segment.dst_port,
        dst_port: segment.src_port,
        ..Segment::default()
    };
    Some(if segment.flags.ack() {
        Segment {
            seq: segment.ack,
            flags: Flags::RST,
            ..reply
        }
    } else {
        let ack = segment.seq.wrapping_add(segment.seq_len());
        Segment {
            ack,
            flags: Flags::RST | Flags::ACK,
            ..reply
        }
    })
}

impl Connection {
    /// Answers nonsense by a RST; the connection's own state stays.
    fn reject(&mut self, segment: &Segment) {
        self.sender.stats_mut().unacceptable += 1;
        self.pending_reset = reset_for(segment);
    }
}
