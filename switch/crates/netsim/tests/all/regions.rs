// SPDX-License-Identifier: Apache-2.0
//! Large networks: parts of them act side by side, and the results are those of one thread, and of one event loop.

use crate::common::tree::{self, PODS, TREE_HOSTS, UP};
use crate::common::{add_route, assert_conserved, program, set_qthresh};
use crate::reading::{read, temporary};
use netsim::{Config, Direction, LinkSettings, Simulation};
use serde_json::{json, Value};
use std::fmt::Write;

const MS: u64 = 1_000_000;

fn build(config: &Value, threads: usize, regions: Option<usize>) -> Simulation {
    let mut config = config.clone();
    config["threads"] = json!(threads);
    let mut config = Config::from_json(&config.to_string()).unwrap();
    config.regions = regions;
    Simulation::new(&config).unwrap()
}

/// All that a run says.
fn report(sim: &Simulation) -> String {
    let mut text = format!("{} {:?}\n", sim.now(), sim.series().collect::<Vec<_>>());
    let reports = (sim.flows(), sim.ports(), sim.links(), sim.hosts());
    writeln!(text, "{reports:?} {:?}", sim.switches()).unwrap();
    let mut unfinished = sim.unfinished_transfers();
    unfinished.sort_by_key(|transfer| transfer.start_ns);
    writeln!(text, "{:?} {unfinished:?}", sim.transfers()).unwrap();
    text
}

/// Runs beside a controller that takes a millisecond to make a link worse for each message.
fn controlled(sim: &mut Simulation, until: u64) -> String {
    let (mut log, mut messages) = (String::new(), 0);
    let names: Vec<String> = sim.switch_names().map(str::to_owned).collect();
    while sim.run_until_message(until) < until {
        for name in &names {
            let mut events = Vec::new();
            let device = sim.switch_mut(name).unwrap();
            device.take_events(&mut events);
            messages += events.len();
            if !events.is_empty() {
                writeln!(log, "{} {name} {events:?}", sim.now()).unwrap();
            }
        }
        let now = sim.now();
        sim.run_until((now + MS).min(until));
        let loss = json!({"loss": 0.0001 * messages as f64});
        let settings: LinkSettings = serde_json::from_value(loss).unwrap();
        let link = format!("l{}", TREE_HOSTS + messages % 100);
        sim.set_link(&link, Direction::Both, &settings).unwrap();
    }
    assert!(messages >= 3, "{messages} messages");
    log + &report(sim)
}

/// TCP, UDP and web flows between pods over 64 switches, with losses, bit errors and jitter, slow links and slow ports.
fn tiers() -> Value {
    let link = json!({"delay_ns": 2 * MS, "jitter_ns": MS, "loss": 0.001, "ber": 1e-7});
    let port = |port: usize| {
        let rate_bps = if port < UP { 0 } else { 20_000_000 };
        json!({"port": port, "rate_bps": rate_bps, "queue_packets": 30})
    };
    let flow = |i: usize| {
        let app = match i % 4 {
            0 => json!({"kind": "cbr_udp", "rate_bps": 1_000_000, "payload_bytes": 700}),
            1 => json!({"kind": "web", "arrivals_per_s": 20.0, "mean_bytes": 20_000}),
            2 => json!({"kind": "bytes", "bytes": 30_000, "times": 5, "interval_ns": 30 * MS}),
            _ => json!({"kind": "greedy"}),
        };
        let to = (i + (i % (PODS - 1) + 1) * 8) % TREE_HOSTS;
        json!({"name": format!("f{i}"), "from": format!("h{i}"), "to": format!("h{to}"),
               "start_ns": i as u64 * MS / 3, "stop_ns": 400 * MS, "app": app, "tcp": {"recovery": "sack"}})
    };
    let mut config = tree::config(&link, port, (0..TREE_HOSTS).map(flow).collect());
    // Slow, with a short queue: frames wait in the link.
    config["links"][TREE_HOSTS + 9]["a_to_b"]["rate_bps"] = json!(5_000_000);
    config["links"][TREE_HOSTS + 9]["a_to_b"]["queue_packets"] = json!(4);
    let link = |n: usize| format!("l{}", TREE_HOSTS + n);
    config["changes"] = json!([
        {"at_ns": 100 * MS, "link": link(70), "set": {"delay_ns": 5 * MS, "rate_bps": 3_000_000}},
        {"at_ns": 120 * MS, "link": link(20), "spike_ns": 30 * MS},
        {"at_ns": 130 * MS, "link": link(80), "spike_ns": 20 * MS, "spike_blocks": "line"},
        {"at_ns": 150 * MS, "link": link(90), "outage_ns": 40 * MS},
        {"at_ns": 160 * MS, "switch": "a0-0", "port": UP, "rate_bps": 1_000_000},
        {"at_ns": 170 * MS, "switch": "a1-0", "port": UP + 1, "spike_ns": 20 * MS}]);
    config["sample"] = json!({"period_ns": 10 * MS, "ports": [{"switch": "a0-0", "port": UP}],
        "registers": [{"switch": "a1-0", "register": "flow_occupancy", "indices": [0, 1]}]});
    config
}

fn run_tiers(threads: usize) -> String {
    let mut sim = build(&tiers(), threads, None);
    tree::add_routes(&mut sim);
    for aggregation in ["a0-0", "a1-0", "a2-1"] {
        let device = sim.switch_mut(aggregation).unwrap();
        set_qthresh(device, UP as u64, 30, 5);
    }
    let text = controlled(&mut sim, 600 * MS);
    assert!(sim.transfers().len() > 100);
    let sent: u64 = sim.hosts().iter().map(|host| host.tx_packets).sum();
    assert!(sent > 10_000, "{sent}");
    text
}

#[test]
fn any_number_of_threads_gives_the_same_bytes() {
    let one = run_tiers(1);
    for threads in [2, 3, 7] {
        assert!(one == run_tiers(threads), "{threads} threads");
    }
}

/// Five switches in a row, each with a host, and links of every kind; no two things happen at one instant.
fn row(seed: u64) -> Value {
    let kinds = [
        json!({"delay_ns": 3_000_017, "loss": 0.01}),
        json!({"delay_ns": 2_000_029, "jitter_ns": 700_001, "rate_bps": 4_000_000, "queue_packets": 5, "loss": 0.003}),
        json!({"delay_ns": 5_000_039, "jitter_ns": 2_000_003, "reorder": true, "ge_enter": 0.002, "ge_leave": 0.2}),
        json!({"delay_ns": 1_000_003, "rate_bps": {"trace": [1, 2, 2, 3, 5]}, "queue_packets": 9, "ber": 1e-6}),
    ];
    let switch = |n: u64| {
        let port = |port: u64| json!({"port": port, "rate_bps": 5_000_011 + n * port, "queue_packets": 20});
        json!({"name": format!("s{n}"), "program": "qthresh", "ports": [port(1), port(2), port(3)]})
    };
    let host = |n: u64| {
        json!({"name": format!("h{n}"), "ip": format!("10.0.{n}.1"), "mac": format!("08:00:00:00:00:0{n}"),
               "gateway_mac": format!("08:00:00:00:ff:0{n}")})
    };
    let plug = |n: u64, port: u64| json!({"node": format!("s{n}"), "port": port});
    let access = |n: u64| {
        let delay = json!({"delay_ns": 10_007 * n});
        json!({"name": format!("a{n}"), "a": {"node": format!("h{n}")}, "b": plug(n, 1), "a_to_b": delay, "b_to_a": delay})
    };
    let between = |n: u64| {
        let [there, back] = [0, 1].map(|way| &kinds[((n + seed + 2 * way) % 4) as usize]);
        json!({"name": format!("l{n}"), "a": plug(n, 3), "b": plug(n + 1, 2), "a_to_b": there, "b_to_a": back})
    };
    let flow = |i: u64| {
        let app = match i % 4 {
            0 => {
                json!({"kind": "cbr_udp", "rate_bps": 400_000 + i * 1_009, "payload_bytes": 500 + i})
            }
            1 => json!({"kind": "web", "arrivals_per_s": 9.0, "mean_bytes": 9_000}),
            2 => json!({"kind": "bytes", "bytes": 20_000, "times": 9, "interval_ns": 50 * MS + i}),
            _ => json!({"kind": "greedy"}),
        };
        let (from, to) = (i % 5 + 1, (i + i / 5 + 1) % 5 + 1);
        json!({"name": format!("f{i}"), "from": format!("h{from}"), "to": format!("h{to}"), "start_ns": i * 1_000_037 + i * i,
               "stop_ns": 1_500 * MS, "app": app, "tcp": {"recovery": "sack"},
               "read_interval_ns": 900_001 * (i % 2)})
    };
    let changes = json!([
        {"at_ns": 300_000_019, "link": "l1", "set": {"loss": 0.03, "delay_ns": 4_000_037}},
        {"at_ns": 400_000_009, "link": "l2", "spike_ns": 20 * MS},
        {"at_ns": 500_000_003, "link": "l3", "direction": "a_to_b", "spike_ns": 30 * MS, "spike_blocks": "line"},
        {"at_ns": 600_000_007, "link": "l4", "outage_ns": 25 * MS},
        {"at_ns": 700_000_001, "switch": "s2", "port": 3, "rate_bps": 1_000_003},
        {"at_ns": 800_000_011, "link": "l4", "set": {"delay_ns": 3_000_047}}]);
    json!({"seed": seed, "programs": {"qthresh": {"json": program()}},
           "switches": (1..=5).map(switch).collect::<Value>(), "hosts": (1..=5).map(host).collect::<Value>(),
           "links": (1..=5).map(access).chain((1..=4).map(between)).collect::<Value>(),
           "flows": (0..20).map(flow).collect::<Value>(), "changes": changes,
           "sample": {"period_ns": 7_000_003, "ports": [{"switch": "s3", "port": 3}]}})
}

/// In so many regions, at several instants; for a while the first link has no delay, the second a jitter that may leave none.
fn run_row(seed: u64, regions: usize) -> String {
    let mut sim = build(&row(seed), regions, Some(regions));
    for at in 1..=5u64 {
        let device = sim.switch_mut(&format!("s{at}")).unwrap();
        for n in 1..=5 {
            let port = 1 + u64::from(n != at) + u64::from(n > at);
            add_route(device, [10, 0, n as u8, 1], 0x0800_0000_0000 + n, port);
        }
    }
    let set = |sim: &mut Simulation, link: &str, settings: Value| {
        let settings: LinkSettings = serde_json::from_value(settings).unwrap();
        sim.set_link(link, Direction::Both, &settings).unwrap();
    };
    sim.run_until(1_000_000_021);
    set(&mut sim, "l1", json!({"delay_ns": 0, "jitter_ns": 0}));
    set(
        &mut sim,
        "l2",
        json!({"jitter_ns": 1_000_000, "jitter_distribution": "normal"}),
    );
    sim.run_until(1_050_000_023);
    set(&mut sim, "l1", json!({"delay_ns": 6_000_011}));
    sim.run_until(1_200_000_019);
    let flows = format!("{:?}", sim.flows());
    // Nothing is on its way any more, but what is sent again.
    sim.run_until(2_500 * MS);
    assert_conserved(&sim);
    flows + &report(&sim)
}

#[test]
fn a_network_in_parts_does_what_it_does_as_a_whole() {
    for seed in 0..4 {
        let whole = run_row(seed, 1);
        for regions in [2, 3, 5] {
            let parts = run_row(seed, regions);
            assert_eq!(whole, parts, "seed {seed}, {regions} regions");
        }
    }
}

/// Captures of links within and between regions, in order of time, are the same whatever the regions are.
#[test]
fn captures_are_in_order_and_do_not_depend_on_regions() {
    let run = |threads: usize, regions: Option<usize>| {
        let mut config = tiers();
        config["changes"] = json!([]);
        let links = [3, TREE_HOSTS + 9, TREE_HOSTS + 70];
        let name = |link: &usize| temporary(&format!("l{link}-{threads}-{regions:?}"));
        let paths: Vec<_> = links.iter().map(name).collect();
        let captures = links.iter().zip(&paths);
        let captures =
            captures.map(|(link, path)| json!({"link": format!("l{link}"), "file": path}));
        config["captures"] = captures.collect();
        let mut sim = build(&config, threads, regions);
        tree::add_routes(&mut sim);
        sim.run_until(300 * MS);
        let reports = sim.captures();
        let seen: Vec<_> = paths.iter().map(|path| read(path)).collect();
        paths
            .iter()
            .for_each(|path| std::fs::remove_file(path).unwrap());
        for (report, seen) in reports.iter().zip(&seen) {
            assert!(report.packets > 20, "{reports:?}");
            assert!(seen.is_sorted_by_key(|one| one.at_ns));
        }
        seen
    };
    let parallel = run(2, None);
    assert_eq!(run(1, None), parallel);
}
