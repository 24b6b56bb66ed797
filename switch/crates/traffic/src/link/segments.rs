// SPDX-License-Identifier: Apache-2.0
//! What a link reads of the packets that it carries, where its bit errors ask for it: their payload, and which were sent before.

use super::UNTOUCHED_BYTES as ETHERNET_BYTES;
use crate::fnv1a;
use std::ops::Range;

const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86DD;
const TCP: u8 = 6;
const UDP: u8 = 17;
const UDP_BYTES: usize = 8;
const SYN: u8 = 2;

/// A TCP segment or a UDP datagram in a frame.
pub(super) struct Segment {
    /// Behind the transport header, in the frame; may be empty.
    pub payload: Range<usize>,
    /// Of TCP: a hash of addresses and ports, the sequence number, and whether it is a SYN.
    tcp: Option<(u64, u32, bool)>,
}

impl Segment {
    /// None: a frame of another kind, a fragment behind the first, or IPv6 with extension headers.
    pub(super) fn find(frame: &[u8]) -> Option<Segment> {
        let be16 = |at: usize| Some(u16::from_be_bytes(frame.get(at..at + 2)?.try_into().ok()?));
        let ip = ETHERNET_BYTES;
        let (addresses, protocol, header_bytes, packet_bytes) = match be16(12)? {
            IPV4 if be16(ip + 6)? & 0x1fff == 0 => {
                let header_bytes = usize::from(frame[ip] & 15) * 4;
                (
                    ip + 12..ip + 20,
                    frame.get(ip + 9)?,
                    header_bytes,
                    usize::from(be16(ip + 2)?),
                )
            }
            IPV6 => (
                ip + 8..ip + 40,
                frame.get(ip + 6)?,
                40,
                40 + usize::from(be16(ip + 4)?),
            ),
            _ => return None,
        };
        let transport = ip + header_bytes;
        let end = frame.len().min(ip + packet_bytes); // short frames are padded
        let behind = |bytes: usize| (transport + bytes).min(end)..end;
        match *protocol {
            TCP => {
                let header = frame.get(transport..transport + 20)?;
                let seq = u32::from_be_bytes(header[4..8].try_into().ok()?);
                let flow = fnv1a(frame.get(addresses)?.iter().chain(&header[..4]).copied());
                Some(Segment {
                    payload: behind(usize::from(header[12] >> 4) * 4),
                    tcp: Some((flow, seq, header[13] & SYN != 0)),
                })
            }
            UDP => Some(Segment {
                payload: behind(UDP_BYTES),
                tcp: None,
            }),
            _ => None,
        }
    }
}

/// Flows that are remembered; of more the oldest is forgotten.
const FLOWS: usize = 64;

/// How far each flow's data has come on this link, to tell what is sent again.
#[derive(Debug, Default)]
pub(super) struct Newest {
    /// Flow, and the sequence number behind its newest byte.
    ends: Vec<(u64, u32)>,
    oldest: usize,
}

impl Newest {
    /// Takes room for all flows: the packet path has none to take.
    pub(super) fn prepare(&mut self) {
        self.ends.reserve_exact(FLOWS - self.ends.len());
    }

    /// Whether a segment brings data and none that is new; remembers what it brings.
    pub(super) fn is_sent_again(&mut self, segment: &Segment) -> bool {
        let Some((flow, seq, syn)) = segment.tcp else {
            return false;
        };
        if !syn && segment.payload.is_empty() {
            return false;
        }
        let end = seq.wrapping_add(segment.payload.len() as u32 + u32::from(syn));
        if let Some((_, newest)) = self.ends.iter_mut().find(|(known, _)| *known == flow) {
            let brings_new = syn || (end.wrapping_sub(*newest) as i32) > 0;
            if brings_new {
                *newest = end;
            }
            return !brings_new;
        }
        if self.ends.len() < FLOWS {
            self.ends.push((flow, end));
        } else {
            self.ends[self.oldest] = (flow, end);
            self.oldest = (self.oldest + 1) % FLOWS;
        }
        false
    }
}
