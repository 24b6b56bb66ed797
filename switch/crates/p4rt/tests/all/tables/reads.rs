// SPDX-License-Identifier: Apache-2.0
//! Reads: filters, batches, the time since the last hit.

use super::{table, ternary_entry};
use crate::common::*;
use p4rt::proto::p4rt::entity::Entity as Kind;
use p4rt::proto::p4rt::table_entry::IdleTimeout;
use p4rt::proto::p4rt::TableEntry;
use tonic::Code;

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
        errors[1].1.starts_with("table id 0x5 is unknown; known: "),
        "{}",
        errors[1].1
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
        errors(&status)[0].1.contains("it has no idle timeouts"),
        "{status:?}"
    );
}
