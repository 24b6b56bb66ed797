// SPDX-License-Identifier: Apache-2.0
//! A network of three tiers: 8 pods of 4 edge and 2 aggregation switches, 16 cores, two hosts at each edge switch.

use netsim::Simulation;
use serde_json::{json, Value};

/// Switches of the tree, and of its parts.
pub const TREE: usize = 64;
pub const PODS: usize = 8;
pub const EDGES: usize = 4;
const AGGREGATIONS: usize = 2;
const CORES: usize = 8;
pub const TREE_HOSTS: usize = PODS * EDGES * 2;
/// The first port that leads up.
pub const UP: usize = 11;

/// A switch of the tree. An aggregation switch `n` of any pod leads to the cores of group `n`.
#[derive(Clone, Copy)]
pub enum Tier {
    Edge(usize, usize),
    Aggregation(usize, usize),
    Core(usize, usize),
}

impl Tier {
    pub fn all() -> impl Iterator<Item = Tier> {
        let pods = (0..PODS).flat_map(|pod| {
            let edges = (0..EDGES).map(move |n| Tier::Edge(pod, n));
            edges.chain((0..AGGREGATIONS).map(move |n| Tier::Aggregation(pod, n)))
        });
        let cores =
            (0..AGGREGATIONS).flat_map(|group| (0..CORES).map(move |n| Tier::Core(group, n)));
        pods.chain(cores)
    }

    pub fn name(self) -> String {
        match self {
            Tier::Edge(pod, n) => format!("e{pod}-{n}"),
            Tier::Aggregation(pod, n) => format!("a{pod}-{n}"),
            Tier::Core(group, n) => format!("c{group}-{n}"),
        }
    }

    /// Where it leads up: the switches there, each with its port.
    fn above(self) -> Vec<(Tier, usize)> {
        match self {
            Tier::Edge(pod, edge) => (0..AGGREGATIONS)
                .map(|n| (Tier::Aggregation(pod, n), edge + 1))
                .collect(),
            Tier::Aggregation(pod, group) => (0..CORES)
                .map(|n| (Tier::Core(group, n), pod + 1))
                .collect(),
            Tier::Core(..) => Vec::new(),
        }
    }

    /// The port that leads to a host.
    pub fn port_to(self, host: usize) -> usize {
        let (pod, edge) = (host / 2 / EDGES, host / 2 % EDGES);
        match self {
            Tier::Edge(p, n) if (p, n) == (pod, edge) => host % 2 + 1,
            Tier::Edge(..) => UP + host % AGGREGATIONS,
            Tier::Aggregation(p, _) if p == pod => edge + 1,
            Tier::Aggregation(..) => UP + host / 2 % CORES,
            Tier::Core(..) => pod + 1,
        }
    }
}

fn mac(host: usize) -> u64 {
    0x0800_0000_0000 | host as u64
}

pub fn ip(host: usize) -> [u8; 4] {
    [10, 1, 0, host as u8 + 1]
}

fn host(i: usize) -> Value {
    let [a, b, c, d] = ip(i);
    let mac = format!("08:00:00:00:00:{i:02x}");
    json!({"name": format!("h{i}"), "ip": format!("{a}.{b}.{c}.{d}"), "mac": mac, "gateway_mac": "08:00:00:ff:00:01"})
}

/// The network with links of `settings` between switches, ports as `port` makes them, and flows between `h0` to `h63`.
pub fn config(settings: &Value, port: impl Fn(usize) -> Value, flows: Vec<Value>) -> Value {
    let plug = |tier: Tier, port: usize| json!({"node": tier.name(), "port": port});
    let mut links: Vec<Value> = Vec::new();
    let mut link = |a: Value, b: Value, settings: &Value| {
        links.push(json!({"name": format!("l{}", links.len()), "a": a, "b": b, "a_to_b": settings, "b_to_a": settings}));
    };
    for i in 0..TREE_HOSTS {
        let edge = Tier::Edge(i / 2 / EDGES, i / 2 % EDGES);
        link(
            json!({"node": format!("h{i}")}),
            plug(edge, i % 2 + 1),
            &json!({"delay_ns": 0}),
        );
    }
    for tier in Tier::all() {
        for (n, (above, down)) in tier.above().into_iter().enumerate() {
            link(plug(tier, UP + n), plug(above, down), settings);
        }
    }
    let ports: Vec<Value> = (1..=PODS).chain(UP..UP + CORES).map(port).collect();
    let switches: Vec<Value> = Tier::all()
        .map(|tier| json!({"name": tier.name(), "program": "qthresh", "ports": ports}))
        .collect();
    let hosts: Vec<Value> = (0..TREE_HOSTS).map(host).collect();
    json!({"programs": {"qthresh": {"json": super::program()}}, "switches": switches, "hosts": hosts, "links": links, "flows": flows})
}

pub fn add_routes(sim: &mut Simulation) {
    for tier in Tier::all() {
        let device = sim.switch_mut(&tier.name()).unwrap();
        for host in 0..TREE_HOSTS {
            super::add_route(device, ip(host), mac(host), tier.port_to(host) as u64);
        }
    }
}
