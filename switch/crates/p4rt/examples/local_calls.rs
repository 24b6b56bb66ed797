// SPDX-License-Identifier: Apache-2.0
//! Measures P4Runtime without gRPC: microseconds of a write of one entry, of an entry in a
//! write of 1,000, and of a read of two counters, one JSON line each.
//!
//! `cargo run --release -p p4rt --example local_calls`

use std::time::Instant;

use device::{Device, DeviceConfig};
use p4rt::proto::p4info_from_text;
use p4rt::proto::p4rt::entity::Entity as Kind;
use p4rt::proto::p4rt::field_match::{Exact, FieldMatchType};
use p4rt::proto::p4rt::set_forwarding_pipeline_config_request::Action as ConfigAction;
use p4rt::proto::p4rt::table_action::Type as ActionType;
use p4rt::proto::p4rt::update::Type as Verb;
use p4rt::proto::p4rt::{
    action::Param, Action, CounterEntry, Entity, FieldMatch, ForwardingPipelineConfig, Index,
    ReadRequest, SetForwardingPipelineConfigRequest, TableAction, TableEntry, Update, WriteRequest,
};
use p4rt::Local;
use prost::Message;

const CALLS: u32 = 20_000;
const BULK: u32 = 1_000;
const JSON: &[u8] = include_bytes!("../tests/p4/entities.json");
const P4INFO: &str = include_str!("../tests/p4/entities.p4info.txtpb");

fn main() {
    let info = p4info_from_text(P4INFO).expect("the test program's P4Info");
    let table_id = info.tables.iter().filter_map(|t| t.preamble.as_ref());
    let table_id = table_id
        .filter(|p| p.alias == "exact_table")
        .map(|p| p.id)
        .next()
        .unwrap_or(0);
    let action_id = info.actions.iter().filter_map(|a| a.preamble.as_ref());
    let action_id = action_id
        .filter(|p| p.alias == "measure")
        .map(|p| p.id)
        .next()
        .unwrap_or(0);
    let counter_id = info
        .counters
        .first()
        .and_then(|c| c.preamble.as_ref())
        .map_or(0, |p| p.id);
    let mut device = Device::new(DeviceConfig::default());
    let mut local = Local::new(Some(510));
    let request = SetForwardingPipelineConfigRequest {
        action: ConfigAction::VerifyAndCommit as i32,
        config: Some(ForwardingPipelineConfig {
            p4info: Some(info),
            p4_device_config: JSON.into(),
            cookie: None,
        }),
        ..Default::default()
    };
    local
        .set_pipeline(&mut device, 0, request)
        .expect("the test program loads");

    let requests: Vec<Vec<u8>> = (0..CALLS)
        .map(|i| insert(table_id, action_id, i..i + 1).encode_to_vec())
        .collect();
    let mut write = |what: &str, requests: &[Vec<u8>], entries: u32| {
        let start = Instant::now();
        for request in requests {
            let request = WriteRequest::decode(request.as_slice()).expect("made above");
            local
                .write(&mut device, 0, request)
                .expect("the entries are new");
        }
        report(what, start, entries);
    };
    write("write_one_entry", &requests, CALLS);

    let bulk = CALLS..3 * CALLS;
    let entries = bulk.len() as u32;
    let starts = bulk.step_by(BULK as usize);
    let requests: Vec<Vec<u8>> = starts
        .map(|i| insert(table_id, action_id, i..i + BULK).encode_to_vec())
        .collect();
    write("write_entry_in_bulk", &requests, entries);

    let counter = |index| Entity {
        entity: Some(Kind::CounterEntry(CounterEntry {
            counter_id,
            index: Some(Index { index }),
            data: None,
        })),
    };
    let request = ReadRequest {
        entities: vec![counter(1), counter(2)],
        ..Default::default()
    }
    .encode_to_vec();
    let start = Instant::now();
    for _ in 0..CALLS {
        let request = ReadRequest::decode(request.as_slice()).expect("made above");
        let responses = local
            .read(&mut device, 0, request)
            .expect("the counters exist");
        let bytes: Vec<Vec<u8>> = responses.iter().map(Message::encode_to_vec).collect();
        assert_eq!((bytes.len(), responses[0].entities.len()), (1, 2));
    }
    report("read_two_counters", start, CALLS);
}

fn insert(table_id: u32, action_id: u32, entries: std::ops::Range<u32>) -> WriteRequest {
    WriteRequest {
        updates: entries
            .map(|i| update(table_id, action_id, i).encode_to_vec().into())
            .collect(),
        ..Default::default()
    }
}

fn update(table_id: u32, action_id: u32, i: u32) -> Update {
    let [_, a, b, c] = i.to_be_bytes();
    let value = vec![2, 0, 1, a, b, c].into();
    let key = FieldMatch {
        field_id: 1,
        field_match_type: Some(FieldMatchType::Exact(Exact { value })),
    };
    let call = Action {
        action_id,
        params: vec![Param {
            param_id: 1,
            value: vec![2].into(),
        }],
    };
    let entry = TableEntry {
        table_id,
        r#match: vec![key],
        action: Some(TableAction {
            r#type: Some(ActionType::Action(call)),
        }),
        ..Default::default()
    };
    let entity = Some(Entity {
        entity: Some(Kind::TableEntry(entry)),
    });
    Update {
        r#type: Verb::Insert as i32,
        entity,
    }
}

fn report(what: &str, start: Instant, calls: u32) {
    let us = start.elapsed().as_secs_f64() * 1e6 / f64::from(calls);
    println!("{{\"call\": \"{what}\", \"us\": {us:.2}}}");
}
