// SPDX-License-Identifier: Apache-2.0
//! Settings that are functions of time, against arithmetic: of a link, and of the rate of a port.

use serde_json::{json, Value};
use std::path::PathBuf;
use traffic::link::{Link, LinkOptions, LinkSettings, LinkStreams, Playing, Rate, Seeds, Unit};
use traffic::{PortQueues, QueueLimits, SharedBuffer};

const MS: u64 = 1_000_000;
const S: u64 = 1_000 * MS;
/// When a lost frame leaves.
const LOST: u64 = u64::MAX;

fn read(settings: Value) -> Result<LinkOptions, String> {
    LinkOptions::read(settings.as_object().unwrap(), Unit::Ns).map_err(|e| e.to_string())
}

fn link(settings: Value, seed: u64) -> Link<u32> {
    let streams = LinkStreams::new(seed, "s1-s2/a_to_b");
    Link::new(read(settings).unwrap(), streams, 64).unwrap()
}

/// Offers frames of so many bytes at these instants; when each leaves the link, by its own calendar.
fn leave(link: &mut Link<u32>, bytes: usize, at: &[u64]) -> Vec<u64> {
    let (mut frame, mut left) = (vec![0u8; bytes], vec![LOST; at.len()]);
    let mut offers = (0..).zip(at).peekable();
    loop {
        let offer = offers.peek().map(|(_, at)| **at);
        let now = match (link.next_event(), offer) {
            (Some(event), Some(offer)) => event.min(offer),
            (Some(now), None) | (None, Some(now)) => now,
            (None, None) => return left,
        };
        while let Some(exit) = link.poll(now) {
            if exit.dropped.is_none() {
                assert_eq!(exit.at, now, "announced in time");
                left[exit.item as usize] = exit.at;
            }
        }
        if let Some((number, _)) = offers.next_if(|(_, at)| **at == now) {
            link.transmit(now, &mut frame, number).unwrap();
        }
    }
}

/// A file of a test, removed with the value.
struct File(PathBuf);

impl File {
    fn new(name: &str, text: &str) -> File {
        let path = std::env::temp_dir().join(format!("series-{}-{name}", std::process::id()));
        std::fs::write(&path, text).unwrap();
        File(path)
    }

    fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[test]
fn a_step_of_the_rate_changes_the_frame_on_the_line() {
    // 1,000 bytes take 8 ms at 1 Mbit/s. At 4 ms half has left; the rest takes 1 ms at 4 Mbit/s.
    let mut link = link(
        json!({"rate_bps": {"steps": [[0, 1e6], [0.004, 4e6], [0.02, 1e6]]}}),
        1,
    );
    assert_eq!(leave(&mut link, 1000, &[0, 0]), [5 * MS, 7 * MS]);
    // An idle line has the rate of its time: from 19 ms 1 ms at 4 Mbit/s, half the frame; the rest takes 4 ms.
    let mut link = self::link(
        json!({"rate_bps": {"steps": [[0, 1e6], [0.004, 4e6], [0.02, 1e6]]}}),
        1,
    );
    assert_eq!(
        leave(&mut link, 1000, &[19 * MS, 60 * MS]),
        [24 * MS, 68 * MS]
    );
}

#[test]
fn a_rate_of_zero_stands_and_goes_on() {
    let settings = json!({"rate_bps": {"steps": [[0, 1e6], [0.004, 0], [1, 2e6]], "repeat_s": 10}});
    let mut link = link(settings, 1);
    // Half of it by 4 ms, the rest from 1 s on in 2 ms; the frame that comes in between waits.
    assert_eq!(
        leave(&mut link, 1000, &[0, 500 * MS, 10 * S + 4 * MS]),
        [S + 2 * MS, S + 6 * MS, 11 * S + 4 * MS]
    );
}

#[test]
fn a_delay_steps_and_glides_and_packets_keep_their_order() {
    let steps = json!([[0, 30], [15, 35], [30, 20]]);
    let mut stepped = link(json!({"delay_ns": {"steps": steps, "repeat_s": 60}}), 1);
    let at = [
        0,
        15 * S - 1,
        15 * S,
        30 * S - 1,
        30 * S,
        59 * S,
        60 * S,
        75 * S,
    ];
    let delays = [30, 30, 35, 35, 20, 20, 30, 35];
    let left = leave(&mut stepped, 100, &at);
    for ((at, left), ms) in at.iter().zip(&left).zip(delays) {
        // What would overtake waits for the one before.
        let due = if *at == 30 * S {
            30 * S - 1 + 35 * MS
        } else {
            at + ms * MS
        };
        assert_eq!(*left, due, "offered at {at}");
    }
    let mut glides = link(
        json!({"delay_ns": {"steps": [[0, 10], [10, 20]], "glide": true}}),
        1,
    );
    let left = leave(&mut glides, 100, &[0, S, 2_500 * MS, 10 * S, 99 * S]);
    assert_eq!(
        left,
        [
            10 * MS,
            S + 11 * MS,
            2_500 * MS + 12_500_000,
            10 * S + 20 * MS,
            99 * S + 20 * MS
        ]
    );
}

#[test]
fn what_is_drawn_is_in_range_and_the_same_again() {
    let settings = json!({"delay_ns": {"uniform": [5, 100], "every_s": 15}});
    let at: Vec<u64> = (0..400).map(|i| i * S).collect();
    let draw = |settings: &Value, seed| {
        let left = leave(&mut link(settings.clone(), seed), 100, &at);
        left.iter()
            .zip(&at)
            .map(|(left, at)| left - at)
            .collect::<Vec<_>>()
    };
    let first = draw(&settings, 1);
    assert_eq!(first, draw(&settings, 1));
    assert_ne!(first, draw(&settings, 2));
    assert!(first
        .iter()
        .all(|delay| (5 * MS..=100 * MS).contains(delay)));
    // A random phase: changes are 15 s apart, not at multiples of 15 s.
    let changes: Vec<usize> = (1..400).filter(|i| first[*i] != first[i - 1]).collect();
    assert_eq!(changes.len(), 26 + usize::from(changes[0] < 10));
    assert!(changes.windows(2).all(|pair| pair[1] - pair[0] == 15));
    assert_ne!(
        changes[0],
        draw(&settings, 2)
            .windows(2)
            .position(|pair| pair[0] != pair[1])
            .unwrap()
            + 1
    );
    let mut begun = settings.clone();
    begun["delay_ns"]["phase"] = json!(5);
    let begun = draw(&begun, 1);
    assert!(
        begun[9] == begun[0]
            && begun[10] != begun[9]
            && begun[24] == begun[10]
            && begun[25] != begun[24]
    );
    // The mean of 100 ms ± 10 ms over 400 draws is within 4 · 10/√400 = 2 ms.
    let normal = draw(&json!({"delay_ns": {"normal": [100, 10], "every_s": 1}}), 3);
    assert!((normal.iter().sum::<u64>() / 400).abs_diff(100 * MS) < 2 * MS);
    let choice = draw(&json!({"delay_ns": {"choice": [7, 9], "every_s": 1}}), 3);
    let sevens = choice.iter().filter(|delay| **delay == 7 * MS).count();
    assert!(
        (150..250).contains(&sevens) && choice.iter().all(|delay| [7 * MS, 9 * MS].contains(delay))
    );
}

#[test]
fn a_series_takes_no_draw_from_the_impairments() {
    let at: Vec<u64> = (0..2_000).map(|i| i * 10 * MS).collect();
    let lost = |settings: Value| {
        let left = leave(&mut link(settings, 5), 100, &at);
        left.iter().map(|left| *left == LOST).collect::<Vec<_>>()
    };
    let plain = lost(json!({"loss": 0.3, "delay_ns": 100 * MS, "jitter_ns": 5 * MS}));
    let varying = lost(
        json!({"loss": 0.3, "delay_ns": {"uniform": [50, 90], "every_s": 1}, "jitter_ns": 5 * MS,
                              "rate_bps": {"normal": [1e6, 1e5], "every_s": 0.5}}),
    );
    assert_eq!(plain, varying);
    // All is lost in the second ten seconds.
    let all = lost(json!({"loss": {"steps": [[0, 0], [10, 1]]}}));
    assert!(all[..1000].iter().all(|lost| !lost) && all[1000..].iter().all(|lost| *lost));
}

#[test]
fn files_of_leoreplayer_and_of_two_columns_are_read_as_they_are() {
    // Its delay at t is that of line t / 10 ms, over and over.
    let delays = File::new("delay.trace", "30\n31\n45\n28\n");
    let settings = json!({"delay_ns": {"values": delays.path(), "every_s": 0.01}});
    let at = [0, 9 * MS, 10 * MS, 20 * MS, 39 * MS, 40 * MS + 30 * MS];
    let left = leave(&mut link(settings, 1), 100, &at);
    assert_eq!(left[..4], [30 * MS, 39 * MS, 41 * MS, 65 * MS]);
    assert_eq!(left[4..], [39 * MS + 28 * MS, 70 * MS + 28 * MS]);
    let rates = File::new("rate.csv", "# time, Mbit/s\n0, 1\n0.004, 4\n");
    let settings = json!({"rate_bps": {"steps": rates.path(), "scale": 1e6}});
    assert_eq!(leave(&mut link(settings, 1), 1000, &[0]), [5 * MS]);
}

/// What is drawn may glide too; series with one period change together, of a link and of a port.
#[test]
fn draws_glide_from_one_to_the_next_and_change_together() {
    let settings =
        json!({"delay_ns": {"uniform": [5, 50], "every_s": 10, "glide": true, "phase": 0}});
    let at: Vec<u64> = (0..=40).map(|i| i * S).collect();
    let left = leave(&mut link(settings, 1), 100, &at);
    let delay = |i: usize| left[i] - at[i];
    assert!((1..40)
        .filter(|i| i % 10 > 0)
        .all(|i| (delay(i - 1) + delay(i + 1)).abs_diff(2 * delay(i)) <= 2));
    let together = json!({"delay_ns": {"choice": [1, 2], "every_s": 2}, "rate_bps": {"uniform": [1e6, 2e6], "every_s": 2}});
    let link = link(together.clone(), 1);
    let changes = |mut at: Box<dyn FnMut(u64) -> f64>| {
        (1..4_000)
            .filter(|i| at(i * MS) != at((i - 1) * MS))
            .collect::<Vec<u64>>()
    };
    let rate = changes(Box::new(move |now| {
        link.present(now, Unit::Ns)["rate_bps"].as_f64().unwrap()
    }));
    let Rate::Follows(series) = serde_json::from_value(together["rate_bps"].clone()).unwrap()
    else {
        panic!("a number");
    };
    let mut port = Playing::new(series, Seeds::new(1, "a port"), 0, 777);
    assert_eq!(rate, changes(Box::new(move |now| port.at(now))));
    assert_eq!(rate.len(), 2);
}

#[test]
fn what_cannot_be_is_refused_with_what_can() {
    let bad = File::new("bad.csv", "0 1\n1 x\n");
    let of_file = format!(
        "delay_ns: steps: {}: line 2: \"1 x\" is not two numbers",
        bad.path()
    );
    for (settings, said) in [
        (json!({"loss": {}}), "loss: is to have one of steps, values, uniform, normal, choice, trace"),
        (json!({"loss": {"uniform": [0, 1], "trace": [1]}}), "loss: is to have one of steps, values, uniform, normal, choice, trace"),
        (json!({"loss": {"uniform": [0, 1], "every": 1}}), "loss: every: unknown field `every`, expected one of `steps`, `values`, `uniform`, `normal`, `choice`, `trace`, `every_s`, `repeat_s`, `phase`, `glide`, `scale`"),
        (json!({"loss": {"uniform": [0, "x"], "every_s": 1}}), "loss: uniform: invalid type: string \"x\", expected f64"),
        (json!({"loss": {"uniform": [0, 1], "repeat_s": 1}}), "loss: repeat_s stands beside uniform; allowed beside it: every_s, phase, glide, scale"),
        (json!({"rate_bps": {"trace": [1], "glide": true}}), "rate_bps: glide stands beside trace; allowed beside it: nothing"),
        (json!({"loss": {"uniform": [0, 1]}}), "loss: uniform: every_s is missing"),
        (json!({"loss": {"steps": [[0, 2]]}}), "loss: steps: number 1: 2 is out of range; allowed: 0 to 1"),
        (json!({"loss": {"steps": [0, 2]}}), "loss: steps: is not pairs of a time in s and a value; allowed: a file, or a list of them"),
        (json!({"loss": {"values": [], "every_s": 1}}), "loss: values: has no value; allowed: one or more"),
        (json!({"rate_bps": {"steps": [[0, 10]]}}), "rate_bps: steps: number 1: 10 is out of range; allowed: 1000 to 400000000000 bit/s, or 0 (nothing leaves)"),
        (json!({"delay_ns": {"choice": [1, 70000], "every_s": 1}}), "delay_ns: choice: 70000 is out of range; allowed: 0 to 60000 ms"),
        (json!({"delay_ns": {"choice": [1], "every_s": 1e-9}}), "delay_ns: choice: every_s: 0.000000001 is out of range; allowed: 0.001 to 1000000 s"),
        (json!({"delay_ns": {"steps": [[1, 1], [1, 2]]}}), "delay_ns: steps: number 2: 1 s is not later than the one before; allowed: 0 to 1e9, rising"),
        (json!({"delay_ns": {"steps": [[0, 1], [9, 2]], "repeat_s": 9}}), "delay_ns: steps: repeat_s is not behind the last step (9 s)"),
        (json!({"delay_ns": {"values": vec![1; 20_000], "every_s": 1e6}}), "delay_ns: values: number 1002: 1001000000 s is not later than the one before; allowed: 0 to 1e9, rising"),
        (json!({"delay_ns": {"uniform": [2, 1], "every_s": 1}}), "delay_ns: uniform: is not in order; allowed: least and largest value, or mean and standard deviation"),
        (json!({"delay_ns": {"steps": [[0, 1]], "phase": "random"}}), "delay_ns: steps: phase needs repeat_s"),
        (json!({"delay_ns": {"uniform": [2, 3], "every_s": 1, "phase": 2}}), "delay_ns: uniform: phase is not known; allowed: \"random\", or a time in s below 1"),
        (json!({"delay_ns": {"steps": [[0, 5], [1, 3]]}, "jitter_ns": 4 * MS}), "jitter_ns: 4000000 exceeds delay_ns (3000000); allowed: 0 to 3000000 ns"),
        (json!({"delay_ns": {"trace": [3]}}), "delay_ns: trace: only a rate has a trace"),
        (json!({"delay_ns": {"steps": bad.path()}}), &of_file),
        (json!({"queue_packets": {"steps": [[0, 1]]}}), "queue_packets: {\"steps\":[[0,1]]} is not a whole number; allowed: 1 to 1000000 packets"),
        (json!({"rate_bps": {"trace": [3]}, "dama_frame_ns": MS}), "dama_frame_ns: 1000000 cannot be; allowed: beside a rate_bps that is a number"),
    ] {
        assert_eq!(read(settings).unwrap_err(), said);
    }
}

#[test]
fn what_is_shown_reads_back() {
    let settings = json!({"delay_ns": {"uniform": [5, 100], "every_s": 15}, "rate_bps": {"steps": [[0, 1e6]]}});
    let options = read(settings.clone()).unwrap();
    let shown = options.show(Unit::Us);
    assert_eq!(shown["delay_us"], settings["delay_ns"]);
    assert_eq!(LinkOptions::read(&shown, Unit::Us), Ok(options.clone()));
    // A number takes it away.
    let number = LinkSettings::read(json!({"delay_ns": 7}).as_object().unwrap(), Unit::Ns).unwrap();
    assert_eq!(
        number
            .applied_to(&options, Unit::Ns)
            .unwrap()
            .show(Unit::Ns)["delay_ns"],
        7
    );
}

#[test]
fn a_series_goes_on_while_other_settings_change() {
    let settings = json!({"delay_ns": {"steps": [[0, 10], [1, 20]], "repeat_s": 2}});
    let mut link = link(settings.clone(), 1);
    link.begin(100 * S);
    let mut changed = read(settings).unwrap();
    changed.queue_packets = 5;
    link.set(100 * S + 500 * MS, changed).unwrap();
    assert_eq!(
        json!(link.present(101 * S, Unit::Us)),
        json!({"delay_us": 20e3})
    );
    assert_eq!(leave(&mut link, 100, &[101 * S]), [101 * S + 20 * MS]);
}

/// When each of these packets, which all wait from the beginning, leaves a port.
fn port(rate: Value, packets: u32, bytes: u32) -> Vec<u64> {
    let Rate::Follows(series) = serde_json::from_value(rate).unwrap() else {
        panic!("a number");
    };
    let mut port = PortQueues::new(1, QueueLimits::packets(100), 0);
    let mut buffer = SharedBuffer::new(QueueLimits::packets(100));
    port.follow(0, Playing::new(series, Seeds::default(), 0, 0), None);
    for item in 0..packets {
        port.enqueue(0, 0, bytes, item, &mut buffer).unwrap();
    }
    let (mut left, mut on_line) = (Vec::new(), false);
    let mut now = 0;
    loop {
        if on_line && port.is_free(now) {
            left.push(now);
            on_line = false;
        }
        if !on_line && port.dequeue(now, &mut buffer).is_some() {
            port.served(now, bytes);
            on_line = true;
        }
        now = match (on_line, port.next_departure()) {
            (true, _) => port.busy_until(),
            (false, Some(next)) => next,
            (false, None) => return left,
        };
    }
}

#[test]
fn a_port_follows_a_rate_and_a_delivery_trace() {
    let steps = json!({"steps": [[0, 1e6], [0.004, 4e6], [0.02, 1e6]]});
    assert_eq!(port(steps, 2, 1000), [5 * MS, 7 * MS]);
    let opportunities = File::new("cell.trace", "2\n2\n5\n10\n");
    let trace = json!({"trace": opportunities.path()});
    assert_eq!(
        port(trace, 5, 1514),
        [2 * MS, 2 * MS, 5 * MS, 10 * MS, 12 * MS]
    );
    let stands = json!({"steps": [[0, 0], [1, 1e6]], "repeat_s": 2});
    assert_eq!(port(stands, 1, 1000), [S + 8 * MS]);
}
