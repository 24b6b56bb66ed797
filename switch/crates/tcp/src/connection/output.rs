// SPDX-License-Identifier: Apache-2.0
//! The next segment that a connection has to send, with its header filled in.

use super::{Connection, State};
use crate::segment::options::{Options, SackBlocks};
use crate::segment::Flags;
use crate::segment::Segment;
use crate::Nanos;

impl Connection {
    /// The next segment to send, if there is one; call it until it gives None.
    pub fn poll_transmit(&mut self, now: Nanos) -> Option<Segment> {
        let segment = match self.state {
            _ if self.pending_reset.is_some() => self.pending_reset.take(),
            State::Closed => None,
            State::SynSent | State::SynReceived => self.poll_handshake(now),
            State::TimeWait => self.poll_ack(now),
            _ if self.receiver.owes_an_answer() => self.poll_ack(now), // not on data: a duplicate ACK has none
            _ => self
                .poll_data(now)
                .or_else(|| self.poll_probe(now))
                .or_else(|| self.poll_ack(now)),
        }?;
        self.sender.stats_mut().segments_sent += 1;
        Some(segment)
    }

    fn poll_data(&mut self, now: Nanos) -> Option<Segment> {
        let next = self.sender.next_segment(now)?;
        let mut flags = Flags::ACK;
        if next.fin {
            flags = flags | Flags::FIN;
            self.state = match self.state {
                State::Established => State::FinWait1,
                State::CloseWait => State::LastAck,
                state => state,
            };
        }
        if next.len > 0 {
            let pushes = next.fin || self.sender.unsent_bytes() == 0;
            flags = if pushes { flags | Flags::PSH } else { flags };
            let stats = self.sender.stats_mut();
            stats.data_segments_sent += 1;
            stats.bytes_sent += u64::from(next.len);
        }
        let mut segment = self.ack_segment(now, next.seq, flags);
        segment.payload_len = next.len;
        if next.len > 0 {
            self.mark_capable(&mut segment, next.is_retransmission());
        }
        if next.len > 0 {
            segment.options.sack = SackBlocks::default(); // the segment is full: blocks go into ACKs of their own
        }
        Some(segment)
    }

    fn poll_probe(&mut self, now: Nanos) -> Option<Segment> {
        let seq = self.sender.next_probe()?;
        Some(self.ack_segment(now, seq, Flags::ACK))
    }

    fn poll_ack(&mut self, now: Nanos) -> Option<Segment> {
        if !self.receiver.ack_is_due() {
            return None;
        }
        self.sender.stats_mut().acks_sent += 1;
        let seq = self.sender.snd_nxt();
        let earlier = self.receiver.take_earlier_ack();
        let mut segment = self.ack_segment(now, seq, Flags::ACK);
        if let Some((ack, echo)) = earlier {
            segment.ack = ack;
            segment.flags = if echo {
                Flags::ACK | Flags::ECE
            } else {
                Flags::ACK
            };
            self.receiver.request_ack(); // the one that follows has the new echo
        }
        segment.options.ena = self.receiver.take_name();
        let room = segment.options.sack_room();
        segment.options.sack.truncate(room);
        Some(segment)
    }

    /// New data is ECN-capable, and says that the window was reduced (RFC 3168 §6.1.2, §6.1.5).
    fn mark_capable(&mut self, segment: &mut Segment, again: bool) {
        segment.ecn = self.sender.ecn_of_data(again);
        if !again && self.sender.take_cwr() {
            segment.flags = segment.flags | Flags::CWR;
        }
    }

    /// A segment that acknowledges all there is, without payload.
    fn ack_segment(&mut self, now: Nanos, seq: u32, flags: Flags) -> Segment {
        let mut options = Options::default();
        if self.timestamps {
            options.timestamps = Some((
                self.clock.timestamp(now),
                self.receiver.ts_recent().unwrap_or(0),
            ));
        }
        let mut blocks = self.receiver.sack_blocks();
        blocks.truncate(options.sack_room());
        options.sack = blocks;
        let echo = if self.receiver.echoes_mark() {
            Flags::ECE
        } else {
            Flags::NONE
        };
        Segment {
            src_port: self.local_port,
            dst_port: self.remote_port,
            seq,
            ack: self.receiver.rcv_nxt(),
            flags: flags | echo,
            window: self.receiver.announce(false),
            options,
            ..Segment::default()
        }
    }

    pub(super) fn syn_segment(&mut self, options: Options, synack: bool) -> Segment {
        // RFC 3168 §6.1.1: the SYN offers ECN by both bits, the SYN-ACK accepts it by one.
        let ecn = self.handshake.ecn_flags(synack);
        let flags = if synack {
            Flags::SYN | Flags::ACK | ecn
        } else {
            Flags::SYN | ecn
        };
        Segment {
            src_port: self.local_port,
            dst_port: self.remote_port,
            seq: self.handshake.iss(),
            ack: if synack { self.receiver.rcv_nxt() } else { 0 },
            flags,
            window: self.receiver.announce(true),
            options,
            ..Segment::default()
        }
    }
}
