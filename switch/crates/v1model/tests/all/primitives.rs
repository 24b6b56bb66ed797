// SPDX-License-Identifier: Apache-2.0
//! Primitives do what they do to what they are given, and nothing to anything else, as in BMv2's simple_switch.

use crate::common::minimal::*;
use serde_json::{json, Value};
use v1model::{Effects, Engine, Pipeline, Std};

/// What is seen of a packet after ingress and after egress.
#[derive(Debug, PartialEq, Eq)]
struct Seen {
    ingress: u64,
    group: u64,
    egress: u64,
    frame: Vec<u8>,
}

fn run(program: &Value, frame: &[u8]) -> Seen {
    let mut pipeline = Pipeline::from_json(&bytes(program)).unwrap();
    run_in(&mut pipeline, &mut Effects::new(), frame)
}

fn run_in(pipeline: &mut Pipeline, fx: &mut Effects, frame: &[u8]) -> Seen {
    let mut packet = pipeline.new_packet();
    packet.load(frame);
    pipeline.reset(&mut packet);
    pipeline.parse(&mut packet, fx);
    pipeline.ingress(&mut packet, 0, fx);
    let ingress = pipeline.std_get(&packet, Std::EgressSpec);
    let group = pipeline.std_get(&packet, Std::McastGrp);
    pipeline.egress(&mut packet, 0, fx);
    let egress = pipeline.std_get(&packet, Std::EgressSpec);
    pipeline.deparse(&mut packet);
    Seen {
        ingress,
        group,
        egress,
        frame: packet.frame().to_vec(),
    }
}

/// What p4c makes of an action with `inout standard_metadata_t`: copy, mark, copy back.
fn through_a_copy() -> Vec<Value> {
    vec![
        op(
            "assign_header",
            json!([header("copy"), header("standard_metadata")]),
        ),
        op("mark_to_drop", json!([header("copy")])),
        op(
            "assign_header",
            json!([header("standard_metadata"), header("copy")]),
        ),
    ]
}

fn forward() -> Vec<Value> {
    let group = assign(field("standard_metadata", "mcast_grp"), number(7));
    vec![
        assign(field("standard_metadata", "egress_spec"), number(3)),
        group,
    ]
}

#[test]
fn a_drop_marked_on_a_copy_that_is_copied_back_is_a_drop() {
    let ingress = [forward(), through_a_copy()].concat();
    let seen = run(&minimal(&ingress, &through_a_copy()), &frame(1, 2, 3));
    assert_eq!((seen.ingress, seen.group, seen.egress), (511, 0, 511));
}

#[test]
fn a_drop_marked_on_a_copy_that_stays_there_drops_nothing() {
    let mark = op("mark_to_drop", json!([header("copy")]));
    // The copy itself has it: seen in `n`.
    let show = |group| {
        let of = |name| field("copy", name);
        assign(
            field("h", "n"),
            of(if group { "mcast_grp" } else { "egress_spec" }),
        )
    };
    let set = assign(field("copy", "mcast_grp"), number(9));
    let ingress = [forward(), vec![set, mark.clone(), show(true)]].concat();
    let seen = run(&minimal(&ingress, &[mark, show(false)]), &frame(1, 2, 3));
    // Egress starts with anything but the drop port.
    assert_eq!((seen.ingress, seen.group, seen.egress), (3, 7, 0));
    assert_eq!(seen.frame[..4], [0, 0, 1, 255]);
}

#[test]
fn the_packets_own_metadata_are_marked_too() {
    for mark in [
        op("mark_to_drop", json!([header("standard_metadata")])),
        op("drop", json!([])),
    ] {
        let ingress = [forward(), vec![mark.clone()]].concat();
        let seen = run(&minimal(&ingress, &[mark]), &frame(1, 2, 3));
        assert_eq!((seen.ingress, seen.group, seen.egress), (511, 0, 511));
    }
}

#[test]
fn a_header_that_cannot_be_marked_is_refused_with_its_place() {
    for (wrong, place, what) in [
        (
            op("mark_to_drop", json!([header("h")])),
            "/parameters/0",
            "`egress_spec`",
        ),
        (
            op("mark_to_drop", json!([])),
            "/primitives/0",
            "takes 1 parameters, found 0",
        ),
        (
            op("drop", json!([number(1)])),
            "/primitives/0",
            "takes 0 parameters, found 1",
        ),
        (
            assign(field("copy", "$valid$"), number(0)),
            "/parameters/0",
            "metadata is always valid",
        ),
        (
            op("assign_header", json!([header("h"), header("copy")])),
            "/primitives/0",
            "of different types",
        ),
    ] {
        let error = Pipeline::from_json(&bytes(&minimal(&[wrong], &[])))
            .err()
            .unwrap();
        assert!(error.path.contains(place), "{error}");
        assert!(error.message.contains(what), "{error}");
    }
}

fn register(name: &str) -> Value {
    json!({"type": "register_array", "value": name})
}

/// Reads `register[n]`, in which each cell has this value, to each field of the header.
fn read_everywhere(name: &str, value: u64) -> Value {
    let written = (0..4).map(|at| {
        let parameters = json!([register(name), number(at), number(value)]);
        op("register_write", parameters)
    });
    let beyond = op(
        "register_write",
        json!([register(name), number(4), number(99)]),
    );
    let index = field("copy", "packet_length");
    let mut ingress: Vec<Value> = written.chain([beyond]).collect();
    ingress.push(assign(index.clone(), field("h", "n")));
    for to in ["n", "wide", "small"] {
        let parameters = json!([field("h", to), register(name), index]);
        ingress.push(op("register_read", parameters));
    }
    minimal(&ingress, &[])
}

#[test]
fn a_register_beyond_its_array_leaves_the_field_at_every_width() {
    let wide = 0xfeed_u128 << 100 | 0xbeef;
    for name in ["r8", "r32", "r64", "r100"] {
        let program = read_everywhere(name, 0x5a);
        let inside = run(&program, &frame(3, wide, 0x77)).frame;
        assert_eq!(inside, frame(0x5a, 0x5a, 0x5a), "{name}, inside");
        for index in [4, 5, u32::MAX] {
            let sent = frame(index, wide, 0x77);
            assert_eq!(run(&program, &sent).frame, sent, "{name}, {index}");
        }
    }
}

#[test]
fn a_meter_beyond_its_array_leaves_the_field_at_every_width() {
    let meter = json!({"type": "meter_array", "value": "m"});
    let index = field("copy", "packet_length");
    let mut ingress = vec![assign(index.clone(), field("h", "n"))];
    for to in ["wide", "small"] {
        ingress.push(op("execute_meter", json!([meter, index, field("h", to)])));
    }
    let program = minimal(&ingress, &[]);
    let (inside, beyond) = (frame(3, u128::MAX, 0x77), frame(4, u128::MAX, 0x77));
    assert_eq!(run(&program, &inside).frame, frame(3, 0, 0), "green is 0");
    assert_eq!(run(&program, &beyond).frame, beyond);
}

#[test]
fn random_between_crossed_bounds_leaves_the_field_at_every_width() {
    let random = |to: &str, low: u64, high: u64| {
        let name = "modify_field_rng_uniform";
        op(name, json!([field("h", to), number(low), number(high)]))
    };
    let program = |low, high| {
        minimal(
            &[random("wide", low, high), random("small", low, high)],
            &[],
        )
    };
    let sent = frame(1, u128::MAX, 0x77);
    assert_eq!(run(&program(6, 5), &sent).frame, sent);
    assert_eq!(run(&program(5, 5), &sent).frame, frame(1, 5, 5));
}

fn expression(value: Value) -> Value {
    json!({"type": "expression", "value": value})
}

#[test]
fn an_expression_may_be_deep_and_one_that_is_too_deep_is_refused() {
    let sum = |operators| {
        let plus = |left, _| expression(json!({"op": "+", "left": left, "right": number(1)}));
        let sum = (0..operators).fold(field("h", "n"), plus);
        minimal(&[assign(field("h", "n"), sum)], &[])
    };
    assert_eq!(run(&sum(200), &frame(7, 2, 3)).frame, frame(207, 2, 3));
    // As deep as may be: 8 brackets are around the operators. Those in a text do not count.
    let deepest = sum(496);
    assert_eq!(run(&deepest, &frame(7, 2, 3)).frame, frame(503, 2, 3));
    let text = deepest.to_string();
    let text = text.replacen('{', r#"{"[[\"[\\": 0,"#, 1);
    assert!(Pipeline::from_json(text.as_bytes()).is_ok());
    for operators in [497, 50_000] {
        let (open, close) = (r#"{"value":{"left":"#, "}}");
        let operand = r#"[[[[[[[[]]]]]]]]"#;
        let text = open.repeat(operators) + operand + &close.repeat(operators);
        let error = Pipeline::from_json(text.as_bytes()).err().unwrap();
        let depth = 2 * operators + 8;
        let said = format!("the JSON has {depth} brackets in one another; a program may have 1000");
        assert_eq!((error.path, error.message), ("/".into(), said));
    }
}

/// `n` becomes a hash of such inputs.
fn hash_of(inputs: Value) -> Value {
    let calculation = json!({"type": "calculation", "value": "c"});
    let parameters = json!([field("h", "n"), number(0), calculation, number(1 << 32)]);
    let hash = op("modify_field_with_hash_based_offset", parameters);
    let mut program = minimal(&[hash], &[]);
    program["calculations"] = json!([{"name": "c", "id": 0, "algo": "crc32", "input": inputs}]);
    program
}

#[test]
fn a_hash_of_more_than_a_stack_holds_is_the_same_in_both_engines() {
    let long = json!({"type": "hexstr", "value": "0x12", "bitwidth": 65_536});
    let program = hash_of(json!(vec![long; 300]));
    let of = |engine| {
        let mut pipeline = Pipeline::from_json(&bytes(&program)).unwrap();
        pipeline.set_engine(engine);
        run_in(&mut pipeline, &mut Effects::new(), &frame(1, 2, 3))
    };
    // This thread has the stack of any other.
    assert_eq!(of(Engine::Native), of(Engine::Interpreter));
}

#[test]
fn numbers_of_any_width_are_decimal_in_messages() {
    let signed =
        expression(json!({"op": "two_comp_mod", "left": field("h", "wide"), "right": number(128)}));
    let values = json!([field("h", "wide"), field("h", "n"), expression(signed)]);
    let text = json!({"type": "string", "value": "{}, {}, {}"});
    let values = json!({"type": "parameters_vector", "value": values});
    let program = minimal(&[op("log_msg", json!([text, values]))], &[]);
    let mut pipeline = Pipeline::from_json(&bytes(&program)).unwrap();
    for (wide, said) in [
        (16, "16, 1, 16\n"),
        (
            u128::MAX - 1,
            "340282366920938463463374607431768211454, 1, -2\n",
        ),
    ] {
        let mut fx = Effects::new();
        fx.log.enabled = true;
        run_in(&mut pipeline, &mut fx, &frame(1, wide, 3));
        assert_eq!(fx.log.text(), said);
    }
}

#[test]
fn a_signed_key_of_a_select_has_its_sign() {
    let mut program = minimal(&[], &[]);
    let signed = json!({"op": "two_comp_mod", "left": field("h", "small"), "right": number(8)});
    let hit = json!({"op": "set", "parameters": [field("h", "n"), number(9)]});
    let to = |value: &str, next: Value| json!({"type": "hexstr", "value": value, "mask": null, "next_state": next});
    let default = json!({"type": "default", "value": null, "mask": null, "next_state": null});
    let states = &mut program["parsers"][0]["parse_states"];
    states[0]["transition_key"] = json!([expression(expression(signed))]);
    states[0]["transitions"] = json!([to("0x80", json!("hit")), default]);
    let state = json!({"name": "hit", "id": 1, "transition_key": [], "parser_ops": [hit], "transitions": [default]});
    states.as_array_mut().unwrap().push(state);
    for (small, n) in [(0x80, 9), (0, 1), (1, 1), (0x81, 1)] {
        assert_eq!(run(&program, &frame(1, 2, small)).frame, frame(n, 2, small));
    }
}
