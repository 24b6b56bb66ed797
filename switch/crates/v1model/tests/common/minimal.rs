// SPDX-License-Identifier: Apache-2.0
//! A program of one header, made in the test that needs it: BMv2 JSON with these primitives in ingress and egress.
#![allow(dead_code)] // Each test crate uses its part.

use serde_json::{json, Value};

/// A primitive.
pub fn op(name: &str, parameters: Value) -> Value {
    json!({"op": name, "parameters": parameters})
}

pub fn field(header: &str, field: &str) -> Value {
    json!({"type": "field", "value": [header, field]})
}

pub fn header(name: &str) -> Value {
    json!({"type": "header", "value": name})
}

pub fn number(value: u64) -> Value {
    json!({"type": "hexstr", "value": format!("{value:#x}")})
}

/// `to` becomes `from`.
pub fn assign(to: Value, from: Value) -> Value {
    op("assign", json!([to, from]))
}

/// Frames begin with header `h`: `n` (32 bits), `wide` (128), `small` (8); 21 bytes. Beside `standard_metadata` there
/// is `copy`, metadata of the same type. Registers `r8`, `r32`, `r64`, `r100` of those widths, 4 each; meter `m` of 4.
pub fn minimal(ingress: &[Value], egress: &[Value]) -> Value {
    let standard = json!([
        ["ingress_port", 9, false],
        ["egress_spec", 9, false],
        ["egress_port", 9, false],
        ["instance_type", 32, false],
        ["packet_length", 32, false],
        ["mcast_grp", 16, false],
        ["egress_rid", 16, false],
        ["priority", 3, false],
        ["parser_error", 32, false],
        ["_padding", 5, false],
    ]);
    let registers = [8, 32, 64, 100].map(
        |width| json!({"name": format!("r{width}"), "id": width, "size": 4, "bitwidth": width}),
    );
    let pipeline = |name: &str, id: u64| {
        json!({
            "name": name, "id": id, "init_table": format!("{name}_call"), "tables": [],
            "action_profiles": [], "conditionals": [],
            "action_calls": [{"name": format!("{name}_call"), "id": id, "action_id": id, "next_node": null}],
        })
    };
    json!({
        "header_types": [
            {"name": "standard_metadata", "id": 0, "fields": standard},
            {"name": "h_t", "id": 1, "fields": [["n", 32, false], ["wide", 128, false], ["small", 8, false]]},
        ],
        "headers": [
            {"name": "standard_metadata", "id": 0, "header_type": "standard_metadata", "metadata": true},
            {"name": "copy", "id": 1, "header_type": "standard_metadata", "metadata": true},
            {"name": "h", "id": 2, "header_type": "h_t", "metadata": false},
        ],
        "header_stacks": [], "header_union_types": [], "header_unions": [], "header_union_stacks": [],
        "field_lists": [], "errors": [], "enums": [],
        "parsers": [{
            "name": "parser", "id": 0, "init_state": "start",
            "parse_states": [{
                "name": "start", "id": 0, "transition_key": [],
                "parser_ops": [{"op": "extract", "parameters": [{"type": "regular", "value": "h"}]}],
                "transitions": [{"type": "default", "value": null, "mask": null, "next_state": null}],
            }],
        }],
        "parse_vsets": [],
        "deparsers": [{"name": "deparser", "id": 0, "order": ["h"]}],
        "meter_arrays": [{
            "name": "m", "id": 0, "is_direct": false, "rate_count": 2, "size": 4, "type": "packets",
        }],
        "counter_arrays": [], "register_arrays": registers, "calculations": [], "learn_lists": [],
        "actions": [
            {"name": "ingress_act", "id": 0, "runtime_data": [], "primitives": ingress},
            {"name": "egress_act", "id": 1, "runtime_data": [], "primitives": egress},
        ],
        "pipelines": [pipeline("ingress", 0), pipeline("egress", 1)],
        "checksums": [], "force_arith": [], "extern_instances": [],
        "field_aliases": [
            ["intrinsic_metadata.mcast_grp", ["standard_metadata", "mcast_grp"]],
            ["intrinsic_metadata.egress_rid", ["standard_metadata", "egress_rid"]],
            ["intrinsic_metadata.priority", ["standard_metadata", "priority"]],
        ],
        "__meta__": {"version": [2, 23]},
    })
}

/// The bytes of a program.
pub fn bytes(program: &Value) -> Vec<u8> {
    serde_json::to_vec(program).unwrap()
}

/// A frame of header `h` alone.
pub fn frame(n: u32, wide: u128, small: u8) -> Vec<u8> {
    [&n.to_be_bytes()[..], &wide.to_be_bytes(), &[small]].concat()
}

/// `wide` of such a frame.
pub fn wide(frame: &[u8]) -> u128 {
    u128::from_be_bytes(frame[4..20].try_into().unwrap())
}
