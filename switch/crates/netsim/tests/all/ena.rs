// SPDX-License-Identifier: Apache-2.0
//! ENA over a link that really flips bits: who drops what, who counts what, and what it is worth.

use crate::common::*;
use netsim::{FlowReport, HostReport, Simulation};
use serde_json::{json, Value};

const S: u64 = 1_000_000_000;

/// A file over a T1 GEO link with bit errors in both directions, and what else its TCP is.
fn satellite(bytes: u64, link: &Value, tcp: &Value) -> Simulation {
    satellite_of(1, bytes, link, tcp)
}

fn satellite_of(seed: u64, bytes: u64, link: &Value, tcp: &Value) -> Simulation {
    let mut options = json!({
        "mss_bytes": 512, "delayed_ack": false, "recovery": "sack", "receive_window_bytes": 65_536,
        "sack_limit": "outstanding", "sack_buffer_windows": 4, "initial_window_packets": 1,
        "initial_ssthresh_packets": 128, "rack": true});
    for (key, value) in tcp.as_object().unwrap() {
        options[key] = value.clone();
    }
    let app = json!({"kind": "bytes", "bytes": bytes});
    let flows = json!([{"name": "file", "from": "h1", "to": "h3", "app": app, "tcp": options}]);
    let mut config = dumbbell(1_544_000, 100, 290_000_000, flows);
    config["seed"] = json!(seed);
    for (switch, port) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
        config["switches"][switch]["ports"][port]["rate_bps"] = json!(10_000_000);
    }
    for direction in ["a_to_b", "b_to_a"] {
        for (key, value) in link.as_object().unwrap() {
            config["links"][4][direction][key] = value.clone();
        }
    }
    let mut sim = routed(&config);
    while sim.transfers().is_empty() {
        assert!(sim.now() < 5_000 * S, "{:?}", sim.flows());
        sim.run_until(sim.now() + S);
    }
    assert_conserved(&sim);
    sim
}

fn flow(sim: &Simulation) -> FlowReport {
    sim.flows()[0].clone()
}

fn host(sim: &Simulation, name: &str) -> HostReport {
    let hosts = sim.hosts();
    hosts.iter().find(|h| h.host == name).unwrap().clone()
}

#[test]
fn every_corrupted_segment_is_dropped_somewhere_and_most_are_named() {
    let sim = satellite(
        2_000_000,
        &json!({"ber": 1e-5}),
        &json!({"ena": true, "ena_naming": "lowest", "cc": "ena_rfc6675_plus"}),
    );
    let (flow, receiver) = (flow(&sim), host(&sim, "h3"));
    assert_eq!(
        (flow.acked_bytes, flow.received_bytes),
        (2_000_000, 2_000_000)
    );
    let links = sim.links();
    let hit = |direction| {
        let mut links = links.iter();
        let found = links.find(|l| l.link == "s1-s2" && l.direction == direction);
        found.unwrap().stats.corrupted_packets
    };
    // What a bit in the IPv4 header hits s2 refuses; the rest arrives with a wrong TCP checksum.
    let refused = sim.switches()[1].drops.values().sum::<u64>();
    assert!(hit("a_to_b") > 100 && hit("b_to_a") > 5);
    assert_eq!(receiver.bad_transport_checksum + refused, hit("a_to_b"));
    assert_eq!(
        receiver.corrupted,
        receiver.bad_transport_checksum + receiver.bad_ip_checksum
    );
    assert!(host(&sim, "h1").corrupted > 0, "ACKs are hit too");
    // Ports, sequence number and data offset hide 1.6 % of what arrives.
    assert!(flow.ena_corrupted <= receiver.bad_transport_checksum);
    assert!(flow.ena_corrupted as f64 > 0.95 * receiver.bad_transport_checksum as f64);
    assert!(flow.ena_notified > flow.ena_corrupted && flow.ena_kept > 10);
    assert_eq!(flow.ena_reduced, flow.window_reductions);
    // Each segment that was hit goes again, and hardly any other.
    assert!(
        flow.retransmits as f64 <= 1.05 * hit("a_to_b") as f64,
        "{flow:?}"
    );
}

/// What the paper assumes: a corrupted segment can be attributed, ACKs are not hit, nor is what is sent again.
#[test]
fn as_the_paper_assumes_each_hit_is_named_once_and_none_costs_a_window() {
    for (cc, recovery) in [
        ("ena_tahoe", "newreno"),
        ("ena_reno_recovery", "newreno"),
        ("ena_rfc6675", "sack"),
    ] {
        let sim = satellite(
            1_000_000,
            &json!({"ber": 1e-5, "errors_in": "payload", "spare_retransmissions": true}),
            &json!({"ena": true, "repairs_named": true, "cc": cc, "recovery": recovery, "rack": recovery == "sack",
                "receive_window_bytes": 40_960}), // less than the queue holds: nothing is dropped
        );
        let (flow, links) = (flow(&sim), sim.links());
        let hit: u64 = links.iter().map(|l| l.stats.corrupted_packets).sum();
        assert!(hit > 50);
        assert_eq!((flow.ena_corrupted, flow.ena_notified), (hit, hit), "{cc}");
        assert_eq!(flow.window_reductions, 0, "{cc}");
        if recovery == "sack" {
            assert_eq!((flow.retransmits, flow.timeouts), (hit, 0));
        }
    }
}

/// 10 MB with 110 KB of window. The ceiling: the line less what is hit.
#[test]
fn it_is_worth_eight_times_the_goodput_and_comes_near_the_ceiling() {
    const BYTES: u64 = 10_000_000;
    let goodput_bps = |cc: &str| {
        let of = |seed: u64| {
            let tcp = json!({"ena": cc != "reno", "ena_naming": "lowest", "cc": cc, "receive_window_bytes": 4 * 112_640,
                "sack_limit": "window", "cwnd_clamp_packets": 220, "initial_ssthresh_packets": 0});
            let sim = satellite_of(seed, BYTES, &json!({"ber": 1e-5}), &tcp);
            let flow = flow(&sim);
            assert!(cc != "reno" || (flow.ena_corrupted, flow.ena_notified) == (0, 0));
            BYTES as f64 * 8e9 / sim.transfers()[0].end_ns as f64
        };
        (1..=5).map(of).sum::<f64>() / 5.0
    };
    let (with, without) = (goodput_bps("ena_rfc6675_plus"), goodput_bps("reno"));
    assert!(with > 8.0 * without, "{with} {without}");
    let ceiling_bps = 1_544_000.0 * 512.0 / 566.0 * (1.0 - 1e-5f64).powi(8 * 552);
    assert!(
        (0.6..1.0).contains(&(with / ceiling_bps)),
        "{with} of {ceiling_bps}"
    );
}

/// Drops alone, with the same seed: the run is the same packet for packet.
#[test]
fn with_drops_alone_it_is_as_without() {
    for (base, recovery) in [
        ("tahoe", "newreno"),
        ("reno_recovery", "newreno"),
        ("rfc6675", "sack"),
    ] {
        let run = |cc: String, ena: bool| {
            let tcp = json!({"ena": ena, "cc": cc, "recovery": recovery});
            let sim = satellite(300_000, &json!({"loss": 0.02}), &tcp);
            let flow = flow(&sim);
            assert_eq!(
                (flow.ena_notified, flow.ena_kept, flow.ena_allowed),
                (0, 0, 0)
            );
            (
                sim.transfers().to_vec(),
                flow.window_reductions,
                flow.retransmits,
            )
        };
        let with = run(format!("ena_{base}"), true);
        assert!(with.1 > 2, "{base}: {with:?}");
        assert_eq!(with, run(base.to_string(), false), "{base}");
    }
}
