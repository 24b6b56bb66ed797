// SPDX-License-Identifier: Apache-2.0
//! The documents that inputs begin with: the repository's own compiled programs.

use std::path::Path;

use p4rt::proto::p4info::P4Info;
use serde_json::Value;

/// A program of the repository, by its path without `.json` below the folder `switch`.
const PROGRAMS: [(&str, &str); 9] = [
    ("entities", "crates/p4rt/tests/p4/entities"),
    ("state", "crates/v1model/tests/p4/compiled/state"),
    ("headers", "crates/v1model/tests/p4/compiled/headers"),
    ("meters", "crates/v1model/tests/p4/compiled/meters"),
    ("profiles", "crates/v1model/tests/p4/compiled/profiles"),
    ("value_sets", "crates/v1model/tests/p4/compiled/value_sets"),
    ("ops", "crates/device/tests/p4/ops"),
    ("queues", "crates/device/tests/p4/queues"),
    ("qthresh", "../p4src/compiled/qthresh"),
];

fn read(path: &str) -> String {
    let switch = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let path = switch.join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// All programs, without what only people read.
pub fn programs() -> Vec<(String, Value)> {
    let program = |(name, path): (&str, &str)| {
        let text = read(&format!("{path}.json"));
        let mut json = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{path}: {e}"));
        without_sources(&mut json);
        (name.to_string(), json)
    };
    PROGRAMS.map(program).into()
}

/// One of the programs.
pub fn program(name: &str) -> Value {
    named(&programs(), name).clone()
}

/// What has this name, or else the first.
pub fn named<'a, T>(all: &'a [(String, T)], name: &str) -> &'a T {
    let found = all.iter().find(|(known, _)| known == name);
    &found.unwrap_or(&all[0]).1
}

/// The P4Info of a program that has one.
pub fn p4info(name: &str) -> P4Info {
    let path = PROGRAMS.iter().find(|(known, _)| *known == name);
    let path = path.expect("a program of the list").1;
    let text = read(&format!("{path}.p4info.txtpb"));
    p4rt::proto::p4info_from_text(&text).unwrap_or_else(|e| panic!("{path}: {e}"))
}

fn without_sources(json: &mut Value) {
    match json {
        Value::Object(members) => {
            members.shift_remove("source_info");
            members.values_mut().for_each(without_sources);
        }
        Value::Array(items) => items.iter_mut().for_each(without_sources),
        _ => {}
    }
}

/// Frames in hexadecimal: nothing, a byte, Ethernet with IPv4 and TCP, with IPv6, and the test programs' own headers.
pub const FRAMES: [&str; 8] = [
    "",
    "00",
    "0200000000050200000000010800450000340001400040061234010203040506070804d2162e00000001000000025010200012340000deadbeef0102030405060708",
    "02000000000502000000000186dd600000000014064020010db800000000000000000000000120010db800000000000000000000000204d2162e00000001000000025010200012340000",
    "020000000005020000000001080045000014000100004011000001020304050607ff",
    "010002040608090a0b0c0d0e0f10111213141516171819",
    "ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
    "00000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000",
];

/// Bytes of hexadecimal digits; what is none is left out.
pub fn bytes(hex: &str) -> Vec<u8> {
    let mut digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
    digits.truncate(digits.len() & !1);
    hex::decode(digits).expect("pairs of digits")
}
