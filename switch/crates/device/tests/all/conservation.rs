// SPDX-License-Identifier: Apache-2.0
//! Whatever comes in is accounted for: sent, dropped for a reason, or still waiting.

use crate::common::*;
use crate::random::Random;
use device::{Device, DropReason, Nanos, Packet, PortConfig, QueueLimits, Transmit, QUEUE_DROPS};

/// An interface that takes all frames but every seventh.
#[derive(Default)]
struct Interface {
    offered: u64,
    taken: u64,
    taken_bytes: u64,
    /// Received at a port that is not there.
    from_nowhere: u64,
    failed: Vec<(u32, u64)>,
}

impl Transmit for Interface {
    fn transmit(&mut self, port: u32, packet: &mut Packet, _at: Nanos) {
        let frame = packet.frame();
        self.offered += 1;
        if self.offered.is_multiple_of(7) {
            self.failed.push((port, frame.len() as u64));
        } else {
            self.taken += 1;
            self.taken_bytes += frame.len() as u64;
        }
    }
}

impl Interface {
    fn advance(&mut self, device: &mut Device, now: Nanos) {
        device.advance(now, self);
        for (port, bytes) in self.failed.drain(..) {
            device.count_transmit_failures(port, 1, bytes);
        }
    }
}

/// Received and copied packets were sent, were dropped for one reason, wait, or are being sent, and what counts as sent is
/// what the interfaces took.
fn assert_accounts(device: &Device, interface: &Interface) {
    let (accounts, stats) = (device.accounts(), device.stats());
    assert_eq!(
        accounts.received + accounts.copied,
        accounts.transmitted + accounts.dropped + accounts.waiting + accounts.on_line,
        "{accounts:?} {stats:?}"
    );
    let dropped = DropReason::ALL.iter().map(|r| stats.dropped(*r));
    assert_eq!(accounts.dropped, dropped.sum::<u64>());
    assert_eq!(accounts.transmitted - accounts.packet_ins, interface.taken);
    let ports = device
        .ports()
        .filter(|p| device.config().cpu_port != Some(*p));
    let ports: Vec<_> = ports.filter_map(|p| device.port_stats(p)).collect();
    // Every packet that left ingress, and every copy, passed egress once: those that ended behind it with the reason.
    let pipeline = device.pipeline().unwrap();
    let passes = pipeline.find_counter("E.passes").unwrap();
    for (i, reason) in (1..).zip(QUEUE_DROPS) {
        let told = pipeline.counter_get(passes, i).unwrap().0;
        // At reception, there is no program that could get a report.
        let untold = u64::from(reason == DropReason::NoSuchPort) * interface.from_nowhere;
        assert_eq!(told, stats.dropped(reason) - untold, "{}", reason.name());
    }
    let sum = |of: fn(&device::PortStats) -> u64| ports.iter().map(of).sum::<u64>();
    assert_eq!(sum(|p| p.tx_packets), interface.taken);
    assert_eq!(sum(|p| p.tx_bytes), interface.taken_bytes);
    let failed = stats.dropped(DropReason::TransmitFailed);
    assert_eq!(sum(|p| p.tx_errors), failed);
    let received = sum(|p| p.rx_packets + p.rx_lost) + interface.from_nowhere;
    assert_eq!(received, accounts.received);
}

/// A seeded mixture of all operations over slow ports, with links that go and come, interfaces that fail and frames lost at
/// reception, checked after every packet.
#[test]
fn received_and_copied_are_sent_dropped_or_waiting() {
    let config = PortConfig {
        rate_bps: 5_000_000,
        queue_limits: QueueLimits::packets(5),
        ..PortConfig::default()
    };
    let mut device = device(config);
    replicate(&mut device);
    let mut interface = Interface::default();
    let (mut random, mut now) = (Random(1), 0u64);
    let mut random = || random.next();
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
        FOREVER,
        ASSERT,
        STORM,
    ];
    for _ in 0..20_000 {
        now += random() % 400_000;
        let op = ops[(random() % ops.len() as u64) as usize];
        let len = 2 + (random() % 1_500) as usize;
        // Of an existing session or group, or of one that is not there; ports 0 to 3, the CPU port's and one that is not there.
        let arg = [3, 3, 3, 0, 9, 200][(random() % 6) as usize];
        interface.advance(&mut device, now);
        match random() % 40 {
            0 => device.count_reception_losses(1, DropReason::RingFull, random() % 5),
            1 => device.set_port_up((random() % 4) as u32, random() % 2 == 0),
            2 => assert!(device.flush(now) < 100),
            3 => {
                device.receive(now, 99, &frame(op, arg, len));
                interface.from_nowhere += 1;
            }
            _ => {}
        }
        device.receive(now, (random() % 4) as u32, &frame(op, arg, len));
        assert_accounts(&device, &interface);
        interface.advance(&mut device, now);
        assert_accounts(&device, &interface);
    }
    interface.advance(&mut device, u64::MAX / 2);
    assert_accounts(&device, &interface);
    let (accounts, stats) = (device.accounts(), device.stats());
    assert_eq!((accounts.waiting, accounts.on_line), (0, 0));
    for reason in [
        DropReason::RingFull,
        DropReason::Ingress,
        DropReason::Egress,
        DropReason::Assertion,
        DropReason::NoSuchPort,
        DropReason::PortDown,
        DropReason::QueueFull,
        DropReason::NoMulticastGroup,
        DropReason::NoCloneSession,
        DropReason::LoopLimit,
        DropReason::Flushed,
        DropReason::TransmitFailed,
    ] {
        assert!(stats.dropped(reason) > 10, "{}", reason.name());
    }
    assert!(stats.copied > 1_000);
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
