// SPDX-License-Identifier: Apache-2.0
//! One port of the device: its queues, the frame on its line, its counts; how packets come into the queues and leave.

use crate::config::PortConfig;
use crate::device::{Core, Transmit};
use crate::observe::Outgoing;
use crate::path::{leave_queue, micros};
use crate::stats::{DropReason, PortStats};
use std::sync::Arc;
use traffic::link::Series;
use traffic::PortQueues;
use v1model::{FieldRef, Nanos, Packet, PacketAddresses, Pipeline, Std};

/// A packet in a queue.
pub(crate) struct Item {
    pub(crate) packet: Box<Packet>,
    pub(crate) addresses: PacketAddresses,
    /// How often it went round already (resubmit, recirculate, clone).
    pub(crate) rounds: u8,
}

/// What each packet meets is in front.
#[repr(C, align(64))]
pub(crate) struct Port {
    pub(crate) up: bool,
    /// Deparsed, being serialised: leaves when the line is free.
    pub(crate) on_line: Option<Box<Packet>>,
    pub(crate) queues: PortQueues<Item>,
    pub(crate) stats: PortStats,
    pub(crate) config: PortConfig,
    /// What the rate follows.
    pub(crate) rate: Option<Arc<Series>>,
}

impl Port {
    pub(crate) fn new(config: PortConfig) -> Port {
        let mut queues = PortQueues::new(config.queues, config.queue_limits, config.rate_bps);
        queues.set_port_limits(config.port_limits);
        queues.set_link_layer(config.link_layer);
        queues.set_scheduler(config.scheduler);
        Port {
            config,
            rate: None,
            queues,
            on_line: None,
            up: true,
            stats: PortStats::default(),
        }
    }

    pub(crate) fn on_line_bytes(&self) -> Option<u32> {
        self.on_line
            .as_ref()
            .map(|packet| packet.frame_len() as u32)
    }

    /// The rate is a number from now on.
    pub(crate) fn set_rate(&mut self, now: Nanos, rate_bps: u64) {
        self.rate = None;
        self.queues.set_rate(now, rate_bps, self.on_line_bytes());
    }

    /// When something is next to be done here.
    #[inline]
    pub(crate) fn due(&self) -> Option<Nanos> {
        if self.on_line.is_some() {
            Some(self.queues.busy_until())
        } else {
            self.queues.next_departure()
        }
    }
}

/// The program's user metadata that the traffic manager reads, where it has them.
#[derive(Clone, Copy, Default)]
pub(crate) struct QueueFields {
    pub id: Option<FieldRef>,
    pub weight: Option<FieldRef>,
    pub turn: Option<FieldRef>,
    pub quantum: Option<FieldRef>,
    /// Of 8 bits: the program gets a report of what ends between ingress and egress.
    pub drop: Option<FieldRef>,
}

impl QueueFields {
    pub fn of(pipeline: &Pipeline) -> QueueFields {
        let field = |name| pipeline.field_by_name(name);
        QueueFields {
            id: field("queue_id"),
            weight: field("queue_weight"),
            turn: field("queue_turn"),
            quantum: field("queue_quantum"),
            drop: field("queue_drop").filter(|field| field.width == 8),
        }
    }
}

impl Core {
    /// Puts a packet into its queue, which from now on has the weight that the program gave, if it chose the queue and gave
    /// one. Another may have to leave for it (scheduler `fq`).
    #[inline]
    pub(crate) fn admit(&mut self, pipeline: &mut Pipeline, out: Outgoing) {
        let queue = self.queue_of(pipeline, &out);
        let Outgoing {
            mut packet,
            rounds,
            port,
            queue: named,
        } = out;
        let Some(mut p) = self.ports[port as usize].as_deref_mut() else {
            return self.discard(packet, DropReason::NoSuchPort);
        };
        if named == 0 {
            let given = |field: Option<FieldRef>| field.map(|f| pipeline.field_get(&packet, f));
            if let Some(weight) = given(self.fields.weight) {
                p.queues
                    .set_weight(queue, weight.min(u32::MAX.into()) as u32);
            }
            if let Some(turn) = given(self.fields.turn) {
                p.queues.set_turn(turn as usize);
            }
            if let Some(quantum) = given(self.fields.quantum) {
                p.queues.set_quantum(quantum as u32);
            }
        }
        let len_bytes = packet.queue_bytes();
        while let Some(victim) = p.queues.make_room(queue, len_bytes, &mut self.buffer) {
            self.refuse(pipeline, victim.packet, port, DropReason::PortFull);
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
            Err((reason, item)) => self.refuse(pipeline, item.packet, port, reason.into()),
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
        let on_line = self.ports[index].as_deref_mut();
        let left = on_line.and_then(|p| match p.queues.is_free(now) {
            true => p.on_line.take(),
            false => None, // its rate has changed
        });
        if let Some(packet) = left {
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
