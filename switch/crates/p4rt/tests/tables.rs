// SPDX-License-Identifier: Apache-2.0
//! Table entries: every match kind, the verbs, default entries, const tables, filters, direct resources, error texts.

mod common;

use common::*;
use p4rt::proto::p4rt::entity::Entity as Kind;
use p4rt::proto::p4rt::table_entry::IdleTimeout;
use p4rt::proto::p4rt::update::Type as Verb;
use p4rt::proto::p4rt::{
    write_request::Atomicity, CounterData, DirectCounterEntry, DirectMeterEntry, MeterConfig,
    TableEntry, WriteRequest,
};
use tonic::Code;

fn table(ids: &Ids, alias: &str) -> TableEntry {
    TableEntry {
        table_id: ids.tables(alias),
        ..Default::default()
    }
}

fn ternary_entry(ids: &Ids, priority: i32) -> TableEntry {
    TableEntry {
        r#match: vec![
            ternary(1, &[0x0a, 0, 0, 0], &[0xff, 0, 0, 0]),
            range(2, &[1], &[0x0f, 0xfe]),
            optional(3, &[4]),
            exact(4, &[1]),
        ],
        action: ids.action("rewrite", &[&[2, 0, 0, 0, 0, 7], &[0x0a, 0xbc]]),
        priority,
        ..table(ids, "ternary_table")
    }
}

#[tokio::test]
async fn every_match_kind_is_read_back_as_written() {
    let switch = Switch::start().await;
    let (ids, mut a) = (Ids::default(), switch.primary().await);
    let mut entries = vec![
        ids.exact(&[2, 0, 0, 0, 0, 1], 3),
        TableEntry {
            r#match: vec![lpm(1, &[10, 1, 0, 0], 16)],
            action: ids.action("forward", &[&[2]]),
            ..table(&ids, "lpm_table")
        },
        TableEntry {
            action: ids.action("drop", &[]),
            ..table(&ids, "lpm_table")
        }, // don't care
        ternary_entry(&ids, 10),
        TableEntry {
            r#match: vec![exact(4, &[1])],
            action: ids.action("to_cpu", &[]),
            priority: 1,
            ..table(&ids, "ternary_table")
        },
    ];
    entries[0].metadata = b"cookie".as_slice().into();
    for entry in &entries {
        a.insert(Kind::TableEntry(entry.clone())).await.unwrap();
    }
    for entry in &entries {
        if entry.r#match.is_empty() {
            continue; // reads the whole table, see below
        }
        let key = TableEntry {
            action: None,
            metadata: Default::default(),
            ..entry.clone()
        };
        assert_eq!(
            a.read(vec![Kind::TableEntry(key)]).await.unwrap(),
            [Kind::TableEntry(entry.clone())]
        );
    }
    let all = a
        .read(vec![Kind::TableEntry(table(&ids, "lpm_table"))])
        .await
        .unwrap();
    assert_eq!(all.len(), 2);
    assert!(entries[1..3]
        .iter()
        .all(|e| all.contains(&Kind::TableEntry(e.clone()))));
    // All tables: these five and the two const entries.
    assert_eq!(
        a.read(vec![Kind::TableEntry(TableEntry::default())])
            .await
            .unwrap()
            .len(),
        7
    );
    for entry in &entries {
        a.delete(Kind::TableEntry(TableEntry {
            action: None,
            ..entry.clone()
        }))
        .await
        .unwrap();
    }
    assert_eq!(
        a.read(vec![Kind::TableEntry(TableEntry::default())])
            .await
            .unwrap()
            .len(),
        2
    );
}

#[tokio::test]
async fn bytestrings_with_leading_zeros_name_the_same_entry() {
    let switch = Switch::start().await;
    let (ids, mut a) = (Ids::default(), switch.primary().await);
    a.insert(Kind::TableEntry(ids.exact(&[0, 0, 0, 0, 0, 0, 0, 1], 3)))
        .await
        .unwrap();
    let (code, text) = a
        .insert(Kind::TableEntry(ids.exact(&[1], 3)))
        .await
        .unwrap_err();
    assert_eq!(code, Code::AlreadyExists, "{text}");
    let read = a
        .read(vec![Kind::TableEntry(table(&ids, "exact_table"))])
        .await
        .unwrap();
    assert_eq!(read, [Kind::TableEntry(ids.exact(&[1], 3))]);
}

#[tokio::test]
async fn modify_changes_the_action_and_delete_only_needs_the_key() {
    let switch = Switch::start().await;
    let (ids, mut a) = (Ids::default(), switch.primary().await);
    let dst = [2, 0, 0, 0, 0, 5];
    let (code, text) = a
        .modify(Kind::TableEntry(ids.exact(&dst, 3)))
        .await
        .unwrap_err();
    assert_eq!(code, Code::NotFound, "{text}");
    a.insert(Kind::TableEntry(ids.exact(&dst, 2)))
        .await
        .unwrap();
    a.modify(Kind::TableEntry(ids.exact(&dst, 3)))
        .await
        .unwrap();
    switch.receive(1, frame(dst, 0x800, b"")).await;
    assert_eq!(switch.sent().await.0, 3);
    // Without an action the old one stays.
    let kept = TableEntry {
        action: None,
        metadata: b"m".as_slice().into(),
        ..ids.exact(&dst, 3)
    };
    a.modify(Kind::TableEntry(kept.clone())).await.unwrap();
    let read = a
        .read(vec![Kind::TableEntry(table(&ids, "exact_table"))])
        .await
        .unwrap();
    assert_eq!(
        read,
        [Kind::TableEntry(TableEntry {
            metadata: kept.metadata,
            ..ids.exact(&dst, 3)
        })]
    );
    let nonsense = TableEntry {
        action: ids.action("rewrite", &[&[9]]),
        ..ids.exact(&dst, 3)
    };
    a.delete(Kind::TableEntry(nonsense)).await.unwrap();
    let (code, _) = a
        .delete(Kind::TableEntry(ids.exact(&dst, 3)))
        .await
        .unwrap_err();
    assert_eq!(code, Code::NotFound);
}

#[tokio::test]
async fn the_default_entry_is_modified_and_reset() {
    let switch = Switch::start().await;
    let (ids, mut a) = (Ids::default(), switch.primary().await);
    let key = TableEntry {
        is_default_action: true,
        ..table(&ids, "ternary_table")
    };
    let with = |action| TableEntry {
        action,
        ..key.clone()
    };
    let original = Kind::TableEntry(with(ids.action("NoAction", &[])));
    assert_eq!(
        a.read(vec![Kind::TableEntry(key.clone())]).await.unwrap(),
        std::slice::from_ref(&original)
    );
    let changed = TableEntry {
        metadata: b"why".as_slice().into(),
        ..with(ids.action("forward", &[&[3]]))
    };
    a.modify(Kind::TableEntry(changed.clone())).await.unwrap();
    assert_eq!(
        a.read(vec![Kind::TableEntry(key.clone())]).await.unwrap(),
        [Kind::TableEntry(changed)]
    );
    a.modify(Kind::TableEntry(key.clone())).await.unwrap();
    assert_eq!(
        a.read(vec![Kind::TableEntry(key.clone())]).await.unwrap(),
        [original]
    );

    let refused = |entry: TableEntry| Kind::TableEntry(entry);
    let (code, text) = a
        .insert(refused(with(ids.action("NoAction", &[]))))
        .await
        .unwrap_err();
    assert_eq!(
        (code, text.contains("only MODIFY is allowed")),
        (Code::InvalidArgument, true),
        "{text}"
    );
    let keyed = TableEntry {
        r#match: vec![exact(4, &[1])],
        ..key.clone()
    };
    let (code, text) = a.modify(refused(keyed)).await.unwrap_err();
    assert_eq!(
        (code, text.contains("takes neither match fields")),
        (Code::InvalidArgument, true),
        "{text}"
    );
    let fixed = TableEntry {
        is_default_action: true,
        action: ids.action("drop", &[]),
        ..table(&ids, "lpm_table")
    };
    let (code, text) = a.modify(refused(fixed)).await.unwrap_err();
    assert_eq!(
        (code, text.as_str()),
        (
            Code::PermissionDenied,
            "table EntitiesIngress.lpm_table: its default action is const"
        )
    );
    let scope = TableEntry {
        is_default_action: true,
        action: ids.action("forward_only", &[&[1]]),
        ..table(&ids, "exact_table")
    };
    let (code, text) = a.modify(refused(scope)).await.unwrap_err();
    assert_eq!(code, Code::PermissionDenied);
    assert!(text.contains("forward_only is @tableonly"), "{text}");
}

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
        assert_eq!(text, "table EntitiesIngress.const_table: its entries are const: none can be added or removed");
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
        (TableEntry { table_id: 33, ..good.clone() }, Code::NotFound, "table id 0x00000021 is unknown; known: "),
        (TableEntry { table_id: 0, ..good.clone() }, invalid, "table id 0 is a wildcard"),
        (TableEntry { r#match: vec![exact(9, &[1])], ..good.clone() }, invalid, "match field id 9 is unknown; known: 1 hdr.ethernet.dst_addr"),
        (TableEntry { r#match: vec![], ..good.clone() }, invalid, "match field hdr.ethernet.dst_addr (id 1) is missing"),
        (TableEntry { r#match: vec![exact(1, &[1]), exact(1, &[1])], ..good.clone() }, invalid, "is given twice"),
        (TableEntry { r#match: vec![lpm(1, &[1], 3)], ..good.clone() }, invalid, "it is matched as exact, not as lpm"),
        (ids.exact(&[1, 0, 0, 0, 0, 0, 0], 1), Code::OutOfRange, "match field hdr.ethernet.dst_addr: the value 0x01000000000000 needs 49 bits, but the field is bit<48>"),
        (ids.exact(&[], 1), Code::OutOfRange, "the value is an empty byte string"),
        (TableEntry { priority: 4, ..good.clone() }, invalid, "priority 4 is not allowed: without"),
        (TableEntry { priority: 0, ..tern.clone() }, invalid, "priority 0 is not allowed: a table with"),
        (TableEntry { priority: -1, ..tern.clone() }, invalid, "priority -1 is not allowed"),
        (TableEntry { action: None, ..good.clone() }, invalid, "the action is unset; an INSERT needs one"),
        (TableEntry { action: ids.action("learn", &[]), ..good.clone() }, invalid, "is none of this table's actions: "),
        (TableEntry { action: ids.action("drop", &[]), ..good.clone() }, Code::PermissionDenied, "is @defaultonly: no entry can call it"),
        (TableEntry { action: ids.action("measure", &[]), ..good.clone() }, invalid, "action EntitiesIngress.measure: parameter port (id 1) is missing"),
        (TableEntry { action: ids.action("measure", &[&[1], &[2]]), ..good.clone() }, invalid, "parameter id 2 is unknown; known: 1 port"),
        (TableEntry { action: ids.action("measure", &[&[2, 0]]), ..good.clone() }, Code::OutOfRange, "parameter port: the value 0x0200 needs 10 bits, but the field is bit<9>"),
        (TableEntry { is_const: true, ..good.clone() }, invalid, "is_const must be false"),
        (TableEntry { time_since_last_hit: Some(IdleTimeout::default()), ..good.clone() }, invalid, "time_since_last_hit must be unset in an update"),
        (TableEntry { idle_timeout_ns: -1, ..good.clone() }, invalid, "idle_timeout_ns -1 is negative"),
        (TableEntry { idle_timeout_ns: 5, ..tern.clone() }, invalid, "it does not support idle timeouts"),
        (TableEntry { counter_data: Some(CounterData::default()), ..tern.clone() }, invalid, "it has no direct counter"),
        (TableEntry { meter_config: Some(MeterConfig::default()), ..tern.clone() }, invalid, "it has no direct meter"),
        (TableEntry { action: ids.action("use_arrays", &[&[1]]), ..table(&ids, "keyless_table") }, invalid, "it has no key: only its default entry"),
        (lpm_with(lpm(1, &[10, 0, 0, 0], 0)), invalid, "prefix length 0 is a don't-care: leave the field out"),
        (lpm_with(lpm(1, &[10, 0, 0, 0], 33)), invalid, "prefix length 33 is not within 1 to 32"),
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
async fn reads_are_filtered() {
    let switch = Switch::start().await;
    let (ids, mut a) = (Ids::default(), switch.primary().await);
    for priority in 1..=4 {
        let mut entry = ternary_entry(&ids, priority);
        entry.r#match[3] = exact(4, &[priority as u8 % 2]);
        entry.metadata = vec![priority as u8 / 3].into();
        if priority == 2 {
            entry.action = ids.action("learn", &[]);
        }
        a.insert(Kind::TableEntry(entry)).await.unwrap();
    }
    let count = |filter: TableEntry| {
        Kind::TableEntry(TableEntry {
            table_id: ids.tables("ternary_table"),
            ..filter
        })
    };
    let action = |alias: &str| {
        Some(p4rt::proto::p4rt::TableAction {
            r#type: Some(p4rt::proto::p4rt::table_action::Type::Action(
                p4rt::proto::p4rt::Action {
                    action_id: ids.actions(alias),
                    params: vec![],
                },
            )),
        })
    };
    for (filter, want) in [
        (TableEntry::default(), 4),
        (
            TableEntry {
                priority: 3,
                ..Default::default()
            },
            1,
        ),
        (
            TableEntry {
                action: action("learn"),
                ..Default::default()
            },
            1,
        ),
        (
            TableEntry {
                action: action("rewrite"),
                ..Default::default()
            },
            3,
        ),
        (
            TableEntry {
                metadata: vec![1].into(),
                ..Default::default()
            },
            2,
        ),
        (
            TableEntry {
                r#match: ternary_entry(&ids, 1).r#match,
                ..Default::default()
            },
            2,
        ), // any priority
        (
            TableEntry {
                r#match: ternary_entry(&ids, 1).r#match,
                priority: 3,
                ..Default::default()
            },
            1,
        ),
        (
            TableEntry {
                r#match: ternary_entry(&ids, 1).r#match,
                priority: 9,
                ..Default::default()
            },
            0,
        ),
    ] {
        assert_eq!(
            a.read(vec![count(filter.clone())]).await.unwrap().len(),
            want,
            "{filter:?}"
        );
    }
}

#[tokio::test]
async fn a_read_batch_reports_each_request() {
    let switch = Switch::start().await;
    let (ids, mut a) = (Ids::default(), switch.primary().await);
    let status = a
        .read(vec![
            Kind::TableEntry(table(&ids, "const_table")),
            Kind::TableEntry(TableEntry {
                table_id: 5,
                ..Default::default()
            }),
        ])
        .await
        .unwrap_err();
    assert_eq!(status.code(), Code::Unknown);
    let errors = errors(&status);
    assert_eq!((errors[0].0, errors[1].0), (Code::Ok, Code::NotFound));
    assert!(
        errors[1]
            .1
            .starts_with("table id 0x00000005 is unknown; known: "),
        "{}",
        errors[1].1
    );
}

#[tokio::test]
async fn direct_counters_count_and_can_be_set() {
    let switch = Switch::start().await;
    let (ids, mut a) = (Ids::default(), switch.primary().await);
    let dst = [2, 0, 0, 0, 0, 5];
    let start = CounterData {
        packet_count: 100,
        byte_count: 5000,
    };
    a.insert(Kind::TableEntry(TableEntry {
        counter_data: Some(start),
        ..ids.exact(&dst, 2)
    }))
    .await
    .unwrap();
    for _ in 0..3 {
        switch.receive(1, frame(dst, 0x800, b"")).await;
        switch.sent().await;
    }
    let counted = CounterData {
        packet_count: 103,
        byte_count: 5000 + 3 * 60,
    };
    let key = TableEntry {
        action: None,
        ..ids.exact(&dst, 2)
    };
    let entity = Kind::DirectCounterEntry(DirectCounterEntry {
        table_entry: Some(key.clone()),
        data: None,
    });
    let want = Kind::DirectCounterEntry(DirectCounterEntry {
        table_entry: Some(key.clone()),
        data: Some(counted),
    });
    assert_eq!(
        a.read(vec![entity.clone()]).await.unwrap(),
        std::slice::from_ref(&want)
    );
    // As part of the entry, of all entries, of all tables.
    let with = TableEntry {
        counter_data: Some(CounterData::default()),
        ..key.clone()
    };
    let read = a.read(vec![Kind::TableEntry(with)]).await.unwrap();
    assert_eq!(
        read,
        [Kind::TableEntry(TableEntry {
            counter_data: Some(counted),
            ..ids.exact(&dst, 2)
        })]
    );
    for wild in [table(&ids, "exact_table"), TableEntry::default()] {
        let all = Kind::DirectCounterEntry(DirectCounterEntry {
            table_entry: Some(wild),
            data: None,
        });
        assert_eq!(
            a.read(vec![all]).await.unwrap(),
            std::slice::from_ref(&want)
        );
    }
    let zero = DirectCounterEntry {
        table_entry: Some(key.clone()),
        data: Some(CounterData::default()),
    };
    a.modify(Kind::DirectCounterEntry(zero.clone()))
        .await
        .unwrap();
    assert_eq!(
        a.read(vec![entity]).await.unwrap(),
        [Kind::DirectCounterEntry(zero.clone())]
    );

    let (code, text) = a
        .insert(Kind::DirectCounterEntry(zero.clone()))
        .await
        .unwrap_err();
    assert_eq!(
        (code, text.contains("use MODIFY")),
        (Code::InvalidArgument, true),
        "{text}"
    );
    let other = DirectCounterEntry {
        table_entry: Some(TableEntry {
            action: None,
            ..ids.exact(&[9], 2)
        }),
        ..zero.clone()
    };
    assert_eq!(
        a.modify(Kind::DirectCounterEntry(other.clone()))
            .await
            .unwrap_err()
            .0,
        Code::NotFound
    );
    let status = a
        .read(vec![Kind::DirectCounterEntry(other)])
        .await
        .unwrap_err();
    assert_eq!(errors(&status)[0].0, Code::NotFound);
    let none = DirectCounterEntry {
        table_entry: Some(table(&ids, "lpm_table")),
        data: None,
    };
    let status = a
        .read(vec![Kind::DirectCounterEntry(none)])
        .await
        .unwrap_err();
    assert_eq!(
        errors(&status)[0].1,
        "table EntitiesIngress.lpm_table: it has no direct counter"
    );
}

#[tokio::test]
async fn direct_meters_are_configured() {
    let switch = Switch::start().await;
    let (ids, mut a) = (Ids::default(), switch.primary().await);
    let config = MeterConfig {
        cir: 1000,
        cburst: 200,
        pir: 2000,
        pburst: 400,
        eburst: 0,
    };
    let entry = TableEntry {
        meter_config: Some(config),
        ..ids.exact(&[5], 2)
    };
    a.insert(Kind::TableEntry(entry.clone())).await.unwrap();
    let key = TableEntry {
        action: None,
        ..ids.exact(&[5], 2)
    };
    let want = TableEntry {
        meter_config: Some(MeterConfig::default()),
        ..key.clone()
    };
    assert_eq!(
        a.read(vec![Kind::TableEntry(want)]).await.unwrap(),
        [Kind::TableEntry(entry)]
    );
    let direct = |config| {
        Kind::DirectMeterEntry(DirectMeterEntry {
            table_entry: Some(key.clone()),
            config,
            counter_data: None,
        })
    };
    assert_eq!(
        a.read(vec![direct(None)]).await.unwrap(),
        [direct(Some(config))]
    );
    let doubled = MeterConfig {
        cir: 2000,
        ..config
    };
    a.modify(direct(Some(doubled))).await.unwrap();
    assert_eq!(
        a.read(vec![direct(None)]).await.unwrap(),
        [direct(Some(doubled))]
    );
    // A MODIFY of the entry without a config puts the meter back to green.
    a.modify(Kind::TableEntry(ids.exact(&[5], 3)))
        .await
        .unwrap();
    assert_eq!(a.read(vec![direct(None)]).await.unwrap(), [direct(None)]);
    let (code, text) = a
        .modify(direct(Some(MeterConfig { cir: -1, ..config })))
        .await
        .unwrap_err();
    assert_eq!(
        (code, text.contains("cir -1 is negative")),
        (Code::InvalidArgument, true),
        "{text}"
    );
    let (code, text) = a
        .modify(direct(Some(MeterConfig {
            eburst: 4,
            ..config
        })))
        .await
        .unwrap_err();
    assert_eq!(
        (code, text.contains("eburst 4 must be unset")),
        (Code::InvalidArgument, true),
        "{text}"
    );
}

#[tokio::test]
async fn the_last_hit_is_read_when_asked_for() {
    let switch = Switch::start().await;
    let (ids, mut a) = (Ids::default(), switch.primary().await);
    let entry = TableEntry {
        idle_timeout_ns: 3_000_000_000,
        ..ids.exact(&[5], 2)
    };
    a.insert(Kind::TableEntry(entry.clone())).await.unwrap();
    switch.pass(1_500_000_000);
    let ask = TableEntry {
        time_since_last_hit: Some(IdleTimeout::default()),
        ..table(&ids, "exact_table")
    };
    match &a.read(vec![Kind::TableEntry(ask)]).await.unwrap()[..] {
        [Kind::TableEntry(read)] => {
            let elapsed = read.time_since_last_hit.unwrap().elapsed_ns;
            assert!(
                (1_400_000_000..=1_600_000_000).contains(&elapsed),
                "{elapsed}"
            );
            assert_eq!(read.idle_timeout_ns, 3_000_000_000);
        }
        other => panic!("{other:?}"),
    }
    let ask = TableEntry {
        time_since_last_hit: Some(IdleTimeout::default()),
        ..table(&ids, "lpm_table")
    };
    let status = a.read(vec![Kind::TableEntry(ask)]).await.unwrap_err();
    assert!(
        errors(&status)[0]
            .1
            .contains("it does not support idle timeouts"),
        "{status:?}"
    );
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
