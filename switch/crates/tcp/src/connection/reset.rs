// SPDX-License-Identifier: Apache-2.0
//! RST segments (RFC 9293 §3.5.2).

use super::Connection;
use crate::segment::flags::Flags;
use crate::segment::Segment;

/// The RST that answers a segment which belongs to no connection; None for a RST.
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
    pub(super) fn reject(&mut self, segment: &Segment) {
        self.sender.stats_mut().unacceptable += 1;
        self.pending_reset = reset_for(segment);
    }
}
