// SPDX-License-Identifier: Apache-2.0
//! WRR and DRR in random runs: like a simple model packet by packet, work-conserving, fair over every interval, never late.

use crate::common::Random;
use proptest::prelude::*;
use traffic::{
    cells_of, LinkLayer, PortQueues, QueueLimits, SchedulerKind, SharedBuffer, UNLIMITED,
};

/// A round-robin scheduler as the module's documentation tells it, with loops instead of data structures.
struct Model {
    unit: Cost,
    queues: Vec<ModelQueue>,
    round: u64,
    parked: u64,
    current: Option<usize>,
    scale: u32,
    below_scale: u32,
}

#[derive(Clone, Default)]
struct ModelQueue {
    waiting: std::collections::VecDeque<u32>,
    weight: u64,
    credit: i64,
    quantum: i64,
    /// Round of its turn, and the order of those with the same round.
    turn: Option<(u64, u64)>,
}

impl Model {
    fn new(unit: Cost, queues: usize) -> Model {
        let queue = ModelQueue {
            weight: 1,
            ..ModelQueue::default()
        };
        Model {
            unit,
            queues: vec![queue; queues],
            round: 0,
            parked: 0,
            current: None,
            scale: 1,
            below_scale: 0,
        }
    }

    fn cost(&self, queue: usize) -> i64 {
        (self.unit)(self.queues[queue].waiting[0]) << 20
    }

    fn largest(&self) -> u32 {
        let weights = self.queues.iter().filter(|q| !q.waiting.is_empty());
        weights
            .map(|q| 64 - q.weight.leading_zeros())
            .max()
            .unwrap_or(0)
    }

    fn park(&mut self, queue: usize) {
        let full = ((self.unit)(1_514) as u64) << 20;
        let quantum = ((full * self.queues[queue].weight) >> self.scale).max(full >> 11) as i64;
        let need = self.cost(queue);
        self.parked += 1;
        let q = &mut self.queues[queue];
        q.quantum = quantum;
        let mut rounds = 0;
        while rounds == 0 || (q.credit < need && rounds < 4_095) {
            q.credit += quantum;
            rounds += 1;
        }
        q.turn = Some((self.round + rounds, self.parked));
    }

    fn park_again(&mut self, queue: usize) {
        let need = self.cost(queue);
        let q = &mut self.queues[queue];
        let (round, _) = q.turn.unwrap();
        q.credit -= (round - self.round) as i64 * q.quantum;
        if q.credit < need {
            return self.park(queue);
        }
        self.parked += 1;
        q.quantum = 0;
        q.turn = Some((self.round + 1, self.parked));
    }

    fn rescale(&mut self, scale: u32) {
        (self.scale, self.below_scale) = (scale, 0);
        let mut parked: Vec<_> = (0..self.queues.len())
            .filter_map(|queue| Some((self.queues[queue].turn?, queue)))
            .collect();
        parked.sort_unstable();
        for (_, queue) in parked {
            self.park_again(queue);
        }
    }

    fn enqueue(&mut self, queue: usize, len_bytes: u32) {
        self.queues[queue].waiting.push_back(len_bytes);
        if self.queues[queue].waiting.len() == 1 {
            self.queues[queue].credit = 0;
            if self.largest() > self.scale {
                self.rescale(self.largest());
            }
            self.park(queue);
        }
    }

    fn set_weight(&mut self, queue: usize, weight: u64) {
        if weight == self.queues[queue].weight {
            return;
        }
        self.queues[queue].weight = weight;
        if self.largest() > self.scale {
            self.rescale(self.largest());
        } else if self.queues[queue].turn.is_some() {
            self.park_again(queue);
        }
    }

    /// The queue served; the packet stays at its head until `took`.
    fn pick(&mut self) -> usize {
        let (largest, waiting) = (
            self.largest(),
            self.queues.iter().filter(|q| !q.waiting.is_empty()).count(),
        );
        if largest >= self.scale {
            self.below_scale = 0;
        } else {
            self.below_scale += 1;
            if self.below_scale as usize > 64 + waiting {
                self.rescale(largest);
            }
        }
        loop {
            if let Some(queue) = self.current {
                if self.queues[queue].credit >= self.cost(queue) {
                    return queue;
                }
                self.current = None;
                self.park(queue);
            }
            let turns = (0..self.queues.len()).filter_map(|q| Some((self.queues[q].turn?, q)));
            let ((round, _), queue) = turns.min().unwrap();
            self.round = round;
            self.queues[queue].turn = None;
            self.current = Some(queue);
        }
    }

    /// The packet picked went to the line with a length, or egress dropped it.
    fn took(&mut self, queue: usize, line_len: Option<u32>) {
        let q = &mut self.queues[queue];
        q.waiting.pop_front();
        if q.waiting.is_empty() {
            self.current = None;
        } else if let Some(len_bytes) = line_len {
            q.credit -= (self.unit)(len_bytes) << 20;
        }
    }
}

/// What a frame of so many bytes costs.
type Cost = fn(u32) -> i64;

const KINDS: [(SchedulerKind, LinkLayer, Cost); 4] = [
    (SchedulerKind::Wrr, LinkLayer::Atm, |len| {
        cells_of(len) as i64
    }),
    (SchedulerKind::Wrr, LinkLayer::None, |_| 1),
    (SchedulerKind::Drr, LinkLayer::None, |len| len.into()),
    (SchedulerKind::Drr, LinkLayer::Ethernet, |len| {
        LinkLayer::Ethernet.line_bytes(len).into()
    }),
];

fn port(kind: SchedulerKind, layer: LinkLayer, queues: usize) -> (PortQueues<u32>, SharedBuffer) {
    let mut port = PortQueues::new(queues, QueueLimits::NONE, 0);
    port.set_link_layer(layer);
    port.set_scheduler(kind);
    (port, SharedBuffer::new(QueueLimits::NONE))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn it_serves_as_the_model_does(
        kind in 0..KINDS.len(), queues in 1usize..9, seed in any::<u64>(), weight_bits in 1u64..33, steps in 1usize..1_500,
    ) {
        let (kind, layer, unit) = KINDS[kind];
        let (mut port, mut buffer) = port(kind, layer, queues);
        let mut model = Model::new(unit, queues);
        let mut random = Random(seed);
        for now in 0..steps as u64 {
            let queue = random.next() as usize % queues;
            match random.next() % 20 {
                0..=8 => {
                    // Now and then one of the longest, which takes more rounds than the calendar has.
                    let longest = if random.next().is_multiple_of(50) { 65_535 } else { 1_600 };
                    let len_bytes = random.within(20, longest) as u32;
                    model.enqueue(queue, len_bytes);
                    port.enqueue(now, queue, len_bytes, len_bytes, &mut buffer).unwrap();
                }
                9 => {
                    let bits = random.within(1, weight_bits);
                    let weight = random.within(1 << (bits - 1), (1 << bits) - 1);
                    model.set_weight(queue, weight);
                    port.set_weight(queue, weight as u32);
                }
                _ if !port.is_empty() => {
                    let expected = model.pick();
                    let served = port.dequeue(now, &mut buffer).unwrap();
                    prop_assert_eq!(served.queue, expected, "at {}", now);
                    // Egress makes some longer and drops others.
                    let line_len = match random.next() % 8 {
                        0 => None,
                        1 => Some(served.item + 300),
                        _ => Some(served.item),
                    };
                    model.took(expected, line_len);
                    if let Some(len_bytes) = line_len {
                        port.served(now, len_bytes);
                    }
                }
                _ => {}
            }
        }
    }

    /// Between any two instants, two queues that were never empty got service in proportion to their weights, but for a
    /// quantum and a frame each: Shreedhar and Varghese's bound.
    #[test]
    fn shares_are_fair_over_every_interval(
        weights in prop::collection::vec(1u32..500, 2..12), seed in any::<u64>(), kind in 2usize..4,
    ) {
        let (kind, layer, unit) = KINDS[kind];
        let (mut port, mut buffer) = port(kind, layer, weights.len());
        let mut random = Random(seed);
        for (queue, &weight) in weights.iter().enumerate() {
            port.set_weight(queue, weight);
        }
        let mut put = |port: &mut PortQueues<u32>, buffer: &mut SharedBuffer, queue: usize| {
            let len_bytes = random.within(54, 1_514) as u32;
            port.enqueue(0, queue, len_bytes, len_bytes, buffer).unwrap();
        };
        for queue in 0..weights.len() {
            put(&mut port, &mut buffer, queue);
            put(&mut port, &mut buffer, queue);
        }
        let largest = f64::from(*weights.iter().max().unwrap());
        let frame = unit(1_514) as f64;
        // Service by weight, and the range of the difference of two queues so far.
        let mut service = vec![0.0; weights.len()];
        let mut range = vec![(0.0f64, 0.0f64); weights.len() * weights.len()];
        for _ in 0..2_000 {
            let served = port.dequeue(0, &mut buffer).unwrap();
            port.served(0, served.item);
            put(&mut port, &mut buffer, served.queue);
            service[served.queue] += unit(served.item) as f64 / f64::from(weights[served.queue]);
            for i in 0..weights.len() {
                let j = served.queue;
                let (low, high) = &mut range[i.min(j) * weights.len() + i.max(j)];
                let difference = service[i.min(j)] - service[i.max(j)];
                (*low, *high) = (low.min(difference), high.max(difference));
                let (w_i, w_j) = (f64::from(weights[i]), f64::from(weights[j]));
                let bound = 2.0 * frame / largest + frame / w_i + frame / w_j;
                prop_assert!(*high - *low <= bound * 1.01, "{} {i} {j}: {}", bound, *high - *low);
            }
        }
    }

    /// The bound of the module's documentation: no packet at the head of a queue waits longer.
    #[test]
    fn no_head_waits_longer_than_the_bound(
        others in prop::collection::vec(0u32..30, 1..24), seed in any::<u64>(), rare in 1u64..60, kind in 0..KINDS.len(),
    ) {
        let (kind, layer, unit) = KINDS[kind];
        // Queue 0 has the largest weight and is never empty; the others come and go.
        let weights: Vec<u32> = std::iter::once(1 << 30).chain(others.iter().map(|bits| 3 << bits)).collect();
        let weights: Vec<u32> = weights.iter().map(|&w| w.min(1 << 30)).collect();
        let (mut port, mut buffer) = port(kind, layer, weights.len());
        let mut random = Random(seed);
        for (queue, &weight) in weights.iter().enumerate() {
            port.set_weight(queue, weight);
        }
        let frame = unit(1_514) as f64;
        // Line units sent when a queue's head became its head.
        let mut sent = 0.0f64;
        let mut since = vec![0.0f64; weights.len()];
        let mut put = |port: &mut PortQueues<u32>, buffer: &mut SharedBuffer, queue: usize, sent: f64, since: &mut [f64]| {
            let len_bytes = random.within(54, 1_514) as u32;
            if port.depth(queue) == 0 {
                since[queue] = sent;
            }
            port.enqueue(0, queue, len_bytes, len_bytes, buffer).unwrap();
            random.next()
        };
        for _ in 0..4_000 {
            while port.depth(0) < 2 {
                put(&mut port, &mut buffer, 0, sent, &mut since);
            }
            let queue = put(&mut port, &mut buffer, 0, sent, &mut since) as usize % weights.len();
            if (sent as u64).is_multiple_of(rare) && port.depth(queue) < 5 {
                put(&mut port, &mut buffer, queue, sent, &mut since);
            }
            let served = port.dequeue(0, &mut buffer).unwrap();
            port.served(0, served.item);
            let (i, length) = (served.queue, unit(served.item) as f64);
            let waited = sent - since[i];
            let least = frame / 2_048.0;
            let quantum = |weight: u32| (frame * f64::from(weight) / f64::from(1u32 << 31)).max(least);
            let rounds = (length / quantum(weights[i])).ceil() + 1.0;
            let before: f64 = weights.iter().map(|&w| rounds * quantum(w) + frame).sum();
            prop_assert!(waited <= (before + frame) * 1.01, "queue {i}: {waited} of {before}");
            sent += length;
            since[i] = sent;
        }
    }

    /// Whatever the discipline and its changes: nothing is lost, doubled or reordered in a queue, and the line is never idle.
    #[test]
    fn changes_lose_nothing_and_the_line_never_idles(seed in any::<u64>(), steps in 1usize..800) {
        let mut port: PortQueues<(usize, u64)> = PortQueues::new(4, QueueLimits { cells: 900, ..QueueLimits::NONE }, 10_000_000);
        let mut buffer = SharedBuffer::new(QueueLimits { packets: 60, bytes: UNLIMITED, cells: UNLIMITED });
        let mut random = Random(seed);
        let (mut now, mut taken, mut served) = (0u64, 0u64, 0u64);
        let mut last = vec![None; 4_096];
        let mut queues = 4;
        for id in 0..steps as u64 {
            match random.next() % 12 {
                0 => port.set_scheduler(SchedulerKind::ALL[random.next() as usize % 3]),
                1 => port.set_link_layer(LinkLayer::ALL[random.next() as usize % 3]),
                2 => {
                    queues = (queues + random.next() as usize % 300).min(4_096);
                    port.grow(queues, QueueLimits::NONE);
                }
                3 => port.set_weight(random.next() as usize % queues, random.next() as u32 >> (random.next() % 32)),
                _ => {}
            }
            let queue = if random.next().is_multiple_of(2) { random.next() as usize % 4 } else { random.next() as usize % queues };
            let len_bytes = random.within(20, 9_000) as u32;
            if port.enqueue(now, queue, len_bytes, (queue, id), &mut buffer).is_ok() {
                taken += 1;
            }
            let until = now + random.within(0, 4_000_000);
            while let Some(due) = port.next_departure() {
                let at = now.max(due);
                if at > until {
                    break;
                }
                // Never idle: it is due as soon as the line is free.
                prop_assert_eq!(due, port.free_at());
                let d = port.dequeue(at, &mut buffer).unwrap();
                prop_assert_eq!(d.item.0, d.queue);
                prop_assert!(last[d.queue].is_none_or(|before| before < d.item.1));
                last[d.queue] = Some(d.item.1);
                served += 1;
                now = at;
                if !random.next().is_multiple_of(10) {
                    port.served(at, random.within(20, 9_000) as u32);
                }
            }
            now = until;
            prop_assert_eq!(taken, served + port.usage().packets);
            prop_assert_eq!(buffer.usage, port.usage());
        }
        let left = port.usage().packets;
        prop_assert_eq!(port.flush(&mut buffer, drop), left);
        prop_assert!(port.is_empty() && port.next_departure().is_none());
        // It works on as before.
        port.enqueue(now, 1, 100, (1, 0), &mut buffer).unwrap();
        let at = port.next_departure().unwrap().max(now);
        prop_assert_eq!(port.dequeue(at, &mut buffer).unwrap().queue, 1);
    }
}
