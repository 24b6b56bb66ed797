// SPDX-License-Identifier: Apache-2.0
//! A delay spike with a hand-over (BCR paper): what E-RTO and BCR+ send after it, beside NewReno and F-RTO.

use crate::common::handover::{run, Outcome, Point, CASES, SENDERS};

const REPEATS: u64 = 6;

fn outcomes(sender: &str, at: Point) -> Vec<Outcome> {
    let (_, options) = SENDERS
        .iter()
        .find(|(name, _)| *name == sender)
        .expect("there is such a sender");
    (0..REPEATS)
        .map(|repeat| run(at, options, repeat, false))
        .collect()
}

fn mean(outcomes: &[Outcome], value: fn(&Outcome) -> f64) -> f64 {
    outcomes.iter().map(value).sum::<f64>() / outcomes.len() as f64
}

/// The case of this name, without random losses.
fn point(case: &str, queue_packets: u64, ssthresh_packets: u64) -> Point {
    let case = *CASES
        .iter()
        .find(|known| known.name == case)
        .expect("there is such a case");
    Point {
        case,
        queue_packets,
        ssthresh_packets,
        loss: 0.0,
    }
}

#[test]
fn a_spurious_timeout_costs_erto_nothing_frto_the_heads_and_newreno_the_window() {
    // 76 packets are the most that fits, so few are dropped, and each drop is one retransmission.
    let at = point("spike only", 50, 40);
    let beyond_drops = |sender| {
        let seen = outcomes(sender, at);
        mean(&seen, |o| o.retransmits) - mean(&seen, |o| o.drops)
    };
    assert_eq!(beyond_drops("erto"), 0.0);
    assert_eq!(beyond_drops("bcr+"), 0.0);
    let (frto, newreno) = (beyond_drops("frto"), beyond_drops("newreno"));
    assert!(frto >= 1.0 && newreno > frto + 20.0, "{frto} and {newreno}");
}

#[test]
fn on_a_slower_network_bcr_drops_and_retransmits_less_than_erto() {
    for (queue_packets, ssthresh_packets) in [(50, 40), (20, 24)] {
        let at = point("fast to slow", queue_packets, ssthresh_packets);
        let drops: fn(&Outcome) -> f64 = |o| o.drops;
        let retransmits: fn(&Outcome) -> f64 = |o| o.retransmits_to_the_end;
        let seconds: fn(&Outcome) -> f64 = |o| o.recovery_s;
        let (erto, bcr) = (outcomes("erto", at), outcomes("bcr+", at));
        for value in [drops, retransmits] {
            let (erto, bcr) = (mean(&erto, value), mean(&bcr, value));
            assert!(bcr < 0.8 * erto, "queue {queue_packets}: {bcr}, {erto}");
        }
        // SACK repairs what E-RTO loses at once; over NewReno it waits for its timer.
        assert!(mean(&erto, seconds) < 1.0 && mean(&bcr, seconds) < 1.0);
        let (erto, bcr) = (outcomes("erto-newreno", at), outcomes("bcr+-newreno", at));
        let (erto, bcr) = (mean(&erto, seconds), mean(&bcr, seconds));
        assert!(bcr < 1.0 && erto > 2.0, "{bcr} s, {erto} s");
    }
}

#[test]
fn on_a_faster_network_bcr_fills_it_sooner_than_erto() {
    let seconds: fn(&Outcome) -> f64 = |o| o.recovery_s;
    let at = point("slow to fast", 20, 24);
    let (erto, bcr) = (
        mean(&outcomes("erto", at), seconds),
        mean(&outcomes("bcr+", at), seconds),
    );
    assert!(bcr < 0.5 * erto, "{bcr} s, {erto} s");
    // With 50 packets of queue the old window is enough for the new rate, and both fill it at once.
    let at = point("slow to fast", 50, 40);
    assert!(mean(&outcomes("bcr+", at), seconds) <= 0.2);
}
