// SPDX-License-Identifier: Apache-2.0
//! WRR and DRR over 4096 queues allocate nothing once the port's slab has grown: counted by the global allocator.

mod common;
mod counting;

use common::{Random, Rig};
use counting::allocations;
use traffic::{LinkLayer, SchedulerKind, QUEUES_MAX};

#[test]
fn steady_state_allocates_nothing() {
    for kind in [SchedulerKind::Wrr, SchedulerKind::Drr] {
        let weights = vec![1; QUEUES_MAX];
        let mut rig = Rig::new(kind, LinkLayer::Atm, 1_000_000_000, &weights);
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
        }
        let allocated = allocations() - before;
        assert_eq!(allocated, 0, "allocations over 100,000 packets, {kind}");
    }
}
