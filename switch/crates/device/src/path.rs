// SPDX-License-Identifier: Apache-2.0
//! What happens to a packet between reception and transmission, in the order of BMv2's simple_switch.
//!
//! ```text
//!  receive ─► parse ─► ingress ─► clone I2E ─► digest ─► resubmit? ─► multicast? ─► drop? ─► enqueue
//!               ▲                     │            (parse again) │         │                    │
//!               └─────────────────────┼──────────────────────────┘         └──── replicas ──────┤
//!                                     └──────────────── replicas of the session ────────────────┤
//!  transmit ◄─ line ◄─ recirculate? ◄─ deparse ◄─ drop? ◄─ clone E2E ◄─ egress ◄─ dequeue ◄─────┤
//!                                                    dropped ◄─ egress, queue_drop set ◄────────┘ no port, down, full
//! ```
//!
//! A program with user metadata `queue_drop` (8 bits) is told of every packet that ends between ingress and egress:
//! such a packet has its egress pass all the same, with the reason in that field, and nothing that egress asks for is
//! done. So each packet that leaves ingress, and each copy, passes egress exactly once, and what the program counts in
//! at ingress it can count out there.
//!
//! Two differences from simple_switch: a resubmitted packet keeps its `ingress_port`, as simple_switch.md says
//! (its code loses it), and rounds are limited (`ROUNDS_MAX`, `ROUNDS_PER_CALL_MAX`), as are the loops within one, so
//! that a program that resubmits, recirculates or loops for ever cannot hang the switch.

use crate::device::{Core, Transmit};
use crate::ports::{Item, Port};
use crate::pre::Replica;
use crate::stats::DropReason;
use v1model::{
    Again, CloneRequest, ControlError, Effects, ErrorKind, FieldRef, Nanos, Packet, Pipeline, Std,
};

/// Most rounds (resubmit, recirculate, clone) of one packet and its copies.
pub const ROUNDS_MAX: u8 = 64;
/// Most rounds of all packets together in one call of `receive` or `advance`.
pub const ROUNDS_PER_CALL_MAX: u32 = 16_384;

/// A parser or control that ends by its limit of steps took as long as so many rounds.
const ROUNDS_OF_TIMEOUT: u32 = 256;

/// Most text of `log_msg` that waits to be taken, bytes.
const LOG_BYTES_MAX: usize = 64 * 1024;

// Values of `instance_type`, as simple_switch.md lists them.
pub(crate) const NORMAL: u64 = 0;
const INGRESS_CLONE: u64 = 1;
const EGRESS_CLONE: u64 = 2;
pub(crate) const RECIRCULATED: u64 = 4;
pub(crate) const REPLICATION: u64 = 5;
pub(crate) const RESUBMITTED: u64 = 6;

/// Why a program did not come to a packet's end.
#[inline]
pub(crate) fn broken_off(effects: &Effects) -> Option<DropReason> {
    match (effects.assertion_failed, effects.timed_out) {
        (true, _) => Some(DropReason::Assertion),
        (false, true) => Some(DropReason::StepLimit),
        (false, false) => None,
    }
}

#[inline]
pub(crate) fn micros(now: Nanos) -> u64 {
    (now / 1_000) & 0xffff_ffff_ffff
}

fn keep_log(log: &mut String, effects: &Effects) {
    let text = effects.log.text();
    if !text.is_empty() && log.len() + text.len() <= LOG_BYTES_MAX {
        log.push_str(text);
    }
}

/// What egress sees of a packet that ends on its way to `port`.
pub(crate) fn prepare_queue_drop(
    pipeline: &Pipeline,
    packet: &mut Packet,
    queue_drop: FieldRef,
    now: Nanos,
    port: u32,
    reason: DropReason,
) {
    pipeline.field_set(packet, queue_drop, reason.queue_drop());
    pipeline.std_set(packet, Std::EgressGlobalTimestamp, micros(now));
    pipeline.std_set(packet, Std::EgressPort, port.into());
    pipeline.std_set(packet, Std::EgressSpec, 0);
    let len = packet.length_bytes();
    pipeline.std_set(packet, Std::PacketLength, len.into());
}

/// A frame that came in, before the parser.
#[inline]
pub(crate) fn arrive(pipeline: &Pipeline, packet: &mut Packet, port: u32, now: Nanos) {
    pipeline.reset(packet);
    pipeline.std_set(packet, Std::IngressPort, u64::from(port));
    let len = packet.frame_len() as u64;
    pipeline.std_set(packet, Std::PacketLength, len);
    pipeline.std_set(packet, Std::IngressGlobalTimestamp, micros(now));
}

/// Makes `fresh` the frame of `packet` as if received anew: metadata zero but length, time and what `again` keeps.
pub(crate) fn start_again(
    pipeline: &Pipeline,
    fresh: &mut Packet,
    packet: &Packet,
    again: Again,
    instance_type: u64,
    now: Nanos,
) {
    fresh.copy_frame_from(packet);
    pipeline.reset(fresh);
    let len = fresh.frame_len() as u64;
    pipeline.std_set(fresh, Std::PacketLength, len);
    pipeline.std_set(fresh, Std::IngressGlobalTimestamp, micros(now));
    if let Some(list) = again.field_list {
        pipeline.copy_field_list(packet, fresh, list);
    }
    pipeline.std_set(fresh, Std::InstanceType, instance_type);
}

/// Ingress to egress: the frame as received is parsed again; only listed fields are kept.
pub(crate) fn clone_of_ingress(
    pipeline: &mut Pipeline,
    copy: &mut Packet,
    packet: &Packet,
    ingress_port: u64,
    request: CloneRequest,
    effects: &mut Effects,
) {
    copy.copy_frame_from(packet);
    pipeline.reset(copy);
    // The parser may branch on the port.
    pipeline.std_set(copy, Std::IngressPort, ingress_port);
    pipeline.parse(copy, effects);
    keep_listed(pipeline, copy, packet, request, INGRESS_CLONE);
}

/// Egress to egress: headers as egress left them; only listed metadata is kept.
pub(crate) fn clone_of_egress(
    pipeline: &Pipeline,
    copy: &mut Packet,
    packet: &Packet,
    request: CloneRequest,
) {
    copy.copy_from(packet);
    copy.truncate(u32::MAX);
    keep_listed(pipeline, copy, packet, request, EGRESS_CLONE);
}

fn keep_listed(
    pipeline: &Pipeline,
    copy: &mut Packet,
    packet: &Packet,
    request: CloneRequest,
    instance_type: u64,
) {
    pipeline.reset_metadata(copy);
    if let Some(list) = request.field_list {
        pipeline.copy_field_list(packet, copy, list);
    }
    pipeline.std_set(copy, Std::InstanceType, instance_type);
}

/// What egress sees of a packet that left `queue` of `port` after `waited_us`.
#[inline]
pub(crate) fn leave_queue(
    pipeline: &Pipeline,
    packet: &mut Packet,
    now: Nanos,
    waited_us: u64,
    depth_now: u32,
    (port, queue): (u32, usize),
) {
    pipeline.std_set(packet, Std::EgressGlobalTimestamp, micros(now));
    pipeline.std_set(packet, Std::DeqTimedelta, waited_us);
    pipeline.std_set(packet, Std::DeqQdepth, depth_now.into());
    pipeline.std_set(packet, Std::Qid, queue as u64);
    pipeline.std_set(packet, Std::EgressPort, port.into());
    // Anything but the drop port; simple_switch: drop port + 1, which is 0 in 9 bits.
    pipeline.std_set(packet, Std::EgressSpec, 0);
    let len = packet.length_bytes();
    pipeline.std_set(packet, Std::PacketLength, len.into());
}

impl Core {
    /// Starts a call from outside: its rounds are counted from here.
    #[inline]
    pub(crate) fn begin(&mut self) {
        self.rounds_left = ROUNDS_PER_CALL_MAX;
    }

    #[inline]
    pub(crate) fn port(&self, port: u32) -> Option<&Port> {
        self.ports.get(port as usize)?.as_deref()
    }

    pub(crate) fn port_mut(&mut self, port: u32) -> Result<&mut Port, ControlError> {
        self.ports
            .get_mut(port as usize)
            .and_then(Option::as_deref_mut)
            .ok_or_else(|| {
                ControlError::new(ErrorKind::NotFound, format!("port {port} does not exist"))
            })
    }

    /// Makes the calendar name the port's next instant, whatever it named before.
    #[inline]
    pub(crate) fn reschedule(&mut self, port: u32) {
        let due = self.port(port).and_then(Port::due);
        let due = due.map(|due| due.max(self.now));
        self.calendar.set_after_action(port, due);
    }

    /// Another round for a packet that went round `rounds` times; None, and counted, beyond the limits.
    fn next_round(&mut self, rounds: u8) -> Option<u8> {
        if rounds >= ROUNDS_MAX || self.rounds_left == 0 {
            self.stats.drop(DropReason::LoopLimit);
            return None;
        }
        self.rounds_left -= 1;
        Some(rounds + 1)
    }

    /// The round of a copy for this session; None, counted as a copy and its drop, where it cannot be made.
    fn next_clone(&mut self, rounds: u8, session: u32) -> Option<u8> {
        if self.pre.session(session).is_none() {
            self.stats.copied += 1;
            self.stats.drop(DropReason::NoCloneSession);
            return None;
        }
        let next = self.next_round(rounds);
        self.stats.copied += u64::from(next.is_none());
        next
    }

    fn discard(&mut self, packet: Box<Packet>, reason: DropReason) {
        self.stats.drop(reason);
        self.pool.put(packet);
    }

    /// Why the program did not come to the packet's end; counts what went round too often.
    #[inline]
    fn broken_off(&mut self) -> Option<DropReason> {
        let fx = &mut self.effects;
        let timeouts = [fx.timed_out, std::mem::take(&mut fx.parser_timed_out)];
        let timeouts = timeouts.map(u32::from).iter().sum::<u32>();
        self.stats.timeouts += u64::from(timeouts);
        self.rounds_left = self
            .rounds_left
            .saturating_sub(timeouts * ROUNDS_OF_TIMEOUT);
        broken_off(fx)
    }

    /// Ends a packet between ingress and egress, on its way to `port`: the program gets a report, where it wants one.
    #[inline(never)]
    pub(crate) fn discard_behind(
        &mut self,
        pipeline: &mut Pipeline,
        mut packet: Box<Packet>,
        port: u32,
        reason: DropReason,
    ) {
        if let Some(field) = self.queue_drop {
            prepare_queue_drop(pipeline, &mut packet, field, self.now, port, reason);
            self.told_effects.clear();
            pipeline.egress(&mut packet, self.now, &mut self.told_effects);
            self.stats.timeouts += u64::from(self.told_effects.timed_out);
            keep_log(&mut self.log, &self.told_effects);
        }
        self.discard(packet, reason);
    }

    /// A frame from outside, which `load` puts into its packet.
    #[inline]
    pub(crate) fn receive(
        &mut self,
        pipeline: &mut Pipeline,
        port: u32,
        load: impl FnOnce(&mut Packet),
    ) {
        self.begin();
        let mut packet = self.pool.get(pipeline);
        load(&mut packet);
        arrive(pipeline, &mut packet, port, self.now);
        self.parse(pipeline, &mut packet);
        self.ingress(pipeline, packet, 0);
    }

    /// A frame from outside that is parsed already; what the parser said is in `effects`.
    #[inline]
    pub(crate) fn receive_parsed(&mut self, pipeline: &mut Pipeline, packet: Box<Packet>) {
        self.begin();
        self.ingress(pipeline, packet, 0);
    }

    #[inline]
    fn parse(&mut self, pipeline: &mut Pipeline, packet: &mut Packet) {
        self.effects.clear();
        pipeline.parse(packet, &mut self.effects);
        pipeline.warm(packet);
    }

    /// Ingress, and all that follows it up to the queues.
    fn ingress(&mut self, pipeline: &mut Pipeline, mut packet: Box<Packet>, mut rounds: u8) {
        loop {
            let ingress_port = pipeline.std_get(&packet, Std::IngressPort);
            pipeline.ingress(&mut packet, self.now, &mut self.effects);
            keep_log(&mut self.log, &self.effects);
            if let Some(reason) = self.broken_off() {
                return self.discard(packet, reason);
            }
            if let Some(request) = self.effects.clone {
                self.clone_i2e(pipeline, &packet, ingress_port, rounds, request);
            }
            for (id, sample) in self.effects.digests.iter() {
                self.events.digest(id, sample, self.now);
            }
            let Some(again) = self.effects.resubmit else {
                break;
            };
            let Some(next) = self.next_round(rounds) else {
                return self.pool.put(packet);
            };
            rounds = next;
            self.stats.again += 1;
            let mut fresh = self.pool.get(pipeline);
            start_again(pipeline, &mut fresh, &packet, again, RESUBMITTED, self.now);
            pipeline.std_set(&mut fresh, Std::IngressPort, ingress_port);
            self.parse(pipeline, &mut fresh);
            self.pool.put(std::mem::replace(&mut packet, fresh));
        }

        let group = pipeline.std_get(&packet, Std::McastGrp);
        if group != 0 {
            pipeline.std_set(&mut packet, Std::InstanceType, REPLICATION);
            return self.multicast(pipeline, packet, rounds, group as u32);
        }
        let egress_spec = pipeline.std_get(&packet, Std::EgressSpec) as u32;
        if egress_spec == pipeline.drop_port() {
            return self.discard(packet, DropReason::Ingress);
        }
        pipeline.std_set(&mut packet, Std::InstanceType, NORMAL);
        self.enqueue(pipeline, packet, rounds, egress_spec, 0);
    }

    fn clone_i2e(
        &mut self,
        pipeline: &mut Pipeline,
        packet: &Packet,
        ingress_port: u64,
        rounds: u8,
        request: CloneRequest,
    ) {
        let Some(rounds) = self.next_clone(rounds, request.session) else {
            return;
        };
        let mut copy = self.pool.get(pipeline);
        self.clone_effects.clear();
        let effects = &mut self.clone_effects;
        clone_of_ingress(pipeline, &mut copy, packet, ingress_port, request, effects);
        self.send_clone(pipeline, copy, rounds, request.session);
    }

    fn clone_e2e(
        &mut self,
        pipeline: &mut Pipeline,
        packet: &Packet,
        rounds: u8,
        request: CloneRequest,
    ) {
        let Some(rounds) = self.next_clone(rounds, request.session) else {
            return;
        };
        let mut copy = self.pool.get(pipeline);
        clone_of_egress(pipeline, &mut copy, packet, request);
        self.send_clone(pipeline, copy, rounds, request.session);
    }

    fn send_clone(
        &mut self,
        pipeline: &mut Pipeline,
        mut copy: Box<Packet>,
        rounds: u8,
        session: u32,
    ) {
        let Some(session) = self.pre.session(session) else {
            return self.pool.put(copy);
        };
        let (count, queue) = (session.replicas.len(), session.class_of_service);
        let id = session.id;
        if session.packet_length_bytes != 0 {
            copy.truncate(session.packet_length_bytes);
        }
        self.stats.copied += count as u64;
        self.replicate(pipeline, copy, rounds, queue, count, |core, i| {
            core.pre.session(id).map(|s| s.replicas[i])
        });
    }

    fn multicast(&mut self, pipeline: &mut Pipeline, packet: Box<Packet>, rounds: u8, group: u32) {
        let count = self.pre.group(group).map_or(0, |g| g.replicas.len());
        if count == 0 {
            let nowhere = pipeline.drop_port();
            return self.discard_behind(pipeline, packet, nowhere, DropReason::NoMulticastGroup);
        }
        self.stats.copied += count as u64 - 1;
        self.replicate(pipeline, packet, rounds, 0, count, |core, i| {
            core.pre.group(group).map(|g| g.replicas[i])
        });
    }

    /// Enqueues `count` copies of `packet`, itself the last one.
    fn replicate(
        &mut self,
        pipeline: &mut Pipeline,
        mut packet: Box<Packet>,
        rounds: u8,
        queue: u32,
        count: usize,
        replica: impl Fn(&Core, usize) -> Option<Replica>,
    ) {
        for i in 0..count {
            let Some(Replica { port, instance }) = replica(self, i) else {
                break;
            };
            pipeline.std_set(&mut packet, Std::EgressRid, u64::from(instance));
            if i + 1 == count {
                return self.enqueue(pipeline, packet, rounds, port, queue);
            }
            let mut copy = self.pool.get(pipeline);
            copy.copy_from(&packet);
            self.enqueue(pipeline, copy, rounds, port, queue);
        }
        self.pool.put(packet);
    }

    /// Puts a packet into a queue of `port`: `queue` where it is not 0, else the one that the program chose, which
    /// from now on has the weight that the program gave, if it gave one. Another may have to leave for it (scheduler `fq`).
    #[inline]
    fn enqueue(
        &mut self,
        pipeline: &mut Pipeline,
        mut packet: Box<Packet>,
        rounds: u8,
        port: u32,
        queue: u32,
    ) {
        let Some(mut p) = self
            .ports
            .get_mut(port as usize)
            .and_then(Option::as_deref_mut)
        else {
            return self.discard_behind(pipeline, packet, port, DropReason::NoSuchPort);
        };
        if !p.up {
            p.stats.refuse(DropReason::PortDown);
            return self.discard_behind(pipeline, packet, port, DropReason::PortDown);
        }
        let queue = if queue == 0 {
            let queue = match self.queue_id {
                Some(field) => pipeline.field_get(&packet, field) as usize,
                None => pipeline.std_get(&packet, Std::Priority) as usize,
            };
            if let Some(field) = self.queue_weight {
                let weight = pipeline.field_get(&packet, field);
                p.queues
                    .set_weight(queue, weight.min(u32::MAX.into()) as u32);
            }
            if let Some(field) = self.queue_turn {
                p.queues
                    .set_turn(pipeline.field_get(&packet, field) as usize);
            }
            if let Some(field) = self.queue_quantum {
                p.queues
                    .set_quantum(pipeline.field_get(&packet, field) as u32);
            }
            queue
        } else {
            queue as usize
        };
        let len_bytes = packet.length_bytes();
        while let Some(victim) = p.queues.make_room(queue, len_bytes, &mut self.buffer) {
            p.stats.refuse(DropReason::PortFull);
            self.discard_behind(pipeline, victim.packet, port, DropReason::PortFull);
            p = match self.ports[port as usize].as_deref_mut() {
                Some(port) => port,
                None => return self.discard(packet, DropReason::NoSuchPort),
            };
        }
        pipeline.std_set(&mut packet, Std::EnqTimestamp, micros(self.now));
        pipeline.std_set(&mut packet, Std::EnqQdepth, p.queues.depth(queue).into());
        let item = Item {
            addresses: packet.addresses(),
            packet,
            rounds,
        };
        match p
            .queues
            .enqueue(self.now, queue, len_bytes, item, &mut self.buffer)
        {
            Ok(_) => {
                if self.calendar.due(port).is_none() {
                    let due = p.queues.ready_at().max(self.now);
                    self.calendar.set(port, Some(due));
                }
            }
            Err((reason, item)) => {
                let reason = DropReason::from(reason);
                p.stats.refuse(reason);
                self.discard_behind(pipeline, item.packet, port, reason);
            }
        }
    }

    /// Does what a port is due to do at `self.now`: its frame leaves the line, the next packets are served.
    #[inline]
    pub(crate) fn serve(
        &mut self,
        mut pipeline: Option<&mut Pipeline>,
        port: u32,
        tx: &mut dyn Transmit,
    ) {
        let now = self.now;
        let index = port as usize;
        let on_line = self.ports[index].as_deref_mut().map(|p| p.on_line.take());
        if let Some(packet) = on_line.flatten() {
            self.transmit(port, packet, now, tx);
        }
        // The calendar names the port until its end: what egress sends to this same port (a clone) is served here too.
        while let Some(pipeline) = pipeline.as_deref_mut() {
            let Some(p) = self.ports[index].as_deref_mut() else {
                break;
            };
            let Some(due) = p.queues.dequeue(now, &mut self.buffer) else {
                break;
            };
            if let Some(next) = p.queues.front(due.queue) {
                pipeline.prefetch(next.addresses);
            }
            let Item {
                mut packet, rounds, ..
            } = due.item;
            let enq = pipeline.std_get(&packet, Std::EnqTimestamp);
            let waited = micros(now).wrapping_sub(enq) & 0xffff_ffff;
            let place = (port, due.queue);
            leave_queue(pipeline, &mut packet, now, waited, due.depth_now, place);
            let Some(packet) = self.egress(pipeline, packet, rounds) else {
                continue;
            };
            let Some(p) = self.ports[index].as_deref_mut() else {
                break;
            };
            p.queues.served(now, packet.frame_len() as u32);
            if p.queues.free_at() <= now {
                self.transmit(port, packet, now, tx);
            } else {
                p.on_line = Some(packet);
                break;
            }
        }
        self.reschedule(port);
    }

    /// Egress and what follows it; the packet when it is to be sent.
    #[inline]
    fn egress(
        &mut self,
        pipeline: &mut Pipeline,
        mut packet: Box<Packet>,
        rounds: u8,
    ) -> Option<Box<Packet>> {
        self.effects.clear();
        pipeline.egress(&mut packet, self.now, &mut self.effects);
        keep_log(&mut self.log, &self.effects);
        if let Some(reason) = self.broken_off() {
            self.discard(packet, reason);
            return None;
        }
        if let Some(request) = self.effects.clone {
            self.clone_e2e(pipeline, &packet, rounds, request);
        }
        if pipeline.std_get(&packet, Std::EgressSpec) as u32 == pipeline.drop_port() {
            self.discard(packet, DropReason::Egress);
            return None;
        }
        let recirculate = self.effects.recirculate;
        self.effects.log.clear();
        pipeline.deparse_with(&mut packet, &mut self.effects);
        keep_log(&mut self.log, &self.effects);
        if let Some(reason) = self.broken_off() {
            self.discard(packet, reason);
            return None;
        }
        let Some(again) = recirculate else {
            return Some(packet);
        };
        if let Some(next) = self.next_round(rounds) {
            self.stats.again += 1;
            let mut fresh = self.pool.get(pipeline);
            start_again(pipeline, &mut fresh, &packet, again, RECIRCULATED, self.now);
            self.parse(pipeline, &mut fresh);
            self.ingress(pipeline, fresh, next);
        }
        self.pool.put(packet);
        None
    }

    #[inline]
    fn transmit(&mut self, port: u32, mut packet: Box<Packet>, at: Nanos, tx: &mut dyn Transmit) {
        let frame = packet.frame();
        let is_cpu_port = self.config.cpu_port == Some(port);
        if is_cpu_port && !self.events.packet_in(frame) {
            return self.discard(packet, DropReason::PacketInMissed);
        }
        self.stats.transmitted += 1;
        self.stats.packet_ins += u64::from(is_cpu_port);
        if let Some(p) = self.ports[port as usize].as_deref_mut() {
            p.stats.tx_packets += 1;
            p.stats.tx_bytes += frame.len() as u64;
            p.stats.tx_frames.count(frame);
        }
        if !is_cpu_port {
            tx.transmit(port, &mut packet, at);
        }
        self.pool.put(packet);
    }
}
