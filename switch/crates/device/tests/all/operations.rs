// SPDX-License-Identifier: Apache-2.0
//! Every operation of a v1model switch, asked for by packets of ops.p4, in virtual time.

use crate::common::*;
use device::{DropReason, Event, MulticastGroup, PortConfig, Replica};
use v1model::Pipeline;

#[test]
fn a_frame_leaves_where_the_program_sends_it() {
    let mut device = device(PortConfig::default());
    let sent = one(&mut device, 5_000_000, &frame(FORWARD, 3, 100));
    assert_eq!(sent.len(), 1);
    let (port, bytes, at) = &sent[0];
    assert_eq!((*port, *at), (3, 5_000_000));
    let seen = seen(bytes);
    assert_eq!(seen.rest, frame(FORWARD, 3, 100));
    assert_eq!(
        (seen.instance_type, seen.egress_port, seen.ingress_port),
        (0, 3, 0)
    );
    assert_eq!(
        (seen.packet_length, seen.enq_timestamp, seen.deq_timedelta),
        (100, 5_000, 0)
    );
    let stats = device.port_stats(3).unwrap();
    assert_eq!(
        (stats.tx_packets, stats.tx_bytes),
        (1, 100 + SEEN_LEN as u64)
    );
    assert_eq!(device.port_stats(0).unwrap().rx_bytes, 100);
}

#[test]
fn drops_are_counted_by_reason() {
    let mut device = device(PortConfig::default());
    for (op, arg, reason) in [
        (DROP, 0, DropReason::Ingress),
        (DROP_EGRESS, 0, DropReason::Egress),
        (ASSERT, 0, DropReason::Assertion),
        (FORWARD, 200, DropReason::NoSuchPort),
        (MULTICAST, 9, DropReason::NoMulticastGroup),
        (FOREVER, 0, DropReason::LoopLimit),
    ] {
        assert!(one(&mut device, 0, &frame(op, arg, 64)).is_empty());
        assert_eq!(device.stats().dropped(reason), 1, "{}", reason.name());
    }
    assert_eq!(one(&mut device, 0, &frame(ASSERT, 1, 64)).len(), 1);
    assert_eq!(device.stats().dropped_total(), 6);
    device.receive(0, 0, &[]);
    device.receive(0, 0, &vec![0; 70_000]);
    device.receive(0, 77, &frame(FORWARD, 1, 64));
    assert_eq!(device.stats().dropped(DropReason::Empty), 1);
    assert_eq!(device.stats().dropped(DropReason::TooLong), 1);
    assert_eq!(device.stats().dropped(DropReason::NoSuchPort), 2);
}

#[test]
fn a_jumbo_frame_passes_whole() {
    let mut device = device(PortConfig::default());
    let sent = one(&mut device, 0, &frame(FORWARD, 1, 9_216));
    assert_eq!(seen(&sent[0].1).rest, frame(FORWARD, 1, 9_216));
}

#[test]
fn a_group_sends_one_copy_to_each_replica() {
    let mut device = device(PortConfig::default());
    let replicas = [(1, 10), (1, 11), (4, 12)].map(|(port, instance)| Replica { port, instance });
    let group = MulticastGroup {
        id: 6,
        replicas: replicas.to_vec(),
    };
    device.replication_mut().insert(group.clone()).unwrap();
    let sent = one(&mut device, 0, &frame(MULTICAST, 6, 64));
    let mut got: Vec<_> = sent
        .iter()
        .map(|(port, bytes, _)| {
            let seen = seen(bytes);
            assert_eq!((seen.instance_type, seen.packet_length), (5, 64));
            (*port, seen.egress_rid)
        })
        .collect();
    got.sort_unstable();
    assert_eq!(got, [(1, 10), (1, 11), (4, 12)]);
    let error = device.replication_mut().insert(group).unwrap_err();
    assert_eq!(error.message, "multicast group 6 exists already");
    device
        .replication_mut()
        .delete::<MulticastGroup>(6)
        .unwrap();
    assert_eq!(
        device
            .replication_mut()
            .delete::<MulticastGroup>(6)
            .unwrap_err()
            .message,
        "multicast group 6 does not exist"
    );
}

#[test]
fn an_ingress_clone_is_the_frame_as_received_with_listed_fields() {
    let mut device = device(PortConfig::default());
    device
        .replication_mut()
        .insert(session(9, &[(2, 3)]))
        .unwrap();
    let sent = one(&mut device, 0, &frame(CLONE_I2E, 9, 64));
    let clone = seen(&sent.iter().find(|(port, ..)| *port == 2).unwrap().1);
    assert_eq!((clone.instance_type, clone.egress_rid), (1, 3));
    assert_eq!(
        clone.rounds, 78,
        "listed fields have their value at the end of ingress"
    );
    assert_eq!(
        clone.rest,
        frame(CLONE_I2E, 9, 64),
        "what ingress changed is not in the clone"
    );
    let original = seen(&sent.iter().find(|(port, ..)| *port == 1).unwrap().1);
    assert_eq!((original.instance_type, original.rest[1]), (0, 99));
}

#[test]
fn an_egress_clone_goes_through_egress_again() {
    let mut device = device(PortConfig::default());
    device
        .replication_mut()
        .insert(session(4, &[(2, 7), (3, 8)]))
        .unwrap();
    let sent = one(&mut device, 0, &frame(CLONE_E2E, 4, 64));
    assert_eq!(sent.len(), 3);
    for (port, rid) in [(2, 7), (3, 8)] {
        let clone = seen(&sent.iter().find(|(p, ..)| *p == port).unwrap().1);
        assert_eq!(
            (clone.instance_type, clone.egress_rid, clone.rounds),
            (2, rid, 55)
        );
    }
}

#[test]
fn a_clone_session_cuts_its_copies_and_a_missing_one_harms_nothing() {
    let mut device = device(PortConfig::default());
    let mut cut = session(9, &[(2, 0)]);
    cut.packet_length_bytes = 40;
    device.replication_mut().insert(cut).unwrap();
    let sent = one(&mut device, 0, &frame(CLONE_I2E, 9, 64));
    assert_eq!(
        sent.iter().find(|(port, ..)| *port == 2).unwrap().1.len(),
        40
    );
    assert_eq!(
        sent.iter().find(|(port, ..)| *port == 1).unwrap().1.len(),
        64 + SEEN_LEN
    );
    assert_eq!(one(&mut device, 0, &frame(CLONE_I2E, 5, 64)).len(), 1);
    assert_eq!(device.stats().dropped(DropReason::NoCloneSession), 1);
    // The copy that was asked for is the one that was dropped.
    assert_eq!(device.stats().dropped_total(), 1);
    assert_eq!(device.stats().copied, 2);
}

#[test]
fn resubmit_and_recirculate_go_round_as_often_as_the_program_says() {
    let mut device = device(PortConfig::default());
    for op in [RESUBMIT, RECIRCULATE] {
        let sent = one(&mut device, 0, &frame(op, 3, 64));
        assert_eq!(sent.len(), 1, "{op}");
        let seen = seen(&sent[0].1);
        assert_eq!((seen.rounds, seen.packet_length), (3, 64));
        assert_eq!(seen.rest, frame(op, 3, 64));
    }
    assert_eq!(device.stats().again, 6);
}

#[test]
fn a_storm_of_clones_ends() {
    let mut device = device(PortConfig::default());
    device
        .replication_mut()
        .insert(session(1, &[(1, 1), (1, 2)]))
        .unwrap();
    one(&mut device, 0, &frame(STORM, 1, 64));
    assert!(device.stats().dropped(DropReason::LoopLimit) > 0);
    let mut sent = Sent::default();
    for _ in 0..100 {
        device.advance(0, &mut sent);
    }
    assert!(device.next_due().is_none(), "nothing goes on for ever");
}

#[test]
fn truncate_cuts_what_is_sent() {
    let mut device = device(PortConfig::default());
    assert_eq!(
        one(&mut device, 0, &frame(TRUNCATE, 50, 200))[0].1.len(),
        50
    );
}

#[test]
fn digests_and_packet_ins_are_events_in_order_and_bounded() {
    let mut device = device(PortConfig::default());
    one(&mut device, 7_000, &frame(DIGEST, 42, 64));
    let mut events = Vec::new();
    device.take_events(&mut events);
    let [Event::Digest { sample, at, .. }] = events.as_slice() else {
        panic!("{events:?}");
    };
    assert_eq!((sample.as_slice(), *at), ([42u8, 0, 0].as_slice(), 7_000));
    let max = device.config().events_max;
    for _ in 0..max + 10 {
        one(&mut device, 8_000, &frame(DIGEST, 1, 64));
    }
    assert_eq!(device.missed_events().digests, 10);
    events.clear();
    device.take_events(&mut events);
    assert_eq!(events.len(), max);
}

/// What left at the CPU port is counted as sent: it arrives, whatever program comes next.
#[test]
fn packet_ins_outlive_their_program() {
    let mut device = device(PortConfig::default());
    let to_cpu = MulticastGroup {
        id: 5,
        replicas: session(5, &[(510, 1)]).replicas,
    };
    device.replication_mut().insert(to_cpu).unwrap();
    for (op, arg) in [(MULTICAST, 5), (DIGEST, 1), (MULTICAST, 5)] {
        one(&mut device, 0, &frame(op, arg, 64));
    }
    assert_eq!(device.accounts().packet_ins, 2);
    device.load(1, Pipeline::from_json(OPS).unwrap());
    one(&mut device, 2, &frame(MULTICAST, 5, 80));
    let mut events = Vec::new();
    device.take_events(&mut events);
    let lengths = events.iter().map(|event| match event {
        Event::PacketIn { frame } => seen(frame).rest.len(),
        other => panic!("{other:?}"),
    });
    assert_eq!(lengths.collect::<Vec<_>>(), [64, 64, 80]);
    assert_eq!(device.accounts().packet_ins, 3);
}

#[test]
fn a_port_that_flaps_is_told_once() {
    let mut device = device(PortConfig::default());
    for up in [false, true].repeat(1_000) {
        device.set_port_up(1, up);
        device.set_port_up(2, !up);
    }
    device.set_port_up(1, false);
    let mut events = Vec::new();
    device.take_events(&mut events);
    let told = |port, up| Event::PortStatus { port, up };
    assert_eq!(events, [told(2, false), told(1, false)]);
}

#[test]
fn the_cpu_port_takes_and_gives_frames() {
    let mut device = device(PortConfig::default());
    let mut sent = Sent::default();
    device.packet_out(0, &frame(FORWARD, 2, 64));
    device.advance(0, &mut sent);
    assert_eq!((sent.0.len(), sent.0[0].0), (1, 2));
    assert_eq!(seen(&sent.0[0].1).ingress_port, 510);
}

#[test]
fn priority_picks_the_queue_and_the_larger_is_served_first() {
    let config = PortConfig {
        rate_bps: 1_000_000,
        ..PortConfig::default()
    };
    let mut device = device(config);
    let mut sent = Sent::default();
    device.receive(0, 0, &frame(PRIORITY, 0, 64));
    device.advance(0, &mut sent);
    for priority in [1, 5, 3] {
        device.receive(10, 0, &frame(PRIORITY, priority, 64));
    }
    device.advance(u64::MAX / 2, &mut sent);
    let order: Vec<u8> = sent
        .0
        .iter()
        .map(|(_, bytes, _)| seen(bytes).rest[1])
        .collect();
    assert_eq!(order, [0, 5, 3, 1]);
}

/// 92 bytes at 736 kbit/s take 1 ms: the k-th of a burst is dequeued when the one before has left.
#[test]
fn queueing_metadata_is_right_to_the_microsecond() {
    let config = PortConfig {
        rate_bps: 736_000,
        queue_limits: device::QueueLimits::packets(3),
        ..PortConfig::default()
    };
    let mut device = device(config);
    let mut sent = Sent::default();
    let start = 10_000_000;
    for k in 0..5u64 {
        let now = start + k * 100_000;
        device.advance(now, &mut sent);
        device.receive(now, 0, &frame(FORWARD, 1, 64));
        device.advance(now, &mut sent);
    }
    assert_eq!(
        device.stats().dropped(DropReason::QueueFull),
        1,
        "one on the line, three wait"
    );
    let next = device.advance(start + 400_000, &mut sent).unwrap();
    assert_eq!(next, start + 1_000_000);
    device.advance(u64::MAX / 2, &mut sent);
    let got: Vec<_> = sent
        .0
        .iter()
        .map(|(_, bytes, at)| {
            let s = seen(bytes);
            (*at - start, s.enq_qdepth, s.deq_qdepth, s.deq_timedelta)
        })
        .collect();
    assert_eq!(
        got,
        [
            (1_000_000, 0, 0, 0),
            (2_000_000, 0, 2, 900),
            (3_000_000, 1, 1, 1_800),
            (4_000_000, 2, 0, 2_700),
        ]
    );
}

/// What egress drops takes no time of the line: the packet behind it is served at the same instant, also by a caller
/// that comes late (in real time: a thread that was asleep).
#[test]
fn what_egress_drops_does_not_idle_the_line() {
    for late in [0, 5_000_000, 1_000_000_000] {
        let mut device = device(PortConfig {
            rate_bps: 1_000_000,
            ..PortConfig::default()
        });
        let mut sent = Sent::default();
        for op in [FORWARD, DROP_EGRESS, DROP_EGRESS, FORWARD, DROP_EGRESS] {
            device.receive(0, 0, &frame(op, 1, 100));
        }
        device.advance(0, &mut sent);
        // At 1 Mbit/s a byte takes 8 us; egress adds a header to what it sends.
        let service = (100 + SEEN_LEN as u64) * 8_000;
        device.advance(service + late, &mut sent);
        let waiting = device.port_usage(1).unwrap().packets;
        assert_eq!(waiting, u64::from(late < service));
        device.advance(1_100_000_000, &mut sent);
        let times: Vec<_> = sent.0.iter().map(|(_, _, at)| *at).collect();
        assert_eq!(times, [service, 2 * service]);
        let deltas: Vec<_> = sent
            .0
            .iter()
            .map(|(_, f, _)| seen(f).deq_timedelta)
            .collect();
        assert_eq!(deltas, [0, service as u32 / 1_000]);
        assert_eq!(device.stats().dropped(DropReason::Egress), 3);
    }
}

#[test]
fn a_rate_changes_while_a_frame_is_on_the_line() {
    let config = PortConfig {
        rate_bps: 736_000,
        ..PortConfig::default()
    };
    let mut device = device(config);
    let mut sent = Sent::default();
    device.receive(0, 0, &frame(FORWARD, 1, 64));
    device.receive(0, 0, &frame(FORWARD, 1, 64));
    device.advance(0, &mut sent);
    let slower = PortConfig {
        rate_bps: 368_000,
        ..config
    };
    device.set_port(500_000, 1, slower).unwrap();
    device.advance(10_000_000, &mut sent);
    let at: Vec<_> = sent.0.iter().map(|(.., at)| *at).collect();
    assert_eq!(at, [1_500_000, 3_500_000]);
    let fewer = PortConfig {
        queues: 2,
        ..slower
    };
    assert!(device
        .set_port(0, 1, fewer)
        .unwrap_err()
        .message
        .contains("2 queues are fewer than its 8"));
    assert_eq!(device.port(1), Some(&slower), "nothing is half applied");
}

#[test]
fn a_spike_of_a_port_keeps_packets_in_its_queue() {
    let config = PortConfig {
        rate_bps: 736_000,
        queue_limits: device::QueueLimits::packets(2),
        ..PortConfig::default()
    };
    let mut device = device(config);
    let mut sent = Sent::default();
    device.receive(0, 0, &frame(FORWARD, 1, 64));
    device.advance(0, &mut sent);
    device.spike(500_000, 1, 9_500_000).unwrap();
    device.advance(1_500_000, &mut sent);
    for _ in 0..3 {
        device.receive(2_000_000, 0, &frame(FORWARD, 1, 64));
    }
    let slower = PortConfig {
        rate_bps: 368_000,
        ..config
    };
    device.set_port(3_000_000, 1, slower).unwrap();
    device.advance(20_000_000, &mut sent);
    let at: Vec<_> = sent.0.iter().map(|(.., at)| *at).collect();
    assert_eq!(at, [1_000_000, 12_000_000, 14_000_000]);
    assert_eq!(device.stats().dropped(DropReason::QueueFull), 1);
    assert!(device
        .spike(0, 9, 1)
        .unwrap_err()
        .message
        .contains("port 9"));
}

#[test]
fn a_new_program_flushes_the_queues_and_a_down_port_drops() {
    let config = PortConfig {
        rate_bps: 1_000,
        ..PortConfig::default()
    };
    let mut device = device(config);
    for _ in 0..4 {
        one(&mut device, 0, &frame(FORWARD, 1, 64));
    }
    assert_eq!(device.load(1, Pipeline::from_json(OPS).unwrap()), 3);
    assert_eq!(device.stats().dropped(DropReason::Flushed), 3);
    let mut sent = Sent::default();
    device.advance(u64::MAX / 2, &mut sent);
    assert_eq!(sent.0.len(), 1, "the frame on the line still leaves");
    device.set_port_up(1, false);
    assert!(one(&mut device, 2, &frame(FORWARD, 1, 64)).is_empty());
    assert_eq!(device.stats().dropped(DropReason::PortDown), 1);
    let mut events = Vec::new();
    device.take_events(&mut events);
    assert_eq!(events, [Event::PortStatus { port: 1, up: false }]);
    device.unload(3);
    device.receive(3, 0, &frame(FORWARD, 1, 64));
    assert_eq!(device.stats().dropped(DropReason::NoPipeline), 1);
}

#[test]
fn bad_ports_are_refused_with_the_reason() {
    let mut device = device(PortConfig::default());
    for (port, config, text) in [
        (512, PortConfig::default(), "port numbers are 0 to 510"),
        (1, PortConfig::default(), "port 1 exists already"),
        (
            9,
            PortConfig {
                queues: 0,
                ..PortConfig::default()
            },
            "0 queues; 1 to 4096 are allowed",
        ),
        (
            9,
            PortConfig {
                rate_bps: 2_000_000_000_000,
                ..PortConfig::default()
            },
            "is above 1000000000000 bit/s",
        ),
    ] {
        let error = device.add_port(port, config).unwrap_err();
        assert!(error.message.contains(text), "{}", error.message);
    }
    assert_eq!(
        device
            .set_port(0, 9, PortConfig::default())
            .unwrap_err()
            .message,
        "port 9 does not exist"
    );
}
