// SPDX-License-Identifier: Apache-2.0
//! Traces of the next real packets that match: each is shown as it comes in, and then goes its way as ever.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use v1model::trace::Tracer;

use crate::device::Device;
use crate::trace::Trace;

/// Which packets; what is None matches all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Filter {
    /// Where it came in.
    pub ingress_port: Option<u32>,
    /// IP source.
    pub src: Option<IpAddr>,
    /// IP destination.
    pub dst: Option<IpAddr>,
    /// IP protocol number.
    pub protocol: Option<u8>,
    /// TCP or UDP source port.
    pub sport: Option<u16>,
    /// TCP or UDP destination port.
    pub dport: Option<u16>,
}

/// A live trace that is on.
pub struct LiveTrace {
    /// Of the program that runs.
    pub tracer: Tracer,
    /// Which packets.
    pub filter: Filter,
    /// So many are still to come.
    pub left: u32,
    /// Gets each; false when nobody listens any more.
    pub tell: Box<dyn FnMut(Trace) -> bool + Send>,
}

impl Device {
    /// Shows packets from now on, instead of what was shown before, which comes back; None shows none.
    pub fn set_live_trace(&mut self, live: Option<Box<LiveTrace>>) -> Option<Box<LiveTrace>> {
        let before = std::mem::replace(&mut self.live, live);
        before.or(self.live_done.take())
    }

    /// True while packets are shown.
    pub fn has_live_trace(&self) -> bool {
        self.live.is_some()
    }

    /// Shows a frame that came in, if it is one of those.
    #[cold]
    #[inline(never)]
    pub(crate) fn show(&mut self, port: u32, frame: &[u8]) {
        let Some(mut live) = self.live.take() else {
            return;
        };
        if !live.filter.matches(port, frame) {
            self.live = Some(live);
            return;
        }
        // None: another program was loaded before the trace was set.
        let trace = self.trace(&mut live.tracer, port, frame);
        live.left = live.left.saturating_sub(1);
        let on = trace.is_some_and(|trace| (live.tell)(trace)) && live.left > 0;
        self.live = Some(live);
        if !on {
            self.end_live_trace();
        }
    }

    /// Shows no more packets. Who listens hears of the end; the tracer is dropped where no packets wait.
    pub(crate) fn end_live_trace(&mut self) {
        if let Some(mut live) = self.live.take() {
            live.tell = Box::new(|_| false);
            self.live_done = Some(live);
        }
    }
}

impl Filter {
    /// Whether a frame that came in at `port` is meant: Ethernet, tagged or not, with IPv4 or IPv6.
    pub fn matches(&self, port: u32, frame: &[u8]) -> bool {
        if self.ingress_port.is_some_and(|p| p != port) {
            return false;
        }
        let anything = Filter {
            ingress_port: self.ingress_port,
            ..Filter::default()
        };
        if *self == anything {
            return true;
        }
        let Some(packet) = Ip::parse(frame) else {
            return false;
        };
        self.src.is_none_or(|a| a == packet.src)
            && self.dst.is_none_or(|a| a == packet.dst)
            && self.protocol.is_none_or(|p| p == packet.protocol)
            && self
                .sport
                .is_none_or(|p| packet.ports.is_some_and(|q| q.0 == p))
            && self
                .dport
                .is_none_or(|p| packet.ports.is_some_and(|q| q.1 == p))
    }
}

struct Ip {
    src: IpAddr,
    dst: IpAddr,
    protocol: u8,
    /// Of TCP and UDP, not of later fragments.
    ports: Option<(u16, u16)>,
}

impl Ip {
    fn parse(frame: &[u8]) -> Option<Ip> {
        let mut at = 12;
        let mut kind = word(frame, at)?;
        while matches!(kind, 0x8100 | 0x88a8) {
            at += 4;
            kind = word(frame, at)?;
        }
        let packet = frame.get(at + 2..)?;
        let (src, dst, protocol, payload) = match kind {
            0x0800 => {
                let header = packet.get(..20)?;
                let src: [u8; 4] = header[12..16].try_into().ok()?;
                let dst: [u8; 4] = header[16..20].try_into().ok()?;
                let first = word(header, 6)? & 0x1fff == 0;
                let payload = packet.get(usize::from(header[0] & 15) * 4..);
                (
                    Ipv4Addr::from(src).into(),
                    Ipv4Addr::from(dst).into(),
                    header[9],
                    payload.filter(|_| first),
                )
            }
            0x86dd => {
                let header = packet.get(..40)?;
                let src: [u8; 16] = header[8..24].try_into().ok()?;
                let dst: [u8; 16] = header[24..40].try_into().ok()?;
                (
                    Ipv6Addr::from(src).into(),
                    Ipv6Addr::from(dst).into(),
                    header[6],
                    packet.get(40..),
                )
            }
            _ => return None,
        };
        let payload = payload.filter(|_| matches!(protocol, 6 | 17));
        let ports = payload.and_then(|p| Some((word(p, 0)?, word(p, 2)?)));
        Some(Ip {
            src,
            dst,
            protocol,
            ports,
        })
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u16> {
    let two = bytes.get(at..at + 2)?;
    Some(u16::from_be_bytes([two[0], two[1]]))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ethernet, `tags` VLAN tags, IPv4 10.0.1.1 to 10.0.2.2, TCP 4000 to 5001.
    fn frame(tags: usize) -> Vec<u8> {
        let mut frame = vec![0; 12];
        for _ in 0..tags {
            frame.extend([0x81, 0, 0, 7]);
        }
        frame.extend([8, 0, 0x45, 0, 0, 40, 0, 0, 0, 0, 64, 6, 0, 0]);
        frame.extend([10, 0, 1, 1, 10, 0, 2, 2]);
        frame.extend([0x0f, 0xa0, 0x13, 0x89]);
        frame.resize(60 + 4 * tags, 0);
        frame
    }

    #[test]
    fn what_is_named_must_be_so() {
        let src = Filter {
            src: Some("10.0.1.1".parse().unwrap()),
            dport: Some(5001),
            protocol: Some(6),
            ..Filter::default()
        };
        assert!(src.matches(1, &frame(0)) && src.matches(9, &frame(2)));
        for other in [
            Filter {
                src: Some("10.0.1.2".parse().unwrap()),
                ..src
            },
            Filter {
                dport: Some(4000),
                ..src
            },
            Filter {
                sport: Some(1),
                ..src
            },
            Filter {
                protocol: Some(17),
                ..src
            },
            Filter {
                ingress_port: Some(2),
                ..src
            },
            Filter {
                dst: Some("::1".parse().unwrap()),
                ..src
            },
        ] {
            assert!(!other.matches(1, &frame(0)), "{other:?}");
        }
    }

    #[test]
    fn a_filter_of_nothing_takes_what_is_no_ip_and_others_do_not() {
        assert!(Filter::default().matches(1, b"x"));
        let ip = Filter {
            protocol: Some(6),
            ..Filter::default()
        };
        for length in 0..frame(1).len() - 20 {
            ip.matches(1, &frame(1)[..length]); // short ones do not panic
        }
        assert!(!ip.matches(1, b"x"));
    }

    #[test]
    fn a_later_fragment_has_no_ports() {
        let mut bytes = frame(0);
        bytes[21] = 1;
        let filter = Filter {
            dport: Some(5001),
            ..Filter::default()
        };
        assert!(!filter.matches(1, &bytes));
    }
}
