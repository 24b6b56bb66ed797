// SPDX-License-Identifier: Apache-2.0
//! A packet costs no allocation once the network has run in: counted by the global allocator.

mod common;
#[path = "../../traffic/tests/counting/mod.rs"]
mod counting;

use common::*;
use counting::allocations;
use serde_json::json;

#[test]
fn steady_state_allocates_nothing() {
    for regions in [1, 2] {
        allocates_nothing(regions);
    }
}

fn allocates_nothing(regions: usize) {
    let tcp = json!({"mss_bytes": 960});
    let ena = json!({"mss_bytes": 960, "recovery": "sack", "rack": true, "cc": "ena_rfc6675_plus", "ena": true, "ena_naming": "lowest"});
    let flows = json!([
        {"name": "a", "from": "h1", "to": "h3", "app": {"kind": "greedy"}, "tcp": tcp, "ipv6": true},
        {"name": "v4", "from": "h1", "to": "h3", "app": {"kind": "greedy"}, "tcp": tcp},
        {"name": "b", "from": "h2", "to": "h4", "app": {"kind": "greedy"}, "tcp": ena},
        {"name": "udp", "from": "h1", "to": "h4", "app": {"kind": "cbr_udp", "rate_bps": 1_000_000, "payload_bytes": 500}}]);
    let mut config = dumbbell(10_000_000, 50, 5_000_000, flows);
    config["links"][4]["a_to_b"] =
        json!({"delay_ns": 5_000_000, "jitter_ns": 100_000, "loss": 0.001, "ber": 1e-6});
    let mut sim = routed_in(&config, Some(regions));
    set_qthresh(sim.switch_mut("s1").unwrap(), 3, 50, 12);
    sim.run_until(60_000_000_000);
    let packets = sim.switch("s1").unwrap().stats().received;
    let notified = sim.flows()[2].ena_notified;
    let before = allocations();
    sim.run_until(70_000_000_000);
    let after = allocations();
    assert!(sim.switch("s1").unwrap().stats().received - packets > 10_000);
    assert!(sim.flows()[2].ena_notified > notified);
    assert_eq!(after - before, 0);
}
