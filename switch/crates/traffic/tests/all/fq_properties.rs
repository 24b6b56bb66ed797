// SPDX-License-Identifier: Apache-2.0
//! The scheduler `fq` beside RFC 8290's own words in random runs, and what they mean for a flow.

use crate::common::Random;
use proptest::prelude::*;
use std::collections::VecDeque;
use traffic::{DropReason, LinkLayer, PortQueues, QueueLimits, SchedulerKind, SharedBuffer};

/// A packet: its number and its length.
type Packet = (u64, u32);

/// RFC 8290 sections 4.1 and 4.2, with loops instead of data structures.
struct Rfc {
    quantum: i64,
    limits: QueueLimits,
    queues: Vec<VecDeque<Packet>>,
    credits: Vec<i64>,
    new: Vec<usize>,
    old: Vec<usize>,
}

impl Rfc {
    fn new(queues: usize, limits: QueueLimits) -> Rfc {
        Rfc {
            quantum: 1_514,
            limits,
            queues: vec![VecDeque::new(); queues],
            credits: vec![0; queues],
            new: Vec::new(),
            old: Vec::new(),
        }
    }

    fn bytes(&self, queue: usize) -> u64 {
        self.queues[queue].iter().map(|p| u64::from(p.1)).sum()
    }

    fn all(&self) -> (u64, u64) {
        let packets = self.queues.iter().map(|q| q.len() as u64).sum();
        (packets, (0..self.queues.len()).map(|q| self.bytes(q)).sum())
    }

    /// Section 4.1. A packet that is dropped in the call that brought it never was in its queue.
    fn enqueue(&mut self, queue: usize, packet: Packet) -> Vec<u64> {
        self.queues[queue].push_back(packet);
        let mut dropped = Vec::new();
        while self.all().0 > self.limits.packets || self.all().1 > self.limits.bytes {
            let numbers = (0..self.queues.len()).rev();
            let fattest = numbers.max_by_key(|&q| self.bytes(q)).unwrap();
            dropped.extend(self.queues[fattest].pop_front().map(|p| p.0));
        }
        if !dropped.contains(&packet.0) && !self.new.contains(&queue) && !self.old.contains(&queue)
        {
            self.new.push(queue);
            self.credits[queue] = self.quantum;
        }
        dropped
    }

    /// Section 4.2; `codel` says which packets it drops.
    fn dequeue(&mut self, mut codel: impl FnMut(Packet) -> bool) -> Option<(usize, u64)> {
        loop {
            let is_new = !self.new.is_empty();
            let queue = *self.new.first().or(self.old.first())?;
            let list = if is_new { &mut self.new } else { &mut self.old };
            if self.credits[queue] <= 0 {
                self.credits[queue] += self.quantum;
                list.remove(0);
                self.old.push(queue);
                continue;
            }
            while let Some(packet) = self.queues[queue].pop_front() {
                if !codel(packet) {
                    self.credits[queue] -= i64::from(packet.1);
                    return Some((queue, packet.0));
                }
            }
            list.remove(0);
            if is_new {
                self.old.push(queue);
            }
        }
    }
}

fn port(queues: usize, limits: QueueLimits) -> (PortQueues<Packet>, SharedBuffer) {
    let mut port = PortQueues::new(queues, limits, 0);
    port.set_scheduler(SchedulerKind::Fq);
    (port, SharedBuffer::new(QueueLimits::NONE))
}

/// What was dropped for the packet, itself last where it was.
fn put(
    port: &mut PortQueues<Packet>,
    buffer: &mut SharedBuffer,
    queue: usize,
    packet: Packet,
) -> Vec<u64> {
    let before = port.refuses(queue, packet.1, buffer);
    let mut dropped = Vec::new();
    while let Some((number, _)) = port.make_room(queue, packet.1, buffer) {
        dropped.push(number);
    }
    if let Err((reason, (number, _))) = port.enqueue(0, queue, packet.1, packet, buffer) {
        assert_eq!(reason, DropReason::PortFull);
        dropped.push(number);
    } else {
        assert_eq!(before, None);
    }
    dropped
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn it_does_what_the_rfc_says(
        queues in 1usize..40, seed in any::<u64>(), packets in 1u64..60, kilobytes in 1u64..60, in_bytes in any::<bool>(),
        load in 2u64..9, steps in 1usize..800,
    ) {
        let limits = if in_bytes {
            QueueLimits { bytes: 1_000 * kilobytes, ..QueueLimits::NONE }
        } else {
            QueueLimits::packets(packets)
        };
        let (mut port, mut buffer) = port(queues, limits);
        let mut rfc = Rfc::new(queues, limits);
        let mut random = Random(seed);
        for number in 0..steps as u64 {
            // The first queues get most.
            let queue = random.below(queues as u64).min(random.below(queues as u64)) as usize;
            match random.below(10) {
                kind if kind < load => {
                    let longest = if random.below(50) == 0 { 9_014 } else { 1_514 };
                    let packet = (number, random.within(20, longest) as u32);
                    let dropped = put(&mut port, &mut buffer, queue, packet);
                    prop_assert_eq!(dropped, rfc.enqueue(queue, packet), "at {}", number);
                }
                9 if random.below(20) == 0 => {
                    let quantum = random.within(256, 4_000) as u32;
                    port.set_quantum(quantum);
                    rfc.quantum = quantum.into();
                }
                _ => {
                    let codel = |packet: Packet| packet.0 % 7 == 3;
                    let expected = rfc.dequeue(codel);
                    let mut served = None;
                    while let Some(due) = port.dequeue(0, &mut buffer) {
                        if !codel(due.item) {
                            port.served(0, due.item.1);
                            served = Some((due.queue, due.item.0));
                            break;
                        }
                    }
                    prop_assert_eq!(served, expected, "at {}", number);
                }
            }
            let usage = port.usage();
            prop_assert_eq!((usage.packets, usage.bytes), rfc.all());
            prop_assert_eq!(usage, buffer.usage);
        }
        let mut stats = (0..queues).map(|queue| port.queue_stats(queue));
        prop_assert!(stats.all(|queue| queue.removed_packets <= queue.dropped_port_full));
    }
}

/// A flow that sends a packet now and then waits for no busy queue (section 4.2): it is served next.
#[test]
fn a_packet_of_an_idle_queue_is_served_next() {
    let (mut port, mut buffer) = port(1_024, QueueLimits::NONE);
    for number in 0..5_000 {
        put(
            &mut port,
            &mut buffer,
            number as usize % 1_000,
            (number, 1_514),
        );
    }
    // Each of the busy ones has its first quantum.
    for _ in 0..1_000 {
        port.dequeue(0, &mut buffer).unwrap();
        port.served(0, 1_514);
    }
    for number in 0..20 {
        put(&mut port, &mut buffer, 1_023, (10_000 + number, 100));
        assert_eq!(port.dequeue(0, &mut buffer).unwrap().queue, 1_023);
        port.served(0, 100);
        // Found empty, it goes behind the old ones; found so again there, it is idle.
        for _ in 0..1_001 {
            let queue = port.dequeue(0, &mut buffer).unwrap().queue;
            assert_ne!(queue, 1_023);
            port.served(0, 1_514);
            put(&mut port, &mut buffer, queue, (20_000, 1_514));
        }
    }
}

/// With full frames and the quantum of one, busy queues take turns; twice the quantum is two frames.
#[test]
fn a_quantum_of_a_frame_is_a_frame_a_round() {
    for (quantum, expected) in [(0, "abcabcabc"), (3_028, "aabbccabc")] {
        let (mut port, mut buffer) = port(3, QueueLimits::NONE);
        port.set_quantum(quantum);
        for number in 0..9 {
            put(&mut port, &mut buffer, number as usize / 3, (number, 1_514));
        }
        let served: String = (0..9)
            .map(|_| {
                let queue = port.dequeue(0, &mut buffer).unwrap().queue;
                port.served(0, 1_514);
                char::from(b'a' + queue as u8)
            })
            .collect();
        assert_eq!(served, expected);
    }
}

/// The queues share one buffer, whichever limit says its size; the fattest in bytes pays, not who comes.
#[test]
fn the_fattest_queue_pays_with_its_oldest_packet() {
    let three = QueueLimits::packets(3);
    for (own, of_the_port, shared) in [
        (three, QueueLimits::NONE, QueueLimits::NONE),
        (QueueLimits::NONE, three, QueueLimits::NONE),
        (QueueLimits::NONE, QueueLimits::NONE, three),
    ] {
        let (mut port, mut buffer) = port(4, own);
        port.set_port_limits(of_the_port);
        buffer.limits = shared;
        // Two small packets are less than a large one.
        assert!(put(&mut port, &mut buffer, 0, (1, 100)).is_empty());
        assert!(put(&mut port, &mut buffer, 0, (2, 100)).is_empty());
        assert!(put(&mut port, &mut buffer, 1, (3, 900)).is_empty());
        assert_eq!(put(&mut port, &mut buffer, 2, (4, 100)), [3]);
        assert_eq!(put(&mut port, &mut buffer, 2, (5, 100)), [1]);
        let stats = port.queue_stats(1);
        let counts = (stats.enqueued_packets, stats.removed_packets);
        assert_eq!((counts, stats.dropped_bytes), ((1, 1), 900));
        assert_eq!(port.queue_stats(0).dropped_port_full, 1);
        assert_eq!(buffer.usage, port.usage());
    }
}

#[test]
fn other_disciplines_refuse_what_comes() {
    let (mut port, mut buffer) = port(2, QueueLimits::packets(1));
    port.set_scheduler(SchedulerKind::Drr);
    port.enqueue(0, 0, 100, (1, 100), &mut buffer).unwrap();
    assert_eq!(port.make_room(0, 100, &mut buffer), None);
    assert_eq!(port.refuses(0, 100, &buffer), Some(DropReason::QueueFull));
    port.set_scheduler(SchedulerKind::Fq);
    assert_eq!(port.refuses(0, 100, &buffer), None);
    assert_eq!(port.refuses(2, 100, &buffer), Some(DropReason::NoSuchQueue));
    assert_eq!(port.make_room(2, 100, &mut buffer), None);
}

/// As with the other disciplines, what a frame takes on the line is what it costs.
#[test]
fn credits_are_bytes_on_the_line() {
    let (mut port, mut buffer) = port(2, QueueLimits::NONE);
    port.set_link_layer(LinkLayer::Atm);
    for number in 0..6 {
        put(&mut port, &mut buffer, number as usize % 2, (number, 700));
    }
    let served: Vec<usize> = (0..6)
        .map(|_| {
            let queue = port.dequeue(0, &mut buffer).unwrap().queue;
            port.served(0, 700);
            queue
        })
        .collect();
    // A frame is 15 cells, 795 bytes: two make the quantum. As bytes of a frame it would take three.
    assert_eq!(served, [0, 0, 1, 1, 0, 1]);
}
