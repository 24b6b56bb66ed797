// SPDX-License-Identifier: Apache-2.0
//! WRR, DRR and FQ-CoDel's scheduler over 4096 queues allocate nothing once the port's slab has grown: counted by the global allocator.

mod common;
mod counting;

use common::{Random, Rig};
use counting::allocations;
use traffic::{LinkLayer, QueueLimits, SchedulerKind, QUEUES_MAX};

#[test]
fn steady_state_allocates_nothing() {
    for kind in [SchedulerKind::Wrr, SchedulerKind::Drr, SchedulerKind::Fq] {
        let weights = vec![1; QUEUES_MAX];
        let mut rig = Rig::new(kind, LinkLayer::Atm, 1_000_000_000, &weights);
        let all = 2 * QUEUES_MAX as u64;
        rig.port.set_port_limits(QueueLimits::packets(all));
        rig.saturate(10_000, |_, _| 1_000);
        let before = allocations();
        let mut random = Random(9);
        for _ in 0..100_000 {
            // Other weights, from one end of the scale to the other, with every packet.
            let weight = random.next() as u32 >> (random.next() % 32);
            rig.port
                .set_weight(random.next() as usize % QUEUES_MAX, weight);
            let served = rig.serve().unwrap();
            rig.put(served.queue, random.within(54, 1_514) as u32);
            if kind == SchedulerKind::Fq {
                // More than goes in: the buffer is full, and somebody else's packet goes.
                let queue = random.next() as usize % QUEUES_MAX;
                rig.put(queue, random.within(54, 1_514) as u32);
            }
        }
        let allocated = allocations() - before;
        assert_eq!(allocated, 0, "allocations over 100,000 packets, {kind}");
    }
}
