// SPDX-License-Identifier: Apache-2.0
//! The sender's end of a connection: what is still to be written, and which of it is a transfer.

use crate::sockets::tcp_info;
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net;
use std::collections::VecDeque;
use std::io;
use uml::plan::Transfer;
use uml::tcp_info::TcpInfo;

/// Always something to send.
pub const GREEDY: u64 = u64::MAX;

/// A transfer that is under way.
pub struct Pending {
    pub start_ns: u64,
    pub bytes: u64,
    /// Bytes of the connection with its last one.
    pub until: u64,
    pub first_sent_ns: Option<u64>,
    /// Of the connection, when it was asked for.
    retransmits: u32,
    segments: u32,
}

pub struct Connection {
    pub flow: usize,
    /// Of its flow's, from 0.
    pub number: u64,
    pub socket: OwnedFd,
    pub is_connected: bool,
    /// Still to be written.
    pub left: u64,
    /// Nothing comes after that.
    pub closes: bool,
    is_shut: bool,
    /// Of all transfers so far.
    asked: u64,
    pub pending: VecDeque<Pending>,
    /// Its messages are acknowledged one by one.
    pub is_interactive: bool,
    /// Its sender says which timeouts it has undone.
    pub says_undone: bool,
}

impl Connection {
    pub fn new(flow: usize, number: u64, socket: OwnedFd, closes: bool) -> Connection {
        Connection {
            flow,
            number,
            socket,
            is_connected: false,
            left: 0,
            closes,
            is_shut: false,
            asked: 0,
            pending: VecDeque::new(),
            is_interactive: false,
            says_undone: false,
        }
    }

    /// A transfer is asked for.
    pub fn ask(&mut self, now: u64, bytes: u64) -> io::Result<()> {
        self.left += bytes;
        self.asked += bytes;
        let info = tcp_info(&self.socket)?;
        let info = TcpInfo::new(&info).ok_or(Errno::INVAL)?;
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

    /// As much as the connection takes.
    pub fn write(&mut self, now: u64, buffer: &[u8]) -> io::Result<()> {
        if !self.is_connected {
            return Ok(());
        }
        for pending in self
            .pending
            .iter_mut()
            .filter(|p| p.first_sent_ns.is_none())
        {
            pending.first_sent_ns = Some(now);
        }
        while self.left > 0 {
            let (len, flags) = self.next_write(buffer.len());
            match net::send(
                &self.socket,
                &buffer[..len],
                flags | net::SendFlags::NOSIGNAL,
            ) {
                Ok(_) if self.left == GREEDY => {}
                Ok(written) => self.left -= written as u64,
                Err(Errno::AGAIN) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
        if self.closes && !self.is_shut {
            self.is_shut = true;
            net::shutdown(&self.socket, net::Shutdown::Write)?;
        }
        Ok(())
    }

    /// A message begins a segment of its own, so that its acknowledgment is told apart.
    fn next_write(&self, most: usize) -> (usize, net::SendFlags) {
        let whole = match self.pending.back() {
            Some(message) if self.is_interactive => match self.left % message.bytes {
                0 => message.bytes,
                begun => begun,
            },
            _ => self.left,
        };
        let len = usize::try_from(whole).map_or(most, |whole| whole.min(most));
        let flags = match self.is_interactive && len as u64 == whole {
            true => net::SendFlags::EOR,
            false => net::SendFlags::empty(),
        };
        (len, flags)
    }

    /// What has become of a transfer.
    pub fn transfer(
        &self,
        pending: &Pending,
        now: u64,
        info: TcpInfo<'_>,
        is_finished: bool,
    ) -> Transfer {
        const SYN_BYTES: u64 = 1;
        let acked = info.bytes_acked().saturating_sub(SYN_BYTES);
        let missing = match is_finished {
            true => 0,
            false => pending.until.saturating_sub(acked),
        };
        // All that left after the handshake is data or FIN, but for the acknowledgment of the receiver's FIN.
        const SYN_AND_ACK: u32 = 2;
        let segments = match self.closes {
            true => info
                .segments_out()
                .saturating_sub(SYN_AND_ACK + u32::from(is_finished))
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
