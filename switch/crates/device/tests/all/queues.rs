// SPDX-License-Identifier: Apache-2.0
//! Queues and weights that a program chooses, on ports with WRR and DRR, atm lines and limits in cells.

use crate::common::Sent;
use device::{
    Device, DeviceConfig, DropReason, LinkLayer, PortChange, PortConfig, QueueLimits, SchedulerKind,
};
use v1model::Pipeline;

const PROGRAM: &[u8] = include_bytes!("../p4/queues.json");
/// The last byte of the header that queues.p4 reads.
const LOST: usize = 7;

fn device(config: PortConfig) -> Device {
    let mut device = Device::new(DeviceConfig::default());
    for port in 0..2 {
        device.add_port(port, config).unwrap();
    }
    device.load(0, Pipeline::from_json(PROGRAM).unwrap());
    device
}

/// A frame to port 1 that asks for a queue and its weight.
fn frame(queue: u16, weight: u32, len: usize) -> Vec<u8> {
    let mut frame = vec![0; len];
    frame[..2].copy_from_slice(&queue.to_be_bytes());
    frame[2..6].copy_from_slice(&weight.to_be_bytes());
    frame[6] = 1;
    frame
}

fn queue_of(frame: &[u8]) -> usize {
    u16::from_be_bytes([frame[0], frame[1]]).into()
}

fn gfr_port() -> PortConfig {
    PortConfig {
        rate_bps: 51_840_000,
        link_layer: LinkLayer::Atm,
        scheduler: SchedulerKind::Wrr,
        queues: 16,
        queue_limits: QueueLimits::NONE,
        ..PortConfig::default()
    }
}

#[test]
fn weights_come_with_the_packets_and_zero_leaves_them() {
    let mut device = device(gfr_port());
    assert_eq!(device.queue_weight(1, 5), Some(1));
    device.receive(0, 0, &frame(5, 9_352_000, 100));
    assert_eq!(device.queue_weight(1, 5), Some(9_352_000));
    device.receive(0, 0, &frame(5, 0, 100));
    assert_eq!(device.queue_weight(1, 5), Some(9_352_000));
    device.receive(0, 0, &frame(5, u32::MAX, 100));
    assert_eq!(device.queue_weight(1, 5), Some(u32::MAX));
    // Also with a packet that is refused, and nowhere for a queue that is not there.
    let mut tight = gfr_port();
    tight.port_limits.cells = 1;
    device.set_port(0, 1, tight).unwrap();
    device.receive(0, 0, &frame(5, 7, 100));
    device.receive(0, 0, &frame(16, 7, 100));
    assert_eq!(device.queue_weight(1, 5), Some(7));
    assert_eq!(device.queue_weight(1, 16), None);
    assert_eq!(device.stats().dropped(DropReason::PortFull), 1);
    assert_eq!(device.stats().dropped(DropReason::NoSuchQueue), 1);
    let stats = device.port_stats(1).unwrap();
    assert_eq!(stats.refused(DropReason::PortFull), 1);
    assert_eq!(stats.refused(DropReason::NoSuchQueue), 1);
    assert_eq!(stats.refused_packets, 2);
}

/// Keeps queues 1 to 4 of port 1 full for 999 ms; returns line bytes by queue.
fn second_of_load(
    device: &mut Device,
    weights: [u32; 4],
    lost_in_queue: Option<usize>,
) -> Vec<u64> {
    let mut sent = Sent::default();
    let mut counts = vec![0; 5];
    for ms in 0..1_000u64 {
        let now = ms * 1_000_000;
        device.advance(now, &mut sent);
        for (i, weight) in weights.into_iter().enumerate() {
            let queue = i + 1;
            // 1000, 1500 and 7734 bytes; more than a millisecond of the line in each queue.
            for (n, len) in [1_014usize, 1_514, 7_734]
                .into_iter()
                .cycle()
                .take(6)
                .enumerate()
            {
                if device.queue_stats(1, queue).unwrap().1.packets < 12 {
                    let mut frame = frame(queue as u16, weight, len);
                    frame[LOST] = u8::from(lost_in_queue == Some(queue) && n % 2 == 0);
                    device.receive(now, 0, &frame);
                }
            }
        }
    }
    for (port, frame, _) in &sent.0 {
        assert_eq!(*port, 1);
        counts[queue_of(frame)] += u64::from(LinkLayer::Atm.line_bytes(frame.len() as u32));
    }
    counts
}

#[test]
fn the_line_is_shared_by_the_programs_weights() {
    for scheduler in [SchedulerKind::Wrr, SchedulerKind::Drr] {
        let mut device = device(PortConfig {
            scheduler,
            ..gfr_port()
        });
        let counts = second_of_load(&mut device, [1, 2, 4, 8], None);
        let total: u64 = counts.iter().sum();
        // 51.84 Mbit/s for 999 ms, but for the frame that is on the line at their end.
        assert!((6_473_520 - 8_600..=6_473_520).contains(&total), "{total}");
        for (queue, weight) in [(1, 1.0), (2, 2.0), (3, 4.0), (4, 8.0)] {
            let share = counts[queue] as f64 / total as f64 * 15.0 / weight;
            assert!(
                (share - 1.0).abs() < 0.02,
                "{scheduler} queue {queue}: {share}"
            );
        }
    }
}

#[test]
fn what_egress_drops_costs_a_queue_nothing() {
    let mut device = device(gfr_port());
    let counts = second_of_load(&mut device, [1, 1, 1, 1], Some(2));
    let total: u64 = counts.iter().sum();
    assert!(device.stats().dropped(DropReason::Egress) > 100);
    for (queue, count) in counts.into_iter().enumerate().skip(1) {
        let share = count as f64 / total as f64 * 4.0;
        assert!((share - 1.0).abs() < 0.02, "queue {queue}: {share}");
    }
}

#[test]
fn options_change_under_load_without_loss() {
    let mut device = device(gfr_port());
    let mut sent = Sent::default();
    for i in 0..600u64 {
        let now = i * 10_000;
        device.receive(now, 0, &frame((i % 7) as u16, (i % 5) as u32, 500));
        device.advance(now, &mut sent);
        let change = PortChange {
            scheduler: (i % 50 == 0)
                .then(|| SchedulerKind::ALL[i as usize / 50 % SchedulerKind::ALL.len()]),
            link_layer: (i % 70 == 0)
                .then(|| LinkLayer::ALL[i as usize / 70 % LinkLayer::ALL.len()]),
            queues: (i % 100 == 0).then_some(16 + i as usize / 100),
            ..PortChange::default()
        };
        let config = change.applied_to(device.port(1).unwrap());
        device.set_port(now, 1, config).unwrap();
    }
    let waiting = device.port_usage(1).unwrap();
    let by_queue: u64 = (0..21)
        .map(|q| device.queue_stats(1, q).unwrap().1.cells)
        .sum();
    assert!(waiting.packets > 50);
    assert_eq!(
        (waiting.cells, waiting.bytes),
        (by_queue, waiting.packets * 500)
    );
    device.advance(u64::MAX / 2, &mut sent);
    assert_eq!(sent.0.len(), 600);
    assert_eq!(device.stats().dropped_total(), 0);
    assert_eq!(device.port_usage(1).unwrap().packets, 0);
}

/// Cells are counted when a frame waits, not while it is on the line; the limit is of all queues together.
#[test]
fn a_port_takes_exactly_its_cells() {
    let mut config = gfr_port();
    config.port_limits.cells = 4_000;
    let mut device = device(config);
    let mut sent = Sent::default();
    device.receive(0, 0, &frame(1, 1, 1_014));
    device.advance(0, &mut sent); // on the line
    for i in 0..200u16 {
        device.receive(0, 0, &frame(i % 16, 1, 1_014)); // 21 cells each
    }
    assert_eq!(device.port_usage(1).unwrap().cells, 4_000 / 21 * 21);
    assert_eq!(
        device.port_stats(1).unwrap().refused(DropReason::PortFull),
        10
    );
    device.receive(0, 0, &frame(0, 1, 14 + 10 * 48 - 8)); // the 10 that are left
    assert_eq!(device.port_usage(1).unwrap().cells, 4_000);
    device.receive(0, 0, &frame(0, 1, 10));
    assert_eq!(
        device.port_stats(1).unwrap().refused(DropReason::PortFull),
        11
    );
}
