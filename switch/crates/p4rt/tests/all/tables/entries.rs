// SPDX-License-Identifier: Apache-2.0
//! Entries written and read back: every match kind, the verbs, default entries.

use super::{table, ternary_entry};
use crate::common::*;
use p4rt::proto::p4rt::entity::Entity as Kind;
use p4rt::proto::p4rt::TableEntry;
use tonic::Code;

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
