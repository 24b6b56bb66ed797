// SPDX-License-Identifier: Apache-2.0
//! The sender's end of a connection: what is still to be written, and which of it is a transfer.

use crate::socket::{limit_unsent, report_acknowledgments, tcp_info};
use crate::TcpInfo;
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::io;

/// Always something to send.
const GREEDY: u64 = u64::MAX;
/// Writes in a turn; then others have theirs, however fast the path is.
const WRITES_PER_TURN: usize = 8;

/// One of a `bytes`, `web`, `interactive` or `video` application that has ended, or what was under way at the end.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Transfer {
    /// By its place among the flows.
    pub flow: usize,
    /// When the application asked, before the handshake.
    pub start_ns: u64,
    /// When its first byte was written, after the handshake; `start_ns` before that.
    pub first_sent_ns: u64,
    /// When its last byte was acknowledged.
    pub end_ns: u64,
    /// Of one that is not finished: those that are acknowledged.
    pub bytes: u64,
    pub retransmits: u64,
    /// Segments with data or FIN that left for it, retransmissions too.
    pub segments: u64,
    pub is_finished: bool,
}

/// A transfer that is under way.
pub(crate) struct Pending {
    start_ns: u64,
    bytes: u64,
    /// Bytes of the connection with its last one.
    pub until: u64,
    first_sent_ns: Option<u64>,
    /// Of the connection, when it was asked for.
    retransmits: u32,
    segments: u32,
}

/// The sender's end of a connection.
pub struct Connection {
    pub flow: usize,
    /// Of its flow's, from 0.
    pub number: u64,
    pub socket: OwnedFd,
    pub is_connected: bool,
    /// When its application asked for it.
    pub asked_ns: u64,
    /// Bytes that the socket took.
    pub written: u64,
    /// Still to be written.
    pub(crate) left: u64,
    /// Nothing comes after that.
    pub(crate) closes: bool,
    is_shut: bool,
    /// Of all transfers so far.
    asked: u64,
    pub(crate) pending: VecDeque<Pending>,
    /// Its messages are acknowledged one by one.
    is_interactive: bool,
    /// What the kernel counted of the handshake.
    handshake_bytes: u64,
    handshake_segments: u32,
}

impl Connection {
    pub(crate) fn new(
        flow: usize,
        number: u64,
        socket: OwnedFd,
        asked_ns: u64,
        is_interactive: bool,
    ) -> Connection {
        Connection {
            flow,
            number,
            socket,
            is_connected: false,
            asked_ns,
            written: 0,
            left: 0,
            closes: false,
            is_shut: false,
            asked: 0,
            pending: VecDeque::new(),
            is_interactive,
            handshake_bytes: 0,
            handshake_segments: 0,
        }
    }

    /// Bytes of the application that were acknowledged.
    pub fn acked<B: AsRef<[u8]>>(&self, info: &TcpInfo<B>) -> u64 {
        info.bytes_acked().saturating_sub(self.handshake_bytes)
    }

    /// True once all that it ever sends was written.
    pub fn is_written(&self) -> bool {
        self.closes && self.left == 0
    }

    /// The handshake is over.
    pub(crate) fn connected(&mut self, unsent_bytes: u32) -> io::Result<()> {
        limit_unsent(&self.socket, unsent_bytes)?;
        let info = tcp_info(&self.socket)?;
        self.is_connected = true;
        self.handshake_bytes = info.bytes_acked();
        self.handshake_segments = info.segments_out();
        match self.is_interactive {
            true => report_acknowledgments(&self.socket),
            false => Ok(()),
        }
    }

    pub(crate) fn is_always_sending(&mut self) {
        self.left = GREEDY;
    }

    /// A transfer is asked for.
    pub(crate) fn ask(&mut self, now: u64, bytes: u64) -> io::Result<()> {
        self.left += bytes;
        self.asked += bytes;
        let info = tcp_info(&self.socket)?;
        self.pending.push_back(Pending {
            start_ns: now,
            bytes,
            until: self.asked,
            first_sent_ns: None,
            retransmits: info.retransmits(),
            segments: info.data_segments_out(),
        });
        Ok(())
    }

    /// As much as the connection takes in a turn; true: it may take more.
    pub(crate) fn write(&mut self, now: u64, buffer: &[u8]) -> io::Result<bool> {
        if !self.is_connected {
            return Ok(false);
        }
        let begun = self.pending.iter_mut();
        begun
            .filter(|pending| pending.first_sent_ns.is_none())
            .for_each(|pending| pending.first_sent_ns = Some(now));
        for _ in 0..WRITES_PER_TURN {
            if self.left == 0 {
                break;
            }
            let (len, flags) = self.next_write(buffer.len());
            match net::send(
                &self.socket,
                &buffer[..len],
                flags | net::SendFlags::NOSIGNAL,
            ) {
                Ok(written) => {
                    self.written += written as u64;
                    if self.left != GREEDY {
                        self.left -= written as u64;
                    }
                }
                Err(Errno::AGAIN) => return Ok(false),
                Err(error) => return Err(error.into()),
            }
        }
        if self.is_written() && !self.is_shut {
            self.is_shut = true;
            net::shutdown(&self.socket, net::Shutdown::Write)?;
        }
        Ok(self.left > 0)
    }

    /// A message begins a segment of its own, so that its acknowledgment is one of its own too.
    fn next_write(&self, most: usize) -> (usize, net::SendFlags) {
        let whole = match self.is_interactive {
            true => {
                let mut ends = self.pending.iter().map(|message| message.until);
                let end = ends.find(|end| *end > self.written);
                end.map_or(self.left, |end| end - self.written)
            }
            false => self.left,
        };
        let len = usize::try_from(whole).map_or(most, |whole| whole.min(most));
        let flags = match self.is_interactive && len as u64 == whole {
            true => net::SendFlags::EOR,
            false => net::SendFlags::empty(),
        };
        (len, flags)
    }

    /// What has become of a transfer.
    pub(crate) fn transfer<B: AsRef<[u8]>>(
        &self,
        pending: &Pending,
        now: u64,
        info: &TcpInfo<B>,
        is_finished: bool,
    ) -> Transfer {
        let missing = match is_finished {
            true => 0,
            false => pending.until.saturating_sub(self.acked(info)),
        };
        // All that left after the handshake is data or FIN, but for the acknowledgment of the receiver's FIN.
        let segments = match self.closes {
            true => info
                .segments_out()
                .saturating_sub(self.handshake_segments + u32::from(is_finished))
                .max(info.data_segments_out()),
            false => info.data_segments_out(),
        };
        Transfer {
            flow: self.flow,
            start_ns: pending.start_ns,
            first_sent_ns: pending.first_sent_ns.unwrap_or(pending.start_ns),
            end_ns: now,
            bytes: pending.bytes.saturating_sub(missing),
            retransmits: (info.retransmits() - pending.retransmits).into(),
            segments: (segments - pending.segments).into(),
            is_finished,
        }
    }
}
