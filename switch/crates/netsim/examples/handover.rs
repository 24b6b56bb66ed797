// SPDX-License-Identifier: Apache-2.0
//! What each sender makes of a delay spike with a hand-over (BCR paper): means over start times and seeds.
//!
//! `cargo run --release -p netsim --example handover -- [queue_packets] [repeats] [ssthresh_packets] [sender]`; with a sender
//! only that one, and its first repeat as a series. `rtx` and `drops` are counted from the spike's start, to 5 s after its end
//! and to the end of the run.

#[path = "../tests/common/mod.rs"]
mod common;

use common::handover::{run, Outcome, Point, CASES, SENDERS};

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

fn main() -> Result<(), String> {
    let numbers: Vec<u64> = std::env::args()
        .skip(1)
        .filter_map(|a| a.parse().ok())
        .collect();
    let number = |index: usize, default| numbers.get(index).copied().unwrap_or(default);
    let (queue_packets, repeats, ssthresh_packets) = (number(0, 50), number(1, 20), number(2, 0));
    let only = std::env::args().skip(1).find(|a| a.parse::<u64>().is_err());
    let names = SENDERS.map(|(name, _)| name);
    if let Some(unknown) = only.as_deref().filter(|only| !names.contains(only)) {
        return Err(format!(
            "{unknown}: no sender; allowed: {}",
            names.join(", ")
        ));
    }
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
    Ok(())
}
