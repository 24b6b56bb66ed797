// SPDX-License-Identifier: Apache-2.0
//! One TCP connection: the endpoint's public face, over a sender and a receiver.
//!
//! [`handshake`]: SYNs and what they settle; [`input`]: a segment comes in, or is reset; [`output`]: the next segment to send.

mod handshake;
mod input;
mod output;

pub use input::reset_for;

use crate::clock::Clock;
use crate::config::TcpConfig;
use crate::receiver::Receiver;
use crate::segment::Segment;
use crate::sender::Sender;
use crate::stats::{SenderView, Stats};
use crate::Nanos;
use handshake::Handshake;
use std::net::SocketAddr;

/// How long the side that closed first remembers the connection (Linux: TCP_TIMEWAIT_LEN).
const TIME_WAIT_NS: Nanos = 60_000_000_000;

/// RFC 9293 §3.3.2; LISTEN is the host's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    SynSent,
    SynReceived,
    Established,
    FinWait1,
    FinWait2,
    CloseWait,
    Closing,
    LastAck,
    TimeWait,
    Closed,
}

/// An endpoint. After each call that takes `&mut self`, call `poll_transmit` until it gives None.
pub struct Connection {
    local_port: u16,
    remote_port: u16,
    state: State,
    clock: Clock,
    handshake: Handshake,
    sender: Sender,
    receiver: Receiver,
    /// The shift of the peer's window field.
    snd_wscale: u8,
    timestamps: bool,
    pending_reset: Option<Segment>,
    time_wait_deadline: Option<Nanos>,
}

impl Connection {
    /// Active open: the SYN comes with the first `poll_transmit`. `config` must be valid (`TcpConfig::validate`).
    pub fn connect(
        config: &TcpConfig,
        local: SocketAddr,
        remote: SocketAddr,
        iss: u32,
        _now: Nanos,
    ) -> Connection {
        Connection::new(config, local, remote, iss, State::SynSent)
    }

    /// Passive open: answers `syn`, which a listening host received.
    pub fn accept(
        config: &TcpConfig,
        local: SocketAddr,
        remote: SocketAddr,
        iss: u32,
        _now: Nanos,
        syn: &Segment,
    ) -> Connection {
        let mut connection = Connection::new(config, local, remote, iss, State::SynReceived);
        connection.take_syn(syn);
        connection
    }

    fn new(
        config: &TcpConfig,
        local: SocketAddr,
        remote: SocketAddr,
        iss: u32,
        state: State,
    ) -> Connection {
        let clock = Clock::new(config.tick_ns, local.ip());
        Connection {
            local_port: local.port(),
            remote_port: remote.port(),
            state,
            clock,
            handshake: Handshake::new(config, iss),
            sender: Sender::new(config, iss, clock),
            receiver: Receiver::new(config, clock),
            snd_wscale: 0,
            timestamps: false,
            pending_reset: None,
            time_wait_deadline: None,
        }
    }

    /// Application bytes to send, added to what waits; `u64::MAX` is greedy (endless). Ignored after `close`.
    pub fn write(&mut self, _now: Nanos, bytes: u64) {
        self.sender.write(bytes);
    }

    /// Takes back what was written and not sent yet; an endless source pauses until the next `write`.
    pub fn discard_unsent(&mut self, _now: Nanos) {
        self.sender.discard_unsent();
    }

    /// FIN once everything is sent; a greedy source ends with what has been sent.
    pub fn close(&mut self, _now: Nanos) {
        self.sender.close();
    }

    /// The application stops reading (the receive buffer fills, the window shuts), or goes on. It reads at first.
    pub fn set_reading(&mut self, _now: Nanos, reading: bool) {
        self.receiver.set_reading(reading);
    }

    /// Call at or after `next_timer()`; earlier calls do nothing.
    pub fn on_timer(&mut self, now: Nanos) {
        match self.state {
            State::Closed => {}
            State::SynSent | State::SynReceived => self.on_handshake_timer(now),
            State::TimeWait
                if self
                    .time_wait_deadline
                    .is_some_and(|deadline| deadline <= now) =>
            {
                self.enter_closed()
            }
            _ => {
                self.sender.on_timer(now);
                self.receiver.on_timer(now, self.sender.stats_mut());
            }
        }
    }

    /// The earliest of RTO, delayed ACK, persist, handshake and TIME-WAIT.
    pub fn next_timer(&self) -> Option<Nanos> {
        match self.state {
            State::Closed => None,
            State::SynSent | State::SynReceived => self.handshake.deadline(),
            _ => [
                self.sender.next_timer(),
                self.receiver.next_timer(),
                self.time_wait_deadline,
            ]
            .into_iter()
            .flatten()
            .min(),
        }
    }

    pub fn state(&self) -> State {
        self.state
    }

    pub fn is_closed(&self) -> bool {
        self.state == State::Closed
    }

    /// Application bytes that the peer acknowledged.
    pub fn acked_bytes(&self) -> u64 {
        self.sender.acked_bytes()
    }

    /// Application bytes received in order and handed to the application.
    pub fn received_bytes(&self) -> u64 {
        self.receiver.received_bytes()
    }

    /// Application bytes written and not yet sent once; `u64::MAX`: greedy.
    pub fn unsent_bytes(&self) -> u64 {
        self.sender.unsent_bytes()
    }

    pub fn stats(&self) -> Stats {
        self.sender.stats()
    }

    pub fn sender(&self) -> SenderView {
        self.sender.sender_view()
    }

    fn enter_closed(&mut self) {
        self.state = State::Closed;
        self.time_wait_deadline = None;
    }

    fn enter_time_wait(&mut self, now: Nanos) {
        self.state = State::TimeWait;
        self.time_wait_deadline = Some(now + TIME_WAIT_NS);
    }
}
