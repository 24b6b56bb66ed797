// SPDX-License-Identifier: Apache-2.0
//! The hosts: frames in and out, which socket takes them, and the flows whose applications use those sockets.

use crate::app::{AppState, Step};
use crate::calendar::EntityId;
use crate::chance::Chance;
use crate::fabric::Fabric;
use crate::frame::{
    emit_udp, parse_udp, FrameError, Headers, Packet, PROTOCOL_TCP, PROTOCOL_UDP, TRANSPORT,
    UDP_LEN,
};
use crate::frames::FrameId;
use crate::results::{FlowReport, HostReport, Transfer};
use device::Nanos;
use rustc_hash::FxHashMap;

/// A host.
pub(crate) struct Host {
    pub(crate) ip: [u8; 4],
    pub(crate) mac: [u8; 6],
    pub(crate) gateway_mac: [u8; 6],
    /// The wire that it sends into.
    pub(crate) uplink: u32,
    identification: u16,
    counts: HostReport,
}

impl Host {
    pub(crate) fn new(name: &str, ip: [u8; 4], mac: [u8; 6], gateway_mac: [u8; 6]) -> Host {
        let counts = HostReport {
            host: name.to_owned(),
            ..HostReport::default()
        };
        Host {
            ip,
            mac,
            gateway_mac,
            uplink: 0,
            identification: 0,
            counts,
        }
    }

    /// Sends a frame of `len` bytes of transport header and payload, which `emit` writes into zeros.
    #[inline]
    fn send(
        &mut self,
        now: Nanos,
        dst: [u8; 4],
        protocol: u8,
        len: usize,
        fabric: &mut Fabric,
        emit: impl FnOnce(&mut [u8]),
    ) {
        let id = fabric.frames.take();
        let frame = fabric.frames.get_mut(id);
        frame.resize(TRANSPORT + len, 0);
        self.identification = self.identification.wrapping_add(1);
        let headers = Headers {
            src_mac: self.mac,
            dst_mac: self.gateway_mac,
            src: self.ip,
            dst,
            protocol,
            identification: self.identification,
        };
        headers.emit(frame);
        emit(&mut frame[TRANSPORT..]);
        self.counts.tx_packets += 1;
        fabric.transmit(now, self.uplink, id);
    }
}

/// Both ends of a conversation as one host sees it, and the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct SocketKey {
    addresses: u64,
    ports: u64,
}

impl SocketKey {
    #[inline]
    fn new(local: ([u8; 4], u16), remote: ([u8; 4], u16), protocol: u8) -> SocketKey {
        let address = |ip: [u8; 4]| u64::from(u32::from_be_bytes(ip));
        SocketKey {
            addresses: address(local.0) << 32 | address(remote.0),
            ports: u64::from(local.1) << 32 | u64::from(remote.1) << 16 | u64::from(protocol),
        }
    }
}

/// Who takes what comes for a `SocketKey`.
#[derive(Clone, Copy, Debug)]
enum Socket {
    /// The receiver of a UDP flow.
    Udp(u32),
}

/// A flow: its application and what it did so far.
pub(crate) struct Flow {
    pub(crate) name: String,
    pub(crate) from: u32,
    pub(crate) to: u32,
    pub(crate) from_port: u16,
    pub(crate) to_port: u16,
    pub(crate) stop: Option<Nanos>,
    pub(crate) app: AppState,
    pub(crate) chance: Chance,
    pub(crate) entity: EntityId,
    counts: FlowReport,
}

impl Flow {
    pub(crate) fn new(name: &str, app: AppState, seed: u64, entity: EntityId) -> Flow {
        let (chance, _) = Chance::of_flow(seed, name);
        let cc = if app.is_udp() { "udp" } else { "" };
        Flow {
            name: name.to_owned(),
            from: 0,
            to: 0,
            from_port: 0,
            to_port: 0,
            stop: None,
            app,
            chance,
            entity,
            counts: FlowReport {
                flow: name.to_owned(),
                cc: cc.to_owned(),
                ..FlowReport::default()
            },
        }
    }
}

/// All hosts and flows.
#[derive(Default)]
pub(crate) struct Hosts {
    pub(crate) hosts: Vec<Host>,
    pub(crate) flows: Vec<Flow>,
    pub(crate) transfers: Vec<Transfer>,
    sockets: FxHashMap<SocketKey, Socket>,
}

impl Hosts {
    pub(crate) fn new(hosts: Vec<Host>) -> Hosts {
        Hosts {
            hosts,
            ..Hosts::default()
        }
    }

    /// Adds a flow and opens what it needs at its receiver.
    pub(crate) fn add_flow(&mut self, flow: Flow) {
        let index = self.flows.len() as u32;
        let local = (self.hosts[flow.to as usize].ip, flow.to_port);
        let remote = (self.hosts[flow.from as usize].ip, flow.from_port);
        if flow.app.is_udp() {
            let key = SocketKey::new(local, remote, PROTOCOL_UDP);
            self.sockets.insert(key, Socket::Udp(index));
        }
        self.flows.push(flow);
    }

    /// A frame's last bit arrived at a host.
    #[inline]
    pub(crate) fn receive(&mut self, now: Nanos, host: u32, frame: FrameId, fabric: &mut Fabric) {
        let counts = &mut self.hosts[host as usize].counts;
        counts.rx_packets += 1;
        let (ip, mac) = (self.hosts[host as usize].ip, self.hosts[host as usize].mac);
        let taken = match Packet::parse(fabric.frames.get(frame)) {
            Err(error) => Err(error),
            Ok(packet) if packet.dst != ip || packet.dst_mac != mac => {
                self.hosts[host as usize].counts.not_for_us += 1;
                return;
            }
            Ok(packet) => match packet.protocol {
                PROTOCOL_UDP => self.receive_udp(&packet),
                _ => Ok(false),
            },
        };
        let counts = &mut self.hosts[host as usize].counts;
        match taken {
            Ok(true) => counts.accepted_packets += 1,
            Ok(false) => counts.no_socket += 1,
            Err(FrameError::Malformed) => counts.malformed += 1,
            Err(FrameError::IpChecksum) => counts.bad_ip_checksum += 1,
            Err(FrameError::TransportChecksum) => counts.bad_transport_checksum += 1,
        }
        let _ = now;
    }

    /// False: nobody takes it.
    fn receive_udp(&mut self, packet: &Packet<'_>) -> Result<bool, FrameError> {
        let (src_port, dst_port, payload) = parse_udp(packet.src, packet.dst, packet.body)?;
        let (local, remote) = ((packet.dst, dst_port), (packet.src, src_port));
        let key = SocketKey::new(local, remote, PROTOCOL_UDP);
        let Some(Socket::Udp(flow)) = self.sockets.get(&key) else {
            return Ok(false);
        };
        self.flows[*flow as usize].counts.received_bytes += payload as u64;
        Ok(true)
    }

    /// The application of a flow is due.
    pub(crate) fn act(&mut self, now: Nanos, flow: u32, fabric: &mut Fabric) {
        let state = &mut self.flows[flow as usize];
        if state.stop.is_some_and(|stop| stop <= now) {
            fabric.calendar.set_after_action(state.entity, None);
            return;
        }
        let (step, next) = state.app.step(now, &mut state.chance);
        let next = match (next, state.stop) {
            (Some(next), Some(stop)) => Some(next.min(stop)),
            (next, stop) => next.or(stop),
        };
        fabric.calendar.set_after_action(state.entity, next);
        if let Step::Datagram(payload) = step {
            self.send_datagram(now, flow, payload, fabric);
        }
    }

    fn send_datagram(&mut self, now: Nanos, flow: u32, payload: usize, fabric: &mut Fabric) {
        let flow = &mut self.flows[flow as usize];
        flow.counts.sent_segments += 1;
        let dst = self.hosts[flow.to as usize].ip;
        let ports = (flow.from_port, flow.to_port);
        let host = &mut self.hosts[flow.from as usize];
        let src = host.ip;
        host.send(now, dst, PROTOCOL_UDP, UDP_LEN + payload, fabric, |out| {
            emit_udp(src, dst, ports, out);
        });
    }

    pub(crate) fn flow_reports(&self) -> Vec<FlowReport> {
        self.flows.iter().map(|flow| flow.counts.clone()).collect()
    }

    pub(crate) fn host_reports(&self) -> Vec<HostReport> {
        self.hosts.iter().map(|host| host.counts.clone()).collect()
    }
}
