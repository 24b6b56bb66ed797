// SPDX-License-Identifier: Apache-2.0
//! Programs that loop for ever, and programs that change: no packet keeps the switch, and none is another program's.

use crate::common::{tracer, Sent};
use crate::minimal::*;
use device::live_trace::{Filter, LiveTrace};
use device::{Device, DeviceConfig, DropReason, PortConfig};
use serde_json::{json, Value};
use v1model::Pipeline;

const SECOND: u64 = 1_000_000_000;

fn pipeline(program: &Value) -> Pipeline {
    Pipeline::from_json(&bytes(program)).unwrap()
}

/// Ports 0 to 2 with these options, and a program.
fn device(config: PortConfig, program: &Value) -> Device {
    let mut device = Device::new(DeviceConfig::default());
    (0..3).for_each(|port| device.add_port(port, config).unwrap());
    device.load(0, pipeline(program));
    device
}

fn send(device: &mut Device, now: u64, frame: &[u8]) -> Vec<Vec<u8>> {
    let mut sent = Sent::default();
    device.advance(now, &mut sent);
    device.receive(now, 0, frame);
    device.advance(now, &mut sent);
    sent.0.into_iter().map(|(_, frame, _)| frame).collect()
}

/// To port 1, with `n` as given.
fn mark(n: u64) -> Vec<Value> {
    vec![
        assign(field("standard_metadata", "egress_spec"), number(1)),
        assign(field("h", "n"), number(n)),
    ]
}

/// `_jump` to itself.
fn for_ever() -> Value {
    op("_jump", json!([number(0)]))
}

#[test]
fn a_control_that_loops_for_ever_loses_the_packet_and_counts_it() {
    for (ingress, egress) in [(vec![for_ever()], vec![]), (mark(1), vec![for_ever()])] {
        let mut device = device(PortConfig::default(), &minimal(&ingress, &egress));
        for _ in 0..3 {
            assert!(send(&mut device, 0, &frame(1, 2, 3)).is_empty());
        }
        assert_eq!(device.stats().dropped(DropReason::StepLimit), 3);
        assert_eq!(
            (device.stats().dropped_total(), device.stats().overruns()),
            (3, 3)
        );
        let mut tracer = tracer(&device);
        let trace = device.trace(&mut tracer, 0, &frame(1, 2, 3)).unwrap();
        let of_ingress = trace.rounds[0].drop.as_ref();
        let shown = of_ingress.or(trace.copies.first().and_then(|c| c.drop.as_ref()));
        assert_eq!(shown.unwrap().reason, "step_limit");
    }
}

#[test]
fn a_deparser_that_loops_for_ever_loses_the_packet_and_counts_it() {
    let mut program = minimal(&mark(1), &[]);
    program["deparsers"][0]["primitives"] = json!([for_ever()]);
    let mut device = device(PortConfig::default(), &program);
    assert!(send(&mut device, 0, &frame(1, 2, 3)).is_empty());
    assert_eq!(device.stats().dropped(DropReason::StepLimit), 1);
}

#[test]
fn a_parser_that_gets_on_by_nothing_is_a_parser_error() {
    let mut program = minimal(
        &[
            mark(1),
            vec![assign(
                field("h", "n"),
                field("standard_metadata", "parser_error"),
            )],
        ]
        .concat(),
        &[],
    );
    // start: extract h, then round and round with advance(0).
    program["parsers"][0]["parse_states"][0]["transitions"][0]["next_state"] = json!("round");
    program["parsers"][0]["parse_states"].as_array_mut().unwrap().push(json!({
        "name": "round", "id": 1, "transition_key": [],
        "parser_ops": [{"op": "advance", "parameters": [number(0)]}],
        "transitions": [{"type": "default", "value": null, "mask": null, "next_state": "round"}],
    }));
    let mut device = device(PortConfig::default(), &program);
    let sent = send(&mut device, 0, &frame(1, 2, 3));
    // ParserTimeout has the number 5 where the program names no errors.
    assert_eq!(sent, [frame(5, 2, 3)]);
    assert_eq!(
        (device.stats().timeouts, device.stats().dropped_total()),
        (1, 0)
    );
}

#[test]
fn a_frame_on_the_line_does_not_come_back_into_the_next_program() {
    // Another constant; more fields of state, so that slots differ in number; nothing at all.
    let mut larger = minimal(&mark(0xc), &[]);
    larger["header_types"].as_array_mut().unwrap().push(json!({
        "name": "more", "id": 2, "fields": [["x", 4096, false]],
    }));
    larger["headers"].as_array_mut().unwrap().push(json!({
        "name": "more", "id": 3, "header_type": "more", "metadata": true,
    }));
    let config = PortConfig {
        rate_bps: 1_000,
        ..PortConfig::default()
    };
    for (next, n) in [(minimal(&mark(0xb), &[]), 0xb), (larger, 0xc)] {
        let mut device = device(config, &minimal(&mark(0xa), &[]));
        assert!(
            send(&mut device, 0, &frame(1, 2, 3)).is_empty(),
            "on the line"
        );
        device.load(SECOND / 100, pipeline(&next));
        let mut sent = Sent::default();
        device.advance(SECOND, &mut sent);
        assert_eq!(sent.0.len(), 1, "it leaves all the same");
        assert_eq!(sent.0[0].1, frame(0xa, 2, 3));
        for at in 1..=300 {
            device.receive(at * SECOND, 0, &frame(1, 2, 3));
            device.advance(at * SECOND, &mut sent);
        }
        device.advance(1_000 * SECOND, &mut sent);
        assert_eq!(sent.0.len(), 301);
        for (_, bytes, _) in &sent.0[1..] {
            assert_eq!(*bytes, frame(n, 2, 3));
        }
    }
}

#[test]
fn a_program_taken_out_and_another_one_put_in_share_no_packet() {
    let config = PortConfig {
        rate_bps: 1_000,
        ..PortConfig::default()
    };
    let mut device = device(config, &minimal(&mark(0xa), &[]));
    send(&mut device, 0, &frame(1, 2, 3));
    device.unload(1);
    let mut sent = Sent::default();
    device.advance(SECOND, &mut sent);
    device.load(SECOND, pipeline(&minimal(&mark(0xb), &[])));
    device.receive(SECOND, 0, &frame(1, 2, 3));
    device.advance(2 * SECOND, &mut sent);
    let frames: Vec<_> = sent.0.into_iter().map(|(_, frame, _)| frame).collect();
    assert_eq!(frames, [frame(0xa, 2, 3), frame(0xb, 2, 3)]);
}

/// So many hashes of `n`, one by one into it: programs of different numbers have the same tables and fields.
fn hashes(count: usize) -> Value {
    let name = |i| format!("c{i}");
    let hash = |i| {
        let calculation = json!({"type": "calculation", "value": name(i)});
        let parameters = json!([field("h", "n"), number(0), calculation, number(8)]);
        op("modify_field_with_hash_based_offset", parameters)
    };
    let mut program = minimal(&(0..count).map(hash).collect::<Vec<_>>(), &[]);
    let calculation =
        |i| json!({"name": name(i), "id": i, "algo": "crc32", "input": [field("h", "n")]});
    program["calculations"] = (0..count).map(calculation).collect();
    program
}

#[test]
fn a_trace_of_one_program_sees_nothing_of_the_next_one() {
    let mut device = device(PortConfig::default(), &hashes(2));
    let mut one = tracer(&device);
    device.set_live_trace(Some(Box::new(LiveTrace {
        tracer: tracer(&device),
        filter: Filter::default(),
        left: 10,
        tell: Box::new(|_| panic!("the next program is not traced")),
    })));
    device.load(0, pipeline(&hashes(1)));
    assert!(!device.has_live_trace());
    assert_eq!(send(&mut device, 0, &frame(1, 2, 3)).len(), 1);
    assert!(device.trace(&mut one, 0, &frame(1, 2, 3)).is_none());
}

#[test]
fn headers_made_valid_by_copies_and_removed_lose_no_packet() {
    let copy = |to: &str| op("assign_header", json!([header(to), header("h")]));
    let remove = |of: &str| op("remove_header", json!([header(of)]));
    let copies = ["t", "u"].map(copy).into_iter();
    let ingress: Vec<Value> = mark(1)
        .into_iter()
        .chain(copies)
        .chain(["t", "u"].map(remove))
        .collect();
    let length = assign(field("h", "n"), field("standard_metadata", "packet_length"));
    let mut program = minimal(&ingress, &[length]);
    for (id, name) in [(3, "t"), (4, "u")] {
        let header = json!({"name": name, "id": id, "header_type": "h_t", "metadata": false});
        program["headers"].as_array_mut().unwrap().push(header);
    }
    let mut device = device(PortConfig::default(), &program);
    // BMv2's register wraps: 21 - 42.
    assert_eq!(
        send(&mut device, 0, &frame(1, 2, 3)),
        [frame(u32::MAX - 20, 2, 3)]
    );
    assert_eq!(device.stats().dropped_total(), 0);
}

#[test]
fn a_priority_that_the_port_has_no_queue_for_is_a_drop() {
    let priority = assign(field("standard_metadata", "priority"), field("h", "small"));
    let program = minimal(&[mark(1), vec![priority]].concat(), &[]);
    for queues in [1, 3, 8] {
        let config = PortConfig {
            queues,
            ..PortConfig::default()
        };
        let mut device = device(config, &program);
        for small in 0..8 {
            let sent = send(&mut device, 0, &frame(1, 2, small));
            assert_eq!(sent.len(), usize::from(usize::from(small) < queues));
        }
        let dropped = device.stats().dropped(DropReason::NoSuchQueue);
        assert_eq!(dropped, 8 - queues as u64);
    }
}

/// `n` is a random number.
fn dice() -> Value {
    let roll = op(
        "modify_field_rng_uniform",
        json!([field("h", "n"), number(0), number(0xffff_ffff)]),
    );
    minimal(&[mark(0), vec![roll]].concat(), &[])
}

fn rolls(device: &mut Device) -> Vec<Vec<u8>> {
    (0..4)
        .flat_map(|_| send(device, 0, &frame(1, 2, 3)))
        .collect()
}

#[test]
fn chance_is_the_devices_seeds() {
    let of = |seed| {
        let mut device = Device::new(DeviceConfig {
            seed,
            ..DeviceConfig::default()
        });
        (0..2).for_each(|port| device.add_port(port, PortConfig::default()).unwrap());
        device.load(0, pipeline(&dice()));
        device
    };
    let first = rolls(&mut of(1));
    assert_eq!(first.len(), 4);
    assert_eq!(first, rolls(&mut of(1)));
    assert_ne!(first, rolls(&mut of(2)));
}
