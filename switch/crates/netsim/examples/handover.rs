// SPDX-License-Identifier: Apache-2.0
//! Paper 001's network by itself: a delay spike of 5 s, after which the wireless hop has another rate, for each sender.
//!
//! ```text
//!  h1 ── 30 ms ── s1 ═══ 10 ms, rate, queue, loss ═══ s2 ── h2        the spike holds what is on the hop, both ways
//! ```
//! `cargo run --release -p netsim --example handover -- [queue_packets] [repeats] [series]`: means over start times and seeds.

use netsim::{Simulation, SwitchReport};
use serde_json::{json, Value};
use v1model::{ActionCall, Bits, Entry, EntryAction, EntryKey, KeyMatch};

const MS: u64 = 1_000_000;
const SECOND: u64 = 1000 * MS;
const SPIKE_AT: u64 = 10 * SECOND;
const SPIKE: u64 = 5 * SECOND;
const END: u64 = 40 * SECOND;
const STEP: u64 = 50 * MS;
/// Steps over which a rate is taken.
const WINDOW: usize = 20;
const MSS_BYTES: u64 = 722;
/// 762-byte packets, counted as Ethernet frames.
const FRAME_BYTES: u64 = 776;

const SENDERS: [(&str, &str); 6] = [
    (
        "erto",
        r#"{"cc": "erto", "prr": true, "frto": true, "erto": true}"#,
    ),
    ("newreno", r#"{"cc": "reno", "prr": true}"#),
    ("sack", r#"{"cc": "reno", "prr": true, "recovery": "sack"}"#),
    ("westwood", r#"{"cc": "westwood", "prr": true}"#),
    ("frto", r#"{"cc": "reno", "prr": true, "frto": true}"#),
    (
        "bcr",
        r#"{"cc": "bcr", "prr": true, "frto": true, "erto": true}"#,
    ),
];

fn tcp(options: &str, ssthresh: u64) -> Value {
    let mut tcp = json!({"mss_bytes": MSS_BYTES, "delayed_ack": true, "quick_acks": 255, "initial_window_packets": 2,
                         "slow_start_after_idle": true, "recovery": "newreno",
                         "initial_ssthresh_packets": ssthresh});
    let Ok(Value::Object(own)) = serde_json::from_str(options) else {
        panic!("{options}: no object")
    };
    for (key, value) in own {
        tcp[key] = value;
    }
    tcp
}

/// Before and after the spike.
#[derive(Clone, Copy)]
struct Case {
    name: &'static str,
    before_bps: u64,
    after_bps: u64,
}

const CASES: [Case; 3] = [
    Case {
        name: "fast to slow",
        before_bps: 2_000_000,
        after_bps: 500_000,
    },
    Case {
        name: "slow to fast",
        before_bps: 500_000,
        after_bps: 2_000_000,
    },
    Case {
        name: "spike only",
        before_bps: 2_000_000,
        after_bps: 2_000_000,
    },
];

/// What is the same for all senders.
#[derive(Clone, Copy)]
struct Point {
    case: Case,
    queue_packets: u64,
    /// 0: slow start until the first loss.
    ssthresh_packets: u64,
    loss: f64,
}

fn config(at: Point, options: &str, repeat: u64) -> Value {
    let program = format!(
        "{}/../../../p4src/compiled/qthresh.json",
        env!("CARGO_MANIFEST_DIR")
    );
    let host = |n: u32| {
        json!({"name": format!("h{n}"), "ip": format!("10.0.{n}.1"), "mac": format!("08:00:00:00:00:0{n}"),
               "gateway_mac": format!("08:00:00:00:ff:0{n}")})
    };
    let plug = |node: &str, port: u32| json!({"node": node, "port": port});
    let queued = |port: u32, rate_bps: u64| json!({"port": port, "rate_bps": rate_bps, "queue_packets": at.queue_packets});
    let delay = |ms: u64| json!({"delay_ns": ms * MS});
    let hop = json!({"delay_ns": 10 * MS, "loss": at.loss});
    json!({
        "seed": repeat + 1,
        "programs": {"qthresh": {"json": program}},
        "switches": [
            {"name": "s1", "program": "qthresh", "ports": [{"port": 1}, queued(2, at.case.before_bps)]},
            {"name": "s2", "program": "qthresh", "ports": [{"port": 1}, queued(2, at.case.before_bps)]}],
        "hosts": [host(1), host(2)],
        "links": [
            {"name": "h1-s1", "a": {"node": "h1"}, "b": plug("s1", 1), "a_to_b": delay(30), "b_to_a": delay(30)},
            {"name": "s1-s2", "a": plug("s1", 2), "b": plug("s2", 2), "a_to_b": hop, "b_to_a": hop},
            {"name": "h2-s2", "a": {"node": "h2"}, "b": plug("s2", 1)}],
        "changes": [
            {"at_ns": SPIKE_AT, "link": "s1-s2", "spike_ns": SPIKE},
            {"at_ns": SPIKE_AT, "switch": "s1", "port": 2, "rate_bps": at.case.after_bps},
            {"at_ns": SPIKE_AT, "switch": "s2", "port": 2, "rate_bps": at.case.after_bps}],
        "flows": [{"name": "f", "from": "h1", "to": "h2", "app": {"kind": "greedy"},
                   "start_ns": repeat * 97 % 1000 * MS, "tcp": tcp(options, at.ssthresh_packets)}]})
}

fn add_route(sim: &mut Simulation, switch: &str, host: u64, port: u64) {
    let bits = |width, value| Bits::from_u64(width, value).expect("it fits");
    let device = sim.switch_mut(switch).expect("the switch is there");
    let pipeline = device.pipeline_mut().expect("it has a program");
    let names: Vec<String> = pipeline
        .schema()
        .tables
        .iter()
        .map(|t| t.name.clone())
        .collect();
    let full = names
        .iter()
        .find(|n| n.ends_with("ipv4_lpm"))
        .expect("the table is there");
    let table = pipeline.find_table(full).expect("the table is there");
    let actions: Vec<String> = pipeline
        .table_schema(table)
        .actions
        .iter()
        .map(|a| pipeline.action_schema(*a).name.clone())
        .collect();
    let forward = actions
        .iter()
        .find(|n| n.rsplit('.').next() == Some("forward"))
        .expect("it forwards");
    let action = pipeline.table_action(table, forward).expect("it forwards");
    let address = u32::from_be_bytes([10, 0, host as u8, 1]);
    let entry = Entry {
        key: EntryKey {
            matches: vec![KeyMatch::Lpm {
                value: bits(32, address.into()),
                prefix_len: 32,
            }],
            priority: 0,
        },
        action: EntryAction::Direct(ActionCall {
            action,
            args: vec![bits(48, 0x0800_0000_0000 + host), bits(9, port)],
        }),
        idle_timeout: 0,
        cookie: 0,
    };
    pipeline
        .table_insert(table, &entry, 0)
        .expect("the route is new");
}

#[derive(Clone, Copy, Default)]
struct Outcome {
    retransmits: f64,
    drops: f64,
    retransmits_to_the_end: f64,
    drops_to_the_end: f64,
    bytes_in_5_s: f64,
    recovery_s: f64,
    goodput_bps: f64,
}

fn drops(sim: &Simulation) -> u64 {
    let of = |switch: &SwitchReport| switch.drops.values().sum::<u64>();
    sim.switches().iter().map(of).sum()
}

fn run(at: Point, options: &str, repeat: u64, series: bool) -> Outcome {
    let text = config(at, options, repeat).to_string();
    let mut sim = Simulation::from_json(&text).expect("a valid configuration");
    for (switch, ports) in [("s1", [1, 2]), ("s2", [2, 1])] {
        for (host, port) in (1..).zip(ports) {
            add_route(&mut sim, switch, host, port);
        }
    }
    sim.run_until(SPIKE_AT);
    let (flow, dropped) = (sim.flows().remove(0), drops(&sim));
    let mut received = Vec::new();
    let mut after = None;
    let mut now = SPIKE_AT;
    while now < END {
        now += STEP;
        sim.run_until(now);
        let flow = &sim.flows()[0];
        if series && now >= SPIKE_AT + SPIKE - STEP && now < SPIKE_AT + SPIKE + 4 * SECOND {
            println!(
                "{:7.2} s cwnd {:4} sent {:6} rtx {:4} timeouts {:2} received {:9} drops {}",
                now as f64 / 1e9,
                flow.cwnd_packets,
                flow.sent_segments,
                flow.retransmits,
                flow.timeouts,
                flow.received_bytes,
                drops(&sim)
            );
        }
        if now >= SPIKE_AT + SPIKE {
            received.push(flow.received_bytes);
        }
        if now == SPIKE_AT + SPIKE + 5 * SECOND {
            after = Some((flow.clone(), drops(&sim)));
        }
    }
    let (after, dropped_after) = after.expect("the run is long enough");
    let full_bytes = at.case.after_bps as f64 / 8.0 * (WINDOW as u64 * STEP) as f64 / 1e9
        * MSS_BYTES as f64
        / FRAME_BYTES as f64;
    let recovered = received[2..] // what the spike held comes all at once: it does not count
        .windows(WINDOW + 1)
        .position(|w| (w[WINDOW] - w[0]) as f64 >= 0.9 * full_bytes);
    Outcome {
        retransmits: (after.retransmits - flow.retransmits) as f64,
        drops: (dropped_after - dropped) as f64,
        retransmits_to_the_end: (sim.flows()[0].retransmits - flow.retransmits) as f64,
        drops_to_the_end: (drops(&sim) - dropped) as f64,
        bytes_in_5_s: (after.received_bytes - received[0]) as f64,
        recovery_s: (recovered.unwrap_or(received.len()) + 2) as f64 * STEP as f64 / 1e9,
        goodput_bps: sim.flows()[0].acked_bytes as f64 * 8e9 / END as f64,
    }
}

fn mean(values: impl Iterator<Item = f64> + Clone) -> f64 {
    values.clone().sum::<f64>() / values.count().max(1) as f64
}

/// Mean of a's advantage over b in the same repeats, and half of its 95 % interval.
fn paired(a: &[Outcome], b: &[Outcome]) -> (f64, f64) {
    let gains: Vec<f64> = a
        .iter()
        .zip(b)
        .map(|(a, b)| a.goodput_bps - b.goodput_bps)
        .collect();
    let gain = mean(gains.iter().copied());
    let variance = mean(gains.iter().map(|g| (g - gain).powi(2)));
    (gain, 1.96 * (variance / gains.len() as f64).sqrt())
}

fn main() {
    let numbers: Vec<u64> = std::env::args()
        .skip(1)
        .filter_map(|a| a.parse().ok())
        .collect();
    let number = |index: usize, default| numbers.get(index).copied().unwrap_or(default);
    let (queue_packets, repeats, ssthresh_packets) = (number(0, 50), number(1, 20), number(2, 0));
    let only = std::env::args().skip(1).find(|a| a.parse::<u64>().is_err());
    for case in CASES {
        for loss in [0.0, 0.001, 0.01] {
            let at = Point {
                case,
                queue_packets,
                ssthresh_packets,
                loss,
            };
            println!("{}, queue {queue_packets}, loss {loss}, ssthresh {ssthresh_packets}: {repeats} runs", case.name);
            println!("  sender      rtx 5 s  rtx all  drops 5 s  drops all   KB in 5 s  90 % after s  goodput kbit/s  vs erto");
            let mut erto = Vec::new();
            for (name, options) in SENDERS {
                if only.as_deref().is_some_and(|only| only != name) {
                    continue;
                }
                let runs: Vec<Outcome> = (0..repeats)
                    .map(|repeat| run(at, options, repeat, only.is_some() && repeat == 0))
                    .collect();
                let of = |value: fn(&Outcome) -> f64| mean(runs.iter().map(value));
                let (gain, interval) = paired(&runs, if erto.is_empty() { &runs } else { &erto });
                println!(
                    "  {name:10} {:8.1} {:8.1} {:10.1} {:10.1} {:11.1} {:13.2} {:15.1} {:8.1} ± {:.1}",
                    of(|o| o.retransmits),
                    of(|o| o.retransmits_to_the_end),
                    of(|o| o.drops),
                    of(|o| o.drops_to_the_end),
                    of(|o| o.bytes_in_5_s) / 1e3,
                    of(|o| o.recovery_s),
                    of(|o| o.goodput_bps) / 1e3,
                    gain / 1e3,
                    interval / 1e3
                );
                if name == "erto" {
                    erto = runs;
                }
            }
        }
    }
}
