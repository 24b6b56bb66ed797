// SPDX-License-Identifier: Apache-2.0
//! What is refused, and how it is said: const tables, bad entries, batches, full tables.

use super::{table, ternary_entry};
use crate::common::*;
use p4rt::proto::p4rt::entity::Entity as Kind;
use p4rt::proto::p4rt::table_entry::IdleTimeout;
use p4rt::proto::p4rt::update::Type as Verb;
use p4rt::proto::p4rt::write_request::Atomicity;
use p4rt::proto::p4rt::{CounterData, MeterConfig, TableEntry, WriteRequest};
use tonic::Code;

#[tokio::test]
async fn const_tables_are_refused() {
    let switch = Switch::start().await;
    let (ids, mut a) = (Ids::default(), switch.primary().await);
    let read = a
        .read(vec![Kind::TableEntry(table(&ids, "const_table"))])
        .await
        .unwrap();
    assert_eq!(read.len(), 2);
    for kind in &read {
        match kind {
            Kind::TableEntry(e) => {
                assert!(e.is_const && e.priority > 0 && e.action.is_some(), "{e:?}")
            }
            other => panic!("{other:?}"),
        }
    }
    let entry = TableEntry {
        r#match: vec![ternary(1, &[8, 0], &[0xff, 0xff])],
        action: ids.action("to_cpu", &[]),
        priority: 9,
        ..table(&ids, "const_table")
    };
    for verb in [Verb::Insert, Verb::Delete] {
        let (code, text) = a
            .one(verb, Kind::TableEntry(entry.clone()))
            .await
            .unwrap_err();
        assert_eq!(code, Code::PermissionDenied);
        assert_eq!(text, "table EntitiesIngress.const_table: its entries are const; the program does not allow to change them");
    }
    let (code, _) = a.modify(Kind::TableEntry(entry)).await.unwrap_err();
    assert_eq!(code, Code::PermissionDenied);
}

/// Each bad entry, its code and its text.
#[tokio::test]
async fn bad_entries_say_what_is_wrong() {
    let switch = Switch::start().await;
    let (ids, mut a) = (Ids::default(), switch.primary().await);
    let good = ids.exact(&[1], 1);
    let tern = ternary_entry(&ids, 10);
    let lpm_with = |m| TableEntry {
        r#match: vec![m],
        action: ids.action("forward", &[&[1]]),
        ..table(&ids, "lpm_table")
    };
    let tern_with = |i: usize, m| {
        let mut e = tern.clone();
        e.r#match[i] = m;
        e
    };
    let invalid = Code::InvalidArgument;
    let cases = [
        (TableEntry { table_id: 33, ..good.clone() }, Code::NotFound, "table id 0x21 is unknown; known: "),
        (TableEntry { table_id: 0, ..good.clone() }, invalid, "table id 0 is a wildcard"),
        (TableEntry { r#match: vec![exact(9, &[1])], ..good.clone() }, invalid, "match field id 0x9 is unknown; known: 0x1 hdr.ethernet.dst_addr"),
        (TableEntry { r#match: vec![], ..good.clone() }, invalid, "match field hdr.ethernet.dst_addr (id 1) is missing"),
        (TableEntry { r#match: vec![exact(1, &[1]), exact(1, &[1])], ..good.clone() }, invalid, "is given twice"),
        (TableEntry { r#match: vec![lpm(1, &[1], 3)], ..good.clone() }, invalid, "it is matched as exact, not as lpm"),
        (ids.exact(&[1, 0, 0, 0, 0, 0, 0], 1), Code::OutOfRange, "match field hdr.ethernet.dst_addr: the value 0x01000000000000 needs 49 bits, but the field is bit<48>"),
        (ids.exact(&[], 1), Code::OutOfRange, "the value is an empty byte string"),
        (TableEntry { priority: 4, ..good.clone() }, invalid, "priority 4 is not allowed: without"),
        (TableEntry { priority: 0, ..tern.clone() }, invalid, "priority 0 is not allowed: a table with"),
        (TableEntry { priority: -1, ..tern.clone() }, invalid, "priority -1 is not allowed"),
        (TableEntry { action: None, ..good.clone() }, invalid, "the action is unset; an INSERT needs one"),
        (TableEntry { action: ids.action("learn", &[]), ..good.clone() }, invalid, "is unknown; known: "),
        (TableEntry { action: ids.action("drop", &[]), ..good.clone() }, Code::PermissionDenied, "is @defaultonly: no entry can call it"),
        (TableEntry { action: ids.action("measure", &[]), ..good.clone() }, invalid, "action EntitiesIngress.measure: parameter port (id 1) is missing"),
        (TableEntry { action: ids.action("measure", &[&[1], &[2]]), ..good.clone() }, invalid, "parameter id 0x2 is unknown; known: 0x1 port"),
        (TableEntry { action: ids.action("measure", &[&[2, 0]]), ..good.clone() }, Code::OutOfRange, "parameter port: the value 0x0200 needs 10 bits, but the field is bit<9>"),
        (TableEntry { is_const: true, ..good.clone() }, invalid, "is_const must be false"),
        (TableEntry { time_since_last_hit: Some(IdleTimeout::default()), ..good.clone() }, invalid, "has_time_since_last_hit must not be set in WriteRequest"),
        (TableEntry { metadata: vec![0; 4097].into(), ..good.clone() }, invalid, "bytes of metadata 4097 is not within 0 to 4096"),
        (TableEntry { idle_timeout_ns: -1, ..good.clone() }, invalid, "idle_timeout_ns -1 is negative"),
        (TableEntry { idle_timeout_ns: 5, ..tern.clone() }, invalid, "idle_timeout_ns must be set to 0 for tables which do not support idle timeout"),
        (TableEntry { counter_data: Some(CounterData::default()), ..tern.clone() }, invalid, "it has no direct counter"),
        (TableEntry { meter_config: Some(MeterConfig::default()), ..tern.clone() }, invalid, "it has no direct meter"),
        (TableEntry { action: ids.action("use_arrays", &[&[1]]), ..table(&ids, "keyless_table") }, invalid, "it has no key; only its default action"),
        (lpm_with(lpm(1, &[10, 0, 0, 0], 0)), invalid, "prefix length 0 is a don't-care: leave the field out"),
        (lpm_with(lpm(1, &[10, 0, 0, 0], 33)), invalid, "prefix length 33 is not within 0 to 32"),
        (lpm_with(lpm(1, &[10, 0, 0, 1], 24)), invalid, "has bits set behind its prefix of 24 bits"),
        (tern_with(0, ternary(1, &[0], &[0])), invalid, "a mask of 0 is a don't-care"),
        (tern_with(0, ternary(1, &[3], &[1])), invalid, "the value 0x03 has bits set where the mask 0x01 has none"),
        (tern_with(1, range(2, &[9], &[8])), invalid, "the low bound 0x09 is above the high bound 0x08"),
        (tern_with(1, range(2, &[0], &[0x0f, 0xff])), invalid, "the range of all values is a don't-care"),
    ];
    for (entry, code, text) in cases {
        let (got_code, got) = a.insert(Kind::TableEntry(entry)).await.unwrap_err();
        assert_eq!(got_code, code, "{got}");
        assert!(got.contains(text), "{got:?} is not {text:?}");
    }
    let read = a
        .read(vec![Kind::TableEntry(TableEntry::default())])
        .await
        .unwrap();
    assert_eq!(read.len(), 2, "nothing was half-applied");
}

#[tokio::test]
async fn a_batch_goes_on_after_errors_and_reports_each() {
    let switch = Switch::start().await;
    let (ids, mut a) = (Ids::default(), switch.primary().await);
    let insert = |n: u8| update(Verb::Insert, Kind::TableEntry(ids.exact(&[n], 1)));
    let mut bad = insert(9);
    bad.r#type = 0;
    let status = a
        .write(vec![
            insert(1),
            insert(1),
            bad,
            insert(2),
            Default::default(),
        ])
        .await
        .unwrap_err();
    assert_eq!(status.code(), Code::Unknown);
    let codes: Vec<Code> = errors(&status).into_iter().map(|e| e.0).collect();
    assert_eq!(
        codes,
        [
            Code::Ok,
            Code::AlreadyExists,
            Code::InvalidArgument,
            Code::Ok,
            Code::InvalidArgument
        ]
    );
    assert_eq!(errors(&status)[4].1, "the update has no entity");
    assert!(
        status
            .message()
            .starts_with("Write: 3 of 5 refused; first [1]: table EntitiesIngress.exact_table"),
        "{}",
        status.message()
    );
    let read = a
        .read(vec![Kind::TableEntry(table(&ids, "exact_table"))])
        .await
        .unwrap();
    assert_eq!(read.len(), 2);
}

#[tokio::test]
async fn other_atomicities_are_unimplemented() {
    let switch = Switch::start().await;
    let mut a = switch.primary().await;
    for atomicity in [Atomicity::RollbackOnError, Atomicity::DataplaneAtomic] {
        let request = WriteRequest {
            device_id: DEVICE_ID,
            election_id: id(1),
            atomicity: atomicity as i32,
            ..Default::default()
        };
        let status = a.client.write(request).await.unwrap_err();
        assert_eq!(status.code(), Code::Unimplemented);
        assert!(
            status.message().contains("only CONTINUE_ON_ERROR is"),
            "{}",
            status.message()
        );
    }
}

#[tokio::test]
async fn a_table_holds_its_size_and_no_more() {
    let switch = Switch::start().await;
    let (ids, mut a) = (Ids::default(), switch.primary().await);
    let entry = |n: i32| {
        Kind::TableEntry(TableEntry {
            priority: n + 1,
            ..ternary_entry(&ids, 1)
        })
    };
    let batch = (0..256).map(|n| update(Verb::Insert, entry(n))).collect();
    a.write(batch).await.unwrap();
    let (code, text) = a.insert(entry(256)).await.unwrap_err();
    assert_eq!(code, Code::ResourceExhausted, "{text}");
    assert!(text.contains("256"), "{text}");
}
