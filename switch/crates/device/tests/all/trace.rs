// SPDX-License-Identifier: Apache-2.0
//! What a trace of the whole switch shows is what then happens, and it changes nothing.

use crate::common::*;
use device::live_trace::{Filter, LiveTrace};
use device::trace::{Copy, Trace};
use device::{CloneSession, Device, MulticastGroup, PortConfig, QueueLimits, Replica};
use v1model::trace::Tracer;
use v1model::Pipeline;

const NOW: u64 = 5_000_000;

fn replicas(ports: &[u32]) -> Vec<Replica> {
    let one = |(i, &port): (usize, &u32)| Replica {
        port,
        instance: i as u16,
    };
    ports.iter().enumerate().map(one).collect()
}

/// A group 1, a clone session 1 that cuts, on the ports of `config`.
fn switch(config: PortConfig) -> Device {
    let mut device = device(config);
    let group = MulticastGroup {
        id: 1,
        replicas: replicas(&[1, 2, 4]),
    };
    device.replication_mut().insert(group).unwrap();
    let session = CloneSession {
        id: 1,
        replicas: replicas(&[4]),
        class_of_service: 0,
        packet_length_bytes: 60,
    };
    device.replication_mut().insert(session).unwrap();
    let mut sent = Sent::default();
    device.advance(NOW, &mut sent);
    device
}

fn bytes(hex: &str) -> Vec<u8> {
    let digits = hex.as_bytes().chunks(2);
    digits
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}

/// Port and frame of each copy that leaves.
fn leaving(trace: &Trace) -> Vec<(u32, Vec<u8>)> {
    let out = trace.copies.iter().filter(|c| c.fate == "transmit");
    let mut out: Vec<_> = out
        .map(|c| (c.port, bytes(c.frame.as_ref().unwrap())))
        .collect();
    out.sort();
    out
}

#[test]
fn every_operation_is_shown_as_it_happens() {
    for (op, arg) in [
        (FORWARD, 3),
        (DROP, 0),
        (MULTICAST, 1),
        (MULTICAST, 9),
        (CLONE_I2E, 1),
        (CLONE_E2E, 1),
        (CLONE_I2E, 77),
        (RESUBMIT, 1),
        (RECIRCULATE, 1),
        (DIGEST, 1),
        (TRUNCATE, 40),
        (PRIORITY, 3),
        (DROP_EGRESS, 0),
        (ASSERT, 0),
        (FORWARD, 200),
    ] {
        let mut device = switch(PortConfig::default());
        let frame = frame(op, arg, 100);
        let before = device.stats().clone();
        let trace = device.trace(&mut tracer(&device), 0, &frame).unwrap();
        assert_eq!(*device.stats(), before, "operation {op} was counted");
        assert!(!device.has_events(), "operation {op} told something");
        let mut sent: Vec<_> = one(&mut device, NOW, &frame)
            .into_iter()
            .map(|(port, frame, _)| (port, frame))
            .collect();
        sent.sort();
        assert_eq!(leaving(&trace), sent, "operation {op} {arg}: {trace:#?}");
        let reasons = || {
            let rounds = trace.rounds.iter().filter_map(|r| r.drop.as_ref());
            rounds.chain(trace.copies.iter().filter_map(|c| c.drop.as_ref()))
        };
        for reason in device::DropReason::ALL {
            let shown = reasons().filter(|d| d.reason == reason.name()).count() as u64;
            assert_eq!(
                shown,
                device.stats().dropped(*reason),
                "operation {op}: {trace:#?}"
            );
        }
    }
}

#[test]
fn a_drop_names_its_place_in_the_source() {
    let mut device = switch(PortConfig::default());
    let mut tracer = tracer(&device);
    let trace = device.trace(&mut tracer, 0, &frame(DROP, 0, 64)).unwrap();
    let drop = trace.rounds[0].drop.as_ref().unwrap();
    let place = drop.place.as_ref().unwrap();
    let source = place.source.as_ref().unwrap();
    assert_eq!((drop.by, drop.reason), ("program", "ingress_drop"));
    assert!(source.text.contains("mark_to_drop"), "{source:?}");
}

#[test]
fn a_full_queue_is_told_before_the_packet_comes() {
    let config = PortConfig {
        rate_bps: 8_000,
        queue_limits: QueueLimits::packets(2),
        ..PortConfig::default()
    };
    let mut device = switch(config);
    let mut tracer = tracer(&device);
    let frame = frame(FORWARD, 3, 100);
    let show = |device: &mut Device, tracer: &mut Tracer| -> Copy {
        device.trace(tracer, 0, &frame).unwrap().copies.remove(0)
    };
    let mut admitted = 0;
    loop {
        let copy = show(&mut device, &mut tracer);
        let queue = copy.queue.as_ref().unwrap();
        assert_eq!(queue.limit_packets, Some(2));
        let dropped = device.stats().dropped(device::DropReason::QueueFull);
        one(&mut device, NOW, &frame);
        if !queue.admits {
            assert_eq!((queue.waiting_packets, copy.fate), (2, "drop"));
            assert_eq!(copy.drop.unwrap().reason, "queue_full");
            assert_eq!(
                device.stats().dropped(device::DropReason::QueueFull),
                dropped + 1
            );
            break;
        }
        assert_eq!(
            device.stats().dropped(device::DropReason::QueueFull),
            dropped
        );
        admitted += 1;
    }
    assert_eq!(admitted, 3); // one on the line, two wait
}

#[test]
fn rounds_without_end_are_cut() {
    let mut device = switch(PortConfig::default());
    let mut tracer = tracer(&device);
    for op in [FOREVER, STORM] {
        let trace = device.trace(&mut tracer, 0, &frame(op, 1, 100)).unwrap();
        assert!(trace.left_out > 0, "{}", trace.rounds.len());
        assert!(trace.rounds.len() + trace.copies.len() <= 64);
    }
}

#[test]
fn a_live_trace_shows_what_matches_and_ends_by_itself() {
    let mut device = switch(PortConfig::default());
    let (found, shown) = std::sync::mpsc::channel();
    device.set_live_trace(Some(Box::new(LiveTrace {
        tracer: tracer(&device),
        filter: Filter {
            ingress_port: Some(2),
            ..Filter::default()
        },
        left: 2,
        tell: Box::new(move |trace| found.send(trace).is_ok()),
    })));
    let mut sent = Sent::default();
    for port in [1, 2, 3, 2, 2] {
        device.receive(NOW, port, &frame(FORWARD, 3, 100));
    }
    device.advance(NOW, &mut sent);
    assert_eq!(sent.0.len(), 5);
    let ports: Vec<u32> = shown.iter().map(|t| t.ingress_port).collect(); // ends: the sender is gone
    assert_eq!(ports, [2, 2]);
    assert!(!device.has_live_trace());
}

#[test]
fn a_live_trace_ends_when_nobody_listens_or_another_program_comes() {
    let mut device = switch(PortConfig::default());
    let live = |device: &mut Device| {
        let tracer = tracer(device);
        device.set_live_trace(Some(Box::new(LiveTrace {
            tracer,
            filter: Filter::default(),
            left: 10,
            tell: Box::new(|_| false),
        })));
    };
    live(&mut device);
    device.receive(NOW, 1, &frame(FORWARD, 3, 100));
    assert!(!device.has_live_trace());
    live(&mut device);
    device.load(NOW, Pipeline::from_json(OPS).unwrap());
    assert!(!device.has_live_trace());
    live(&mut device);
    device.unload(NOW);
    assert!(!device.has_live_trace());
}

/// What egress adds is cut as well.
#[test]
fn a_copy_that_is_cut_takes_no_more_in_its_queue() {
    let mut device = switch(PortConfig {
        rate_bps: 8_000,
        ..PortConfig::default()
    });
    for _ in 0..2 {
        one(&mut device, NOW, &frame(CLONE_I2E, 1, 1_000));
    }
    // One is on the line, one waits.
    assert_eq!(device.port_usage(4).unwrap().bytes, 60);
}
