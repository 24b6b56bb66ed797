// SPDX-License-Identifier: Apache-2.0
//! One direction of a link in virtual time: delay, rate, queue, spike, outage and changes while frames are on it.

use traffic::link::{
    DropReason, Exit, JitterDistribution, Link, LinkOptions, LinkStreams, Refused, SpikeBlocks,
};

const MS: u64 = 1_000_000;

fn link(options: LinkOptions) -> Link<u32> {
    Link::new(options, LinkStreams::new(7, "test/a_to_b"), 64).unwrap()
}

fn delay(delay_ns: u64) -> LinkOptions {
    LinkOptions {
        delay_ns,
        ..LinkOptions::default()
    }
}

/// Runs a link by its own `next_event` until it is empty; every delivery comes exactly when it was announced.
fn drain(link: &mut Link<u32>) -> Vec<Exit<u32>> {
    let mut exits = Vec::new();
    while let Some(now) = link.next_event() {
        let mut progressed = false;
        while let Some(exit) = link.poll(now) {
            assert!(
                exit.dropped.is_some() || exit.at == now,
                "announced for {now}, due at {}",
                exit.at
            );
            exits.push(exit);
            progressed = true;
        }
        assert!(
            progressed || link.next_event() > Some(now),
            "stuck at {now}"
        );
    }
    exits
}

fn deliveries(exits: &[Exit<u32>]) -> Vec<(u64, u32)> {
    exits
        .iter()
        .filter(|exit| exit.dropped.is_none())
        .map(|exit| (exit.at, exit.item))
        .collect()
}

#[test]
fn a_perfect_link_delivers_at_once() {
    let mut link = link(LinkOptions::default());
    link.transmit(500, &mut [0; 64], 1).unwrap();
    assert_eq!(link.next_event(), Some(500));
    assert_eq!(deliveries(&drain(&mut link)), [(500, 1)]);
}

#[test]
fn the_delay_is_exact() {
    let mut link = link(delay(5 * MS + 1));
    link.transmit(1_000, &mut [0; 1514], 1).unwrap();
    assert_eq!(link.poll(1_000 + 5 * MS), None);
    assert_eq!(link.next_event(), Some(1_000 + 5 * MS + 1));
    assert_eq!(deliveries(&drain(&mut link)), [(1_001 + 5 * MS, 1)]);
}

#[test]
fn frames_are_serialised_one_after_the_other() {
    // 8 Mbit/s: one byte a microsecond.
    let mut link = link(LinkOptions {
        rate_bps: 8_000_000,
        ..delay(MS)
    });
    for k in 0..3 {
        link.transmit(10, &mut [0; 1000], k).unwrap();
    }
    assert_eq!(link.queued(), 3);
    let expected = [(10 + 2 * MS, 0), (10 + 3 * MS, 1), (10 + 4 * MS, 2)];
    assert_eq!(deliveries(&drain(&mut link)), expected);
}

#[test]
fn calling_late_changes_no_instant() {
    let mut link = link(LinkOptions {
        rate_bps: 8_000_000,
        ..delay(MS)
    });
    for k in 0..3 {
        link.transmit(10, &mut [0; 1000], k).unwrap();
    }
    let exits: Vec<_> = std::iter::from_fn(|| link.poll(90 * MS)).collect();
    let expected = [(10 + 2 * MS, 0), (10 + 3 * MS, 1), (10 + 4 * MS, 2)];
    assert_eq!(deliveries(&exits), expected);
}

#[test]
fn a_full_queue_refuses_and_the_frame_on_the_line_does_not_count() {
    let mut link = link(LinkOptions {
        rate_bps: 8_000_000,
        queue_packets: 2,
        ..LinkOptions::default()
    });
    for k in 0..3 {
        link.transmit(0, &mut [0; 1000], k).unwrap();
    }
    assert_eq!(link.transmit(0, &mut [0; 1000], 3), Err(Refused(3)));
    // The first has left the line after 1 ms: one place is free.
    assert_eq!(link.transmit(MS, &mut [0; 1000], 4), Ok(()));
    assert_eq!(link.stats().dropped_queue_full, 1);
    assert_eq!(drain(&mut link).len(), 4);
}

#[test]
fn a_smaller_delay_does_not_let_frames_overtake() {
    let mut link = link(delay(100 * MS));
    link.transmit(0, &mut [0; 64], 1).unwrap();
    link.set(10 * MS, delay(MS)).unwrap();
    link.transmit(20 * MS, &mut [0; 64], 2).unwrap();
    link.transmit(120 * MS, &mut [0; 64], 3).unwrap();
    let expected = [(100 * MS, 1), (100 * MS, 2), (121 * MS, 3)];
    assert_eq!(deliveries(&drain(&mut link)), expected);
}

#[test]
fn with_reorder_a_smaller_delay_overtakes() {
    let reorder = |delay_ns| LinkOptions {
        reorder: true,
        ..delay(delay_ns)
    };
    let mut link = link(reorder(100 * MS));
    link.transmit(0, &mut [0; 64], 1).unwrap();
    link.set(10 * MS, reorder(MS)).unwrap();
    link.transmit(20 * MS, &mut [0; 64], 2).unwrap();
    assert_eq!(deliveries(&drain(&mut link)), [(21 * MS, 2), (100 * MS, 1)]);
}

#[test]
fn a_new_rate_counts_for_the_rest_of_the_frame_and_those_that_wait() {
    let rate = |rate_bps| LinkOptions {
        rate_bps,
        ..LinkOptions::default()
    };
    let mut link = link(rate(8_000_000));
    for k in 0..3 {
        link.transmit(0, &mut [0; 1000], k).unwrap();
    }
    // Half of the first is out; the other half takes 50 µs at ten times the rate.
    link.set(MS / 2, rate(80_000_000)).unwrap();
    let expected = [(550_000, 0), (650_000, 1), (750_000, 2)];
    assert_eq!(deliveries(&drain(&mut link)), expected);
}

#[test]
fn without_a_rate_all_that_waits_leaves_at_once() {
    let mut link = link(LinkOptions {
        rate_bps: 8_000,
        ..LinkOptions::default()
    });
    for k in 0..3 {
        link.transmit(0, &mut [0; 1000], k).unwrap();
    }
    link.set(MS, LinkOptions::default()).unwrap();
    assert_eq!(deliveries(&drain(&mut link)), [(MS, 0), (MS, 1), (MS, 2)]);
}

#[test]
fn a_bad_set_changes_nothing() {
    let mut link = link(delay(MS));
    let bad = LinkOptions {
        loss: 2.0,
        ..delay(9 * MS)
    };
    assert_eq!(
        link.set(0, bad).unwrap_err().to_string(),
        "loss: 2 is out of range; allowed: 0 to 1"
    );
    assert_eq!(link.options(), &delay(MS));
}

#[test]
fn a_spike_holds_all_and_releases_in_order() {
    let mut link = link(delay(10 * MS));
    link.transmit(0, &mut [0; 64], 1).unwrap(); // due at 10, before the spike
    link.transmit(5 * MS, &mut [0; 64], 2).unwrap(); // due at 15, held
    link.spike(12 * MS, 20 * MS, SpikeBlocks::Delivery); // until 32
    assert_eq!(link.spike_until(12 * MS), Some(32 * MS));
    link.transmit(13 * MS, &mut [0; 64], 3).unwrap(); // due at 23, held
    link.transmit(30 * MS, &mut [0; 64], 4).unwrap(); // due at 40, after
    let expected = [(10 * MS, 1), (32 * MS, 2), (32 * MS, 3), (40 * MS, 4)];
    assert_eq!(deliveries(&drain(&mut link)), expected);
    assert_eq!(link.spike_until(32 * MS), None);
}

#[test]
fn a_spike_in_a_spike_only_makes_it_longer() {
    let mut link = link(LinkOptions::default());
    link.spike(0, 20 * MS, SpikeBlocks::Delivery);
    link.spike(5 * MS, MS, SpikeBlocks::Delivery);
    link.transmit(6 * MS, &mut [0; 64], 1).unwrap();
    assert_eq!(link.next_event(), Some(20 * MS));
    link.spike(10 * MS, 30 * MS, SpikeBlocks::Delivery);
    assert_eq!(deliveries(&drain(&mut link)), [(40 * MS, 1)]);
}

/// 1,000 bytes take 1 ms, and 2 ms from the change on.
#[test]
fn a_blocked_line_keeps_frames_in_the_queue_and_then_has_its_rate() {
    let options = |rate_bps| LinkOptions {
        rate_bps,
        queue_packets: 3,
        ..delay(10 * MS)
    };
    let mut link = link(options(8_000_000));
    for k in 0..3 {
        link.transmit(0, &mut [0; 1000], k).unwrap();
    }
    link.spike(MS / 2, 20 * MS, SpikeBlocks::Line);
    assert_eq!(link.spike_until(MS / 2), Some(20 * MS + MS / 2));
    link.transmit(5 * MS, &mut [0; 1000], 3).unwrap();
    assert_eq!((link.queued(), link.in_flight()), (3, 1));
    assert_eq!(
        link.transmit(6 * MS, &mut [0; 1000], 4),
        Err(Refused(4)),
        "three wait"
    );
    link.set(7 * MS, options(4_000_000)).unwrap();
    let last_bits = [
        (MS, 0),
        (22 * MS + MS / 2, 1),
        (24 * MS + MS / 2, 2),
        (26 * MS + MS / 2, 3),
    ];
    assert_eq!(
        deliveries(&drain(&mut link)),
        last_bits.map(|(at, k)| (at + 10 * MS, k))
    );
    assert_eq!(link.spike_until(20 * MS + MS / 2), None);
}

#[test]
fn a_blocked_line_without_a_rate_lets_all_go_at_its_end() {
    let mut link = link(LinkOptions {
        queue_packets: 2,
        ..delay(10 * MS)
    });
    link.transmit(0, &mut [0; 64], 0).unwrap();
    link.spike(MS, 20 * MS, SpikeBlocks::Line);
    link.spike(5 * MS, MS, SpikeBlocks::Line); // does not end the first one
    link.transmit(2 * MS, &mut [0; 64], 1).unwrap();
    link.transmit(3 * MS, &mut [0; 64], 2).unwrap();
    assert_eq!(link.transmit(4 * MS, &mut [0; 64], 3), Err(Refused(3)));
    link.transmit(22 * MS, &mut [0; 64], 4).unwrap();
    let expected = [(10 * MS, 0), (31 * MS, 1), (31 * MS, 2), (32 * MS, 4)];
    assert_eq!(deliveries(&drain(&mut link)), expected);
}

#[test]
fn an_outage_loses_what_enters_the_medium_and_nothing_else() {
    let mut link = link(delay(10 * MS));
    link.transmit(0, &mut [0; 64], 1).unwrap(); // on its way already
    link.outage(MS, 5 * MS);
    assert_eq!(link.outage_until(MS), Some(6 * MS));
    link.transmit(2 * MS, &mut [0; 64], 2).unwrap();
    link.transmit(6 * MS - 1, &mut [0; 64], 3).unwrap();
    link.transmit(6 * MS, &mut [0; 64], 4).unwrap(); // over
    let exits = drain(&mut link);
    assert_eq!(deliveries(&exits), [(10 * MS, 1), (16 * MS, 4)]);
    let lost: Vec<_> = exits.iter().filter_map(|exit| exit.dropped).collect();
    assert_eq!(lost, [DropReason::Outage; 2]);
}

#[test]
fn frames_that_wait_through_an_outage_survive_it() {
    let mut link = link(LinkOptions {
        rate_bps: 8_000_000,
        ..LinkOptions::default()
    });
    for k in 0..4 {
        link.transmit(0, &mut [0; 1000], k).unwrap(); // last bits at 1, 2, 3, 4 ms
    }
    link.outage(MS + 1, 2 * MS); // [1, 3] ms
    assert_eq!(deliveries(&drain(&mut link)), [(MS, 0), (4 * MS, 3)]);
    assert_eq!(link.stats().dropped_outage, 2);
}

#[test]
fn uniform_jitter_stays_in_its_bounds_and_fills_them() {
    let mut link = link(LinkOptions {
        jitter_ns: 2 * MS,
        reorder: true,
        ..delay(10 * MS)
    });
    let mut delays = Vec::new();
    for k in 0..10_000 {
        let sent = u64::from(k) * 100 * MS;
        link.transmit(sent, &mut [0; 64], k).unwrap();
        delays.extend(
            deliveries(&drain(&mut link))
                .iter()
                .map(|(at, _)| at - sent),
        );
    }
    let (min, max) = (*delays.iter().min().unwrap(), *delays.iter().max().unwrap());
    assert!((8 * MS..8 * MS + MS / 100).contains(&min), "{min}");
    assert!((12 * MS - MS / 100..=12 * MS).contains(&max), "{max}");
    let mean = delays.iter().sum::<u64>() as f64 / 1e4;
    // Standard error of the mean: 2 ms / sqrt(3) / 100 = 11.5 µs; four of them.
    assert!((mean - 10e6).abs() < 46_000.0, "{mean}");
}

#[test]
fn normal_jitter_has_its_mean_and_deviation() {
    let mut link = link(LinkOptions {
        jitter_ns: MS,
        jitter_distribution: JitterDistribution::Normal,
        reorder: true,
        ..delay(20 * MS)
    });
    let mut delays = Vec::new();
    for k in 0..20_000 {
        let sent = u64::from(k) * 100 * MS;
        link.transmit(sent, &mut [0; 64], k).unwrap();
        delays.extend(
            deliveries(&drain(&mut link))
                .iter()
                .map(|(at, _)| (at - sent) as f64),
        );
    }
    let n = delays.len() as f64;
    let mean = delays.iter().sum::<f64>() / n;
    let deviation = (delays.iter().map(|d| (d - mean).powi(2)).sum::<f64>() / n).sqrt();
    // Four standard errors: 4 σ / sqrt(n) and 4 σ / sqrt(2n).
    assert!((mean - 20e6).abs() < 28_300.0, "{mean}");
    assert!((deviation - 1e6).abs() < 20_000.0, "{deviation}");
    let within = delays.iter().filter(|d| (**d - 20e6).abs() < 1e6).count() as f64 / n;
    assert!((within - 0.6827).abs() < 0.0132, "{within}");
}
