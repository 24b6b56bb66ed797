// SPDX-License-Identifier: Apache-2.0
//! One TCP connection: the endpoint's public face.

use crate::config::TcpConfig;
use crate::segment::Segment;
use crate::stats::{SenderView, Stats};
use crate::Nanos;

/// One end of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, PartialOrd, Ord)]
pub struct Addr {
    pub ip: [u8; 4],
    pub port: u16,
}

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
    stats: Stats,
}

#[allow(unused_variables)]
impl Connection {
    /// Active open: the SYN comes with the first `poll_transmit`. `config` must be valid (`TcpConfig::validate`).
    pub fn connect(
        config: &TcpConfig,
        local: Addr,
        remote: Addr,
        iss: u32,
        now: Nanos,
    ) -> Connection {
        Connection {
            stats: Stats::default(),
        }
    }

    /// Passive open: answers `syn`, which a listening host received.
    pub fn accept(
        config: &TcpConfig,
        local: Addr,
        remote: Addr,
        iss: u32,
        now: Nanos,
        syn: &Segment,
    ) -> Connection {
        Connection {
            stats: Stats::default(),
        }
    }

    /// Application bytes to send, added to what waits; `u64::MAX` is greedy (endless).
    pub fn write(&mut self, now: Nanos, bytes: u64) {}

    /// FIN once everything is sent; a greedy source ends with what has been sent.
    pub fn close(&mut self, now: Nanos) {}

    pub fn on_segment(&mut self, now: Nanos, segment: &Segment) {}

    /// Call at or after `next_timer()`; earlier calls do nothing.
    pub fn on_timer(&mut self, now: Nanos) {}

    /// The earliest of RTO, delayed ACK, persist and TIME-WAIT.
    pub fn next_timer(&self) -> Option<Nanos> {
        None
    }

    /// The next segment to send, if there is one.
    pub fn poll_transmit(&mut self, now: Nanos) -> Option<Segment> {
        None
    }

    pub fn state(&self) -> State {
        State::Closed
    }

    pub fn is_closed(&self) -> bool {
        self.state() == State::Closed
    }

    /// Application bytes that the peer acknowledged.
    pub fn acked_bytes(&self) -> u64 {
        0
    }

    /// Application bytes received in order and handed to the application.
    pub fn received_bytes(&self) -> u64 {
        0
    }

    pub fn stats(&self) -> &Stats {
        &self.stats
    }

    pub fn sender(&self) -> SenderView {
        SenderView::default()
    }
}
