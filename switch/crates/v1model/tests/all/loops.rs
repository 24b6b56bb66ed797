// SPDX-License-Identifier: Apache-2.0
//! Code that comes back to where it was: parsers and actions may, for so long; controls may not.

use crate::common::minimal::*;
use serde_json::{json, Value};
use v1model::{Effects, Pipeline, Std};

/// A state that advances by `bits`, then goes where the next 8 bits say: 0 to `again`, else on to ingress.
fn state(name: &str, id: u64, bits: u64, again: &str) -> Value {
    json!({
        "name": name, "id": id,
        "transition_key": [{"type": "lookahead", "value": [0, 8]}],
        "parser_ops": [{"op": "advance", "parameters": [number(bits)]}],
        "transitions": [
            {"type": "hexstr", "value": "0x00", "mask": null, "next_state": again},
            {"type": "default", "value": null, "mask": null, "next_state": null},
        ],
    })
}

/// The parser's error and whether it timed out, for a header and `zeros` bytes of 0 before one of 1.
fn parse(states: Vec<Value>, zeros: usize) -> (u64, bool) {
    let mut program = minimal(&[], &[]);
    let parser = &mut program["parsers"][0]["parse_states"];
    parser[0]["transitions"][0]["next_state"] = states[0]["name"].clone();
    parser.as_array_mut().unwrap().extend(states);
    let mut pipeline = Pipeline::from_json(&bytes(&program)).unwrap();
    let (mut packet, mut fx) = (pipeline.new_packet(), Effects::new());
    let mut whole = frame(1, 2, 3);
    whole.resize(whole.len() + zeros, 0);
    whole.push(1);
    packet.load(&whole);
    pipeline.reset(&mut packet);
    pipeline.parse(&mut packet, &mut fx);
    assert!(!fx.timed_out, "that is for controls");
    (
        pipeline.std_get(&packet, Std::ParserError),
        fx.parser_timed_out,
    )
}

#[test]
fn a_parser_may_go_through_a_frame_byte_by_byte() {
    for zeros in [1, 100, 9_000] {
        assert_eq!(
            parse(vec![state("byte", 1, 8, "byte")], zeros),
            (0, false),
            "{zeros} bytes"
        );
    }
}

#[test]
fn a_parser_that_stands_still_ends_by_itself() {
    const TIMEOUT: u64 = 5;
    assert_eq!(
        parse(vec![state("still", 1, 0, "still")], 1),
        (TIMEOUT, true)
    );
    // Through several states, entered in the middle.
    let states = vec![
        state("a", 1, 0, "b"),
        state("b", 2, 0, "c"),
        state("c", 3, 0, "a"),
    ];
    assert_eq!(parse(states, 1), (TIMEOUT, true));
    // With nothing but a transition in them.
    let bare = |name: &str, id: u64, to: &str| {
        json!({
            "name": name, "id": id, "transition_key": [], "parser_ops": [],
            "transitions": [{"type": "default", "value": null, "mask": null, "next_state": to}],
        })
    };
    let states = vec![bare("x", 1, "y"), bare("y", 2, "x")];
    assert_eq!(parse(states, 1), (TIMEOUT, true));
}

/// An action as p4c makes it of `for (i = 0; i != times; i++) n = n + 2;`.
fn count_to(times: u64) -> Vec<Value> {
    let i = || field("copy", "packet_length");
    let binary = |op: &str, left: Value, right: Value| json!({"type": "expression", "value": {"op": op, "left": left, "right": right}});
    let plus = |to: Value, n: u64| {
        let sum = json!({"type": "expression", "value": {"op": "+", "left": to.clone(), "right": number(n)}});
        assign(to, sum)
    };
    vec![
        assign(i(), number(0)),
        op(
            "_jump_if_zero",
            json!([binary("!=", i(), number(times)), number(5)]),
        ),
        plus(field("h", "n"), 2),
        plus(i(), 1),
        op("_jump", json!([number(1)])),
    ]
}

fn control(primitives: &[Value]) -> (u32, bool) {
    let mut pipeline = Pipeline::from_json(&bytes(&minimal(primitives, &[]))).unwrap();
    let (mut packet, mut fx) = (pipeline.new_packet(), Effects::new());
    packet.load(&frame(0, 2, 3));
    pipeline.reset(&mut packet);
    pipeline.parse(&mut packet, &mut fx);
    pipeline.ingress(&mut packet, 0, &mut fx);
    pipeline.deparse(&mut packet);
    let n = packet.frame()[..4].try_into().unwrap();
    (u32::from_be_bytes(n), fx.timed_out)
}

#[test]
fn a_loop_of_an_action_runs_as_often_as_it_says() {
    assert_eq!(control(&count_to(0)), (0, false));
    assert_eq!(control(&count_to(1_000)), (2_000, false));
    assert!(control(&count_to(1 << 31)).1, "there is an end to it");
}

#[test]
fn a_control_that_comes_back_is_refused_with_its_place() {
    let node = |name: &str, id: u64, next: &str| json!({"name": name, "id": id, "action_id": 0, "next_node": next});
    let condition = |next: [&str; 2]| {
        json!({
            "name": "if", "id": 7, "true_next": next[0], "false_next": next[1],
            "expression": {"type": "bool", "value": true},
        })
    };
    let table = |next: Value| {
        json!({
            "name": "t", "id": 9, "key": [], "match_type": "exact", "type": "simple", "max_size": 1,
            "actions": ["ingress_act"], "action_ids": [0], "base_default_next": null, "next_tables": next,
            "default_entry": {"action_id": 0, "action_const": false, "action_data": [], "action_entry_const": false},
        })
    };
    type Change = Box<dyn Fn(&mut Value)>;
    let changes: [(&str, Change); 4] = [
        (
            "`a`",
            Box::new(move |p| p["action_calls"] = json!([node("a", 1, "a")])),
        ),
        (
            "`a`",
            Box::new(move |p| p["action_calls"] = json!([node("a", 1, "b"), node("b", 2, "a")])),
        ),
        (
            "`if`",
            Box::new(move |p| p["conditionals"] = json!([condition(["if", "if"])])),
        ),
        (
            "`t`",
            Box::new(move |p| {
                p["tables"] = json!([table(json!({"__HIT__": null, "__MISS__": "t"}))])
            }),
        ),
    ];
    for (name, change) in changes {
        let mut program = minimal(&[], &[]);
        change(&mut program["pipelines"][0]);
        program["pipelines"][0]["init_table"] = json!(null);
        let error = Pipeline::from_json(&bytes(&program)).err().expect(name);
        assert!(error.path.starts_with("/pipelines/0/"), "{error}");
        let wanted = format!("the control comes back to {name}");
        assert!(error.message.starts_with(&wanted), "{error}");
    }
}
