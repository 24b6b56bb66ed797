// SPDX-License-Identifier: Apache-2.0
//! One packet's way through the switch without sending it: the order of `path`, on a program that records and keeps
//! nothing. No queue, count, digest or packet is touched.
//!
//! Egress is shown as it would be if the packet left its queue at once.

use std::fmt::Write;

use serde::Serialize;
use v1model::trace::{Place, Step, Tracer};
use v1model::{CloneRequest, Effects, Packet, Pipeline, Std};

use crate::config::PORT_MAX;
use crate::device::{Core, Device};
use crate::path::{
    arrive, broken_off, clone_of_egress, clone_of_ingress, leave_queue, micros, prepare_queue_drop,
    start_again, NORMAL, RECIRCULATED, REPLICATION, RESUBMITTED,
};
use crate::stats::DropReason;

/// Rounds and copies of one packet that are shown; what is beyond is said to be left out.
const SHOWN_MAX: usize = 64;

/// A packet's way.
#[derive(Clone, Debug, Serialize)]
pub struct Trace {
    /// When, on the switch's clock.
    pub time_ns: u64,
    /// Where it came in.
    pub ingress_port: u32,
    /// Its length.
    pub bytes: usize,
    /// Hexadecimal.
    pub frame: String,
    /// From parser to queue, the first round and those by resubmit and recirculate, in order.
    pub rounds: Vec<Round>,
    /// The packet itself and its copies, in order.
    pub copies: Vec<Copy>,
    /// Copies and rounds that are not shown, as there are too many.
    pub left_out: usize,
}

/// From parser to the choice of port.
#[derive(Clone, Debug, Serialize)]
pub struct Round {
    /// `receive`, `resubmit`, `recirculate`.
    pub why: &'static str,
    /// Parser states.
    pub parser: Vec<Step>,
    /// v1model's number of the parser's error; 0 is none.
    pub parser_error: u64,
    /// 1 when a checksum was wrong.
    pub checksum_error: u64,
    /// Steps of the ingress control.
    pub ingress: Vec<Step>,
    /// Messages to the control plane, as they would be sent.
    pub digests: Vec<Digest>,
    /// Lines of `log_msg`.
    pub log: Vec<String>,
    /// What becomes of it: `enqueue`, `multicast`, `resubmit`, `drop`.
    pub fate: &'static str,
    /// With `enqueue` the port; with `multicast` the group.
    pub to: u64,
    /// With `drop`: why, and where it was said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drop: Option<Drop>,
}

/// A message to the control plane.
#[derive(Clone, Debug, Serialize)]
pub struct Digest {
    /// Of the P4 struct.
    pub name: String,
    /// Members one after another, hexadecimal.
    pub data: String,
}

/// Why and where a packet ends.
#[derive(Clone, Debug, Serialize)]
pub struct Drop {
    /// As in the counts of the switch: `ingress_drop`, `queue_full`, ….
    pub reason: &'static str,
    /// `program`, `queue` or `port`.
    pub by: &'static str,
    /// In the program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<Place>,
}

/// One packet from its queue on.
#[derive(Clone, Debug, Serialize)]
pub struct Copy {
    /// `unicast`, `multicast`, `clone of ingress`, `clone of egress`.
    pub why: &'static str,
    /// Egress port.
    pub port: u32,
    /// Number of the replica.
    pub instance: u64,
    /// The queue; None when there is no such port, or it is down.
    pub queue: Option<Queue>,
    /// Steps of the egress control; of a refused packet those of a program that wants to know (`queue_drop`).
    pub egress: Vec<Step>,
    /// Steps of the deparser.
    pub deparser: Vec<Step>,
    /// Lines of `log_msg`.
    pub log: Vec<String>,
    /// Why it ends here; None when it leaves, or goes round.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drop: Option<Drop>,
    /// `transmit`, `packet_in`, `recirculate`, `drop`.
    pub fate: &'static str,
    /// The frame as it leaves, hexadecimal.
    pub frame: Option<String>,
}

/// A queue and whether it takes the packet now.
#[derive(Clone, Debug, Serialize)]
pub struct Queue {
    /// Its number.
    pub queue: usize,
    /// What waits in it.
    pub waiting_packets: u64,
    /// Bytes of that.
    pub waiting_bytes: u64,
    /// Its limit; None is none.
    pub limit_packets: Option<u64>,
    /// Whether it takes the packet.
    pub admits: bool,
}

/// A packet that is still to be shown.
struct Pending {
    packet: Box<Packet>,
    why: &'static str,
    port: u32,
    /// 0: the one that the program chose.
    queue: u32,
}

impl Device {
    /// What would happen to a frame that came in at `port` now. None without a program, and when the tracer is of
    /// another one.
    pub fn trace(&mut self, tracer: &mut Tracer, port: u32, frame: &[u8]) -> Option<Trace> {
        let (real, core) = (self.pipeline.as_mut()?, &self.core);
        tracer.with(real, |pipeline| {
            Walk {
                core,
                pipeline,
                trace: Trace {
                    time_ns: core.now,
                    ingress_port: port,
                    bytes: frame.len(),
                    frame: hex(frame),
                    rounds: Vec::new(),
                    copies: Vec::new(),
                    left_out: 0,
                },
                pending: Vec::new(),
                effects: Effects::new(),
            }
            .walk(port, frame)
        })
    }
}

struct Walk<'w> {
    core: &'w Core,
    pipeline: &'w mut Pipeline,
    trace: Trace,
    pending: Vec<Pending>,
    effects: Effects,
}

impl Walk<'_> {
    fn walk(mut self, port: u32, frame: &[u8]) -> Trace {
        self.effects.log.enabled = true;
        let mut packet = self.pipeline.new_packet();
        packet.load(frame);
        arrive(self.pipeline, &mut packet, port, self.core.now);
        self.ingress(packet, "receive");
        // First in, first out: as they would stand in their queues.
        while !self.pending.is_empty() {
            let pending = self.pending.remove(0);
            self.egress(pending);
        }
        self.trace
    }

    fn full(&mut self) -> bool {
        let shown = self.trace.rounds.len() + self.trace.copies.len() + self.pending.len();
        let full = shown >= SHOWN_MAX;
        self.trace.left_out += usize::from(full);
        full
    }

    fn ingress(&mut self, mut packet: Box<Packet>, mut why: &'static str) {
        loop {
            if self.full() {
                return;
            }
            let ingress_port = self.pipeline.std_get(&packet, Std::IngressPort);
            self.effects.clear();
            self.pipeline.parse(&mut packet, &mut self.effects);
            let (parser, _) = self.pipeline.take_steps();
            let parser_error = self.pipeline.std_get(&packet, Std::ParserError);
            let checksum_error = self.pipeline.std_get(&packet, Std::ChecksumError);
            let now = self.core.now;
            self.pipeline.ingress(&mut packet, now, &mut self.effects);
            let (ingress, _) = self.pipeline.take_steps();
            let schema = self.pipeline.schema();
            let digests = self.effects.digests.iter();
            let digests = digests.map(|(id, sample)| Digest {
                name: schema.digests[id.index()].name.clone(),
                data: hex(sample),
            });
            let mut round = Round {
                why,
                parser,
                parser_error,
                checksum_error,
                digests: digests.collect(),
                log: self.log(),
                fate: "drop",
                to: 0,
                drop: None,
                ingress,
            };
            let (clone, resubmit) = (self.effects.clone, self.effects.resubmit);
            let broken_off = broken_off(&self.effects);
            if broken_off.is_none() {
                if let Some(request) = clone {
                    self.clone_i2e(&packet, ingress_port, request);
                }
            }
            let pipeline = &*self.pipeline;
            if let Some(reason) = broken_off {
                round.drop = Some(program(reason, None));
            } else if let Some(again) = resubmit {
                round.fate = "resubmit";
                self.trace.rounds.push(round);
                let mut fresh = pipeline.new_packet();
                start_again(pipeline, &mut fresh, &packet, again, RESUBMITTED, now);
                pipeline.std_set(&mut fresh, Std::IngressPort, ingress_port);
                (packet, why) = (fresh, "resubmit");
                continue;
            } else {
                let group = pipeline.std_get(&packet, Std::McastGrp);
                let spec = pipeline.std_get(&packet, Std::EgressSpec) as u32;
                if group != 0 {
                    pipeline.std_set(&mut packet, Std::InstanceType, REPLICATION);
                    (round.fate, round.to) = ("multicast", group);
                    self.multicast(&packet, group as u32, &mut round);
                } else if spec == pipeline.drop_port() {
                    let place = Place::find_drop(&round.ingress, pipeline.drop_port());
                    round.drop = Some(program(DropReason::Ingress, place));
                } else {
                    pipeline.std_set(&mut packet, Std::InstanceType, NORMAL);
                    (round.fate, round.to) = ("enqueue", spec.into());
                    self.pending.push(Pending {
                        packet,
                        why: "unicast",
                        port: spec,
                        queue: 0,
                    });
                }
            }
            self.trace.rounds.push(round);
            return;
        }
    }

    fn log(&self) -> Vec<String> {
        self.effects.log.text().lines().map(String::from).collect()
    }

    fn clone_i2e(&mut self, packet: &Packet, ingress_port: u64, request: CloneRequest) {
        let mut copy = self.pipeline.new_packet();
        let (pipeline, effects) = (&mut *self.pipeline, &mut Effects::new());
        clone_of_ingress(pipeline, &mut copy, packet, ingress_port, request, effects);
        pipeline.take_steps(); // the same as the original's
        self.send_clone(&copy, request.session, "clone of ingress");
    }

    fn send_clone(&mut self, copy: &Packet, session: u32, why: &'static str) {
        let Some(session) = self.core.pre.session(session) else {
            self.end(why, PORT_MAX + 1, program(DropReason::NoCloneSession, None));
            return;
        };
        for replica in &session.replicas {
            let mut packet = self.copy_of(copy);
            if session.packet_length_bytes != 0 {
                packet.truncate(session.packet_length_bytes);
            }
            let instance = u64::from(replica.instance);
            self.pipeline.std_set(&mut packet, Std::EgressRid, instance);
            let pending = Pending {
                packet,
                why,
                port: replica.port,
                queue: session.class_of_service,
            };
            if !self.full() {
                self.pending.push(pending);
            }
        }
    }

    fn copy_of(&self, packet: &Packet) -> Box<Packet> {
        let mut copy = self.pipeline.new_packet();
        copy.copy_from(packet);
        copy
    }

    fn multicast(&mut self, packet: &Packet, group: u32, round: &mut Round) {
        let replicas = match self.core.pre.group(group) {
            Some(group) if !group.replicas.is_empty() => &group.replicas,
            _ => {
                round.drop = Some(program(DropReason::NoMulticastGroup, None));
                return;
            }
        };
        for replica in replicas {
            if self.full() {
                continue;
            }
            let mut packet = self.copy_of(packet);
            let instance = u64::from(replica.instance);
            self.pipeline.std_set(&mut packet, Std::EgressRid, instance);
            self.pending.push(Pending {
                packet,
                why: "multicast",
                port: replica.port,
                queue: 0,
            });
        }
    }

    /// A copy that comes to no queue.
    fn end(&mut self, why: &'static str, port: u32, drop: Drop) {
        let mut copy = empty(why, port);
        copy.drop = Some(drop);
        self.trace.copies.push(copy);
    }

    /// A copy that a port or queue refuses, and what the program is told of it.
    fn refuse(
        &mut self,
        mut packet: Box<Packet>,
        mut copy: Copy,
        who: &'static str,
        reason: DropReason,
    ) {
        let (now, pipeline) = (self.core.now, &mut *self.pipeline);
        let field = self
            .core
            .queue_drop
            .and(pipeline.field_by_name("queue_drop"));
        if let Some(field) = field {
            prepare_queue_drop(pipeline, &mut packet, field, now, copy.port, reason);
            self.effects.clear();
            pipeline.egress(&mut packet, now, &mut self.effects);
            copy.egress = pipeline.take_steps().0;
            copy.log = self.log();
        }
        copy.drop = Some(drop_by(who, reason));
        self.trace.copies.push(copy);
    }

    /// The queue of a packet, whether it takes it, and then egress as if it left at once.
    fn egress(&mut self, pending: Pending) {
        let Pending {
            mut packet,
            why,
            port,
            queue,
        } = pending;
        let Some(p) = self.core.port(port) else {
            let copy = empty(why, port);
            return self.refuse(packet, copy, "port", DropReason::NoSuchPort);
        };
        if !p.up {
            let copy = empty(why, port);
            return self.refuse(packet, copy, "port", DropReason::PortDown);
        }
        let pipeline = &mut *self.pipeline;
        let queue = match (queue, self.core.queue_id) {
            (0, Some(_)) => {
                let field = pipeline.field_by_name("queue_id");
                field.map_or(0, |f| pipeline.field_get(&packet, f)) as usize
            }
            (0, None) => pipeline.std_get(&packet, Std::Priority) as usize,
            (queue, _) => queue as usize,
        };
        let mut copy = empty(why, port);
        copy.instance = pipeline.std_get(&packet, Std::EgressRid);
        let bytes = packet.length_bytes();
        let refused = p.queues.refuses(queue, bytes, &self.core.buffer);
        if queue < p.queues.queues() {
            let usage = p.queues.queue_usage(queue);
            let limit = p.config.queue_limits.packets;
            copy.queue = Some(Queue {
                queue,
                waiting_packets: usage.packets,
                waiting_bytes: usage.bytes,
                limit_packets: (limit != traffic::UNLIMITED).then_some(limit),
                admits: refused.is_none(),
            });
        }
        if let Some(reason) = refused {
            return self.refuse(packet, copy, "queue", reason.into());
        }
        let (now, depth) = (self.core.now, p.queues.depth(queue));
        pipeline.std_set(&mut packet, Std::EnqTimestamp, micros(now));
        pipeline.std_set(&mut packet, Std::EnqQdepth, depth.into());
        leave_queue(pipeline, &mut packet, now, 0, depth, (port, queue));
        self.effects.clear();
        pipeline.egress(&mut packet, self.core.now, &mut self.effects);
        copy.egress = pipeline.take_steps().0;
        copy.log = self.log();
        let (clone, again) = (self.effects.clone, self.effects.recirculate);
        if let Some(reason) = broken_off(&self.effects) {
            copy.drop = Some(program(reason, None));
            self.trace.copies.push(copy);
            return;
        }
        let drop_port = self.pipeline.drop_port();
        let mut dropped = self.pipeline.std_get(&packet, Std::EgressSpec) as u32 == drop_port;
        let cloned = clone.map(|request| (self.clone_e2e(&packet, request), request.session));
        if dropped {
            let place = Place::find_drop(&copy.egress, drop_port);
            copy.drop = Some(program(DropReason::Egress, place));
            self.trace.copies.push(copy);
        } else {
            self.pipeline.deparse_with(&mut packet, &mut self.effects);
            copy.deparser = self.pipeline.take_steps().0;
            if let Some(reason) = broken_off(&self.effects) {
                copy.drop = Some(program(reason, None));
                dropped = true;
            } else {
                copy.frame = Some(hex(packet.frame()));
                copy.fate = match (again, self.core.config.cpu_port == Some(port)) {
                    (Some(_), _) => "recirculate",
                    (None, true) => "packet_in",
                    (None, false) => "transmit",
                };
            }
            self.trace.copies.push(copy);
        }
        if let Some((clone, session)) = cloned {
            self.send_clone(&clone, session, "clone of egress");
        }
        if let (Some(again), false) = (again, dropped) {
            let (pipeline, now) = (&*self.pipeline, self.core.now);
            let mut fresh = pipeline.new_packet();
            start_again(pipeline, &mut fresh, &packet, again, RECIRCULATED, now);
            self.ingress(fresh, "recirculate");
        }
    }

    fn clone_e2e(&self, packet: &Packet, request: CloneRequest) -> Box<Packet> {
        let mut copy = self.pipeline.new_packet();
        clone_of_egress(self.pipeline, &mut copy, packet, request);
        copy
    }
}

fn empty(why: &'static str, port: u32) -> Copy {
    Copy {
        why,
        port,
        instance: 0,
        queue: None,
        egress: Vec::new(),
        deparser: Vec::new(),
        log: Vec::new(),
        drop: None,
        fate: "drop",
        frame: None,
    }
}

fn drop_by(by: &'static str, reason: DropReason) -> Drop {
    Drop {
        reason: reason.name(),
        by,
        place: None,
    }
}

fn program(reason: DropReason, place: Option<Place>) -> Drop {
    Drop {
        place,
        ..drop_by("program", reason)
    }
}

fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        let _ = write!(text, "{byte:02x}");
    }
    text
}
