// SPDX-License-Identifier: Apache-2.0
//! Measures the simulator: packets through the P4 pipeline per second of wall time, for any number of flows over qthresh.p4.
//!
//! ```text
//!  cargo run --release -p netsim --example packets_per_second -- [--flows 2,10,100,1000] [--switches 2] [--rate-bps 1000000000]
//!      [--pairs 10] [--rtt-ns 10000000] [--mss-bytes 1446] [--queue-packets 850] [--cc reno] [--qthresh 0] [--app greedy|udp] [--packets 2000000] [--threads 1] [--regions 0]
//! ```
//!
//! A dumbbell: all senders at s1, all receivers at the last switch, one bottleneck port on s1. `--switches 64` is a tree of
//! three tiers instead: 8 pods of 4 edge and 2 aggregation switches, 16 cores, two hosts at each edge switch, and flows
//! between pods, through five switches. Prints one JSON object a row. The first tenth of the packets is not measured: buffers grow and connections start then.

#[path = "../tests/common/mod.rs"]
mod common;

use common::tree::{self, EDGES, PODS, TREE, TREE_HOSTS, UP};
use netsim::{Config, Simulation};
use serde_json::{json, Value};
use std::time::Instant;

struct Options {
    flows: Vec<usize>,
    switches: usize,
    rate_bps: u64,
    rtt_ns: u64,
    mss_bytes: u64,
    queue_packets: u64,
    cc: String,
    /// 0: drop-tail on a port that is not managed.
    qthresh: u64,
    app: String,
    packets: u64,
    /// Hosts on each side; more flows share them.
    pairs: usize,
    threads: usize,
    /// 0: by the numbers of switches and flows.
    regions: usize,
}

impl Options {
    fn from_arguments() -> Result<Options, String> {
        let mut options = Options {
            flows: vec![2, 10, 100, 1000],
            switches: 2,
            rate_bps: 1_000_000_000,
            rtt_ns: 10_000_000,
            mss_bytes: 1_446,
            queue_packets: 850,
            cc: "reno".to_owned(),
            qthresh: 0,
            app: "greedy".to_owned(),
            packets: 2_000_000,
            pairs: 10,
            threads: 1,
            regions: 0,
        };
        let mut arguments = std::env::args().skip(1);
        while let Some(key) = arguments.next() {
            let value = arguments.next().ok_or(format!("{key}: needs a value"))?;
            let number = || {
                value
                    .parse::<u64>()
                    .map_err(|e| format!("{key} {value}: {e}"))
            };
            match key.as_str() {
                "--flows" => {
                    let numbers = value.split(',').map(str::parse);
                    options.flows = numbers
                        .collect::<Result<_, _>>()
                        .map_err(|e: std::num::ParseIntError| e.to_string())?;
                }
                "--switches" => {
                    options.switches = number()? as usize;
                    if ![1, 2, TREE].contains(&options.switches) {
                        return Err(format!("{key} {value}: 1, 2 or {TREE}"));
                    }
                }
                "--rate-bps" => options.rate_bps = number()?,
                "--rtt-ns" => options.rtt_ns = number()?,
                "--mss-bytes" => options.mss_bytes = number()?,
                "--queue-packets" => options.queue_packets = number()?,
                "--pairs" => options.pairs = number()?.clamp(1, HOSTS as u64) as usize,
                "--cc" => options.cc = value,
                "--qthresh" => options.qthresh = number()?,
                "--app" => options.app = value,
                "--packets" => options.packets = number()?,
                "--regions" => options.regions = number()? as usize,
                "--threads" => options.threads = number()? as usize,
                _ => {
                    return Err(format!(
                        "{key}: unknown; the file's head lists what there is"
                    ))
                }
            }
        }
        Ok(options)
    }
}

impl Options {
    fn senders(&self, flows: usize) -> usize {
        flows.min(self.pairs)
    }

    fn receivers(&self, flows: usize) -> usize {
        if self.switches == 1 {
            1
        } else {
            flows.min(self.pairs)
        }
    }
}

/// Address of sender (side 1) or receiver (side 2) number `i`.
fn ip(side: u8, i: usize) -> [u8; 4] {
    [10, side, (i / 250) as u8, (i % 250) as u8 + 1]
}

/// Ports 1 to 250 of s1 lead to the senders, those of s2 to the receivers; with one switch there is one receiver, at the
/// trunk's port. More flows than hosts share the hosts.
const HOSTS: usize = 250;
const TRUNK: u32 = 501;

fn host(side: u8, i: usize) -> Value {
    let [a, b, c, d] = ip(side, i);
    let mac = format!("08:00:00:{side:02x}:{:02x}:{:02x}", i / 250, i % 250);
    json!({"name": format!("h{side}-{i}"), "ip": format!("{a}.{b}.{c}.{d}"), "mac": mac, "gateway_mac": "08:00:00:ff:00:01"})
}

/// The tree with its flows; the delay of a round trip is that of its eight links between switches.
fn tree(options: &Options, flows: usize) -> Value {
    let port = |port: usize| {
        let rate_bps = if port < UP { 0 } else { options.rate_bps };
        json!({"port": port, "rate_bps": rate_bps, "queue_packets": options.queue_packets})
    };
    let ends = |i: usize| {
        let pod = i / TREE_HOSTS % (PODS - 1) + 1;
        let from = i % TREE_HOSTS;
        let to = (from + pod * EDGES * 2) % TREE_HOSTS;
        (format!("h{from}"), format!("h{to}"))
    };
    let list = (0..flows).map(|i| flow(options, flows, i, ends(i)));
    tree::config(
        &json!({"delay_ns": options.rtt_ns / 8}),
        port,
        list.collect(),
    )
}

/// Flow `i` of so many, all of which start within a second.
fn flow(options: &Options, flows: usize, i: usize, (from, to): (String, String)) -> Value {
    let app = match options.app.as_str() {
        "udp" => {
            json!({"kind": "cbr_udp", "rate_bps": options.rate_bps / flows as u64, "payload_bytes": options.mss_bytes})
        }
        _ => json!({"kind": "greedy"}),
    };
    let start_ns = i as u64 * (1_000_000_000 / flows as u64).min(1_000_000);
    json!({"name": format!("f{i}"), "from": from, "to": to, "start_ns": start_ns,
           "app": app, "tcp": {"cc": options.cc, "recovery": "sack", "mss_bytes": options.mss_bytes}})
}

fn config(options: &Options, flows: usize) -> Value {
    let mut hosts = Vec::new();
    let mut links = Vec::new();
    let mut add_host = |side: u8, i: usize, switch: &str, port: u32, delay_ns: u64| {
        let name = format!("h{side}-{i}");
        let delay = json!({"delay_ns": delay_ns});
        hosts.push(host(side, i));
        links.push(json!({"name": format!("l-{name}"), "a": {"node": name}, "b": {"node": switch, "port": port},
                          "a_to_b": delay, "b_to_a": delay}));
    };
    let delay_ns = options.rtt_ns / 2;
    for i in 0..options.senders(flows) {
        add_host(1, i, "s1", i as u32 + 1, 0);
    }
    for i in 0..options.receivers(flows) {
        match options.switches {
            1 => add_host(2, i, "s1", TRUNK, delay_ns),
            _ => add_host(2, i, "s2", i as u32 + 1, 0),
        }
    }
    let access: Vec<Value> = (1..=HOSTS).map(|port| json!({"port": port})).collect();
    let with_trunk = |rate_bps: u64| {
        let trunk =
            json!({"port": TRUNK, "rate_bps": rate_bps, "queue_packets": options.queue_packets});
        [access.clone(), vec![trunk]].concat()
    };
    let mut switches =
        vec![json!({"name": "s1", "program": "qthresh", "ports": with_trunk(options.rate_bps)})];
    if options.switches == 2 {
        let delay = json!({"delay_ns": delay_ns});
        let plug = |node: &str| json!({"node": node, "port": TRUNK});
        links.push(json!({"name": "trunk", "a": plug("s1"), "b": plug("s2"), "a_to_b": delay, "b_to_a": delay}));
        switches.push(json!({"name": "s2", "program": "qthresh", "ports": with_trunk(0)}));
    }
    let list: Vec<Value> = (0..flows)
        .map(|i| {
            let from = format!("h1-{}", i % options.senders(flows));
            flow(
                options,
                flows,
                i,
                (from, format!("h2-{}", i % options.receivers(flows))),
            )
        })
        .collect();
    json!({"programs": {"qthresh": {"json": common::program()}}, "switches": switches, "hosts": hosts, "links": links, "flows": list})
}

fn mac(side: u8, i: usize) -> u64 {
    0x0800_0000_0000 | u64::from(side) << 16 | (i as u64 / 250) << 8 | (i as u64 % 250)
}

fn add_tables(sim: &mut Simulation, options: &Options, flows: usize) {
    if options.switches == TREE {
        return tree::add_routes(sim);
    }
    for n in 1..=options.switches {
        let device = sim.switch_mut(&format!("s{n}")).expect("it is there");
        for (side, hosts) in [(1u8, options.senders(flows)), (2, options.receivers(flows))] {
            for i in 0..hosts {
                let port = if usize::from(side) == n {
                    i as u64 + 1
                } else {
                    TRUNK.into()
                };
                common::add_route(device, ip(side, i), mac(side, i), port);
            }
        }
        if n == 1 && options.qthresh > 0 {
            common::set_qthresh(device, TRUNK.into(), options.queue_packets, options.qthresh);
            for i in 0..flows {
                let from = (ip(1, i % options.senders(flows)), 10_000 + i as u16);
                let to = (ip(2, i % options.receivers(flows)), 5001);
                common::add_flow(device, from, to, i as u64 + 1);
            }
        }
    }
}

/// Time of all threads on CPUs since the process began, where the kernel tells: on a busy machine the wall's clock says little.
fn cpu_ns() -> Option<u64> {
    let threads = std::fs::read_dir("/proc/self/task").ok()?;
    let of_thread = |thread: std::io::Result<std::fs::DirEntry>| -> Option<u64> {
        let text = std::fs::read_to_string(thread.ok()?.path().join("schedstat")).ok()?;
        text.split(' ').next()?.parse().ok()
    };
    threads.map(of_thread).sum()
}

fn passes(sim: &Simulation) -> u64 {
    sim.switches().iter().map(|switch| switch.received).sum()
}

/// Runs until so many packets went through a pipeline; steps are short against the whole.
fn run_to(sim: &mut Simulation, packets: u64) {
    let start = passes(sim);
    while passes(sim) - start < packets {
        let next = sim.next_event().expect("flows never end");
        sim.run_until(next + 20_000_000);
    }
}

fn main() -> Result<(), String> {
    let options = Options::from_arguments()?;
    for &flows in &options.flows {
        let mut config = match options.switches {
            TREE => tree(&options, flows),
            _ => config(&options, flows),
        };
        config["threads"] = json!(options.threads);
        let config = Config::from_json(&config.to_string());
        let mut config = config.map_err(|e| e.to_string())?;
        config.regions = (options.regions > 0).then_some(options.regions);
        let mut sim = Simulation::new(&config).map_err(|e| e.to_string())?;
        add_tables(&mut sim, &options, flows);
        run_to(&mut sim, options.packets / 10);
        let cpu = cpu_ns();
        let (packets, virtual_ns, wall) = (passes(&sim), sim.now(), Instant::now());
        let acked = |sim: &Simulation| -> u64 {
            let of = |f: netsim::FlowReport| {
                f.acked_bytes
                    .max(f.received_bytes * u64::from(f.cc == "udp"))
            };
            sim.flows().into_iter().map(of).sum()
        };
        let bytes = acked(&sim);
        run_to(&mut sim, options.packets);
        let wall_s = wall.elapsed().as_secs_f64();
        let cpu_s = cpu_ns()
            .zip(cpu)
            .map(|(end, start)| (end - start) as f64 / 1e9);
        let packets = (passes(&sim) - packets) as f64;
        let virtual_s = (sim.now() - virtual_ns) as f64 / 1e9;
        let row = json!({
            "flows": flows, "switches": options.switches, "rate_bps": options.rate_bps, "app": options.app, "pairs": options.senders(flows), "qthresh": options.qthresh, "threads": options.threads,
            "packets": packets, "virtual_s": virtual_s, "wall_s": wall_s, "packets_per_s": (packets / wall_s).round(),
            "cpu_ns_per_packet": cpu_s.map(|s| s * 1e9 / packets), "virtual_per_wall": virtual_s / wall_s, "ns_per_packet": wall_s * 1e9 / packets,
            "goodput_bps": ((acked(&sim) - bytes) as f64 * 8.0 / virtual_s).round()});
        println!("{row}");
    }
    Ok(())
}
