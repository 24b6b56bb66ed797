// SPDX-License-Identifier: Apache-2.0
//! One packet's path through the switch without sending it: `path` on a program that records and whose state is restored.
//! No queue, count, digest or packet is touched.
//!
//! Egress is shown as it would be if the packet left its queue at once.

use std::collections::VecDeque;
use std::fmt::Write;
use std::mem::{swap, take};
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};

use serde::Serialize;
use v1model::trace::{Place, Step, Tracer};
use v1model::{Effects, Pipeline, Std};

use crate::config::PORT_MAX;
use crate::device::{Core, Device};
use crate::observe::{Observer, Outgoing, Seen};
use crate::path::{leave_queue, micros};
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

/// What is shown so far.
struct Shown {
    trace: Trace,
    cpu_port: Option<u32>,
    /// The round at hand, which is not among those of the trace yet.
    round: Option<Round>,
    /// Index of the copy at hand.
    copy: Option<usize>,
    /// The kind of the packets that are sent now.
    why: &'static str,
    /// Packets that are still to be shown, as they would stand in their queues.
    pending: VecDeque<(Outgoing, &'static str)>,
}

impl Device {
    /// What would happen to a frame that came in at `port` now. None without a program, and when the tracer is of
    /// another one.
    pub fn trace(&mut self, tracer: &mut Tracer, port: u32, frame: &[u8]) -> Option<Trace> {
        self.trace_walk(tracer, port, frame, Core::walk)
    }

    fn trace_walk(
        &mut self,
        tracer: &mut Tracer,
        port: u32,
        frame: &[u8],
        walk: impl FnOnce(&mut Core<Shown>, &mut Pipeline, u32, &[u8]),
    ) -> Option<Trace> {
        let (real, core) = (self.pipeline.as_mut()?, &mut self.core);
        let shown = Shown {
            trace: Trace {
                time_ns: core.now,
                ingress_port: port,
                bytes: frame.len(),
                frame: hex(frame),
                rounds: Vec::new(),
                copies: Vec::new(),
                left_out: 0,
            },
            cpu_port: core.config.cpu_port,
            round: None,
            copy: None,
            why: "",
            pending: VecDeque::new(),
        };
        let mut shadow = Core::new(core.config, shown);
        (shadow.now, shadow.fields) = (core.now, core.fields);
        shadow.set_logging(true);
        shadow.exchange(core);
        // A panic goes on when the ports are back.
        let traced = || tracer.with(real, |pipeline| walk(&mut shadow, pipeline, port, frame));
        let walked = catch_unwind(AssertUnwindSafe(traced));
        shadow.exchange(core);
        walked.unwrap_or_else(|panic| resume_unwind(panic))?;
        Some(shadow.observer.trace)
    }
}

impl Core<Shown> {
    /// The ports and what they share are now this one's, and those of this one the other's.
    fn exchange(&mut self, core: &mut Core) {
        swap(&mut self.ports, &mut core.ports);
        swap(&mut self.buffer, &mut core.buffer);
        swap(&mut self.pre, &mut core.pre);
    }

    fn walk(&mut self, pipeline: &mut Pipeline, port: u32, frame: &[u8]) {
        self.receive(pipeline, port, |packet| packet.load(frame));
        self.observer.end_round();
        while let Some((out, why)) = self.observer.pending.pop_front() {
            self.observer.why = why;
            self.enqueue(pipeline, out);
            self.observer.end_round();
        }
    }
}

impl Shown {
    fn end_round(&mut self) {
        self.trace.rounds.extend(self.round.take());
    }

    /// The copy at hand, which is at an end, or a new one.
    fn last_copy(&mut self, port: u32) -> &mut Copy {
        let copies = &mut self.trace.copies;
        let index = self.copy.take().unwrap_or_else(|| {
            copies.push(empty(self.why, port));
            copies.len() - 1
        });
        &mut copies[index]
    }
}

impl Observer for Shown {
    const SHADOW: bool = true;

    /// Whether the queue takes the packet, and then egress as if it left at once.
    fn admit(core: &mut Core<Shown>, pipeline: &mut Pipeline, mut out: Outgoing) {
        let (queue, port) = (core.queue_of(pipeline, &out), out.port);
        let Some(p) = core.port(port) else { return };
        let refused = p
            .queues
            .refuses(queue, out.packet.queue_bytes(), &core.buffer);
        let mut copy = empty(core.observer.why, port);
        copy.instance = pipeline.std_get(&out.packet, Std::EgressRid);
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
        let depth = refused.is_none().then(|| p.queues.depth(queue));
        core.observer.copy = Some(core.observer.trace.copies.len());
        core.observer.trace.copies.push(copy);
        if let Some(reason) = refused {
            return core.discard_behind(pipeline, out.packet, port, reason.into());
        }
        let (now, depth, packet) = (core.now, depth.unwrap_or(0), &mut out.packet);
        pipeline.std_set(packet, Std::EnqTimestamp, micros(now));
        pipeline.std_set(packet, Std::EnqQdepth, depth.into());
        leave_queue(pipeline, packet, now, 0, depth, (port, queue));
        core.egress(pipeline, out.packet, out.rounds);
    }

    fn see(&mut self, pipeline: &mut Pipeline, seen: Seen<'_>) {
        let drop_port = pipeline.drop_port();
        let mut steps = || pipeline.take_steps().0;
        match seen {
            Seen::Parsed(why, packet) => {
                self.round = Some(Round {
                    why,
                    parser: steps(),
                    parser_error: pipeline.std_get(packet, Std::ParserError),
                    checksum_error: pipeline.std_get(packet, Std::ChecksumError),
                    ingress: Vec::new(),
                    digests: Vec::new(),
                    log: Vec::new(),
                    fate: "drop",
                    to: 0,
                    drop: None,
                });
            }
            Seen::Ingress(effects) => {
                if let Some(round) = &mut self.round {
                    round.ingress = steps();
                    round.log = lines(effects);
                    let digest = |(id, sample): (v1model::DigestId, &[u8])| Digest {
                        name: pipeline.schema().digests[id.index()].name.clone(),
                        data: hex(sample),
                    };
                    round.digests = effects.digests.iter().map(digest).collect();
                }
            }
            Seen::Fate(fate, to) => {
                if let Some(round) = &mut self.round {
                    (round.fate, round.to) = (fate, to);
                }
            }
            Seen::Dropped(reason) => {
                let (steps, drop) = match (self.copy.take(), &mut self.round) {
                    (Some(copy), _) => {
                        let copy = &mut self.trace.copies[copy];
                        copy.deparser = steps();
                        (&copy.egress, &mut copy.drop)
                    }
                    (None, Some(round)) => (&round.ingress, &mut round.drop),
                    _ => return,
                };
                let by_port = matches!(reason, DropReason::Ingress | DropReason::Egress);
                *drop = Some(Drop {
                    place: by_port
                        .then(|| Place::find_drop(steps, drop_port))
                        .flatten(),
                    ..drop_by("program", reason)
                });
            }
            Seen::Copies(why) => self.why = why,
            Seen::NoSession => {
                let mut copy = empty(self.why, PORT_MAX + 1);
                copy.drop = Some(drop_by("program", DropReason::NoCloneSession));
                self.trace.copies.push(copy);
            }
            Seen::Refused(_, reason @ DropReason::NoMulticastGroup, _) => {
                steps();
                if let Some(round) = &mut self.round {
                    round.drop = Some(drop_by("program", reason));
                }
            }
            Seen::Refused(port, reason, effects) => {
                let by = if self.copy.is_some() { "queue" } else { "port" };
                let copy = self.last_copy(port);
                (copy.egress, copy.log) = (steps(), lines(effects));
                copy.drop = Some(drop_by(by, reason));
            }
            Seen::Egress(effects) => {
                if let Some(copy) = self.trace.copies.last_mut() {
                    (copy.egress, copy.log) = (steps(), lines(effects));
                }
            }
            Seen::Leaves(packet, again) => {
                let cpu_port = self.cpu_port;
                let copy = self.last_copy(0);
                copy.deparser = steps();
                copy.frame = Some(hex(packet.frame()));
                copy.fate = match (again, cpu_port == Some(copy.port)) {
                    (true, _) => "recirculate",
                    (false, true) => "packet_in",
                    (false, false) => "transmit",
                };
            }
        }
    }

    fn has_room(&mut self) -> bool {
        self.end_round();
        let shown = self.trace.rounds.len() + self.trace.copies.len() + self.pending.len();
        let full = shown >= SHOWN_MAX;
        self.trace.left_out += usize::from(full);
        !full
    }

    fn defer(&mut self, out: Outgoing) -> Option<Outgoing> {
        let round = take(&mut self.round);
        if self.why == "unicast" || self.has_room() {
            self.pending.push_back((out, self.why));
        }
        self.round = round;
        None
    }
}

fn lines(effects: &Effects) -> Vec<String> {
    effects.log.text().lines().map(String::from).collect()
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

fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DeviceConfig, MulticastGroup, PortConfig, Replica, Transmit};
    use v1model::Packet;

    const OPS: &[u8] = include_bytes!("../tests/p4/ops.json");
    /// ops.p4 sends it to the ports of group 1.
    const FRAME: [u8; 64] = {
        let mut frame = [0; 64];
        (frame[0], frame[1]) = (2, 1);
        frame
    };

    #[derive(Default)]
    struct Sent(Vec<(u32, Vec<u8>)>);

    impl Transmit for Sent {
        fn transmit(&mut self, port: u32, packet: &mut Packet, _: u64) {
            self.0.push((port, packet.frame().to_vec()));
        }
    }

    fn device() -> Device {
        let mut device = Device::new(DeviceConfig::default());
        for port in 0..3 {
            device.add_port(port, PortConfig::default()).unwrap();
        }
        device.load(0, Pipeline::from_json(OPS).unwrap());
        let replica = |port| Replica { port, instance: 0 };
        let group = MulticastGroup {
            id: 1,
            replicas: vec![replica(1), replica(2)],
        };
        device.replication_mut().insert(group).unwrap();
        device
    }

    fn forward(device: &mut Device) -> Vec<(u32, Vec<u8>)> {
        let mut sent = Sent::default();
        device.receive(1, 0, &FRAME);
        device.advance(1, &mut sent);
        sent.0
    }

    #[test]
    fn after_a_panic_in_a_trace_the_switch_is_as_it_was() {
        let mut device = device();
        let mut tracer = Tracer::new(device.pipeline().unwrap().traced()).unwrap();
        let shown = device.trace(&mut tracer, 0, &FRAME).unwrap();
        let ports = |device: &Device| device.ports().collect::<Vec<u32>>();
        let before = (device.stats().clone(), ports(&device));
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            device.trace_walk(&mut tracer, 0, &FRAME, |core, pipeline, port, frame| {
                core.walk(pipeline, port, frame);
                panic!("in a trace");
            })
        }));
        let text = panicked.unwrap_err();
        assert_eq!(text.downcast_ref::<&str>(), Some(&"in a trace"));
        assert_eq!((device.stats().clone(), ports(&device)), before);
        // It shows and forwards what a switch does that never panicked.
        let again = device.trace(&mut tracer, 0, &FRAME).unwrap();
        assert_eq!(format!("{again:?}"), format!("{shown:?}"));
        let sent = forward(&mut device);
        assert_eq!(sent.len(), 2);
        assert_eq!(sent, forward(&mut self::device()));
    }
}
