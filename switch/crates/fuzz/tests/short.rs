// SPDX-License-Identifier: Apache-2.0
//! `make fuzz-short`: every target for a while, always with the same inputs.

use std::time::Duration;

use fuzz::campaign::{self, Options};
use fuzz::guard::{self, Counting, Limits};
use fuzz::targets;

#[global_allocator]
static MEMORY: Counting = Counting;

const SEED: u64 = 1;
/// As many as two slow cores do in some 20 s; by number, so that every machine runs the same inputs.
const EXECUTIONS: [(&str, u64); 6] = [
    ("program", 7_500),
    ("config", 1_500),
    ("requests", 110),
    ("frames", 5_000),
    ("gnmi", 1_100),
    ("wire", 400),
];
/// Of one target; a machine that needs longer runs fewer.
const TIME: Duration = Duration::from_secs(120);
const LIMITS: Limits = Limits {
    time: Duration::from_secs(60),
    memory_bytes: 1 << 30,
};

/// An input that ends the process is found in `target/fuzz/TARGET/current`.
#[test]
#[ignore = "takes 2 minutes: make fuzz-short"]
fn nothing_is_found() {
    guard::watch(LIMITS);
    assert_eq!(EXECUTIONS.map(|(name, _)| name), targets::names());
    let mut findings = Vec::new();
    for (name, executions) in EXECUTIONS {
        let options = Options {
            seed: SEED,
            executions,
            time: TIME,
            limits: LIMITS,
            grow: false,
        };
        match campaign::run(name, &options) {
            Ok(report) => println!("{name}: {report}"),
            Err(finding) => findings.push(format!("{name}: {finding}")),
        }
    }
    assert!(findings.is_empty(), "{}", findings.join("\n"));
}
