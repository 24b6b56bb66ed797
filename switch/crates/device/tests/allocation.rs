// SPDX-License-Identifier: Apache-2.0
//! The packet path allocates nothing once it has run in: counted by the global allocator.

mod common;
#[path = "../../traffic/tests/counting/mod.rs"]
mod counting;

use common::*;
use counting::allocations;
use device::{Nanos, Packet, PortConfig, Transmit};

struct Count(u64);

impl Transmit for Count {
    fn transmit(&mut self, _: u32, packet: &mut Packet, _: Nanos) {
        self.0 += packet.frame().len() as u64;
    }
}

#[test]
fn steady_state_allocates_nothing() {
    let mut device = device(PortConfig {
        rate_bps: 20_000_000,
        ..PortConfig::default()
    });
    replicate(&mut device);
    let ops = [
        FORWARD,
        DROP,
        MULTICAST,
        CLONE_I2E,
        CLONE_E2E,
        RESUBMIT,
        RECIRCULATE,
        DIGEST,
        TRUNCATE,
        PRIORITY,
    ];
    let frames: Vec<_> = ops.iter().map(|&op| frame(op, 3, 1_000)).collect();
    let mut tx = Count(0);
    let mut now = 0;
    let mut round = |device: &mut device::Device, tx: &mut Count, packets: u64| {
        for i in 0..packets {
            now += 50_000;
            let frame = &frames[(i % frames.len() as u64) as usize];
            if i % 100 < 50 {
                device.advance(now, tx);
                device.receive(now, 0, frame);
            } else {
                receive_ahead(device, now, 0, frame, tx);
                if i % 7 == 0 || i % 100 == 99 {
                    catch_up(device, tx);
                }
            }
        }
    };
    round(&mut device, &mut tx, 20_000);
    let before = allocations();
    round(&mut device, &mut tx, 100_000);
    let allocated = allocations() - before;
    assert!(tx.0 > 0);
    assert_eq!(allocated, 0, "allocations over 100,000 packets");
}
