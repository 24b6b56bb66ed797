// SPDX-License-Identifier: Apache-2.0
//! Frames that are parsed ahead do what they do one by one.

use crate::common::*;
use crate::minimal::{bytes, field, frame as minimal_frame, minimal, number, op};
use crate::random::Random;
use device::{Device, Nanos, PortConfig, QueueLimits};
use serde_json::{json, Value};
use v1model::{
    ActionCall, Bits, Engine, Entry, EntryAction, EntryKey, KeyMatch, MatchKind, Pipeline,
};

/// Arrival, port, frame.
type Arrival = (Nanos, u32, Vec<u8>);

/// What leaves for these frames, and all counts; in bursts of up to so many frames, or one by one.
fn outcome(mut device: Device, arrivals: &[Arrival], burst: Option<u64>) -> (Sent, String) {
    let (mut random, mut left) = (Random(7), 0);
    let mut sent = Sent::default();
    for (now, port, frame) in arrivals {
        match burst {
            None => {
                device.advance(*now, &mut sent);
                device.receive(*now, *port, frame);
            }
            Some(most) => {
                receive_ahead(&mut device, *now, *port, frame, &mut sent);
                if left == 0 {
                    catch_up(&mut device, &mut sent);
                    left = random.below(most);
                } else {
                    left -= 1;
                }
            }
        }
    }
    catch_up(&mut device, &mut sent);
    device.advance(u64::MAX / 2, &mut sent);
    let ports: Vec<_> = device.ports().map(|p| device.port_stats(p)).collect();
    let mut events = Vec::new();
    device.take_events(&mut events);
    let counts = format!("{:?} {ports:?} {events:?}", device.stats());
    (sent, counts)
}

#[test]
fn every_operation() {
    let ready = || {
        let mut device = device(PortConfig {
            rate_bps: 5_000_000,
            queue_limits: QueueLimits::packets(5),
            ..PortConfig::default()
        });
        replicate(&mut device);
        device
    };
    let mut random = Random(1);
    let mut now = 0;
    let arrivals: Vec<Arrival> = (0..4_000)
        .map(|_| {
            now += random.below(3) * random.below(200_000);
            let op = random.below(u64::from(STORM) + 1) as u8;
            let arg = [3, 3, 0, 9][random.below(4) as usize];
            // Now and then nothing, too much, or at a port that is not there.
            let (port, len) = match random.below(50) {
                0 => (99, 100),
                1 => (0, 20_000),
                2 => (0, 0),
                _ => (random.below(4) as u32, 2 + random.below(1_500) as usize),
            };
            let whole = frame(op, arg, len.max(2));
            (now, port, whole[..len].to_vec())
        })
        .collect();
    let one_by_one = outcome(ready(), &arrivals, None);
    assert!(one_by_one.0 .0.len() > 1_000);
    for most in [1, 2, 3, 20] {
        let ahead = outcome(ready(), &arrivals, Some(most));
        assert!(one_by_one.0 .0 == ahead.0 .0, "bursts of up to {most}");
        assert_eq!(one_by_one.1, ahead.1, "bursts of up to {most}");
    }
}

/// No program, nothing to parse.
#[test]
fn without_a_program() {
    let mut device = Device::new(device::DeviceConfig::default());
    device.add_port(0, PortConfig::default()).unwrap();
    let mut sent = Sent::default();
    receive_ahead(&mut device, 5, 0, &[0; 60], &mut sent);
    catch_up(&mut device, &mut sent);
    assert_eq!(device.stats().received, 1);
    assert_eq!(device.stats().dropped(device::DropReason::NoPipeline), 1);
}

fn insert(pipeline: &mut Pipeline, table: &str, key: &[u64], action: &str, args: &[u64]) {
    let table = pipeline.find_table(table).unwrap();
    let bits = |width, value| Bits::from_u64(width, value).unwrap();
    let keys = pipeline.table_schema(table).keys.iter().zip(key);
    let matches = keys
        .map(|(key, &value)| match key.kind {
            MatchKind::Lpm => KeyMatch::Lpm {
                value: bits(key.width, value),
                prefix_len: 8,
            },
            _ => KeyMatch::Exact(bits(key.width, value)),
        })
        .collect();
    let action = pipeline.table_action(table, action).unwrap();
    let params = pipeline.action_schema(action).params.iter().zip(args);
    let args = params.flat_map(|(param, &value)| bits(param.width, value).to_limbs());
    let call = ActionCall {
        action,
        args: args.collect(),
    };
    let entry = Entry {
        key: EntryKey {
            matches,
            priority: 0,
        },
        action: EntryAction::Direct(call),
        idle_timeout: 0,
        cookie: 0,
    };
    pipeline.table_insert(table, &entry, 0).unwrap();
}

/// A table so large that its entries are asked for ahead; machine code in bursts, the interpreter one by one.
#[test]
fn a_large_table() {
    const FLOWS: u64 = 5_000;
    let ready = |engine| {
        let json = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../../p4src/compiled/qthresh.json"
        );
        let mut pipeline = Pipeline::from_json(&std::fs::read(json).unwrap()).unwrap();
        // Tests may be for the interpreter alone.
        let only = Engine::chosen() == Ok(Engine::Interpreter);
        assert!(pipeline.set_engine(engine) || only);
        let route = "LaneIngress.route";
        let [table, action] = ["ipv4_lpm", "forward"].map(|name| format!("{route}.{name}"));
        insert(
            &mut pipeline,
            &table,
            &[10 << 24],
            &action,
            &[0x0800_0000_0202, 2],
        );
        let limit = "LaneIngress.port_limit";
        let [table, action] =
            ["port_limit", "set_port_limit"].map(|name| format!("{limit}.{name}"));
        insert(
            &mut pipeline,
            &table,
            &[2],
            &action,
            &[1000, 1 << 30, 1_000_000, 0],
        );
        for flow in 0..FLOWS {
            let key = [(10 << 24) + flow, (10 << 24) + 9, 6, 1_000, 80, 0];
            let flows = "LaneIngress.flow";
            let [table, action] = ["flow_v4", "set_flow"].map(|name| format!("{flows}.{name}"));
            insert(&mut pipeline, &table, &key, &action, &[flow]);
        }
        let mut device = Device::new(device::DeviceConfig::default());
        let config = PortConfig {
            rate_bps: 5_000_000,
            ..PortConfig::default()
        };
        (1..3).for_each(|port| device.add_port(port, config).unwrap());
        device.load(0, pipeline);
        device
    };
    let mut random = Random(2);
    let arrivals: Vec<Arrival> = (0..3_000)
        .map(|i| {
            let mut frame = vec![0; 60 + random.below(100) as usize];
            frame[12..16].copy_from_slice(&[8, 0, 0x45, 0]);
            let length = frame.len() as u16 - 14;
            frame[16..18].copy_from_slice(&length.to_be_bytes());
            frame[22..24].copy_from_slice(&[64, 6]);
            // A few of no flow that the table knows.
            let source = (10 << 24) + random.below(FLOWS + 500) as u32;
            frame[26..30].copy_from_slice(&source.to_be_bytes());
            frame[30..34].copy_from_slice(&[10, 0, 0, 9]);
            frame[34..38].copy_from_slice(&[3, 232, 0, 80]);
            frame[46..48].copy_from_slice(&[0x50, 0x10]);
            let sum = checksum::csum16(&frame[14..34]);
            frame[24..26].copy_from_slice(&sum.to_be_bytes());
            (i * 100_000, 1, frame)
        })
        .collect();
    let one_by_one = outcome(ready(Engine::Interpreter), &arrivals, None);
    assert!(one_by_one.0 .0.len() > 2_000, "{}", one_by_one.1);
    let ahead = outcome(ready(Engine::Native), &arrivals, Some(9));
    assert!(one_by_one.0 .0 == ahead.0 .0);
    assert_eq!(one_by_one.1, ahead.1);
}

/// A device whose parser ends with one operation and whose ingress begins with another; then a table of so many entries
/// says the port.
fn with_operations(parser: &Value, ingress: &Value, entries: u64) -> Device {
    let port = json!({"type": "runtime_data", "value": 0});
    let port = [field("standard_metadata", "egress_spec"), port];
    let mut program = minimal(std::slice::from_ref(ingress), &[]);
    let operations = &mut program["parsers"][0]["parse_states"][0]["parser_ops"];
    let last = json!({"op": "primitive", "parameters": [parser]});
    operations.as_array_mut().unwrap().push(last);
    program["actions"].as_array_mut().unwrap().push(json!({
        "name": "forward", "id": 2, "runtime_data": [{"name": "port", "bitwidth": 9}],
        "primitives": [op("assign", json!(port))],
    }));
    program["pipelines"][0]["action_calls"][0]["next_node"] = json!("t");
    program["pipelines"][0]["tables"] = json!([{
        "name": "t", "id": 0, "match_type": "exact", "type": "simple", "max_size": 5_000,
        "with_counters": false, "support_timeout": false, "direct_meters": null,
        "key": [{"match_type": "exact", "name": "n", "target": ["h", "n"], "mask": null}],
        "action_ids": [2], "actions": ["forward"], "base_default_next": null, "next_tables": {"forward": null},
    }]);
    program["calculations"] = ["crc32", "random"]
        .into_iter()
        .enumerate()
        .map(|(id, algo)| json!({"name": algo, "id": id, "algo": algo, "input": [field("h", "n")]}))
        .collect();
    let mut pipeline = Pipeline::from_json(&bytes(&program)).unwrap();
    (0..entries).for_each(|n| insert(&mut pipeline, "t", &[n], "forward", &[2]));
    let mut device = Device::new(device::DeviceConfig::default());
    (1..3).for_each(|port| device.add_port(port, PortConfig::default()).unwrap());
    device.load(0, pipeline);
    device
}

/// Where a parser draws numbers, or reads what packets change, each frame is parsed when those before it are handled: what
/// leaves is the same whether the table is large or not.
#[test]
fn a_parser_with_state_is_not_ahead() {
    let random = |to: &str| {
        let name = "modify_field_rng_uniform";
        op(name, json!([field("h", to), number(0), number(200)]))
    };
    let register = json!({"type": "register_array", "value": "r8"});
    let read = op(
        "register_read",
        json!([field("h", "small"), register, number(0)]),
    );
    let add = json!({"op": "+", "left": field("h", "small"), "right": number(1)});
    let add = json!({"type": "expression", "value": {"type": "expression", "value": add}});
    let write = op("register_write", json!([register, number(0), add]));
    let hash = |calculation: &str| {
        let calculation = json!({"type": "calculation", "value": calculation});
        let name = "modify_field_with_hash_based_offset";
        op(
            name,
            json!([field("h", "small"), number(0), calculation, number(200)]),
        )
    };
    for (parser, ingress, is_ahead) in [
        (random("small"), random("wide"), false),
        (read, write, false),
        (hash("random"), hash("random"), false),
        (hash("crc32"), random("wide"), true),
    ] {
        let ready = |entries| with_operations(&parser, &ingress, entries);
        let arrivals: Vec<Arrival> = (0..100)
            .map(|i| (i * 1_000, 1, minimal_frame(i as u32, 0, 0)))
            .collect();
        let small = ready(4_095);
        assert!(!small.ahead_pays());
        let one_by_one = outcome(small, &arrivals, None);
        assert_eq!(one_by_one.0 .0.len(), arrivals.len());
        let large = ready(4_096);
        let pays = large.ahead_pays();
        let other = outcome(large, &arrivals, pays.then_some(9));
        assert!(one_by_one.0 .0 == other.0 .0, "{parser}");
        assert_eq!(one_by_one.1, other.1, "{parser}");
        let only = Engine::chosen() == Ok(Engine::Interpreter);
        assert_eq!(pays, is_ahead && !only, "{parser}");
    }
}
