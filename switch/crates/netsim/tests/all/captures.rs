// SPDX-License-Identifier: Apache-2.0
//! Captures of links: exact instants, whole lengths, and no effect on the run.

use crate::common::*;
use crate::reading::{read, temporary, Seen};
use netsim::Simulation;
use serde_json::{json, Value};
use std::fs::File;
use std::io::Read;
use std::process::Command;

const MS: u64 = 1_000_000;
/// Of a datagram with 958 bytes of payload, sent at 1 Mbit/s.
const PERIOD: u64 = 7_664_000;

fn config() -> Value {
    let flow = json!({"kind": "cbr_udp", "rate_bps": 1_000_000, "payload_bytes": 958});
    let flows = json!([{"name": "udp", "from": "h1", "to": "h3", "app": flow}]);
    dumbbell(2_000_000, 50, 10 * MS, flows)
}

/// The frames of a capture of s1-s2 in a second.
fn capture(mut config: Value, name: &str, settings: Value) -> Vec<Seen> {
    let path = temporary(name);
    config["captures"] = json!([{"link": "s1-s2", "file": path}]);
    let capture = config["captures"][0].as_object_mut().unwrap();
    capture.extend(settings.as_object().unwrap().clone());
    let mut sim = routed(&config);
    sim.run_until(1_000 * MS);
    let report = sim.captures();
    let seen = read(&path);
    std::fs::remove_file(&path).unwrap();
    assert_eq!((report.len(), &report[0].error), (1, &None));
    assert_eq!(report[0].packets, seen.len() as u64);
    seen
}

/// A frame of 1000 bytes leaves port 3 of s1 4 ms after it came, and is at s2 10 ms later.
#[test]
fn frames_are_seen_where_they_are_to_the_nanosecond() {
    for (end, after) in [("a", 4 * MS), ("b", 14 * MS)] {
        let seen = capture(config(), &format!("end-{end}"), json!({"at": end}));
        assert_eq!(seen.len() as u64, (1_000 * MS - after) / PERIOD + 1);
        for (number, frame) in (0..).zip(&seen) {
            assert_eq!(frame.interface, "s1-s2 a_to_b");
            assert_eq!(frame.at_ns, number * PERIOD + after);
            assert_eq!((frame.len_bytes, frame.bytes.len()), (1_000, 128));
            // From 10.0.1.1, UDP.
            assert_eq!(frame.bytes[23], 17);
            assert_eq!(frame.bytes[26..30], [10, 0, 1, 1]);
        }
    }
    let whole = capture(config(), "whole", json!({"snap_bytes": 65_535}));
    assert!(whole.iter().all(|frame| frame.bytes.len() == 1_000));
    let back = capture(config(), "back", json!({"direction": "b_to_a"}));
    assert_eq!(back, []);
}

/// At end a there is what is lost on the way, without bit errors; at end b there is not, and bits are flipped.
#[test]
fn losses_and_bit_errors_are_between_the_ends() {
    let mut config = config();
    let link = config["links"].as_array_mut().unwrap();
    let link = link.iter_mut().find(|link| link["name"] == "s1-s2");
    link.unwrap()["a_to_b"] = json!({"delay_ns": 10 * MS, "loss": 0.3, "ber": 1e-4});
    let whole = json!({"snap_bytes": 65_535});
    let sent = capture(config.clone(), "sent", whole.clone());
    assert_eq!(sent.len() as u64, (1_000 * MS - 4 * MS) / PERIOD + 1);
    let mut at_b = whole;
    at_b["at"] = json!("b");
    let delivered = capture(config, "delivered", at_b);
    assert!((60..120).contains(&delivered.len()), "{}", delivered.len());
    let mut flipped = 0;
    for frame in &delivered {
        let at = frame.at_ns - 10 * MS;
        let origin = sent.iter().find(|one| one.at_ns == at).unwrap();
        flipped += usize::from(origin.bytes != frame.bytes);
    }
    assert!(flipped > delivered.len() / 4, "{flipped}");
    // Headers that say what their sender wrote.
    assert!(sent
        .iter()
        .all(|one| one.bytes[14] == 0x45 && one.bytes[50..].iter().all(|b| *b == 0)));
}

/// The report of a run, without captures and with them; that one of their files cannot be written any more does not matter.
#[test]
fn a_capture_changes_nothing() {
    let flows = json!([
        {"name": "a", "from": "h1", "to": "h3", "app": {"kind": "greedy"}},
        {"name": "b", "from": "h2", "to": "h4", "app": {"kind": "greedy"}}]);
    let mut config = dumbbell(2_000_000, 20, 10 * MS, flows);
    let run = |sim: &mut Simulation| {
        sim.run_until(3_000 * MS);
        format!("{:?} {:?} {:?}", sim.flows(), sim.ports(), sim.links())
    };
    let plain = run(&mut routed(&config));
    let (path, pipe) = (temporary("nothing"), temporary("pipe"));
    let made = Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    config["captures"] =
        json!([{"link": "s1-s2", "file": path}, {"link": "s1-s2", "file": pipe, "at": "b"}]);
    // Who reads the pipe goes away after the first bytes.
    let opened = pipe.clone();
    let read = move || File::open(opened).unwrap().read_exact(&mut [0; 16]);
    let reader = std::thread::spawn(read);
    let mut sim = routed(&config);
    reader.join().unwrap().unwrap();
    assert_eq!(plain, run(&mut sim));
    let reports = sim.captures();
    std::fs::remove_file(&path).unwrap();
    std::fs::remove_file(&pipe).unwrap();
    assert!(
        reports[0].packets > 400 && reports[0].error.is_none(),
        "{reports:?}"
    );
    let broken = reports[1].error.as_ref().unwrap();
    assert!(
        broken.ends_with("pipe.pcapng: Broken pipe (os error 32)"),
        "{broken}"
    );
}

#[test]
fn what_cannot_be_captured_is_told() {
    let told = |captures: Value| {
        let mut config = config();
        config["captures"] = captures;
        match Simulation::from_json(&config.to_string()) {
            Ok(_) => panic!("accepted"),
            Err(error) => error.to_string(),
        }
    };
    assert!(told(json!([{"link": "s9", "file": "/dev/null"}]))
        .starts_with("captures[0].link: there is no \"s9\"; there are: \"h1-s1\","));
    assert_eq!(
        told(json!([{"link": "s1-s2", "file": "/nowhere/x.pcapng"}])),
        "captures: /nowhere/x.pcapng cannot be written: No such file or directory (os error 2)"
    );
    assert_eq!(
        told(json!([{"link": "s1-s2", "file": "/dev/null", "snap_bytes": 1}])),
        "captures[0].snap_bytes: 1 is not allowed; allowed: 14 to 65535, or null"
    );
    let one = json!({"link": "s1-s2", "file": "/dev/null"});
    assert_eq!(
        told(json!([one, one])),
        "captures[1].file: \"/dev/null\" is there twice"
    );
}
