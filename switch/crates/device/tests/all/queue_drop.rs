// SPDX-License-Identifier: Apache-2.0
//! A program with user metadata `queue_drop` is told of every packet that ends between ingress and egress, once, and cannot
//! do anything with it.

use crate::common::*;
use device::{
    Device, DropReason, MulticastGroup, PortConfig, QueueLimits, Replica, SchedulerKind,
    QUEUE_DROPS,
};

/// Passes of egress so far: those of packets that leave at place 0, the others by reason.
fn passes(device: &Device) -> Vec<u64> {
    let pipeline = device.pipeline().unwrap();
    let id = pipeline.find_counter("E.passes").unwrap();
    let count = |i| pipeline.counter_get(id, i).unwrap().0;
    (0..=QUEUE_DROPS.len() as u32).map(count).collect()
}

/// `egress_port` of the last pass with this reason.
fn last_port(device: &Device, reason: DropReason) -> u64 {
    let pipeline = device.pipeline().unwrap();
    let id = pipeline.find_register("E.last_port").unwrap();
    let cell = pipeline.register_get(id, reason.queue_drop() as u32);
    cell.unwrap().to_u64().unwrap()
}

fn expect(device: &Device, left: u64, told: &[(DropReason, u64)]) {
    let mut expected = vec![0; QUEUE_DROPS.len() + 1];
    expected[0] = left;
    for (reason, packets) in told {
        expected[reason.queue_drop() as usize] = *packets;
    }
    assert_eq!(passes(device), expected);
}

fn slow() -> PortConfig {
    PortConfig {
        rate_bps: 1_000_000,
        queue_limits: QueueLimits::packets(2),
        ..PortConfig::default()
    }
}

#[test]
fn each_reason_is_told_with_the_port_where_the_packet_should_have_left() {
    let mut device = device(slow());
    // One on the line, two in the queue, and one too many.
    for _ in 0..4 {
        one(&mut device, 0, &frame(FORWARD, 2, 1_000));
    }
    expect(&device, 1, &[(DropReason::QueueFull, 1)]);
    assert_eq!(last_port(&device, DropReason::QueueFull), 2);
    one(&mut device, 0, &frame(FORWARD, 200, 64));
    assert_eq!(last_port(&device, DropReason::NoSuchPort), 200);
    device.set_port_up(3, false);
    one(&mut device, 0, &frame(FORWARD, 3, 64));
    assert_eq!(last_port(&device, DropReason::PortDown), 3);
    one(&mut device, 0, &frame(MULTICAST, 9, 64));
    assert_eq!(last_port(&device, DropReason::NoMulticastGroup), 511);
    assert_eq!(device.flush(0), 2);
    assert_eq!(last_port(&device, DropReason::Flushed), 2);
    // Ports have 8 queues; v1model's priority has 3 bits, so fewer queues are needed for one that is not there.
    let mut few = crate::common::device(PortConfig {
        queues: 2,
        ..slow()
    });
    one(&mut few, 0, &frame(PRIORITY, 5, 64));
    assert_eq!(last_port(&few, DropReason::NoSuchQueue), 1);
    expect(&few, 0, &[(DropReason::NoSuchQueue, 1)]);
    let reasons = [
        (DropReason::QueueFull, 1),
        (DropReason::NoSuchPort, 1),
        (DropReason::PortDown, 1),
        (DropReason::NoMulticastGroup, 1),
        (DropReason::Flushed, 2),
    ];
    expect(&device, 1, &reasons);
    for (reason, packets) in reasons {
        assert_eq!(device.stats().dropped(reason), packets);
    }
}

#[test]
fn a_port_or_the_switch_that_is_full_tells_too() {
    let one_packet = QueueLimits::packets(1);
    let mut device = device(PortConfig {
        port_limits: one_packet,
        ..slow()
    });
    for _ in 0..3 {
        one(&mut device, 0, &frame(FORWARD, 2, 1_000));
    }
    expect(&device, 1, &[(DropReason::PortFull, 1)]);
    let mut device = Device::new(device::DeviceConfig {
        buffer: one_packet,
        ..Default::default()
    });
    device.add_port(0, slow()).unwrap();
    device.load(0, v1model::Pipeline::from_json(OPS).unwrap());
    for _ in 0..3 {
        one(&mut device, 0, &frame(FORWARD, 0, 1_000));
    }
    expect(&device, 1, &[(DropReason::BufferFull, 1)]);
}

/// Under `fq` the packet that came is taken, and one that waited is told of: the oldest of the queue with the most bytes.
#[test]
fn a_packet_that_makes_room_is_told_of_once_for_each() {
    let bytes = QueueLimits {
        bytes: 2_500,
        ..QueueLimits::NONE
    };
    let mut device = device(PortConfig {
        scheduler: SchedulerKind::Fq,
        queue_limits: QueueLimits::NONE,
        port_limits: bytes,
        ..slow()
    });
    // One on the line, then two large ones in queue 0 and two small ones in queue 5.
    for _ in 0..3 {
        one(&mut device, 0, &frame(FORWARD, 1, 1_000));
    }
    for _ in 0..2 {
        one(&mut device, 0, &frame(PRIORITY, 5, 200));
    }
    expect(&device, 1, &[]);
    // Both large ones leave for another that is larger still.
    one(&mut device, 0, &frame(FORWARD, 1, 1_900));
    expect(&device, 1, &[(DropReason::PortFull, 2)]);
    assert_eq!(last_port(&device, DropReason::PortFull), 1);
    let (queue, waiting) = device.queue_stats(1, 0).unwrap();
    assert_eq!((queue.removed_packets, waiting.packets), (2, 1));
    assert_eq!(device.queue_stats(1, 5).unwrap().1.packets, 2);
    let port = device.port_stats(1).unwrap();
    assert_eq!(port.refused(DropReason::PortFull), 2);
    let accounts = device.accounts();
    assert_eq!((accounts.waiting, accounts.dropped), (3, 2));
    // One that is longer than all of the buffer goes itself, and takes none of the others along.
    one(&mut device, 0, &frame(PRIORITY, 3, 3_000));
    assert_eq!(device.accounts().dropped, 3);
    assert_eq!(device.accounts().waiting, 3);
}

#[test]
fn what_ingress_or_egress_drops_is_not_told() {
    let mut device = device(PortConfig::default());
    for op in [DROP, ASSERT, DROP_EGRESS] {
        one(&mut device, 0, &frame(op, 0, 64));
    }
    expect(&device, 1, &[]);
    // Neither is what the interface refuses: it has left the program.
    one(&mut device, 0, &frame(FORWARD, 1, 64));
    device.count_transmit_failures(1, 1, 64 + SEEN_LEN as u64);
    expect(&device, 2, &[]);
}

/// Egress asks for a clone, or for another round, of a packet that ends: nothing comes of it.
#[test]
fn nothing_is_done_for_a_packet_that_ends() {
    let mut device = device(slow());
    let session = session(3, &[(4, 1)]);
    device.replication_mut().insert(session).unwrap();
    device.set_port_up(1, false);
    for op in [CLONE_E2E, STORM, RECIRCULATE, DIGEST] {
        assert!(one(&mut device, 0, &frame(op, 3, 64)).is_empty());
    }
    expect(&device, 0, &[(DropReason::PortDown, 4)]);
    let accounts = device.accounts();
    assert_eq!((accounts.copied, device.stats().again), (0, 0));
    assert_eq!((accounts.received, accounts.dropped), (4, 4));
}

#[test]
fn each_copy_is_told_of_for_itself() {
    let mut device = device(slow());
    let replicas: Vec<_> = [1, 2, 99].map(|port| Replica { port, instance: 1 }).into();
    let group = MulticastGroup { id: 3, replicas };
    device.replication_mut().insert(group).unwrap();
    device.set_port_up(2, false);
    assert!(one(&mut device, 0, &frame(MULTICAST, 3, 64)).is_empty());
    let told = [(DropReason::PortDown, 1), (DropReason::NoSuchPort, 1)];
    expect(&device, 1, &told);
    assert_eq!(last_port(&device, DropReason::NoSuchPort), 99);
}

/// What waits when another program comes was counted by the old one, which is gone.
#[test]
fn another_program_is_not_told_of_the_packets_of_the_one_before() {
    let mut device = device(slow());
    for _ in 0..3 {
        one(&mut device, 0, &frame(FORWARD, 2, 1_000));
    }
    assert_eq!(
        device.load(0, v1model::Pipeline::from_json(OPS).unwrap()),
        2
    );
    expect(&device, 0, &[]);
    assert_eq!(device.stats().dropped(DropReason::Flushed), 2);
}

#[test]
fn a_trace_shows_what_the_program_is_told_and_tells_it_nothing() {
    let mut device = device(slow());
    device.set_port_up(2, false);
    let mut tracer = tracer(&device);
    let trace = device
        .trace(&mut tracer, 0, &frame(FORWARD, 2, 64))
        .unwrap();
    let copy = &trace.copies[0];
    assert_eq!(copy.drop.as_ref().unwrap().reason, "port_down");
    assert!(!copy.egress.is_empty());
    expect(&device, 0, &[]);
}
