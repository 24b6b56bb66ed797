// SPDX-License-Identifier: Apache-2.0
//! Negative values, as p4c writes arguments and keys of type int<W>: two's complement in W bits, wherever a `hexstr` stands.

use crate::common::minimal::*;
use serde_json::{json, Value};
use v1model::{ActionCall, Bits, Effects, EntryAction, KeyMatch, LoadError, Pipeline};

/// A program with a table `t` on `small` whose `set` writes 8 and 128 bits; entry and default are to be filled in.
fn with_table(kind: &str, entry: Value, default: Value) -> Value {
    let argument = |i: u64| json!({"type": "runtime_data", "value": i});
    let mut program = minimal(&[], &[]);
    program["actions"].as_array_mut().unwrap().push(json!({
        "name": "set", "id": 2,
        "runtime_data": [{"name": "a", "bitwidth": 8}, {"name": "b", "bitwidth": 128}],
        "primitives": [assign(field("h", "n"), argument(0)), assign(field("h", "wide"), argument(1))],
    }));
    program["pipelines"][0]["init_table"] = json!("t");
    program["pipelines"][0]["tables"] = json!([{
        "name": "t", "id": 0, "match_type": kind, "type": "simple", "max_size": 16,
        "with_counters": false, "support_timeout": false, "direct_meters": null,
        "key": [{"match_type": kind, "name": "small", "target": ["h", "small"], "mask": null}],
        "action_ids": [2], "actions": ["set"], "base_default_next": null, "next_tables": {"set": null},
        "default_entry": {
            "action_id": 2, "action_const": true, "action_data": default, "action_entry_const": true,
        },
        "entries": [{
            "priority": 1, "match_key": [entry],
            "action_entry": {"action_id": 2, "action_data": ["-0x01", "-0x01"]},
        }],
    }]);
    program
}

fn load(program: &Value) -> Result<Pipeline, LoadError> {
    Pipeline::from_json(&bytes(program))
}

fn exact(key: &str) -> Value {
    json!({"match_type": "exact", "key": key})
}

/// What leaves for a frame.
fn sent(pipeline: &mut Pipeline, frame: &[u8]) -> Vec<u8> {
    let (mut packet, mut fx) = (pipeline.new_packet(), Effects::new());
    packet.load(frame);
    pipeline.reset(&mut packet);
    pipeline.parse(&mut packet, &mut fx);
    pipeline.ingress(&mut packet, 0, &mut fx);
    pipeline.deparse(&mut packet);
    packet.frame().to_vec()
}

#[test]
fn arguments_and_keys_of_entries_may_be_negative() {
    let program = with_table("exact", exact("-0x03"), json!(["-0x80", "-0x02"]));
    let mut pipeline = load(&program).unwrap();
    let schema = &pipeline.schema().tables[0];
    let bits = |value: u128, width| Bits::from_u128(width, value).unwrap();
    let args = vec![0x80, u64::MAX - 1, u64::MAX];
    let action = schema.default_action.as_ref().unwrap().action;
    assert_eq!(schema.default_action, Some(ActionCall { action, args }));
    let entry = &schema.const_entries.as_ref().unwrap()[0];
    assert_eq!(entry.key.matches, [KeyMatch::Exact(bits(0xfd, 8))]);
    let args = vec![0xff, u64::MAX, u64::MAX];
    assert_eq!(
        entry.action,
        EntryAction::Direct(ActionCall { action, args })
    );
    let out = sent(&mut pipeline, &frame(0, 0, 0xfd));
    assert_eq!(out, frame(0xff, u128::MAX, 0xfd));
    let out = sent(&mut pipeline, &frame(0, 0, 0));
    assert_eq!(out, frame(0x80, u128::MAX - 1, 0));
}

#[test]
fn values_and_masks_of_all_kinds_of_keys_may_be_negative() {
    let bits = |value| Bits::from_u64(8, value).unwrap();
    let ternary = json!({"match_type": "ternary", "key": "-0x01", "mask": "-0x10"});
    let range = json!({"match_type": "range", "start": "-0x05", "end": "-0x02"});
    let lpm = json!({"match_type": "lpm", "key": "-0x01", "prefix_length": 3});
    let (value, mask) = (bits(0xf0), bits(0xf0));
    let (low, high) = (bits(0xfb), bits(0xfe));
    for (kind, entry, wanted) in [
        ("ternary", ternary, KeyMatch::Ternary { value, mask }),
        ("range", range, KeyMatch::Range { low, high }),
        (
            "lpm",
            lpm,
            KeyMatch::Lpm {
                value: bits(0xe0),
                prefix_len: 3,
            },
        ),
    ] {
        let pipeline = load(&with_table(kind, entry, json!(["0x00", "0x00"]))).unwrap();
        let entries = pipeline.schema().tables[0].const_entries.as_ref().unwrap();
        assert_eq!(entries[0].key.matches, [wanted]);
    }
    let mut program = with_table("exact", exact("0x10"), json!(["0x00", "0x00"]));
    program["pipelines"][0]["tables"][0]["key"][0]["mask"] = json!("-0x10");
    let out = sent(&mut load(&program).unwrap(), &frame(0, 0, 0x1f));
    assert_eq!(out, frame(0xff, u128::MAX, 0x1f));
}

#[test]
fn what_is_below_the_least_value_is_refused() {
    let place = "/pipelines/0/tables/0";
    let default = format!("{place}/default_entry/action_data/0");
    let key = format!("{place}/entries/0/match_key/0/key");
    let fine = json!(["0x00", "0x00"]);
    for (program, at) in [
        (
            with_table("exact", exact("0x00"), json!(["-0x81", "0x00"])),
            &default,
        ),
        (
            with_table("exact", exact("0x00"), json!(["-0x1ff", "0x00"])),
            &default,
        ),
        (with_table("exact", exact("-0x81"), fine), &key),
    ] {
        let error = load(&program).err().unwrap();
        assert_eq!(error.path, *at);
        let wanted = "the value does not fit in 8 bits: -0x80 to 0xff do";
        assert_eq!(error.message, wanted);
    }
}

/// A parser that goes on to take `h` when the first bits are one of these; else the frame has no header.
fn with_transition(widths: &[u64], value: &str, mask: Value) -> Value {
    let mut program = minimal(&[assign(field("h", "small"), number(0x55))], &[]);
    let states = &mut program["parsers"][0]["parse_states"];
    let mut taken = states[0].clone();
    (taken["name"], taken["id"]) = (json!("taken"), json!(1));
    let mut offset = 0;
    let key: Vec<Value> = widths
        .iter()
        .map(|width| {
            offset += width;
            json!({"type": "lookahead", "value": [offset - width, width]})
        })
        .collect();
    let to = |kind: &str, value: Value, mask, next| json!({"type": kind, "value": value, "mask": mask, "next_state": next});
    *states = json!([{
        "name": "start", "id": 0, "parser_ops": [], "transition_key": key,
        "transitions": [
            to("hexstr", json!(value), mask, json!("taken")),
            to("default", json!(null), json!(null), json!(null)),
        ],
    }, taken]);
    program
}

#[test]
fn cases_of_a_select_may_be_negative() {
    // The first bits of the frame: f5.
    let is_taken = |widths: &[u64], value: &str, mask| {
        let mut pipeline = load(&with_transition(widths, value, mask)).unwrap();
        sent(&mut pipeline, &frame(0xf5 << 24, 0, 0))[20] == 0x55
    };
    assert!(is_taken(&[8], "-0x0b", json!(null)));
    assert!(!is_taken(&[8], "-0x0a", json!(null)));
    assert!(is_taken(&[8], "-0x01", json!("-0x10")));
    assert!(
        is_taken(&[4], "-0x01", json!(null)),
        "a part is padded to bytes"
    );
    assert!(is_taken(&[4], "0x0f", json!(null)));
    for (widths, value, mask, place, wanted) in [
        (
            &[4][..],
            "-0x09",
            json!(null),
            "value",
            "the value does not fit in 4 bits",
        ),
        (
            &[8],
            "0x00",
            json!("-0x81"),
            "mask",
            "the value does not fit in 8 bits",
        ),
        (
            &[4, 4],
            "-0x01",
            json!(null),
            "value",
            "a negative value of a key of 2 parts",
        ),
    ] {
        let error = load(&with_transition(widths, value, mask)).err().unwrap();
        assert_eq!(
            error.path,
            format!("/parsers/0/parse_states/0/transitions/0/{place}")
        );
        assert!(error.message.starts_with(wanted), "{error}");
    }
}

#[test]
fn constants_of_calculations_are_checked_too() {
    let with = |value: &str| {
        let input = json!([{"type": "hexstr", "value": value, "bitwidth": 16}]);
        let calculation = json!({"type": "calculation", "value": "c"});
        let name = "modify_field_with_hash_based_offset";
        let size = number(1 << 32);
        let hash = op(name, json!([field("h", "n"), number(0), calculation, size]));
        let mut program = minimal(&[hash], &[]);
        program["calculations"] =
            json!([{"name": "c", "id": 0, "algo": "identity", "input": input}]);
        program
    };
    let out = sent(&mut load(&with("-0x02")).unwrap(), &frame(0, 0, 0));
    assert_eq!(out, frame(0xfffe, 0, 0));
    for value in ["-0x8001", "0x10000"] {
        let error = load(&with(value)).err().unwrap();
        assert_eq!(error.path, "/calculations/0/input/0/value");
        assert!(
            error
                .message
                .starts_with("the value does not fit in 16 bits"),
            "{error}"
        );
    }
}
