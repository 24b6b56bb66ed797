// SPDX-License-Identifier: Apache-2.0
//! A host: its addresses, the wire that it sends into, and its counts.

use crate::config::HostConfig;
use crate::frame::{transport, FrameError, Headers};
use crate::results::HostReport;
use device::Nanos;
use fabric::Fabric;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use tcp::segment::Ecn;

pub(crate) struct Host {
    ip: Ipv4Addr,
    ipv6: Option<Ipv6Addr>,
    mac: [u8; 6],
    gateway_mac: [u8; 6],
    /// The wire that it sends into.
    pub(crate) uplink: u32,
    identification: u16,
    pub(crate) counts: HostReport,
}

/// Of the IP header of a frame that leaves.
#[derive(Clone, Copy)]
pub(crate) struct To {
    pub(crate) src: IpAddr,
    pub(crate) dst: IpAddr,
    pub(crate) protocol: u8,
    pub(crate) ecn: Ecn,
}

/// What became of a frame that came in.
pub(crate) enum Taken {
    Accepted,
    /// Another host's address.
    NotForUs,
    /// No connection and nobody listens.
    NoSocket,
    Refused(FrameError),
}

impl Host {
    pub(crate) fn new(host: &HostConfig) -> Host {
        let counts = HostReport {
            host: host.name.clone(),
            ..HostReport::default()
        };
        Host {
            ip: host.ip,
            ipv6: host.ipv6,
            mac: host.mac.0,
            gateway_mac: host.gateway_mac.0,
            uplink: 0,
            identification: 0,
            counts,
        }
    }

    /// Sends a frame of `len` bytes of transport header and payload; `emit` writes the header, the first `header_len`
    /// bytes, into zeros.
    #[inline]
    pub(crate) fn send(
        &mut self,
        now: Nanos,
        to: To,
        (header_len, len): (usize, usize),
        fabric: &mut Fabric,
        emit: impl FnOnce(&mut [u8]),
    ) {
        let id = fabric.frames.take();
        let buffer = fabric.frames.get_mut(id);
        let start = transport(to.dst);
        let frame = buffer.zeros(start + len, start + header_len);
        self.identification = self.identification.wrapping_add(1);
        let headers = Headers {
            src_mac: self.mac,
            dst_mac: self.gateway_mac,
            src: to.src,
            dst: to.dst,
            protocol: to.protocol,
            identification: self.identification,
            ecn: to.ecn,
        };
        headers.emit(frame);
        emit(&mut frame[start..]);
        self.counts.tx_packets += 1;
        fabric.transmit(now, self.uplink, id);
    }

    /// Whether a packet to these addresses is for this host.
    #[inline]
    pub(crate) fn is_at(&self, mac: [u8; 6], ip: IpAddr) -> bool {
        let is_ours = match ip {
            IpAddr::V4(ip) => ip == self.ip,
            IpAddr::V6(ip) => Some(ip) == self.ipv6,
        };
        is_ours && mac == self.mac
    }

    #[inline]
    pub(crate) fn count(&mut self, taken: &Taken) {
        let counts = &mut self.counts;
        counts.rx_packets += 1;
        match taken {
            Taken::Accepted => counts.accepted_packets += 1,
            Taken::NotForUs => counts.not_for_us += 1,
            Taken::NoSocket => counts.no_socket += 1,
            Taken::Refused(FrameError::Malformed) => counts.malformed += 1,
            Taken::Refused(FrameError::IpChecksum) => {
                counts.bad_ip_checksum += 1;
                counts.corrupted += 1;
            }
            Taken::Refused(FrameError::TransportChecksum) => {
                counts.bad_transport_checksum += 1;
                counts.corrupted += 1;
            }
        }
    }
}
