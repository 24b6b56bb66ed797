// SPDX-License-Identifier: Apache-2.0
//! Conformance of WRR and DRR in virtual time: shares, bursts, starvation, weights that change, many queues, exact lines.

use crate::common::*;
use traffic::{cells_of, Line, LinkLayer, SchedulerKind};

const OC1: u64 = 51_840_000;

#[test]
fn drr_shares_bytes_on_the_line_by_weight() {
    let weights = [1, 2, 4, 8];
    for layer in [LinkLayer::None, LinkLayer::Ethernet, LinkLayer::Atm] {
        // Which queue has which lengths, all four ways.
        for turn in 0..4 {
            let mut rig = Rig::new(SchedulerKind::Drr, layer, OC1, &weights);
            rig.saturate(100_000, |queue, random| mixed(queue + turn, random));
            let worst = rig.worst_share(&weights, |got| got.line_bytes);
            assert!(worst < 0.01, "{layer}, turn {turn}: {worst}");
        }
    }
}

#[test]
fn wrr_shares_cells_on_atm_and_frames_elsewhere() {
    let weights = [1, 2, 4, 8];
    for turn in 0..4 {
        let lengths = |queue: usize, random: &mut Random| mixed(queue + turn, random);
        let mut atm = Rig::new(SchedulerKind::Wrr, LinkLayer::Atm, OC1, &weights);
        atm.saturate(100_000, lengths);
        let worst = atm.worst_share(&weights, |got| got.cells);
        assert!(worst < 0.01, "cells, turn {turn}: {worst}");
        let mut ethernet = Rig::new(SchedulerKind::Wrr, LinkLayer::Ethernet, OC1, &weights);
        ethernet.saturate(30_000, lengths);
        let worst = ethernet.worst_share(&weights, |got| got.frames);
        assert!(worst < 0.001, "frames, turn {turn}: {worst}");
    }
}

/// Weights in bit/s as the GFR paper's eq. (3) gives them: shares as exact, and no queue sends more than two frames in a row.
#[test]
fn weights_in_bits_a_second_make_no_bursts() {
    let weights = [6_368_000, 8_368_000, 10_368_000, 12_368_000, 14_368_000];
    for kind in [SchedulerKind::Wrr, SchedulerKind::Drr] {
        let mut rig = Rig::new(kind, LinkLayer::Atm, OC1, &weights);
        rig.saturate(50_000, |_, _| 1_014);
        assert!(rig.worst_share(&weights, |got| got.cells) < 0.001);
        let mut row = (0, 0);
        for _ in 0..10_000 {
            let queue = rig.serve().unwrap().queue;
            row = if row.0 == queue {
                (queue, row.1 + 1)
            } else {
                (queue, 1)
            };
            assert!(row.1 <= 2, "{kind}: queue {queue}");
            rig.put(queue, 1_014);
        }
    }
}

/// 1 beside 9,352,000: the small one is served every 2048 full frames or sooner, and takes no more than a thousandth.
#[test]
fn a_tiny_weight_neither_starves_nor_takes_much() {
    let weights = [9_352_000, 1];
    for kind in [SchedulerKind::Wrr, SchedulerKind::Drr] {
        let mut rig = Rig::new(kind, LinkLayer::Ethernet, OC1, &weights);
        rig.saturate(200_000, |_, _| 1_514);
        let small = rig.got[1].frames as f64 / 200_000.0;
        assert!(
            (1.0 / 2_100.0..1.0 / 900.0).contains(&small),
            "{kind}: {small}"
        );
    }
}

#[test]
fn a_weight_that_changes_counts_at_once() {
    let mut rig = Rig::new(SchedulerKind::Drr, LinkLayer::None, OC1, &[1, 1, 1]);
    // Up, down, far up (another scale) and back.
    for weights in [
        [1, 1, 1],
        [4, 1, 1],
        [1, 2, 3],
        [1, 900_000, 300_000],
        [5, 5, 1],
    ] {
        for (queue, &weight) in weights.iter().enumerate() {
            rig.port.set_weight(queue, weight);
        }
        rig.saturate(200, mixed);
        rig.forget();
        rig.saturate(60_000, mixed);
        // 1 beside 900,000 counts as more than it is, see above.
        if weights[1] < 900_000 {
            let worst = rig.worst_share(&weights, |got| got.line_bytes);
            assert!(worst < 0.01, "{weights:?}: {worst}");
        } else {
            let [_, b, c] = rig.got[..] else { panic!() };
            let ratio = b.line_bytes as f64 / c.line_bytes as f64;
            assert!((ratio - 3.0).abs() < 0.03, "{ratio}");
        }
    }
}

/// Changing weights all the time gives each queue the mean of its weights and loses nothing.
#[test]
fn weights_that_change_all_the_time_average() {
    let mut rig = Rig::new(SchedulerKind::Wrr, LinkLayer::Atm, OC1, &[2, 2]);
    // Half of the line at 2 to 2, a third at 1 to 2, three fifths at 3 to 2: by time 0.4778 of it.
    for i in 0..3_000u32 {
        rig.port.set_weight(0, 1 + i % 3);
        rig.saturate(50, |_, random| random.within(54, 1_514) as u32);
    }
    let share = rig.got[0].cells as f64 / (rig.got[0].cells + rig.got[1].cells) as f64;
    assert!((share - 0.4778).abs() < 0.005, "{share}");
    let waiting = rig.port.usage().packets;
    let enqueued: u64 = (0..2)
        .map(|q| rig.port.queue_stats(q).enqueued_packets)
        .sum();
    assert_eq!(
        enqueued,
        waiting + rig.got.iter().map(|got| got.frames).sum::<u64>()
    );
}

#[test]
fn a_thousand_queues_get_their_shares() {
    let weights: Vec<u32> = (0..1_000).map(|i| 50_000 << (i % 4)).collect();
    for (kind, layer) in [
        (SchedulerKind::Wrr, LinkLayer::Atm),
        (SchedulerKind::Drr, LinkLayer::Ethernet),
    ] {
        let mut rig = Rig::new(kind, layer, 1_000_000_000, &weights);
        rig.saturate(1_000_000, |_, random| random.within(54, 1_514) as u32);
        let worst = rig.worst_share(&weights, |got| match kind {
            SchedulerKind::Wrr => got.cells,
            _ => got.line_bytes,
        });
        assert!(worst < 0.01, "{kind}: {worst}");
    }
}

/// A queue that was empty for long comes back without a claim on what it did not use.
#[test]
fn an_idle_queue_saves_nothing_up() {
    let mut rig = Rig::new(SchedulerKind::Drr, LinkLayer::None, OC1, &[1, 1]);
    for _ in 0..5_000 {
        rig.put(0, 1_000);
    }
    for _ in 0..2_000 {
        assert_eq!(rig.serve().unwrap().queue, 0);
    }
    for _ in 0..100 {
        rig.put(1, 1_000);
    }
    rig.forget();
    for _ in 0..100 {
        rig.serve();
    }
    assert!((48..=52).contains(&rig.got[1].frames), "{:?}", rig.got);
}

/// 51.84 Mbit/s of cells carries 46.95 Mbit/s of payload, to the cell; and each line is exact to the nanosecond.
#[test]
fn lines_are_exact() {
    let mut rig = Rig::new(SchedulerKind::Wrr, LinkLayer::Atm, OC1, &[1, 1]);
    for layer in [LinkLayer::Atm, LinkLayer::Ethernet, LinkLayer::None] {
        let mut rig = Rig::new(SchedulerKind::Drr, layer, OC1, &[3, 1]);
        let mut bits = 0u128;
        for _ in 0..20_000 {
            let len_bytes = rig.random.within(20, 9_014) as u32;
            rig.put((len_bytes % 2) as usize, len_bytes);
            let served = rig.serve().unwrap().item;
            bits += u128::from(layer.line_bytes(served)) * 8;
            let due = (bits * 1_000_000_000).div_ceil(u128::from(OC1));
            assert_eq!(u128::from(rig.port.free_at()), due);
        }
    }
    rig.saturate(20_000, |_, _| 1_514);
    let seconds = rig.port.free_at() as f64 / 1e9;
    let cells: u64 = rig.got.iter().map(|got| got.cells).sum();
    assert_eq!(cells, 20_000 * 32);
    let payload_bps = cells as f64 * 384.0 / seconds;
    assert!(
        (payload_bps - OC1 as f64 * 48.0 / 53.0).abs() < 1.0,
        "{payload_bps}"
    );
    assert!((payload_bps / 1e6 - 46.95).abs() < 0.001);
    // The same, without a port around it.
    let mut line = Line::new(OC1);
    line.occupy(0, LinkLayer::Atm.line_bytes(1_014));
    assert_eq!(cells_of(1_014), 21);
    assert_eq!(
        line.free_at(),
        (21 * 53 * 8 * 1_000_000_000u64).div_ceil(OC1)
    );
}
