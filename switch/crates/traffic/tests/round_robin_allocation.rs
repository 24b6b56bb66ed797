// SPDX-License-Identifier: Apache-2.0
//! WRR and DRR over 4096 queues allocate nothing once the port's slab has grown: counted by the global allocator.

mod common;

use common::{Random, Rig};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering};
use traffic::{LinkLayer, SchedulerKind, QUEUES_MAX};

struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

// SAFETY: every call is handed to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        unsafe { System.dealloc(at, layout) }
    }
    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        unsafe { System.realloc(at, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn steady_state_allocates_nothing() {
    for kind in [SchedulerKind::Wrr, SchedulerKind::Drr] {
        let weights = vec![1; QUEUES_MAX];
        let mut rig = Rig::new(kind, LinkLayer::Atm, 1_000_000_000, &weights);
        rig.saturate(10_000, |_, _| 1_000);
        let before = ALLOCATIONS.load(Ordering::Relaxed);
        let mut random = Random(9);
        for _ in 0..100_000 {
            // Other weights, from one end of the scale to the other, with every packet.
            let weight = random.next() as u32 >> (random.next() % 32);
            rig.port
                .set_weight(random.next() as usize % QUEUES_MAX, weight);
            let served = rig.serve().unwrap();
            rig.put(served.queue, random.within(54, 1_514) as u32);
        }
        let allocated = ALLOCATIONS.load(Ordering::Relaxed) - before;
        assert_eq!(allocated, 0, "allocations over 100,000 packets, {kind}");
    }
}
