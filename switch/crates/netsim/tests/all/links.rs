// SPDX-License-Identifier: Apache-2.0
//! Links like satellites and wireless hops in a whole network: every setting by a change at its instant, each direction on its own.

use crate::common::{assert_conserved, dumbbell, routed};
use netsim::{Direction, LinkReport, LinkSettings, Simulation};
use serde_json::{json, Value};
use v1model::Pipeline;

const S: u64 = 1_000_000_000;

/// 250 packets a second of 1000 bytes on the line from h1 to h3, and as many from h4 to h2; `changes` as in the file.
fn network(changes: &Value) -> Simulation {
    let cbr = |name: &str, from: &str, to: &str| {
        json!({"name": name, "from": from, "to": to,
               "app": {"kind": "cbr_udp", "rate_bps": 1_916_000, "payload_bytes": 958}})
    };
    let flows = json!([cbr("there", "h1", "h3"), cbr("back", "h4", "h2")]);
    let mut config = dumbbell(0, 50, 10_000_000, flows);
    config["changes"] = changes.clone();
    routed(&config)
}

fn way(sim: &Simulation, direction: &str) -> LinkReport {
    let mut links = sim.links().into_iter();
    links
        .find(|link| link.link == "s1-s2" && link.direction == direction)
        .unwrap()
}

#[test]
fn bursts_begin_and_end_at_their_instants() {
    let mut sim = network(&json!([
        {"at_ns": S, "link": "s1-s2", "direction": "a_to_b", "set": {"ge_enter": 1.0, "ge_leave": 1e-6}},
        {"at_ns": 2 * S, "link": "s1-s2", "set": {"ge_enter": 0.0}}]));
    sim.run_until(S - 1);
    assert_eq!(way(&sim, "a_to_b").stats.dropped_loss, 0);
    sim.run_until(4 * S);
    let (there, back) = (way(&sim, "a_to_b"), way(&sim, "b_to_a"));
    assert_eq!(there.stats.dropped_loss, 250, "one second of them");
    assert_eq!(there.stats.bad_state_packets, 250);
    assert_eq!(
        (back.stats.dropped_loss, back.stats.bad_state_packets),
        (0, 0)
    );
}

#[test]
fn bit_errors_of_a_burst_reach_the_receiver_and_are_found_there() {
    let mut sim = network(&json!([
        {"at_ns": S, "link": "s1-s2", "direction": "b_to_a",
         "set": {"ge_enter": 0.02, "ge_leave": 0.2, "ge_loss": 0.0, "ge_ber": 1e-3}}]));
    sim.run_until(60 * S);
    let back = way(&sim, "b_to_a");
    assert_eq!(back.stats.dropped_loss, 0);
    // 7,900 bits at 1e-3: all but one in 2,700 of the bad state's frames are hit.
    assert!(back.stats.bad_state_packets > 1_000);
    assert!(back.stats.corrupted_packets + 10 > back.stats.bad_state_packets);
    assert!(back.stats.corrupted_packets <= back.stats.bad_state_packets);
    let hosts = sim.hosts();
    let h2 = hosts.iter().find(|host| host.host == "h2").unwrap();
    // Eight flips a frame: one in seven has one in its IP header, which is the switch's to find.
    assert!(h2.bad_transport_checksum * 10 > back.stats.corrupted_packets * 8);
    assert_eq!(way(&sim, "a_to_b").stats.corrupted_packets, 0);
}

#[test]
fn a_trace_is_the_rate_of_its_direction_until_it_is_taken_away() {
    // 100 opportunities of 1500 bytes a second for 250 packets a second of 986 behind the Ethernet header: 152 fit.
    let mut sim = network(&json!([
        {"at_ns": S, "link": "s1-s2", "direction": "a_to_b", "set": {"rate_bps": {"trace": [10]}, "queue_packets": 5}},
        {"at_ns": 3 * S, "link": "s1-s2", "direction": "a_to_b", "set": {"rate_bps": 0}}]));
    sim.run_until(S);
    let before = way(&sim, "a_to_b").stats.delivered_packets;
    sim.run_until(3 * S - 1);
    let there = way(&sim, "a_to_b");
    assert!(
        (300..=308).contains(&(there.stats.delivered_packets - before)),
        "{}",
        there.stats.delivered_packets - before
    );
    assert!(
        (185..=197).contains(&there.stats.dropped_queue_full),
        "{}",
        there.stats.dropped_queue_full
    );
    sim.run_until(5 * S);
    assert_eq!(
        way(&sim, "a_to_b").stats.dropped_queue_full,
        there.stats.dropped_queue_full
    );
    assert_eq!(way(&sim, "b_to_a").stats.dropped_queue_full, 0);
}

#[test]
fn a_spike_and_an_outage_are_scripted_beside_settings() {
    let mut sim = network(&json!([
        {"at_ns": S, "link": "s1-s2", "direction": "a_to_b", "spike_ns": S, "set": {"delay_ns": 100_000_000}},
        {"at_ns": 3 * S, "link": "s1-s2", "direction": "b_to_a", "outage_ns": S}]));
    sim.run_until(S);
    let before = way(&sim, "a_to_b").stats.delivered_packets;
    sim.run_until(2 * S - 1);
    assert_eq!(way(&sim, "a_to_b").stats.delivered_packets, before, "held");
    sim.run_until(2 * S);
    assert!(
        way(&sim, "a_to_b").stats.delivered_packets >= before + 220,
        "released at once, those that are due"
    );
    sim.run_until(6 * S);
    assert_eq!(way(&sim, "b_to_a").stats.dropped_outage, 250);
    assert_eq!(way(&sim, "a_to_b").stats.dropped_outage, 0);
}

/// 250 packets a second: in the spike 50 of them have room in the port's queue; they leave at its new rate, one a millisecond.
#[test]
fn a_spike_of_a_port_keeps_packets_in_its_queue() {
    let mut sim = network(&json!([
        {"at_ns": S, "switch": "s1", "port": 3, "spike_ns": S},
        {"at_ns": S, "switch": "s1", "port": 3, "rate_bps": 8_000_000}]));
    let waiting = |sim: &Simulation| {
        let ports = sim.ports();
        let mut at = ports.iter().filter(|p| p.switch == "s1" && p.port == 3);
        at.next().unwrap().waiting_packets
    };
    sim.run_until(S + 20_000_000);
    let before = way(&sim, "a_to_b").stats.delivered_packets;
    sim.run_until(2 * S);
    assert_eq!(way(&sim, "a_to_b").stats.delivered_packets, before);
    assert_eq!(waiting(&sim), 50);
    sim.run_until(2 * S + 20_000_000);
    let left = waiting(&sim);
    assert!((34..37).contains(&left), "20 left, 5 came: {left}");
    assert_conserved(&sim);
}

/// What a satellite link damages reaches the receiver through a switch whose program looks at TCP: it verifies the sum
/// of the IP header only, and refuses a header that cannot be read.
#[test]
fn a_switch_behind_the_link_passes_damaged_segments_on() {
    let flows = json!([{"name": "a", "from": "h1", "to": "h3", "app": {"kind": "greedy"},
                        "tcp": {"cc": "reno", "recovery": "sack", "mss_bytes": 512}}]);
    let mut config = dumbbell(1_544_000, 100, 5_000_000, flows);
    config["links"][4]["a_to_b"]["ber"] = json!(1e-5);
    let mut sim = routed(&config);
    sim.run_until(120 * S);
    let damaged = way(&sim, "a_to_b").stats.corrupted_packets;
    assert!(damaged > 200, "{damaged}");
    let hosts = sim.hosts();
    let h3 = hosts.iter().find(|host| host.host == "h3").unwrap();
    // 164 of 4,416 bits are the IP header and the length of TCP's: 4 % of the damaged ones, no more than twice as many.
    let found = h3.bad_transport_checksum;
    assert!(
        found <= damaged && found * 100 >= damaged * 92,
        "{found} of {damaged}"
    );
}

/// The script was right for the network as it was built; the caller has made a delay shorter meanwhile.
#[test]
fn a_change_of_the_script_that_cannot_be_made_is_told() {
    let mut sim = network(&json!([
        {"at_ns": S, "link": "s1-s2", "direction": "a_to_b", "set": {"jitter_ns": 9_000_000}},
        {"at_ns": 2 * S, "link": "s1-s2", "direction": "a_to_b", "set": {"loss": 0.5}}]));
    let short: LinkSettings = serde_json::from_value(json!({"delay_ns": 1_000_000})).unwrap();
    sim.set_link("s1-s2", Direction::AToB, &short).unwrap();
    sim.run_until(S - 1);
    assert_eq!(sim.take_refused_change(), None);
    sim.run_until(3 * S);
    let refused = sim.take_refused_change().unwrap().to_string();
    let wanted = "the change at 1000000000 ns was not made: link \"s1-s2\": jitter";
    assert!(refused.starts_with(wanted), "{refused}");
    assert_eq!(sim.take_refused_change(), None);
    // The others are made.
    assert!(way(&sim, "a_to_b").stats.dropped_loss > 0);
}

#[test]
fn frames_that_go_round_without_delay_end_the_run_until_one_is_given() {
    // The first bytes, 0 and 3, ask the device's ops.p4 for port 3; frames leave as they came, so each switch sends them back.
    let ops = include_bytes!("../../../device/tests/p4/ops.json");
    let mut back: Value = serde_json::from_slice(ops).unwrap();
    back["deparsers"][0]["order"] = json!(["cmd"]);
    let flow = json!([{"name": "f", "from": "h1", "to": "h3", "stop_ns": 1_500_000, "app": {"kind": "cbr_udp", "rate_bps": 800_000, "payload_bytes": 100}}]);
    let mut config = dumbbell(0, 50, 0, flow);
    config["hosts"][0]["gateway_mac"] = json!("00:03:00:00:00:01");
    let mut sim = Simulation::from_json(&config.to_string()).unwrap();
    for switch in ["s1", "s2"] {
        let program = Pipeline::from_json(back.to_string().as_bytes()).unwrap();
        sim.switch_mut(switch).unwrap().load(0, program);
    }
    assert!(sim.run_until(S) < S);
    let text = sim.endless().unwrap();
    let words = " ns frames go round without end, at ";
    assert!(text.contains(words), "{text}");
    let delay = LinkSettings::read(json!({"delay_ns": 1_000_000}).as_object().unwrap()).unwrap();
    sim.set_link("s1-s2", Direction::Both, &delay).unwrap();
    assert_eq!((sim.run_until(S), sim.endless()), (S, None));
}
