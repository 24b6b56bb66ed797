// SPDX-License-Identifier: Apache-2.0
//! The hosts with their sockets and flows: frames in, applications' steps and timers out.

use crate::flow::Flow;
use crate::frame::{emit_udp, unverified, FrameError, Packet, PROTOCOL_TCP, PROTOCOL_UDP, UDP_LEN};
use crate::host::{Host, Taken, To};
use crate::results::{FlowReport, Transfer};
use crate::sockets::{Endpoint, Pending, Socket, SocketKey, Sockets};
use apps::{Close, Step, Work};
use device::Nanos;
use fabric::{Fabric, FrameId};
use std::net::{IpAddr, SocketAddr};
use tcp::segment::Ecn;
use tcp::{Connection, Damaged, ParseError, Segment, State};

/// The hosts of a region, and the flows that have an end there.
#[derive(Default)]
pub(crate) struct Hosts {
    pub(crate) hosts: Vec<Host>,
    pub(crate) flows: Vec<Flow>,
    pub(crate) transfers: Vec<Transfer>,
    pub(crate) sockets: Sockets,
    /// For receivers in other regions: the region, and what to tell it.
    pub(crate) notices: Vec<(usize, Notice)>,
}

/// What a receiver learns of a connection before its first segment comes.
pub(crate) struct Notice {
    /// The flow, where the receiver is.
    flow: usize,
    peer: SocketKey,
    /// Its SYN is to come; false: it is not any more.
    expected: bool,
}

impl Hosts {
    /// Adds a flow; the receiver of a UDP flow is there from the beginning.
    pub(crate) fn add_flow(&mut self, flow: Flow) {
        if flow.app.is_udp() && flow.receiver_in.is_none() {
            let key = SocketKey::new(flow.receiver, flow.sender, PROTOCOL_UDP);
            self.sockets
                .insert(key, Socket::Udp(self.flows.len() as u32));
        }
        self.flows.push(flow);
    }

    // ---- frames -------------------------------------------------------------------------------------------

    /// A frame's last bit arrived at a host.
    #[inline]
    pub(crate) fn receive(&mut self, now: Nanos, host: u32, frame: FrameId, fabric: &mut Fabric) {
        let us = &self.hosts[host as usize];
        let buffer = fabric.frames.get(frame);
        let taken = match Packet::parse(buffer.as_ref(), buffer.written()) {
            Err(error) => Taken::Refused(error),
            Ok(packet) if !us.is_at(packet.dst_mac, packet.dst) => Taken::NotForUs,
            Ok(packet) => match packet.protocol {
                PROTOCOL_TCP => match packet.segment() {
                    Ok(segment) => {
                        let local = SocketAddr::new(packet.dst, segment.dst_port);
                        let remote = SocketAddr::new(packet.src, segment.src_port);
                        self.receive_segment(now, host, local, remote, &segment, fabric)
                    }
                    Err(ParseError::BadChecksum { .. }) => {
                        if let Some(slot) = self.connection_of_corrupted(now, &packet) {
                            self.pump(now, slot, fabric);
                        }
                        Taken::Refused(FrameError::TransportChecksum)
                    }
                    Err(_) => Taken::Refused(FrameError::Malformed),
                },
                PROTOCOL_UDP => self.receive_datagram(&packet),
                _ => Taken::NoSocket,
            },
        };
        self.hosts[host as usize].count(&taken);
    }

    /// Has the connection come into the cache that a frame is probably for.
    #[inline]
    pub(crate) fn prefetch(&self, frame: &[u8]) {
        if !self.sockets.are_many() {
            return;
        }
        let slot =
            unverified(frame).and_then(|(src, dst, body)| self.connection_of(src, dst, body));
        if let Some(slot) = slot {
            self.sockets.prefetch(slot);
        }
    }

    /// The slot of the connection that the ports of an unverified TCP segment name.
    #[inline]
    fn connection_of(&self, src: IpAddr, dst: IpAddr, segment: &[u8]) -> Option<u32> {
        let damaged = Damaged::parse(segment)?;
        let local = SocketAddr::new(dst, damaged.dst_port);
        let remote = SocketAddr::new(src, damaged.src_port);
        let key = SocketKey::new(local, remote, PROTOCOL_TCP);
        match self.sockets.find(&key) {
            Some(Socket::Tcp(slot)) => Some(slot),
            _ => None,
        }
    }

    /// Shows a TCP segment with a bad checksum to the connection that its ports name, whose slot it gives.
    #[cold]
    fn connection_of_corrupted(&mut self, now: Nanos, packet: &Packet<'_>) -> Option<u32> {
        let slot = self.connection_of(packet.src, packet.dst, packet.body)?;
        let (endpoint, _) = self.sockets.get_mut(slot)?;
        endpoint.connection.on_corrupted(now, packet.body);
        Some(slot)
    }

    #[inline(never)]
    fn receive_datagram(&mut self, packet: &Packet<'_>) -> Taken {
        let (src_port, dst_port, payload) = match packet.datagram() {
            Ok(datagram) => datagram,
            Err(error) => return Taken::Refused(error),
        };
        let local = SocketAddr::new(packet.dst, dst_port);
        let remote = SocketAddr::new(packet.src, src_port);
        let key = SocketKey::new(local, remote, PROTOCOL_UDP);
        match self.sockets.find(&key) {
            Some(Socket::Udp(flow)) => {
                self.flows[flow as usize].counts.received_bytes += payload as u64;
                Taken::Accepted
            }
            _ => Taken::NoSocket,
        }
    }

    #[inline]
    fn receive_segment(
        &mut self,
        now: Nanos,
        host: u32,
        local: SocketAddr,
        remote: SocketAddr,
        segment: &Segment,
        fabric: &mut Fabric,
    ) -> Taken {
        let key = SocketKey::new(local, remote, PROTOCOL_TCP);
        let slot = match self.sockets.find(&key) {
            Some(Socket::Tcp(slot)) => {
                if let Some((endpoint, _)) = self.sockets.get_mut(slot) {
                    endpoint.connection.on_segment(now, segment);
                    if segment.payload_len > 0 {
                        endpoint.will_read(now);
                    }
                }
                slot
            }
            Some(Socket::Expected(flow)) if segment.flags.syn() && !segment.flags.ack() => {
                self.accept(now, flow, host, (local, remote), segment, fabric)
            }
            _ => return Taken::NoSocket,
        };
        self.pump(now, slot, fabric);
        Taken::Accepted
    }

    /// The receiving end of a connection, which begins with this segment; its slot.
    #[cold]
    fn accept(
        &mut self,
        now: Nanos,
        flow: u32,
        host: u32,
        (local, remote): (SocketAddr, SocketAddr),
        segment: &Segment,
        fabric: &mut Fabric,
    ) -> u32 {
        let state = &mut self.flows[flow as usize];
        let iss = state.sequence_numbers.bits32();
        let mut connection = Connection::accept(&state.tcp, local, remote, iss, now, segment);
        let read_interval = state.read_interval;
        connection.set_reading(now, read_interval == 0);
        let mut endpoint = Endpoint::new(connection, flow, host, (local, remote));
        endpoint.read_interval = read_interval;
        let slot = self.sockets.add(endpoint, fabric);
        let key = SocketKey::new(local, remote, PROTOCOL_TCP);
        self.sockets.insert(key, Socket::Tcp(slot));
        slot
    }

    // ---- connections --------------------------------------------------------------------------------------

    /// The timer of a connection's end is due. Its entry may be too early: acknowledgments move timers back all the
    /// time, and moving the entry only now keeps the calendar out of the packets' way.
    #[inline(never)]
    pub(crate) fn on_timer(&mut self, now: Nanos, slot: u32, fabric: &mut Fabric) {
        let entity = self.sockets.entity(slot);
        let due = self.sockets.get(slot).and_then(Endpoint::next_due);
        if due.is_none_or(|due| due > now) {
            return fabric.calendar.set_after_action(entity, due);
        }
        fabric.calendar.set_after_action(entity, None);
        if let Some((endpoint, _)) = self.sockets.get_mut(slot) {
            endpoint.connection.on_timer(now);
            endpoint.read_due(now);
        }
        self.pump(now, slot, fabric);
    }

    /// Whatever happened to a connection's end: sends what it has to say, notes what is finished.
    #[inline]
    fn pump(&mut self, now: Nanos, slot: u32, fabric: &mut Fabric) {
        let Some((endpoint, entity)) = self.sockets.get_mut(slot) else {
            return;
        };
        let connection = &mut endpoint.connection;
        if !endpoint.is_sender && connection.state() == State::CloseWait {
            connection.set_reading(now, true); // the rest, with the end of the file
            connection.close(now);
        }
        let (src, dst) = (endpoint.local.ip(), endpoint.remote.ip());
        let host = &mut self.hosts[endpoint.host as usize];
        loop {
            while let Some(segment) = connection.poll_transmit(now) {
                let len = (segment.header_len(), segment.wire_len());
                let to = To {
                    src,
                    dst,
                    protocol: PROTOCOL_TCP,
                    ecn: segment.ecn,
                };
                host.send(now, to, len, fabric, |out| {
                    segment.encode_header(src, dst, out);
                });
                if !endpoint.pending.is_empty() {
                    if segment.payload_len > 0 {
                        let waits = endpoint.pending.iter_mut();
                        for pending in waits.filter(|p| p.first_sent.is_none()) {
                            pending.first_sent = Some(now);
                        }
                    } else if segment.flags.fin() {
                        endpoint.lone_fins += 1;
                    }
                }
            }
            if !endpoint.closes_when_sent || connection.state() != State::Established {
                break;
            }
            endpoint.closes_when_sent = false;
            connection.close(now);
        }
        let is_closed = connection.is_closed();
        if let Some(due) = endpoint.next_due() {
            // An earlier entry finds out when it is due.
            if fabric.calendar.due(entity).is_none_or(|at| at > due) {
                fabric.calendar.set(entity, Some(due));
            }
        }
        if !endpoint.pending.is_empty() {
            self.finish_transfers(now, slot, fabric);
        }
        if is_closed {
            self.remove(slot, fabric);
        }
    }

    #[inline(never)]
    fn finish_transfers(&mut self, now: Nanos, slot: u32, fabric: &mut Fabric) {
        let Some((endpoint, _)) = self.sockets.get_mut(slot) else {
            return;
        };
        let flow = &mut self.flows[endpoint.flow as usize];
        let acked = endpoint.connection.acked_bytes();
        while let Some(pending) = endpoint.pending.front().filter(|p| p.until <= acked) {
            flow.counts.completed += 1;
            let transfer = transfer_of(&flow.counts.flow, endpoint, pending, now);
            self.transfers.push(transfer);
            endpoint.pending.pop_front();
            let goes_on = flow.stop.is_none_or(|stop| now < stop);
            if let Some(next) = flow.app.on_finished(now).filter(|_| goes_on) {
                let next = flow.stop.map_or(next, |stop| next.min(stop));
                fabric.calendar.set(flow.entity, Some(next));
            }
        }
    }

    /// The transfers that are under way, as of `now`.
    pub(crate) fn unfinished_transfers(&self, now: Nanos) -> Vec<Transfer> {
        let mut found = Vec::new();
        for endpoint in self.sockets.iter() {
            let name = &self.flows[endpoint.flow as usize].counts.flow;
            let waits = endpoint.pending.iter();
            found.extend(waits.map(|pending| transfer_of(name, endpoint, pending, now)));
        }
        found
    }

    /// Tells the receiver of a flow of this region whether a SYN is to come.
    fn announce(&mut self, flow: u32, peer: SocketKey, expected: bool) {
        let there = self.flows[flow as usize].receiver_in;
        let flow = there.map_or(flow as usize, |there| there.index);
        let notice = Notice {
            flow,
            peer,
            expected,
        };
        match there {
            Some(there) => self.notices.push((there.region, notice)),
            None => self.expect(&notice),
        }
    }

    pub(crate) fn expect(&mut self, notice: &Notice) {
        if notice.expected {
            let flow = notice.flow as u32;
            self.sockets.insert(notice.peer, Socket::Expected(flow));
        } else if let Some(Socket::Expected(_)) = self.sockets.find(&notice.peer) {
            self.sockets.remove(&notice.peer);
        }
    }

    #[cold]
    fn remove(&mut self, slot: u32, fabric: &mut Fabric) {
        fabric.calendar.set(self.sockets.entity(slot), None);
        let Some(endpoint) = self.sockets.take(slot) else {
            return;
        };
        let Endpoint { local, remote, .. } = endpoint;
        self.sockets
            .remove(&SocketKey::new(local, remote, PROTOCOL_TCP));
        let flow = &mut self.flows[endpoint.flow as usize];
        flow.counts.add(&endpoint);
        if !endpoint.is_sender {
            return;
        }
        if flow.current == Some(slot) {
            flow.counts.show(&endpoint);
            flow.current = None;
        }
        // If the SYN never came.
        let peer = SocketKey::new(remote, local, PROTOCOL_TCP);
        self.announce(endpoint.flow, peer, false);
    }

    // ---- applications -------------------------------------------------------------------------------------

    /// The application of a flow is due.
    #[inline(never)]
    pub(crate) fn act(&mut self, now: Nanos, flow: u32, fabric: &mut Fabric) {
        let state = &mut self.flows[flow as usize];
        if state.stop.is_some_and(|stop| stop <= now) {
            fabric.calendar.set_after_action(state.entity, None);
            return self.stop(now, flow, fabric);
        }
        let (step, next) = state.app.step(now, &mut state.chance);
        let next = match (next, state.stop) {
            (Some(next), Some(stop)) => Some(next.min(stop)),
            (next, stop) => next.or(stop),
        };
        fabric.calendar.set_after_action(state.entity, next);
        match step {
            Step::Nothing | Step::Run => {} // simulated hosts run no programs (config/check.rs)
            Step::Datagram(payload) => self.send_datagram(now, flow, payload, fabric),
            Step::Open { work, then_close } => self.open(now, flow, work, then_close, fabric),
            Step::Write(work) => {
                if let Some(slot) = self.flows[flow as usize].current {
                    self.write(now, slot, work);
                    self.pump(now, slot, fabric);
                }
            }
            Step::Quiet => {
                let current = self.flows[flow as usize].current;
                let end = current.and_then(|slot| self.sockets.get_mut(slot));
                if let Some((endpoint, _)) = end {
                    endpoint.connection.discard_unsent(now);
                }
            }
        }
    }

    /// The application stops: its connection ends with what was sent or asked for; web transfers that run go on.
    fn stop(&mut self, now: Nanos, flow: u32, fabric: &mut Fabric) {
        let state = &self.flows[flow as usize];
        if state.app.is_web() {
            return;
        }
        let Some(slot) = state.current else {
            return;
        };
        if let Some((endpoint, _)) = self.sockets.get_mut(slot) {
            endpoint.connection.close(now);
        }
        self.pump(now, slot, fabric);
    }

    fn open(&mut self, now: Nanos, flow: u32, work: Work, then_close: Close, fabric: &mut Fabric) {
        let state = &mut self.flows[flow as usize];
        // Drawn before anything that depends on the network.
        let iss = state.sequence_numbers.bits32();
        let remote = state.receiver;
        let mut free = None;
        for _ in 0..state.ports() {
            let local = SocketAddr::new(state.sender.ip(), state.next_port());
            let key = SocketKey::new(local, remote, PROTOCOL_TCP);
            if self.sockets.find(&key).is_none() {
                free = Some((local, key));
                break;
            }
        }
        let Some((local, key)) = free else {
            state.counts.not_opened += 1;
            return;
        };
        state.counts.connections += 1;
        let connection = Connection::connect(&state.tcp, local, remote, iss, now);
        let mut endpoint = Endpoint::new(connection, flow, state.from, (local, remote));
        endpoint.is_sender = true;
        endpoint.closes_when_sent = then_close == Close::Sent;
        let slot = self.sockets.add(endpoint, fabric);
        self.sockets.insert(key, Socket::Tcp(slot));
        let peer = SocketKey::new(remote, local, PROTOCOL_TCP);
        state.current = Some(slot);
        self.announce(flow, peer, true);
        self.write(now, slot, work);
        if let (Close::Written, Some((endpoint, _))) = (then_close, self.sockets.get_mut(slot)) {
            endpoint.connection.close(now);
        }
        self.pump(now, slot, fabric);
    }

    fn write(&mut self, now: Nanos, slot: u32, work: Work) {
        let Some((endpoint, _)) = self.sockets.get_mut(slot) else {
            return;
        };
        match work {
            Work::Greedy => endpoint.connection.write(now, u64::MAX),
            Work::Transfer(bytes) => {
                endpoint.asked += bytes;
                let stats = endpoint.connection.stats();
                endpoint.pending.push_back(Pending {
                    start: now,
                    bytes,
                    until: endpoint.asked,
                    retransmits: stats.retransmits,
                    segments: stats.data_segments_sent + endpoint.lone_fins,
                    first_sent: None,
                });
                endpoint.connection.write(now, bytes);
            }
        }
    }

    fn send_datagram(&mut self, now: Nanos, flow: u32, payload: usize, fabric: &mut Fabric) {
        let flow = &mut self.flows[flow as usize];
        flow.counts.sent_segments += 1;
        let (src, dst) = (flow.sender, flow.receiver);
        let host = &mut self.hosts[flow.from as usize];
        let to = To {
            src: src.ip(),
            dst: dst.ip(),
            protocol: PROTOCOL_UDP,
            ecn: if flow.tcp.ect1 {
                Ecn::Ect1
            } else {
                Ecn::NotEct
            },
        };
        host.send(now, to, (UDP_LEN, UDP_LEN + payload), fabric, |out| {
            emit_udp(src, dst, out);
        });
    }

    // ---- reports ------------------------------------------------------------------------------------------

    /// Counts of all flows as of now.
    pub(crate) fn flow_reports(&self) -> Vec<FlowReport> {
        let mut reports: Vec<_> = self.flows.iter().map(|flow| flow.counts.clone()).collect();
        for endpoint in self.sockets.iter() {
            reports[endpoint.flow as usize].add(endpoint);
        }
        for (flow, report) in self.flows.iter().zip(&mut reports) {
            if let Some(endpoint) = flow.current.and_then(|slot| self.sockets.get(slot)) {
                report.show(endpoint);
            }
        }
        reports
    }

    /// Application bytes that the receivers of this region have got, by flow.
    pub(crate) fn received_bytes(&self, found: &mut Vec<u64>) {
        found.clear();
        found.extend(self.flows.iter().map(|flow| flow.counts.received_bytes));
        for end in self.sockets.iter().filter(|end| !end.is_sender) {
            found[end.flow as usize] += end.connection.received_bytes();
        }
    }
}

/// What has become of a transfer by `now`.
fn transfer_of(flow: &str, endpoint: &Endpoint, pending: &Pending, now: Nanos) -> Transfer {
    let stats = endpoint.connection.stats();
    let missing = pending
        .until
        .saturating_sub(endpoint.connection.acked_bytes());
    Transfer {
        flow: flow.to_owned(),
        start_ns: pending.start,
        end_ns: now,
        bytes: pending.bytes.saturating_sub(missing),
        retransmits: stats.retransmits - pending.retransmits,
        first_sent_ns: pending.first_sent.unwrap_or(pending.start),
        segments: stats.data_segments_sent + endpoint.lone_fins - pending.segments,
    }
}
