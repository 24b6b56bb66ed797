// SPDX-License-Identifier: Apache-2.0
//! A configuration that cannot be used: the message names the key's path, what was given and what is allowed.

use crate::common::dumbbell;
use netsim::Simulation;
use serde_json::{json, Value};

/// The message for the good configuration with one value replaced.
fn error(pointer: &str, value: Value) -> String {
    let flows = json!([
        {"name": "a", "from": "h1", "to": "h3", "app": {"kind": "greedy"}, "tcp": {"cc": "reno"}},
        {"name": "b", "from": "h2", "to": "h4", "app": {"kind": "web", "arrivals_per_s": 5, "mean_bytes": 1000}}]);
    let mut config = dumbbell(2_000_000, 50, 1_000_000, flows);
    config["changes"] = json!([{"at_ns": 1, "link": "s1-s2", "set": {"delay_ns": 5}},
                               {"at_ns": 1, "switch": "s1", "port": 3, "rate_bps": 5}]);
    config["sample"] = json!({"period_ns": 1_000_000, "ports": [{"switch": "s1", "port": 3}],
                              "registers": [{"switch": "s1", "register": "flow_occupancy", "indices": [0]}]});
    assert!(Simulation::from_json(&config.to_string()).is_ok());
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    let parent = config.pointer_mut(parent).unwrap();
    match parent {
        Value::Array(list) => list[key.parse::<usize>().unwrap()] = value,
        Value::Object(map) => {
            map.insert(key.to_owned(), value);
        }
        _ => panic!("{pointer}"),
    }
    match Simulation::from_json(&config.to_string()) {
        Ok(_) => panic!("{pointer} was accepted"),
        Err(error) => error.to_string(),
    }
}

/// A good video with other settings in it.
fn video(other: Value) -> Value {
    let mut app = json!({"kind": "video", "bitrates_bps": [1_000_000, 2_000_000], "segment_ns": 4_000_000_000u64,
                         "buffer_ns": 20_000_000_000u64, "reservoir_ns": 6_000_000_000u64, "cushion_ns": 8_000_000_000u64});
    for (key, value) in other.as_object().unwrap() {
        app[key] = value.clone();
    }
    app
}

#[test]
fn each_switch_has_chance_of_its_own_by_the_runs_seed() {
    let seeds = |run: u64| {
        let mut config = dumbbell(2_000_000, 50, 1_000_000, json!([]));
        config["seed"] = json!(run);
        let simulation = Simulation::from_json(&config.to_string()).unwrap();
        ["s1", "s2"].map(|name| simulation.switch(name).unwrap().config().seed)
    };
    let [first, second] = seeds(1);
    assert_eq!(seeds(1), [first, second]);
    assert_ne!(first, second);
    assert!(seeds(2).iter().all(|seed| ![first, second].contains(seed)));
}

#[test]
fn unknown_keys_and_wrong_types_are_told() {
    let cases = [
        ("/speed", json!(1), "speed: unknown field `speed`, expected one of `seed`, `programs`, "),
        ("/threads", json!(0), "threads: 0 is not allowed; allowed: 1 to 1024, or null"),
        ("/threads", json!("all"), "threads: invalid type: string \"all\", expected usize"),
        ("/links/4/a_to_b/delay_ms", json!(1), "links[4].a_to_b.delay_ms: unknown key; allowed: delay_ns, "),
        ("/switches/0/ports/2/scheduler", json!("fifo"), "switches[0].ports[2].scheduler: scheduler \"fifo\" is unknown; allowed: strict, wrr, drr, calendar, fq"),
        ("/switches/0/ports/2/link_layer", json!("ip"), "switches[0].ports[2].link_layer: link_layer \"ip\" is unknown; allowed: none, ethernet, atm"),
        ("/links/4/a_to_b/rate_bps", json!({"trace": 1}), "links[4].a_to_b.rate_bps: trace: must be a file or a list"),
        ("/links/4/a_to_b/rate_bps", json!({"trace": [4, 2]}), "links[4].a_to_b.rate_bps: trace: number 2: 2 ms is before 4 ms; the times of a trace never go back"),
        ("/changes/0/set/rate_bps", json!({"trace": "/nowhere.trace"}), "changes[0].set.rate_bps: trace: /nowhere.trace: cannot be read: No such file"),
        ("/flows/0/start_ns", json!(-1), "flows[0].start_ns: invalid value: integer `-1`, expected u64"),
        ("/hosts/0/ip", json!("10.0.0"), "hosts[0].ip: invalid IPv4 address syntax"),
        ("/hosts/1/mac", json!("08:00:00"), "hosts[1].mac: \"08:00:00\" is not an Ethernet address; allowed: six bytes such as 08:00:00:00:00:01"),
        ("/flows/0/tcp/cc", json!("cubix"), "flows[0].tcp.cc: no congestion control is called \"cubix\" (allowed: "),
        ("/flows/0/tcp/mss", json!(1), "flows[0].tcp.mss: unknown field `mss`, expected one of "),
        ("/flows/0/app", json!({}), "flows[0].app.kind: is missing; allowed: greedy, bytes, on_off, web, interactive, video, cbr_udp"),
        ("/flows/0/app", json!({"kind": "ftp"}), "flows[0].app.kind: \"ftp\" is not allowed; allowed: greedy, bytes, on_off, web, interactive, video, cbr_udp"),
        ("/flows/0/app", json!({"kind": "greedy", "bytes": 1}), "flows[0].app.bytes: unknown field `bytes`, there are no fields"),
        ("/flows/1/app/mean_bytes", json!("1k"), "flows[1].app.mean_bytes: invalid type: string \"1k\", expected u64"),
        ("/changes/0/direction", json!("up"), "changes[0].direction: unknown variant `up`, expected one of `a_to_b`, `b_to_a`, `both`"),
    ];
    for (pointer, value, expected) in cases {
        let message = error(pointer, value);
        assert!(message.starts_with(expected), "{pointer}: {message}");
    }
}

#[test]
fn what_does_not_fit_together_is_told() {
    let cases = [
        ("/switches/0/program", json!("gfr"), "switches[0].program: there is no \"gfr\"; there are: \"qthresh\""),
        ("/switches/0/ports/0/port", json!(511), "switches[0].ports[0].port: 511 is not allowed; allowed: 0 to 510, not the CPU port"),
        ("/switches/0/ports/1/port", json!(1), "switches[0].ports[1].port: \"1\" is there twice"),
        ("/switches/0/ports/2/queue_packets", json!(0), "switches[0].ports[2]: port 3: a queue capacity of 0 packets would drop everything; at least 1 is allowed"),
        ("/switches/0/ports/2/port_cells", json!(0), "switches[0].ports[2]: port 3: a port capacity of 0 cells would drop everything; at least 1 is allowed"),
        ("/switches/0/ports/2/queues", json!(5000), "switches[0].ports[2]: port 3: 5000 queues; 1 to 4096 are allowed"),
        ("/switches/1/name", json!("s1"), "switches[1].name: \"s1\" is there twice"),
        ("/hosts/1/ip", json!("10.0.1.1"), "hosts[1].ip: 10.0.1.1 is the address of \"h1\" already"),
        ("/hosts/1/ipv6", json!("fd00:0:0:1::1"), "hosts[1].ipv6: fd00:0:0:1::1 is the address of \"h1\" already"),
        ("/hosts/0/ipv6", json!("10.0.1.1"), "hosts[0].ipv6: invalid IPv6 address syntax"),
        ("/links/0/a/node", json!("h9"), "links[0].a.node: there is no \"h9\"; there are: \"h1\", \"h2\", \"h3\", \"h4\", \"s1\", \"s2\""),
        ("/links/0/a/port", json!(1), "links[0].a.port: 1 is given, but \"h1\" is a host: it has one interface"),
        ("/links/0/b/port", json!(null), "links[0].b.port: is missing: which port of switch \"s1\""),
        ("/links/0/mtu", json!(9_001), "links[0].mtu: 9001 is not allowed; allowed: 576 to 9000"),
        ("/links/0/b/port", json!(9), "links[0].b.port: 9 is not allowed; allowed: a port of \"s1\": 1, 2, 3"),
        ("/links/1/b/port", json!(1), "links[1].b: link \"h1-s1\" is plugged in there already"),
        ("/links/4/a_to_b/loss", json!(2), "links[4].a_to_b.loss: 2 is out of range; allowed: 0 to 1"),
        ("/links/4/a_to_b/delay_ns", json!(1.5), "links[4].a_to_b.delay_ns: 1.5 is not a whole number in range; allowed: 0 to 60000000000 ns"),
        ("/links/4/a_to_b/jitter_ns", json!(2_000_000), "links[4].a_to_b.jitter_ns: 2000000 exceeds delay_ns (1000000); allowed: 0 to 1000000 ns"),
        ("/links/4/a_to_b/ge_leave", json!(0), "links[4].a_to_b.ge_leave: 0 is out of range; allowed: 0.000001 to 1"),
        ("/flows/0/to", json!("s2"), "flows[0].to: there is no \"s2\"; there are: \"h1\", \"h2\", \"h3\", \"h4\""),
        ("/flows/0/to", json!("h1"), "flows[0].to: \"h1\" is the sender too"),
        ("/flows/1/name", json!("a"), "flows[1].name: \"a\" is there twice"),
        ("/flows/0/stop_ns", json!(0), "flows[0].stop_ns: 0 is not allowed; allowed: after start_ns (0), or null"),
        ("/flows/0/to_port", json!(0), "flows[0].to_port: 0 is not allowed; allowed: 1 to 65535"),
        ("/flows/0/tcp/mss_bytes", json!(0), "flows[0].tcp.mss_bytes: 0 is not allowed; allowed: 1 to 65483"),
        ("/flows/1/app/arrivals_per_s", json!(0), "flows[1].app.arrivals_per_s: 0 is not allowed; allowed: above 0, at most 700 (a flow's ports rest for 60 s)"),
        ("/flows/1/app", json!({"kind": "web", "arrivals_per_s": 1, "mean_bytes": 1, "distribution": "pareto", "shape": 1.0}),
         "flows[1].app.shape: 1 is not allowed; allowed: above 1 (below, a Pareto distribution has no mean), at most 100"),
        ("/flows/0/app", video(json!({"bitrates_bps": [2_000_000, 1_000_000]})), "flows[0].app.bitrates_bps: [2000000, 1000000] is not allowed; allowed: two or more rates of 1 to 400000000000 bit/s, each above the one before"),
        ("/flows/0/app", video(json!({"segment_ns": 1})), "flows[0].app.segment_ns: 1 is not allowed; allowed: at least a byte at the lowest rate"),
        ("/flows/0/app", video(json!({"cushion_ns": 0})), "flows[0].app.cushion_ns: 0 is not allowed; allowed: 1 or more"),
        ("/flows/0/app", video(json!({"reservoir_ns": u64::MAX})), "flows[0].app.buffer_ns: 20000000000 is not allowed; allowed: at least reservoir_ns + cushion_ns + segment_ns: it asks when a segment has room"),
        ("/flows/0/app", json!({"kind": "cbr_udp", "rate_bps": 1, "payload_bytes": 65_508}), "flows[0].app.payload_bytes: 65508 is not allowed; allowed: 1 to 65507"),
        ("/changes/0/link", json!("x"), "changes[0].link: there is no \"x\"; there are: \"h1-s1\", \"h2-s1\", \"h3-s2\", \"h4-s2\", \"s1-s2\""),
        ("/changes/0/set/jitter_ns", json!(6), "changes[0].set.jitter_ns: 6 exceeds delay_ns (5); allowed: 0 to 5 ns"),
        ("/changes/0/set/delay_ns", json!(60_000_000_001u64), "changes[0].set.delay_ns: 60000000001 is out of range; allowed: 0 to 60000000000 ns"),
        ("/changes/1/port", json!(9), "changes[1].port: 9 is not allowed; allowed: a port of \"s1\": 1, 2, 3"),
        ("/changes/1/switch", json!("s3"), "changes[1].switch: there is no \"s3\"; there are: \"s1\", \"s2\""),
        ("/changes/1/link", json!("s1-s2"), "changes[1]: needs either \"link\" or \"switch\" with \"port\""),
        ("/changes/1/rate_bps", json!(null), "changes[1]: changes nothing; allowed: rate_bps, queue_packets, spike_ns"),
        ("/sample/period_ns", json!(10), "sample.period_ns: 10 is not allowed; allowed: 1000 or more"),
        ("/sample/registers/0/register", json!("occupancy"), "sample.registers[0].register: the program has no register \"occupancy\"; it has: "),
        ("/programs/qthresh", json!({"json": "/nowhere.json"}), "programs.qthresh.json: /nowhere.json cannot be read: "),
    ];
    for (pointer, value, expected) in cases {
        let message = error(pointer, value);
        assert!(message.starts_with(expected), "{pointer}: {message}");
    }
}

#[test]
fn a_host_without_link_is_told() {
    let mut config = dumbbell(2_000_000, 50, 1_000_000, json!([]));
    config["links"].as_array_mut().unwrap().remove(0);
    let error = Simulation::from_json(&config.to_string()).err().unwrap();
    assert_eq!(
        error.to_string(),
        "hosts[0]: \"h1\" is at no link; a host needs one"
    );
}

#[test]
fn two_flows_with_the_same_ports_are_told() {
    let flow = |name: &str| json!({"name": name, "from": "h1", "to": "h3", "from_port": 7, "app": {"kind": "greedy"}});
    let config = dumbbell(2_000_000, 50, 1_000_000, json!([flow("a"), flow("b")]));
    let error = Simulation::from_json(&config.to_string()).err().unwrap();
    let expected = "flows[1].from_port: 7 is used by flow \"a\" between the same hosts";
    assert_eq!(error.to_string(), expected);
}
