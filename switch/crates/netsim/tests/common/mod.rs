// SPDX-License-Identifier: Apache-2.0
//! What the tests share: a dumbbell in JSON, and qthresh.p4's tables filled as a controller would.
//!
//! ```text
//!  h1 ─1┐                  ┌1─ h3
//!       s1 3 ═══════════ 3 s2           ═ the bottleneck: rate and queue belong to the port s1-3
//!  h2 ─2┘                  └2─ h4
//! ```
#![allow(dead_code)]

pub mod handover;
pub mod tree;

use netsim::{Config, Device, LinkReport, Simulation};
use serde_json::{json, Value};
use std::net::Ipv6Addr;
use v1model::{ActionCall, Bits, Entry, EntryAction, EntryKey, KeyMatch};

/// The compiled program.
pub fn program() -> String {
    format!(
        "{}/../../../p4src/compiled/qthresh.json",
        env!("CARGO_MANIFEST_DIR")
    )
}

/// The dumbbell: s1 port 3 with `rate_bps` and a queue, `delay_ns` on the link between the switches in each direction.
pub fn dumbbell(rate_bps: u64, queue_packets: u64, delay_ns: u64, flows: Value) -> Value {
    let host = |n: u32| {
        json!({"name": format!("h{n}"), "ip": format!("10.0.{n}.1"), "ipv6": ipv6(n), "mac": format!("08:00:00:00:00:0{n}"),
               "gateway_mac": format!("08:00:00:00:ff:0{n}")})
    };
    let port = |port: u32| json!({"port": port});
    let plug = |node: &str, port: u32| json!({"node": node, "port": port});
    let access = |host: &str, switch: &str, port: u32| json!({"name": format!("{host}-{switch}"), "a": {"node": host}, "b": plug(switch, port)});
    let bottleneck = json!({"port": 3, "rate_bps": rate_bps, "queue_packets": queue_packets});
    json!({
        "seed": 1,
        "programs": {"qthresh": {"json": program()}},
        "switches": [
            {"name": "s1", "program": "qthresh", "ports": [port(1), port(2), bottleneck]},
            {"name": "s2", "program": "qthresh", "ports": [port(1), port(2), port(3)]}],
        "hosts": [host(1), host(2), host(3), host(4)],
        "links": [access("h1", "s1", 1), access("h2", "s1", 2), access("h3", "s2", 1), access("h4", "s2", 2),
                  {"name": "s1-s2", "a": plug("s1", 3), "b": plug("s2", 3),
                   "a_to_b": {"delay_ns": delay_ns}, "b_to_a": {"delay_ns": delay_ns}}],
        "flows": flows})
}

/// A host's IPv6 address.
fn ipv6(host: u32) -> Ipv6Addr {
    Ipv6Addr::new(0xfd00, 0, 0, host as u16, 0, 0, 0, 1)
}

/// The dumbbell, built, with its routes.
pub fn routed(config: &Value) -> Simulation {
    routed_in(config, None)
}

/// The same in so many regions.
pub fn routed_in(config: &Value, regions: Option<usize>) -> Simulation {
    let mut config = Config::from_json(&config.to_string()).unwrap();
    config.regions = regions;
    let mut sim = Simulation::new(&config).unwrap();
    for (switch, ports) in [("s1", [1, 2, 3, 3]), ("s2", [3, 3, 1, 2])] {
        let device = sim.switch_mut(switch).unwrap();
        for (i, port) in ports.into_iter().enumerate() {
            let n = i as u64 + 1;
            let mac = 0x0800_0000_0000 + n;
            add_route(device, [10, 0, n as u8, 1], mac, port);
            insert_route(device, "ipv6_lpm", &ipv6(n as u32).octets(), mac, port);
        }
    }
    sim
}

fn bits(width: u32, value: u64) -> Bits {
    Bits::from_u64(width, value).unwrap()
}

fn insert(device: &mut Device, table: &str, matches: Vec<KeyMatch>, action: &str, args: Vec<Bits>) {
    let pipeline = device.pipeline_mut().unwrap();
    let full = |name: &str, names: Vec<String>| {
        let last = |full: &String| full.rsplit('.').next() == Some(name);
        names.into_iter().find(last).unwrap()
    };
    let schema = pipeline.schema();
    let table = full(
        table,
        schema.tables.iter().map(|t| t.name.clone()).collect(),
    );
    let table = pipeline.find_table(&table).unwrap();
    let schema = pipeline.table_schema(table);
    let names = schema
        .actions
        .iter()
        .map(|a| pipeline.action_schema(*a).name.clone());
    let action = full(action, names.collect());
    let action = pipeline.table_action(table, &action).unwrap();
    let entry = Entry {
        key: EntryKey {
            matches,
            priority: 0,
        },
        action: EntryAction::Direct(ActionCall {
            action,
            args: args.iter().flat_map(Bits::to_limbs).collect(),
        }),
        idle_timeout: 0,
        cookie: 0,
    };
    pipeline.table_insert(table, &entry, 0).unwrap();
}

/// `ipv4_lpm`: a host's address to a port.
pub fn add_route(device: &mut Device, ip: [u8; 4], mac: u64, port: u64) {
    insert_route(device, "ipv4_lpm", &ip, mac, port);
}

fn insert_route(device: &mut Device, table: &str, ip: &[u8], mac: u64, port: u64) {
    let prefix_len = 8 * ip.len() as u32;
    let value = Bits::from_be_bytes(prefix_len, ip).unwrap();
    let matches = vec![KeyMatch::Lpm { value, prefix_len }];
    insert(
        device,
        table,
        matches,
        "forward",
        vec![bits(48, mac), bits(9, port)],
    );
}

/// Manages a port: its limit in packets, and the threshold of its class 0.
pub fn set_qthresh(device: &mut Device, port: u64, max_packets: u64, qthresh: u64) {
    set_policy(device, port, max_packets, qthresh, 0);
}

/// The same, and what says ECT is marked above the threshold.
pub fn mark_above(device: &mut Device, port: u64, max_packets: u64, qthresh: u64) {
    set_policy(device, port, max_packets, qthresh, 1);
}

fn set_policy(device: &mut Device, port: u64, max_packets: u64, qthresh: u64, ecn: u64) {
    let limit = vec![
        bits(32, max_packets),
        bits(32, 0xffff_ffff),
        bits(32, 0),
        bits(1, ecn),
    ];
    let exact = |width, value| KeyMatch::Exact(bits(width, value));
    insert(
        device,
        "port_limit",
        vec![exact(9, port)],
        "set_port_limit",
        limit,
    );
    let matches = vec![exact(9, port), exact(3, 0)];
    insert(
        device,
        "policy",
        matches,
        "set_qthresh",
        vec![bits(16, qthresh), bits(16, 256)],
    );
}

/// Gives a TCP flow its own slot.
pub fn add_flow(device: &mut Device, src: ([u8; 4], u16), dst: ([u8; 4], u16), flow_id: u64) {
    let exact = |width, value: u64| KeyMatch::Exact(bits(width, value));
    let ip = |ip: [u8; 4]| exact(32, u32::from_be_bytes(ip).into());
    let ports = [src.1, dst.1].map(|port| exact(16, port.into()));
    let [src_port, dst_port] = ports;
    let matches = vec![
        ip(src.0),
        ip(dst.0),
        exact(8, 6),
        src_port,
        dst_port,
        exact(12, 0),
    ];
    insert(
        device,
        "flow_v4",
        matches,
        "set_flow",
        vec![bits(16, flow_id)],
    );
}

/// Sent, and copies that links made = arrived + dropped for a reason + still there.
pub fn assert_conserved(sim: &Simulation) {
    let sent: u64 = sim.hosts().iter().map(|h| h.tx_packets).sum();
    let arrived: u64 = sim.hosts().iter().map(|h| h.rx_packets).sum();
    let of_links = |l: &LinkReport| l.stats.dropped_packets() + l.on_link_packets;
    let links: u64 = sim.links().iter().map(of_links).sum();
    let copies: u64 = sim.links().iter().map(|l| l.stats.duplicated_packets).sum();
    let switches: u64 = sim
        .switches()
        .iter()
        .map(|s| s.received - s.transmitted)
        .sum();
    assert_eq!(sent + copies, arrived + links + switches);
    let drops: u64 = sim.switches().iter().flat_map(|s| s.drops.values()).sum();
    let waiting: u64 = sim.ports().iter().map(|p| p.waiting_packets).sum();
    let on_lines = switches - drops - waiting;
    assert!(on_lines <= 6, "{on_lines} frames on the lines of six ports");
    for host in sim.hosts() {
        let refused = host.malformed
            + host.bad_ip_checksum
            + host.bad_transport_checksum
            + host.not_for_us
            + host.no_socket;
        assert_eq!(host.rx_packets, host.accepted_packets + refused, "{host:?}");
    }
}
