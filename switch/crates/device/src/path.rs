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

use crate::device::Core;
use crate::observe::{Observer, Outgoing, Seen};
use crate::ports::Port;
use crate::pre::Replica;
use crate::stats::DropReason;
use v1model::{
    Again, CloneRequest, ControlError, Effects, ErrorKind, Nanos, Packet, Pipeline, Std,
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
const NORMAL: u64 = 0;
const INGRESS_CLONE: u64 = 1;
const EGRESS_CLONE: u64 = 2;
const RECIRCULATED: u64 = 4;
const REPLICATION: u64 = 5;
const RESUBMITTED: u64 = 6;

#[inline]
pub(crate) fn micros(now: Nanos) -> u64 {
    (now / 1_000) & 0xffff_ffff_ffff
}

#[inline]
fn keep_log(log: &mut String, effects: &Effects) {
    let text = effects.log.text();
    if !text.is_empty() {
        keep_lines(log, text);
    }
}

#[cold]
fn keep_lines(log: &mut String, text: &str) {
    if log.len() + text.len() <= LOG_BYTES_MAX {
        log.push_str(text);
    }
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
#[cold]
fn start_again(
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

/// Of a copy, only listed fields are preserved.
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
    pipeline.std_set(packet, Std::DeqTimedelta, waited_us);
    pipeline.std_set(packet, Std::DeqQdepth, depth_now.into());
    pipeline.std_set(packet, Std::Qid, queue as u64);
    prepare_egress(pipeline, packet, now, port);
}

/// What egress sees of any packet.
#[inline]
fn prepare_egress(pipeline: &Pipeline, packet: &mut Packet, now: Nanos, port: u32) {
    pipeline.std_set(packet, Std::EgressGlobalTimestamp, micros(now));
    pipeline.std_set(packet, Std::EgressPort, port.into());
    // Anything but the drop port; simple_switch: drop port + 1, which is 0 in 9 bits.
    pipeline.std_set(packet, Std::EgressSpec, 0);
    let len = packet.length_bytes();
    pipeline.std_set(packet, Std::PacketLength, len.into());
}

impl<O: Observer> Core<O> {
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

    /// Another round by resubmit or recirculate, counted.
    fn another_round(&mut self, rounds: u8) -> Option<u8> {
        let next = self.next_round(rounds);
        let next = next.filter(|_| self.observer.has_room());
        self.stats.again += u64::from(next.is_some());
        next
    }

    /// The round of a copy for this session; None, counted as a copy and its drop, where it cannot be made.
    fn next_clone(&mut self, pipeline: &mut Pipeline, rounds: u8, session: u32) -> Option<u8> {
        if self.pre.session(session).is_none() {
            self.observer.see(pipeline, Seen::NoSession);
            self.stats.copied += 1;
            self.stats.drop(DropReason::NoCloneSession);
            return None;
        }
        let next = self.next_round(rounds);
        self.stats.copied += u64::from(next.is_none());
        next
    }

    pub(crate) fn discard(&mut self, packet: Box<Packet>, reason: DropReason) {
        self.stats.drop(reason);
        self.pool.put(packet);
    }

    /// The program drops the packet, or does not come to its end.
    fn drop(&mut self, pipeline: &mut Pipeline, packet: Box<Packet>, reason: DropReason) {
        self.observer.see(pipeline, Seen::Dropped(reason));
        self.discard(packet, reason);
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
        match (fx.assertion_failed, fx.timed_out) {
            (true, _) => Some(DropReason::Assertion),
            (false, true) => Some(DropReason::StepLimit),
            (false, false) => None,
        }
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
        if let Some(field) = self.fields.drop {
            pipeline.field_set(&mut packet, field, reason.queue_drop());
            prepare_egress(pipeline, &mut packet, self.now, port);
            self.told_effects.clear();
            pipeline.egress(&mut packet, self.now, &mut self.told_effects);
            self.stats.timeouts += u64::from(self.told_effects.timed_out);
            keep_log(&mut self.log, &self.told_effects);
        }
        let seen = Seen::Refused(port, reason, &self.told_effects);
        self.observer.see(pipeline, seen);
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
        self.parse(pipeline, &mut packet, "receive");
        self.ingress(pipeline, packet, 0);
    }

    /// A frame from outside that is parsed already; what the parser said is in `effects`.
    #[inline]
    pub(crate) fn receive_parsed(&mut self, pipeline: &mut Pipeline, packet: Box<Packet>) {
        self.begin();
        self.ingress(pipeline, packet, 0);
    }

    #[inline]
    fn parse(&mut self, pipeline: &mut Pipeline, packet: &mut Packet, why: &'static str) {
        self.effects.clear();
        pipeline.parse(packet, &mut self.effects);
        self.observer.see(pipeline, Seen::Parsed(why, packet));
        pipeline.warm(packet);
    }

    /// Ingress, and all that follows it up to the queues.
    fn ingress(&mut self, pipeline: &mut Pipeline, mut packet: Box<Packet>, mut rounds: u8) {
        loop {
            let ingress_port = pipeline.std_get(&packet, Std::IngressPort);
            pipeline.ingress(&mut packet, self.now, &mut self.effects);
            keep_log(&mut self.log, &self.effects);
            self.observer.see(pipeline, Seen::Ingress(&self.effects));
            if let Some(reason) = self.broken_off() {
                return self.drop(pipeline, packet, reason);
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
            self.observer.see(pipeline, Seen::Fate("resubmit", 0));
            let Some(next) = self.another_round(rounds) else {
                return self.pool.put(packet);
            };
            rounds = next;
            let mut fresh = self.pool.get(pipeline);
            start_again(pipeline, &mut fresh, &packet, again, RESUBMITTED, self.now);
            pipeline.std_set(&mut fresh, Std::IngressPort, ingress_port);
            self.parse(pipeline, &mut fresh, "resubmit");
            self.pool.put(std::mem::replace(&mut packet, fresh));
        }

        let group = pipeline.std_get(&packet, Std::McastGrp);
        if group != 0 {
            self.observer.see(pipeline, Seen::Fate("multicast", group));
            pipeline.std_set(&mut packet, Std::InstanceType, REPLICATION);
            return self.multicast(pipeline, packet, rounds, group as u32);
        }
        let port = pipeline.std_get(&packet, Std::EgressSpec) as u32;
        if port == pipeline.drop_port() {
            return self.drop(pipeline, packet, DropReason::Ingress);
        }
        self.observer
            .see(pipeline, Seen::Fate("enqueue", port.into()));
        self.observer.see(pipeline, Seen::Copies("unicast"));
        pipeline.std_set(&mut packet, Std::InstanceType, NORMAL);
        let out = Outgoing {
            packet,
            rounds,
            port,
            queue: 0,
        };
        self.send(pipeline, out);
    }

    /// Ingress to egress: the frame as received is parsed again.
    #[cold]
    fn clone_i2e(
        &mut self,
        pipeline: &mut Pipeline,
        packet: &Packet,
        ingress_port: u64,
        rounds: u8,
        request: CloneRequest,
    ) {
        self.observer
            .see(pipeline, Seen::Copies("clone of ingress"));
        let Some(rounds) = self.next_clone(pipeline, rounds, request.session) else {
            return;
        };
        let mut copy = self.pool.get(pipeline);
        copy.copy_frame_from(packet);
        pipeline.reset(&mut copy);
        // The parser may branch on the port.
        pipeline.std_set(&mut copy, Std::IngressPort, ingress_port);
        self.clone_effects.clear();
        pipeline.parse(&mut copy, &mut self.clone_effects);
        // The same steps as the original's.
        pipeline.take_steps();
        keep_listed(pipeline, &mut copy, packet, request, INGRESS_CLONE);
        self.send_clone(pipeline, copy, rounds, request.session);
    }

    /// Egress to egress: headers as egress left them.
    #[cold]
    fn clone_e2e(
        &mut self,
        pipeline: &mut Pipeline,
        packet: &Packet,
        rounds: u8,
        request: CloneRequest,
    ) {
        self.observer.see(pipeline, Seen::Copies("clone of egress"));
        let Some(rounds) = self.next_clone(pipeline, rounds, request.session) else {
            return;
        };
        let mut copy = self.pool.get(pipeline);
        copy.copy_from(packet);
        copy.truncate(u32::MAX);
        keep_listed(pipeline, &mut copy, packet, request, EGRESS_CLONE);
        self.send_clone(pipeline, copy, rounds, request.session);
    }

    #[inline(never)]
    fn send_clone(
        &mut self,
        pipeline: &mut Pipeline,
        mut packet: Box<Packet>,
        rounds: u8,
        id: u32,
    ) {
        let Some(session) = self.pre.session(id) else {
            return self.pool.put(packet);
        };
        let count = session.replicas.len();
        if session.packet_length_bytes != 0 {
            packet.truncate(session.packet_length_bytes);
        }
        self.stats.copied += count as u64;
        let out = Outgoing {
            packet,
            rounds,
            port: 0,
            queue: session.class_of_service,
        };
        self.replicate(pipeline, out, count, |core, i| {
            core.pre.session(id).map(|s| s.replicas[i])
        });
    }

    #[inline(never)]
    fn multicast(&mut self, pipeline: &mut Pipeline, packet: Box<Packet>, rounds: u8, group: u32) {
        let count = self.pre.group(group).map_or(0, |g| g.replicas.len());
        if count == 0 {
            let nowhere = pipeline.drop_port();
            return self.discard_behind(pipeline, packet, nowhere, DropReason::NoMulticastGroup);
        }
        self.observer.see(pipeline, Seen::Copies("multicast"));
        self.stats.copied += count as u64 - 1;
        let out = Outgoing {
            packet,
            rounds,
            port: 0,
            queue: 0,
        };
        self.replicate(pipeline, out, count, |core, i| {
            core.pre.group(group).map(|g| g.replicas[i])
        });
    }

    /// Sends `count` copies of a packet, itself the last one.
    #[inline(never)]
    fn replicate(
        &mut self,
        pipeline: &mut Pipeline,
        mut out: Outgoing,
        count: usize,
        replica: impl Fn(&Core<O>, usize) -> Option<Replica>,
    ) {
        for i in 0..count {
            let Some(Replica { port, instance }) = replica(self, i) else {
                break;
            };
            out.port = port;
            pipeline.std_set(&mut out.packet, Std::EgressRid, u64::from(instance));
            if i + 1 == count {
                return self.send(pipeline, out);
            }
            let mut packet = self.pool.get(pipeline);
            packet.copy_from(&out.packet);
            self.send(pipeline, Outgoing { packet, ..out });
        }
        self.pool.put(out.packet);
    }

    #[inline]
    fn send(&mut self, pipeline: &mut Pipeline, out: Outgoing) {
        if let Some(out) = self.observer.defer(out) {
            self.enqueue(pipeline, out);
        }
    }

    /// Puts a packet into a queue of its port.
    #[inline]
    pub(crate) fn enqueue(&mut self, pipeline: &mut Pipeline, out: Outgoing) {
        match self.port(out.port).map(|p| p.up) {
            Some(true) => O::admit(self, pipeline, out),
            Some(false) => self.refuse(pipeline, out.packet, out.port, DropReason::PortDown),
            None => self.discard_behind(pipeline, out.packet, out.port, DropReason::NoSuchPort),
        }
    }

    /// Ends a packet that its port does not take.
    #[inline(never)]
    pub(crate) fn refuse(
        &mut self,
        pipeline: &mut Pipeline,
        packet: Box<Packet>,
        port: u32,
        reason: DropReason,
    ) {
        if let (false, Ok(p)) = (O::SHADOW, self.port_mut(port)) {
            p.stats.refuse(reason);
        }
        self.discard_behind(pipeline, packet, port, reason);
    }

    /// The queue of a packet: where the copy names none, the one that the program chose.
    #[inline]
    pub(crate) fn queue_of(&self, pipeline: &Pipeline, out: &Outgoing) -> usize {
        match (out.queue, self.fields.id) {
            (0, Some(field)) => pipeline.field_get(&out.packet, field) as usize,
            (0, None) => pipeline.std_get(&out.packet, Std::Priority) as usize,
            (queue, _) => queue as usize,
        }
    }

    /// Egress and what follows it; the packet when it is to be sent.
    #[inline]
    pub(crate) fn egress(
        &mut self,
        pipeline: &mut Pipeline,
        mut packet: Box<Packet>,
        rounds: u8,
    ) -> Option<Box<Packet>> {
        self.effects.clear();
        pipeline.egress(&mut packet, self.now, &mut self.effects);
        keep_log(&mut self.log, &self.effects);
        self.observer.see(pipeline, Seen::Egress(&self.effects));
        if let Some(reason) = self.broken_off() {
            self.drop(pipeline, packet, reason);
            return None;
        }
        if let Some(request) = self.effects.clone {
            self.clone_e2e(pipeline, &packet, rounds, request);
        }
        if pipeline.std_get(&packet, Std::EgressSpec) as u32 == pipeline.drop_port() {
            self.drop(pipeline, packet, DropReason::Egress);
            return None;
        }
        let recirculate = self.effects.recirculate;
        self.effects.log.clear();
        pipeline.deparse_with(&mut packet, &mut self.effects);
        keep_log(&mut self.log, &self.effects);
        if let Some(reason) = self.broken_off() {
            self.drop(pipeline, packet, reason);
            return None;
        }
        let seen = Seen::Leaves(&mut packet, recirculate.is_some());
        self.observer.see(pipeline, seen);
        let Some(again) = recirculate else {
            return Some(packet);
        };
        if let Some(next) = self.another_round(rounds) {
            let mut fresh = self.pool.get(pipeline);
            start_again(pipeline, &mut fresh, &packet, again, RECIRCULATED, self.now);
            self.parse(pipeline, &mut fresh, "recirculate");
            self.ingress(pipeline, fresh, next);
        }
        self.pool.put(packet);
        None
    }
}
