// SPDX-License-Identifier: Apache-2.0
//! UDP through qthresh.p4 on two switches: exact instants, exact rates, and every frame accounted for.

use crate::common::*;
use device::PortChange;
use netsim::{Direction, LinkSettings, Simulation, SpikeBlocks};
use serde_json::json;

const MS: u64 = 1_000_000;

/// Frame of a datagram with 958 bytes of payload: 1000 bytes, 8000 bit.
fn cbr(rate_bps: u64) -> serde_json::Value {
    json!([{"name": "udp", "from": "h1", "to": "h3",
            "app": {"kind": "cbr_udp", "rate_bps": rate_bps, "payload_bytes": 958}}])
}

fn received(sim: &Simulation) -> u64 {
    sim.flows()[0].received_bytes / 958
}

/// 8000 bit at 2 Mbit/s are 4 ms; then 10 ms of propagation, and nothing else takes time.
#[test]
fn one_frame_arrives_to_the_nanosecond() {
    let mut sim = routed(&dumbbell(2_000_000, 50, 10 * MS, cbr(1_000)));
    sim.run_until(14 * MS - 1);
    assert_eq!(received(&sim), 0);
    sim.run_until(14 * MS);
    assert_eq!(received(&sim), 1);
    assert_conserved(&sim);
}

/// 1000 bytes of frame are 21 cells of 424 bit, or 1024 bytes with what Ethernet puts around them.
#[test]
fn a_link_layer_takes_its_time_and_cells_fill_the_buffer() {
    for (layer, bits) in [("atm", 21 * 424), ("ethernet", 1_024 * 8), ("none", 8_000)] {
        let mut config = dumbbell(2_120_000, 5_000, 10 * MS, cbr(4_000_000));
        let port = &mut config["switches"][0]["ports"][2];
        port["link_layer"] = json!(layer);
        port["scheduler"] = json!("wrr");
        port["queues"] = json!(16);
        port["port_cells"] = json!(400);
        let mut sim = routed(&config);
        sim.run_until(10_000 * MS);
        let ports = sim.ports();
        let port = ports.iter().find(|p| p.switch == "s1" && p.port == 3);
        let port = port.unwrap();
        assert_eq!(port.tx_packets, 21_200_000 / bits, "{layer}");
        // 19 of 21 cells fit; one may have left at this instant.
        assert!((18..=19).contains(&port.waiting_packets), "{port:?}");
        assert_eq!(port.waiting_cells, port.waiting_packets * 21);
        assert!(port.drops.port_full > 1_000 && port.drops.queue_full == 0);
        assert_conserved(&sim);
    }
}

/// With rates and delays everywhere: uplink, two switches (store and forward), all links.
#[test]
fn every_hop_adds_its_time() {
    let mut config = dumbbell(3_000_000, 50, 2 * MS, cbr(1_000));
    config["links"][0]["a_to_b"] = json!({"rate_bps": 7_000_000, "delay_ns": 100_000}); // h1 to s1
    config["links"][2]["b_to_a"] = json!({"delay_ns": 300_000}); // s2 to h3
    config["switches"][1]["ports"][0]["rate_bps"] = json!(9_000_000); // s2 to h3
    let mut sim = routed(&config);
    // Each serialisation ends at the next whole nanosecond.
    let at = [7u64, 3, 9]
        .map(|mbit| (8_000_000 / mbit) + 1)
        .iter()
        .sum::<u64>()
        + 2_400_000;
    sim.run_until(at - 1);
    assert_eq!(received(&sim), 0, "{at}");
    sim.run_until(at);
    assert_eq!(received(&sim), 1, "{at}");
}

#[test]
fn a_rate_below_the_link_arrives_whole() {
    let mut sim = routed(&dumbbell(2_000_000, 50, 10 * MS, cbr(1_000_000)));
    sim.run_until(10_000 * MS);
    // One datagram each 7.664 ms, the first at 0, those of the last 14 ms still under way.
    assert_eq!(received(&sim), (10_000 * MS - 14 * MS) / 7_664_000 + 1);
    assert_eq!(sim.flows()[0].sent_segments, 10_000 * MS / 7_664_000 + 1);
    assert_conserved(&sim);
}

/// Twice the link's rate: the line never idles, the queue is full, the rest is dropped and counted.
#[test]
fn an_overload_fills_line_and_queue() {
    let mut sim = routed(&dumbbell(2_000_000, 50, 10 * MS, cbr(4_000_000)));
    sim.run_until(10_000 * MS);
    assert_eq!(received(&sim), (10_000 * MS - 10 * MS) / (4 * MS));
    let port = sim
        .ports()
        .into_iter()
        .find(|p| p.switch == "s1" && p.port == 3)
        .unwrap();
    assert!(port.waiting_packets >= 49, "{port:?}");
    assert!(port.drops.queue_full > 2_000, "{port:?}");
    assert_eq!(port.tx_packets, 2_500);
    assert_conserved(&sim);
}

/// A threshold of 4 packets holds the flow at 4 waiting packets: the program refuses the rest in ingress.
#[test]
fn qthresh_holds_a_flow_at_its_threshold() {
    let mut sim = routed(&dumbbell(2_000_000, 50, 10 * MS, cbr(4_000_000)));
    set_qthresh(sim.switch_mut("s1").unwrap(), 3, 50, 4);
    sim.run_until(10_000 * MS);
    assert_eq!(received(&sim), (10_000 * MS - 10 * MS) / (4 * MS));
    let port = sim
        .ports()
        .into_iter()
        .find(|p| p.switch == "s1" && p.port == 3)
        .unwrap();
    assert!((3..=4).contains(&port.waiting_packets), "{port:?}");
    assert_eq!(port.drops.queue_full, 0);
    assert!(sim.switches()[0].drops["ingress_drop"] > 2_000);
    assert_conserved(&sim);
}

#[test]
fn loss_and_bit_errors_are_counted_where_they_are_found() {
    let mut config = dumbbell(2_000_000, 50, 10 * MS, cbr(1_000_000));
    config["links"][4]["a_to_b"] = json!({"delay_ns": 10 * MS, "loss": 0.05, "ber": 1e-5});
    let mut sim = routed(&config);
    sim.run_until(60_000 * MS);
    let link = sim.links().into_iter().find(|l| l.link == "s1-s2").unwrap();
    assert!(
        link.stats.dropped_loss > 200 && link.stats.corrupted_packets > 200,
        "{link:?}"
    );
    let h3 = &sim.hosts()[2];
    // s2's parser refuses broken IP headers; the payload's errors are the host's to find.
    assert!(h3.bad_transport_checksum > 200, "{h3:?}");
    assert_eq!(received(&sim), h3.accepted_packets);
    assert!(sim.switches()[1].drops["ingress_drop"] > 0);
    assert_conserved(&sim);
}

#[test]
fn rate_and_delay_change_while_it_runs() {
    let mut config = dumbbell(2_000_000, 50, 10 * MS, cbr(4_000_000));
    config["changes"] = json!([
        {"at_ns": 5_000 * MS, "switch": "s1", "port": 3, "rate_bps": 1_000_000, "queue_packets": 10},
        {"at_ns": 5_000 * MS, "link": "s1-s2", "direction": "a_to_b", "set": {"delay_ns": 100 * MS}}]);
    let mut sim = routed(&config);
    sim.run_until(5_000 * MS);
    let before = received(&sim);
    assert_eq!(before, (5_000 * MS - 10 * MS) / (4 * MS));
    sim.run_until(10_000 * MS);
    let port = sim
        .ports()
        .into_iter()
        .find(|p| p.switch == "s1" && p.port == 3)
        .unwrap();
    assert_eq!((port.rate_bps, port.queue_packets), (1_000_000, 10));
    assert!(port.waiting_packets <= 10);
    let after = received(&sim) - before;
    assert!((after as i64 - 4_900 / 8).abs() <= 4, "{after}");
    assert_conserved(&sim);
}

#[test]
fn an_outage_loses_and_a_spike_holds() {
    let mut sim = routed(&dumbbell(2_000_000, 50, 10 * MS, cbr(1_000_000)));
    sim.run_until(1_000 * MS);
    sim.outage("s1-s2", Direction::Both, 100 * MS).unwrap();
    sim.run_until(1_100 * MS);
    let lost = sim
        .links()
        .iter()
        .map(|l| l.stats.dropped_outage)
        .sum::<u64>();
    assert!((12..=14).contains(&lost), "{lost}");
    sim.spike("s1-s2", Direction::AToB, 500 * MS, SpikeBlocks::Delivery)
        .unwrap();
    let before = received(&sim);
    sim.run_until(1_600 * MS - 1);
    assert_eq!(received(&sim), before);
    sim.run_until(1_600 * MS);
    assert!(received(&sim) - before > 60);
    assert_conserved(&sim);
}

#[test]
fn a_bad_request_changes_nothing() {
    let mut sim = routed(&dumbbell(2_000_000, 50, 10 * MS, cbr(1_000_000)));
    let settings: LinkSettings = serde_json::from_value(json!({"jitter_ns": 11 * MS})).unwrap();
    assert_eq!(
        sim.set_link("s1-s2", Direction::Both, &settings)
            .unwrap_err()
            .to_string(),
        "link \"s1-s2\": jitter_ns: 11000000 exceeds delay_ns (10000000); allowed: 0 to 10000000 ns"
    );
    assert_eq!(
        sim.spike("s1-s3", Direction::Both, 1, SpikeBlocks::Line).unwrap_err().to_string(),
        "there is no link \"s1-s3\"; there are: \"h1-s1\", \"h2-s1\", \"h3-s2\", \"h4-s2\", \"s1-s2\""
    );
    assert_eq!(
        sim.set_port("s1", 7, &PortChange::default())
            .unwrap_err()
            .to_string(),
        "there is no port \"7\"; there are: 1, 2, 3, 510"
    );
    let full = PortChange {
        queue_packets: Some(0),
        ..PortChange::default()
    };
    assert_eq!(
        sim.set_port("s1", 3, &full).unwrap_err().to_string(),
        "switch \"s1\": port 3: a queue capacity of 0 packets would drop everything; at least 1 is allowed"
    );
    assert_eq!(
        sim.switch("s1").unwrap().port(3).unwrap().rate_bps,
        2_000_000
    );
}

#[test]
fn it_stops_at_a_message() {
    let mut config = dumbbell(2_000_000, 50, 10 * MS, cbr(1_000_000));
    config["flows"][0]["start_ns"] = json!(MS);
    let mut sim = routed(&config);
    set_qthresh(sim.switch_mut("s1").unwrap(), 3, 50, 4);
    // The program tells of a flow that it does not know.
    assert_eq!(sim.run_until_message(1_000 * MS), MS);
    assert!(sim.has_messages());
    assert_eq!(sim.run_until_message(1_000 * MS), MS);
    let mut events = Vec::new();
    sim.switch_mut("s1").unwrap().take_events(&mut events);
    assert!(!events.is_empty() && !sim.has_messages());
    let now = sim.run_until_message(1_000 * MS);
    assert!((100 * MS..200 * MS).contains(&now), "{now}"); // told again after 100 ms
}

/// Bytes of the series and of all reports.
fn everything(config: &serde_json::Value) -> String {
    let mut sim = routed(config);
    sim.run_until(5_000 * MS);
    let series: Vec<_> = sim.series().collect();
    serde_json::to_string(&(sim.flows(), sim.ports(), sim.links(), sim.hosts(), series)).unwrap()
}

#[test]
fn a_seed_gives_the_same_bytes() {
    let mut config = dumbbell(2_000_000, 50, 10 * MS, cbr(3_000_000));
    config["links"][4]["a_to_b"] =
        json!({"delay_ns": 10 * MS, "jitter_ns": MS, "loss": 0.05, "ber": 1e-5});
    config["sample"] = json!({"period_ns": 10 * MS, "ports": [{"switch": "s1", "port": 3}],
        "registers": [{"switch": "s1", "register": "port_occupancy", "indices": [3]}]});
    let first = everything(&config);
    assert_eq!(first, everything(&config));
    assert!(first.contains("register/s1/port_occupancy/3"));
    config["seed"] = json!(2);
    assert_ne!(first, everything(&config));
}

/// Each datagram comes twice, or some do; the copies are counted, and what is lost of them is by itself.
#[test]
fn duplicates_are_frames_like_others() {
    let run = |a_to_b: serde_json::Value| {
        let mut config = dumbbell(2_000_000, 50, 10 * MS, cbr(1_000_000));
        config["links"][4]["a_to_b"] = a_to_b;
        let name = &config["links"][4]["name"];
        assert_eq!(name, "s1-s2");
        let mut sim = routed(&config);
        sim.run_until(10_000 * MS);
        assert_conserved(&sim);
        let links = sim.links();
        let link = links
            .iter()
            .find(|l| l.link == "s1-s2" && l.direction == "a_to_b");
        (received(&sim), link.unwrap().stats)
    };
    let (all, plain) = run(json!({"delay_ns": 10 * MS}));
    assert_eq!(plain.duplicated_packets, 0);
    let (twice, stats) = run(json!({"delay_ns": 10 * MS, "duplicate": 1.0}));
    assert_eq!(
        (twice, stats.duplicated_packets * 2),
        (2 * all, stats.offered_packets)
    );
    let (some, stats) = run(json!({"delay_ns": 10 * MS, "duplicate": 0.1}));
    let copies = stats.duplicated_packets;
    // Of 1,304 datagrams: 130, with a deviation of 11.
    assert!((86..=174).contains(&copies), "{copies}");
    assert!((all + copies - 1..=all + copies).contains(&some));
    let (half, stats) = run(json!({"delay_ns": 10 * MS, "duplicate": 1.0, "loss": 0.5}));
    let lost = stats.dropped_loss;
    assert!(lost.abs_diff(all) < 4 * 26, "{lost} of {}", 2 * all);
    assert!((2 * all - lost).abs_diff(half) <= 4, "{half}, {lost}");
}
