// SPDX-License-Identifier: Apache-2.0
//! What the schedulers' tests share: a port whose queues are kept full, seeded lengths, counts by queue.
#![allow(dead_code)]

#[path = "../random/mod.rs"]
mod random;

pub use random::Random;
use traffic::{
    cells_of, Dequeued, LinkLayer, Nanos, PortQueues, QueueLimits, SchedulerKind, SharedBuffer,
};

/// What a queue got.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Got {
    pub frames: u64,
    pub cells: u64,
    pub line_bytes: u64,
}

/// A port in virtual time. An item is a frame's length.
pub struct Rig {
    pub port: PortQueues<u32>,
    pub buffer: SharedBuffer,
    pub now: Nanos,
    pub got: Vec<Got>,
    pub random: Random,
}

impl Rig {
    pub fn new(kind: SchedulerKind, layer: LinkLayer, rate_bps: u64, weights: &[u32]) -> Rig {
        let mut port = PortQueues::new(weights.len(), QueueLimits::NONE, rate_bps);
        port.set_link_layer(layer);
        port.set_scheduler(kind);
        for (queue, &weight) in weights.iter().enumerate() {
            port.set_weight(queue, weight);
        }
        Rig {
            port,
            buffer: SharedBuffer::new(QueueLimits::NONE),
            now: 0,
            got: vec![Got::default(); weights.len()],
            random: Random(1),
        }
    }

    pub fn put(&mut self, queue: usize, len_bytes: u32) {
        let buffer = &mut self.buffer;
        while self.port.make_room(queue, len_bytes, buffer).is_some() {}
        self.port
            .enqueue(self.now, queue, len_bytes, len_bytes, &mut self.buffer)
            .unwrap();
    }

    /// Serves the next packet as soon as the line is free; None when nothing waits.
    pub fn serve(&mut self) -> Option<Dequeued<u32>> {
        self.now = self.now.max(self.port.next_departure()?);
        let served = self.port.dequeue(self.now, &mut self.buffer).unwrap();
        self.port.served(self.now, served.item);
        let got = &mut self.got[served.queue];
        got.frames += 1;
        got.cells += cells_of(served.item);
        got.line_bytes += u64::from(self.port.link_layer().line_bytes(served.item));
        Some(served)
    }

    /// Serves `packets` packets while every queue always has one waiting, of a length that `length` chooses.
    pub fn saturate(&mut self, packets: u64, length: impl Fn(usize, &mut Random) -> u32) {
        for queue in 0..self.port.queues() {
            while self.port.depth(queue) < 2 {
                let len_bytes = length(queue, &mut self.random);
                self.put(queue, len_bytes);
            }
        }
        for _ in 0..packets {
            let queue = self.serve().unwrap().queue;
            let len_bytes = length(queue, &mut self.random);
            self.put(queue, len_bytes);
        }
    }

    /// The largest deviation of a queue's share from its weight's, relative.
    pub fn worst_share(&self, weights: &[u32], unit: impl Fn(&Got) -> u64) -> f64 {
        let total: u64 = self.got.iter().map(&unit).sum();
        let weight: f64 = weights.iter().map(|&w| f64::from(w)).sum();
        let share =
            |(got, &w): (&Got, &u32)| unit(got) as f64 / total as f64 * weight / f64::from(w) - 1.0;
        let shares = self.got.iter().zip(weights).map(share);
        shares.map(f64::abs).fold(0.0, f64::max)
    }

    pub fn forget(&mut self) {
        self.got.fill(Got::default());
    }
}

/// Lengths unlike in each queue: small, large, mixed, jumbo.
pub fn mixed(queue: usize, random: &mut Random) -> u32 {
    let (low, high) = [(54, 200), (1_000, 1_514), (54, 1_514), (54, 7_734)][queue % 4];
    random.within(low, high) as u32
}
