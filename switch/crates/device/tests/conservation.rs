// SPDX-License-Identifier: Apache-2.0
//! Whatever comes in is accounted for: sent, dropped for a reason, or still waiting.

mod common;

use common::*;
use device::{Device, PortConfig, QueueLimits, Replica};

fn waiting(device: &Device) -> u64 {
    device.buffer_usage().0.packets
}

/// A seeded mixture of all operations over slow ports, checked after every packet.
#[test]
fn received_and_copied_are_sent_dropped_or_waiting() {
    let config = PortConfig {
        rate_bps: 5_000_000,
        queue_limits: QueueLimits::packets(5),
        ..PortConfig::default()
    };
    let mut device = device(config);
    let replicas: Vec<_> = (1..4)
        .map(|i| Replica {
            port: i,
            instance: i as u16,
        })
        .collect();
    let group = device::MulticastGroup {
        id: 3,
        replicas: replicas.clone(),
        metadata: vec![],
    };
    device.mcast_group_insert(group).unwrap();
    let session = device::CloneSession {
        id: 3,
        replicas,
        class_of_service: 0,
        packet_length_bytes: 0,
    };
    device.clone_session_insert(session).unwrap();
    let mut sent = Sent::default();
    let (mut seed, mut now) = (1u64, 0u64);
    let mut random = || {
        // splitmix64
        seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = seed;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    };
    let ops = [
        FORWARD,
        DROP,
        MULTICAST,
        CLONE_I2E,
        CLONE_E2E,
        RESUBMIT,
        RECIRCULATE,
        DIGEST,
        PRIORITY,
        DROP_EGRESS,
    ];
    for _ in 0..20_000 {
        now += random() % 400_000;
        let op = ops[(random() % ops.len() as u64) as usize];
        let len = 2 + (random() % 1_500) as usize;
        device.advance(now, &mut sent);
        device.receive(now, 0, &frame(op, 3, len));
        device.advance(now, &mut sent);
        let stats = device.stats();
        let on_lines = stats.received + stats.copied
            - stats.transmitted
            - stats.dropped_total()
            - waiting(&device);
        assert!(
            on_lines <= 4,
            "{on_lines} packets on the lines of four ports: {stats:?}"
        );
    }
    device.advance(u64::MAX / 2, &mut sent);
    let stats = device.stats();
    assert_eq!(waiting(&device), 0);
    assert_eq!(
        stats.received + stats.copied,
        stats.transmitted + stats.dropped_total()
    );
    assert_eq!(stats.transmitted, sent.0.len() as u64);
    assert!(stats.dropped_total() > 1_000 && stats.copied > 1_000);
}

/// The same packets at the same times give the same frames at the same times.
#[test]
fn two_runs_are_equal() {
    let run = || {
        let mut device = device(PortConfig {
            rate_bps: 3_000_000,
            ..PortConfig::default()
        });
        let mut sent = Sent::default();
        for i in 0..1_000u64 {
            device.advance(i * 150_000, &mut sent);
            device.receive(
                i * 150_000,
                0,
                &frame(FORWARD, (i % 4) as u8, 64 + (i * 37 % 1_000) as usize),
            );
        }
        device.advance(u64::MAX / 2, &mut sent);
        sent.0
    };
    assert!(run() == run());
}
