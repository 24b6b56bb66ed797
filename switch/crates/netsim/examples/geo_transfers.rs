// SPDX-License-Identifier: Apache-2.0
//! Measures files over the GEO satellite link of paper 003, with ENA and without, beside the ceiling.
//!
//! ```text
//!  h1 ── s1 ═══════════ s2 ── h2        ═ T1, 290 ms one way, 100 packets before it; access 10 Mbit/s without delay
//!
//!  cargo run --release -p netsim --example geo_transfers -- [--recovery sack,reno,tahoe] [--ena 0,1] [--window-bytes 65536,112640]
//!      [--ber 1e-5,1e-6,1e-7] [--bytes 100000,1000000,10000000] [--seeds 5] [--limit-s 10000] [--outstanding 1] [--timestamps 0] [--buffer-windows 2] [--presumes 1] [--clamp 0]
//! ```
//!
//! Recoveries are RFC 5681's, 6582's and 6675's; with `lab-` before their names they are the rows that the lab runs (Linux).
//! With `--clamp 1` the window is cwnd's clamp and SACK's receive buffer takes `--buffer-windows` of it, as in the lab.
//! One JSON object a row: means over the seeds. `ceiling_bps` is what a sender gets that never waits and never reduces:
//! min(window / RTT, link rate · 512/566) · (1 − p), p = 1 − (1 − ber)^(8 · 552) (a frame's Ethernet header is spared).

#[path = "../tests/common/mod.rs"]
mod common;

use netsim::Simulation;
use serde_json::{json, Value};

const MSS_BYTES: u64 = 512;
const PACKET_BYTES: u64 = 552;
const FRAME_BYTES: u64 = 566;
const RATE_BPS: u64 = 1_544_000;
const DELAY_NS: u64 = 290_000_000;
const RECOVERIES: [&str; 4] = ["sack", "newreno", "reno", "tahoe"];

struct Options {
    recovery: Vec<String>,
    ena: Vec<u64>,
    window_bytes: Vec<u64>,
    ber: Vec<f64>,
    bytes: Vec<u64>,
    seeds: u64,
    limit_s: u64,
    outstanding: u64,
    timestamps: u64,
    buffer_windows: u64,
    presumes: u64,
    clamp: u64,
}

fn list<T: std::str::FromStr>(key: &str, value: &str) -> Result<Vec<T>, String> {
    value
        .split(',')
        .map(|part| {
            part.parse()
                .map_err(|_| format!("{key} {part}: not allowed"))
        })
        .collect()
}

impl Options {
    fn from_arguments() -> Result<Options, String> {
        let mut options = Options {
            recovery: ["sack", "reno", "tahoe"].map(str::to_owned).to_vec(),
            ena: vec![0, 1],
            window_bytes: vec![65_536, 112_640],
            ber: vec![1e-5, 1e-6, 1e-7],
            bytes: vec![100_000, 1_000_000, 10_000_000],
            seeds: 5,
            limit_s: 10_000,
            outstanding: 1,
            timestamps: 0,
            buffer_windows: 2,
            presumes: 1,
            clamp: 0,
        };
        let mut arguments = std::env::args().skip(1);
        while let Some(key) = arguments.next() {
            let value = arguments.next().ok_or(format!("{key}: needs a value"))?;
            match key.as_str() {
                "--recovery" => options.recovery = list(&key, &value)?,
                "--ena" => options.ena = list(&key, &value)?,
                "--window-bytes" => options.window_bytes = list(&key, &value)?,
                "--ber" => options.ber = list(&key, &value)?,
                "--bytes" => options.bytes = list(&key, &value)?,
                "--seeds" => options.seeds = list(&key, &value)?[0],
                "--limit-s" => options.limit_s = list(&key, &value)?[0],
                "--outstanding" => options.outstanding = list(&key, &value)?[0],
                "--buffer-windows" => options.buffer_windows = list(&key, &value)?[0],
                "--clamp" => options.clamp = list(&key, &value)?[0],
                "--presumes" => options.presumes = list(&key, &value)?[0],
                "--timestamps" => options.timestamps = list(&key, &value)?[0],
                _ => {
                    return Err(format!(
                        "{key}: unknown; the file's head lists what there is"
                    ))
                }
            }
        }
        if options.seeds == 0 {
            return Err("--seeds 0: not allowed; 1 or more".to_owned());
        }
        let known = |name: &&String| {
            let row = name.strip_prefix("lab-");
            RECOVERIES.contains(&row.unwrap_or(name)) && row != Some("newreno")
        };
        match options.recovery.iter().find(|name| !known(name)) {
            Some(name) => Err(format!(
                "--recovery {name}: not allowed; {}, or sack, reno, tahoe behind `lab-`",
                RECOVERIES.join(", ")
            )),
            None => Ok(options),
        }
    }
}

/// What is run once for each seed.
struct Case<'a> {
    recovery: &'a str,
    ena: bool,
    window_bytes: u64,
    ber: f64,
    bytes: u64,
}

impl Case<'_> {
    fn config(&self, options: &Options, seed: u64) -> Value {
        let limit = match options.outstanding {
            1 => "outstanding",
            _ => "window",
        };
        let mut tcp = json!({
            "recovery": self.recovery, "ena": self.ena, "ena_presumes": options.presumes == 1, "mss_bytes": MSS_BYTES, "delayed_ack": false,
            "receive_window_bytes": self.window_bytes, "sack_limit": limit, "sack_buffer_windows": options.buffer_windows, "timestamps": options.timestamps == 1,
            "initial_window_packets": 1, "initial_ssthresh_packets": self.window_bytes / MSS_BYTES});
        if options.clamp == 1 {
            let windows = match self.recovery.ends_with("sack") {
                true => options.buffer_windows,
                false => 1,
            };
            tcp["sack_limit"] = json!("window");
            tcp["cwnd_clamp_packets"] = json!(self.window_bytes / MSS_BYTES);
            tcp["receive_window_bytes"] = json!(windows * self.window_bytes);
            tcp["initial_ssthresh_packets"] = json!(0);
            tcp["initial_window_packets"] = json!(2);
        }
        if let Some(row) = self.recovery.strip_prefix("lab-") {
            let (recovery, cc) = match row {
                "sack" => ("sack", "reno"),
                "reno" => ("newreno", "reno_recovery"),
                _ => ("newreno", "tahoe"),
            };
            tcp["recovery"] = json!(recovery);
            tcp["cc"] = json!(cc);
            tcp["prr"] = json!(row == "sack");
            tcp["slow_start_after_idle"] = json!(true);
            tcp["rack"] = json!(row == "sack");
        }
        let app = json!({"kind": "bytes", "bytes": self.bytes});
        let flows = json!([{"name": "file", "from": "h1", "to": "h3", "app": app, "tcp": tcp}]);
        let mut config = common::dumbbell(RATE_BPS, 100, DELAY_NS, flows);
        config["seed"] = json!(seed);
        for port in [1, 2] {
            config["switches"][0]["ports"][port - 1]["rate_bps"] = json!(10_000_000);
            config["switches"][1]["ports"][port - 1]["rate_bps"] = json!(10_000_000);
        }
        config["switches"][1]["ports"][2] =
            json!({"port": 3, "rate_bps": RATE_BPS, "queue_packets": 100});
        let satellite = json!({"delay_ns": DELAY_NS, "ber": self.ber});
        config["links"][4]["a_to_b"] = satellite.clone();
        config["links"][4]["b_to_a"] = satellite;
        config
    }

    fn run(&self, options: &Options) -> Value {
        let mut sums = std::collections::BTreeMap::new();
        let mut count = |what: &'static str, value: f64| {
            *sums.entry(what).or_insert(0.0) += value / options.seeds as f64
        };
        let mut goodputs = Vec::new();
        for seed in 1..=options.seeds {
            let mut sim = common::routed(&self.config(options, seed));
            let end = options.limit_s * 1_000_000_000;
            while sim.transfers().is_empty() && sim.now() < end {
                sim.run_until(sim.now() + 1_000_000_000);
            }
            let flow = &sim.flows()[0];
            let seconds = match sim.transfers().first() {
                Some(transfer) => (transfer.end_ns - transfer.start_ns) as f64 / 1e9,
                None => sim.now() as f64 / 1e9,
            };
            goodputs.push(flow.acked_bytes as f64 * 8.0 / seconds);
            for (what, value) in [
                ("finished", flow.completed),
                ("retransmits", flow.retransmits),
                ("timeouts", flow.timeouts),
                ("reductions", flow.window_reductions),
                ("corrupted", flow.ena_corrupted),
                ("notified", flow.ena_notified),
                ("kept", flow.ena_kept),
                ("presumed", flow.ena_presumed),
                ("hit", satellite_hits(&sim)),
                ("queue_drops", queue_drops(&sim)),
                ("cwnd_packets", u64::from(flow.cwnd_packets)),
            ] {
                count(what, value as f64);
            }
        }
        goodputs.sort_by(f64::total_cmp);
        let goodput_bps = goodputs.iter().sum::<f64>() / goodputs.len() as f64;
        let packet_error = 1.0 - (1.0 - self.ber).powi(8 * PACKET_BYTES as i32);
        let link_bps = RATE_BPS as f64 * MSS_BYTES as f64 / FRAME_BYTES as f64;
        let rtt_s = 2.0 * DELAY_NS as f64 / 1e9
            + (FRAME_BYTES + 54) as f64 * 8.0 * (1.0 / RATE_BPS as f64 + 2.0 / 1e7);
        let window_bps = self.window_bytes as f64 * 8.0 / rtt_s;
        let ceiling_bps = window_bps.min(link_bps) * (1.0 - packet_error);
        let round = |value: f64| (value * 1000.0).round() / 1000.0;
        let mut row = json!({
            "recovery": self.recovery, "ena": self.ena, "window_bytes": self.window_bytes, "ber": self.ber,
            "bytes": self.bytes, "goodput_kbps": round(goodput_bps / 1e3),
            "least_kbps": round(goodputs[0] / 1e3), "of_ceiling": round(goodput_bps / ceiling_bps)});
        row["each_kbps"] = goodputs.iter().map(|g| (g / 1e3).round()).collect();
        for (what, value) in sums {
            row[what] = json!(round(value));
        }
        row
    }
}

/// Packets with flipped bits on the way to the receiver.
fn satellite_hits(sim: &Simulation) -> u64 {
    let links = sim.links();
    let hits = links
        .iter()
        .filter(|l| l.link == "s1-s2" && l.direction == "a_to_b");
    hits.map(|l| l.stats.corrupted_packets).sum()
}

fn queue_drops(sim: &Simulation) -> u64 {
    let ports = sim.ports();
    ports.iter().map(|p| p.refused_packets).sum()
}

fn main() -> Result<(), String> {
    let options = Options::from_arguments()?;
    for recovery in &options.recovery {
        for &window_bytes in &options.window_bytes {
            for &ber in &options.ber {
                for &bytes in &options.bytes {
                    for &ena in &options.ena {
                        let case = Case {
                            recovery,
                            ena: ena == 1,
                            window_bytes,
                            ber,
                            bytes,
                        };
                        println!("{}", case.run(&options));
                    }
                }
            }
        }
    }
    Ok(())
}
