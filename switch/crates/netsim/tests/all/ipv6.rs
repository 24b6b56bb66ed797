// SPDX-License-Identifier: Apache-2.0
//! Flows over IPv6, alone and beside those over IPv4: as these, but for 20 bytes more of header.

use crate::common::*;
use netsim::{Config, FlowReport, Simulation};
use serde_json::{json, Value};

const MS: u64 = 1_000_000;
const S: u64 = 1_000 * MS;
const IPV4_MSS: u64 = 1_460;
const IPV6_MSS: u64 = 1_440;

fn greedy(cc: &str, from: &str, to: &str, ipv6: bool) -> Value {
    let mss = if ipv6 { IPV6_MSS } else { IPV4_MSS };
    let tcp = json!({"cc": cc, "recovery": "newreno", "mss_bytes": mss, "delayed_ack": false});
    json!({"name": cc, "from": from, "to": to, "ipv6": ipv6, "app": {"kind": "greedy"}, "tcp": tcp})
}

/// Of a network at the end of the first seconds and 60 s later, all counted.
fn minute(config: &Value, set_up: impl FnOnce(&mut Simulation)) -> [Vec<FlowReport>; 2] {
    let mut sim = routed(config);
    set_up(&mut sim);
    let ends = [10 * S, 70 * S].map(|end| {
        sim.run_until(end);
        sim.flows()
    });
    assert_conserved(&sim);
    ends
}

/// Goodput of each flow in bit/s.
fn goodputs([before, after]: &[Vec<FlowReport>; 2]) -> Vec<f64> {
    let both = before.iter().zip(after);
    both.map(|(before, after)| (after.received_bytes - before.received_bytes) as f64 * 8.0 / 60.0)
        .collect()
}

/// Full frames of 1514 bytes: the line carries as many of either, each with 1440 bytes instead of 1460.
#[test]
fn a_flow_carries_20_bytes_less_in_a_frame() {
    let alone = |ipv6| {
        let flows = json!([greedy("reno", "h1", "h3", ipv6)]);
        let counts = minute(&dumbbell(2_000_000, 50, 5 * MS, flows), |_| {});
        assert!(counts[1][0].fast_retransmits > 0);
        goodputs(&counts)[0]
    };
    let (v4, v6) = (alone(false), alone(true));
    assert!((1.96e6..2.001e6).contains(&(v4 * 1514.0 / 1460.0)), "{v4}");
    let ratio = v6 / v4 * IPV4_MSS as f64 / IPV6_MSS as f64;
    assert!((ratio - 1.0).abs() < 1e-3, "{ratio}");
}

/// Reno and Vegas behind a threshold of 6 packets, over which versions ever.
#[test]
fn qthresh_shares_the_link_whatever_the_version() {
    for versions in [[true, true], [true, false], [false, true]] {
        let flows = json!([
            greedy("reno", "h1", "h3", versions[0]),
            greedy("vegas", "h2", "h4", versions[1])
        ]);
        let counts = minute(&dumbbell(2_000_000, 50, 4 * MS, flows), |sim| {
            set_qthresh(sim.switch_mut("s1").unwrap(), 3, 50, 6);
        });
        let [reno, vegas] = goodputs(&counts)[..] else {
            panic!()
        };
        assert!(
            reno + vegas > 0.97 * 2e6 * 1440.0 / 1514.0,
            "{reno} {vegas}"
        );
        let least = reno.min(vegas) / reno.max(vegas);
        assert!(least > 0.5, "{versions:?}: {reno} {vegas}");
    }
}

/// A datagram of 958 bytes is a frame of 1020 bytes: 4.08 ms at 2 Mbit/s, then 10 ms of propagation.
#[test]
fn a_datagram_arrives_to_the_nanosecond() {
    let app = json!({"kind": "cbr_udp", "rate_bps": 1_000, "payload_bytes": 958});
    let flows = json!([{"name": "udp", "from": "h1", "to": "h3", "ipv6": true, "app": app}]);
    let mut sim = routed(&dumbbell(2_000_000, 50, 10 * MS, flows));
    sim.run_until(14_080_000 - 1);
    assert_eq!(sim.flows()[0].received_bytes, 0);
    sim.run_until(14_080_000);
    assert_eq!(sim.flows()[0].received_bytes, 958);
}

/// Marks are in the traffic class: behind a port that marks, DCTCP fills the line and loses hardly anything.
#[test]
fn marks_reach_the_sender() {
    for ipv6 in [false, true] {
        let mut flows = json!([greedy("dctcp", "h1", "h3", ipv6)]);
        flows[0]["tcp"]["ecn"] = json!(true);
        let mut sim = routed(&dumbbell(2_000_000, 50, 5 * MS, flows));
        mark_above(sim.switch_mut("s1").unwrap(), 3, 50, 10);
        sim.run_until(30 * S);
        let flow = &sim.flows()[0];
        // Slow start passes twice the threshold once.
        assert!(
            flow.window_reductions > 10 * flow.retransmits.max(1),
            "{flow:?}"
        );
        assert_eq!(flow.timeouts, 0);
        assert!(
            flow.received_bytes * 8 > 57_000_000 / 1514 * 1440,
            "{flow:?}"
        );
    }
}

/// A switch without a route drops it; a link's bit errors are found by the hosts' checksums.
#[test]
fn what_is_damaged_is_refused() {
    let flows = json!([greedy("reno", "h1", "h3", true)]);
    let mut config = dumbbell(2_000_000, 50, 5 * MS, flows);
    config["links"][4]["a_to_b"]["ber"] = json!(1e-6);
    let mut sim = routed(&config);
    sim.run_until(30 * S);
    let h3 = &sim.hosts()[2];
    assert!(h3.bad_transport_checksum > 10, "{h3:?}");
    assert_eq!(h3.bad_ip_checksum, 0, "{h3:?}");
    assert!(sim.flows()[0].received_bytes > 1_000_000);
    assert_conserved(&sim);
}

#[test]
fn a_flow_over_ipv6_needs_an_address_at_both_ends() {
    for host in [0, 2] {
        let flows = json!([greedy("reno", "h1", "h3", true)]);
        let mut config = dumbbell(2_000_000, 50, 5 * MS, flows);
        config["hosts"][host]["ipv6"] = Value::Null;
        let error = Config::from_json(&config.to_string()).unwrap_err();
        let name = format!("h{}", host + 1);
        let expected = format!("flows[0].ipv6: \"{name}\" has no IPv6 address: give it `ipv6`");
        assert_eq!(error.to_string(), expected);
    }
}
