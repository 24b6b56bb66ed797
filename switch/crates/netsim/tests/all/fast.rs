// SPDX-License-Identifier: Apache-2.0
//! FastTCP's senders (FastTCP paper), near to and far from a discard server that announces 7 segments of 1448 bytes.

use crate::common::*;
use serde_json::{json, Value};

const S: u64 = 1_000_000_000;
/// Of the far receiver, without the time of sending.
const RTT_S: f64 = 0.2;

/// Seconds from the first data segment to the last ACK, and segments sent.
fn transfer(bytes: u64, sender: &Value) -> (f64, u64) {
    let mut tcp = json!({"mss_bytes": 1448, "recovery": "newreno", "prr": true, "initial_window_packets": 2, "quick_acks": 255,
                         "receive_window_bytes": 10_136, "rto_rule": "linux", "rto_min_ns": 200_000_000});
    for (key, value) in sender.as_object().unwrap() {
        tcp[key] = value.clone();
    }
    let app = json!({"kind": "bytes", "bytes": bytes});
    let flows = json!([{"name": "file", "from": "h1", "to": "h3", "app": app, "tcp": tcp}]);
    let mut sim = routed(&dumbbell(100_000_000, 100, 100_000_000, flows));
    sim.run_until(100 * S);
    let transfers = sim.transfers();
    assert_eq!((transfers.len(), transfers[0].bytes), (1, bytes));
    let seconds = (transfers[0].end_ns - transfers[0].first_sent_ns) as f64 / S as f64;
    (seconds, transfers[0].segments)
}

fn round_trips(bytes: u64, sender: &Value) -> u64 {
    let (seconds, _) = transfer(bytes, sender);
    let trips = seconds / RTT_S;
    assert!(trips - trips.floor() < 0.1, "{trips} round trips");
    trips.floor() as u64
}

#[test]
fn without_slow_start_nine_kilobytes_take_one_round_trip_and_ten_take_two() {
    let (org, nss) = (json!({"cc": "reno"}), json!({"cc": "nss", "prr": false}));
    let kilobytes = [2, 5, 9, 10];
    assert_eq!(
        kilobytes.map(|kb| round_trips(kb << 10, &org)),
        [1, 2, 3, 3]
    );
    assert_eq!(
        kilobytes.map(|kb| round_trips(kb << 10, &nss)),
        [1, 1, 1, 2]
    );
}

#[test]
fn the_announced_window_limits_all_of_them_in_the_long_run() {
    let bytes = 1_000_000;
    for sender in [
        json!({"cc": "reno"}),
        json!({"cc": "nss", "prr": false}),
        json!({"cc": "nca"}),
        json!({"cc": "reno", "dupack_threshold": 1}),
    ] {
        let (seconds, _) = transfer(bytes, &sender);
        let ceiling_bps = 10_136.0 * 8.0 / RTT_S;
        let share = bytes as f64 * 8.0 / seconds / ceiling_bps;
        assert!((0.95..=1.0).contains(&share), "{sender}: {share}");
    }
}

/// The RTO follows the RTT so closely that a delayed ACK, 40 ms, comes too late: a third segment that waits for its ACK
/// goes twice.
#[test]
fn near_by_mrto_sends_more() {
    let retransmits = |rto_min_ns: u64| {
        let tcp = json!({"mss_bytes": 1448, "recovery": "newreno", "initial_window_packets": 3, "quick_acks": 30,
                         "receive_window_bytes": 10_136, "rto_rule": "linux", "rto_min_ns": rto_min_ns});
        let app = json!({"kind": "interactive", "bytes": 3 * 1448, "interval_ns": S / 4});
        let flows = json!([{"name": "messages", "from": "h1", "to": "h3", "app": app, "tcp": tcp}]);
        let mut sim = routed(&dumbbell(100_000_000, 100, 200_000, flows));
        sim.run_until(20 * S);
        sim.flows()[0].retransmits
    };
    assert_eq!(retransmits(200_000_000), 0);
    let mrto = retransmits(4_000_000);
    assert!(mrto > 10, "{mrto}");
}
