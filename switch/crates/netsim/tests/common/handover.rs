// SPDX-License-Identifier: Apache-2.0
//! The BCR paper's network by itself: a delay spike of 5 s, after which the wireless hop has another rate.
//!
//! ```text
//!  h1 ── 30 ms ── s1 ═══ 10 ms, rate, queue, loss ═══ s2 ── h2        the spike holds what is on the hop, both ways
//! ```

use super::{add_route, program};
use netsim::{Simulation, SwitchReport};
use serde_json::{json, Value};

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

/// By name: the simulator's options, as the lab's rows; the last two are no rows: E-RTO and BCR+ over NewReno.
pub const SENDERS: [(&str, &str); 8] = [
    (
        "erto",
        r#"{"cc": "erto", "prr": true, "frto": true, "erto": true, "recovery": "sack", "rack": true}"#,
    ),
    ("newreno", r#"{"cc": "reno", "prr": true}"#),
    (
        "sack",
        r#"{"cc": "reno", "prr": true, "recovery": "sack", "rack": true}"#,
    ),
    ("westwood", r#"{"cc": "westwood", "prr": true}"#),
    ("frto", r#"{"cc": "reno", "prr": true, "frto": true}"#),
    (
        "bcr+",
        r#"{"cc": "bcr_plus", "prr": true, "frto": true, "erto": true, "recovery": "sack", "rack": true}"#,
    ),
    (
        "erto-newreno",
        r#"{"cc": "erto", "prr": true, "frto": true, "erto": true}"#,
    ),
    (
        "bcr+-newreno",
        r#"{"cc": "bcr_plus", "prr": true, "frto": true, "erto": true}"#,
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
pub struct Case {
    pub name: &'static str,
    pub before_bps: u64,
    pub after_bps: u64,
}

pub const CASES: [Case; 3] = [
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
pub struct Point {
    pub case: Case,
    pub queue_packets: u64,
    /// 0: slow start until the first loss.
    pub ssthresh_packets: u64,
    pub loss: f64,
}

fn config(at: Point, options: &str, repeat: u64) -> Value {
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
        "programs": {"qthresh": {"json": program()}},
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

#[derive(Clone, Copy, Default)]
pub struct Outcome {
    pub retransmits: f64,
    pub drops: f64,
    pub retransmits_to_the_end: f64,
    pub drops_to_the_end: f64,
    pub bytes_in_5_s: f64,
    pub recovery_s: f64,
    pub goodput_bps: f64,
}

fn drops(sim: &Simulation) -> u64 {
    let of = |switch: &SwitchReport| switch.drops.values().sum::<u64>();
    sim.switches().iter().map(of).sum()
}

/// One run.
pub fn run(at: Point, options: &str, repeat: u64, series: bool) -> Outcome {
    let text = config(at, options, repeat).to_string();
    let mut sim = Simulation::from_json(&text).expect("a valid configuration");
    for (switch, ports) in [("s1", [1, 2]), ("s2", [2, 1])] {
        for (host, port) in (1u64..).zip(ports) {
            let device = sim.switch_mut(switch).expect("the switch is there");
            add_route(
                device,
                [10, 0, host as u8, 1],
                0x0800_0000_0000 + host,
                port,
            );
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
        let shown = SPIKE_AT + SPIKE - STEP..SPIKE_AT + SPIKE + 4 * SECOND;
        if series && shown.contains(&now) {
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
