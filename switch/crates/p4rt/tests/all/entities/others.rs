// SPDX-License-Identifier: Apache-2.0
//! Value sets, digests, and externs, of which there are none.

use crate::common::*;
use p4rt::proto::p4rt::digest_entry::Config;
use p4rt::proto::p4rt::entity::Entity as Kind;
use p4rt::proto::p4rt::{DigestEntry, ExternEntry, TableEntry, ValueSetEntry, ValueSetMember};
use tonic::Code;

#[tokio::test]
async fn value_sets_change_what_the_parser_takes() {
    let switch = Switch::start().await;
    let (ids, mut a) = (Ids::default(), switch.primary().await);
    let set = |values: &[&[u8]]| {
        let members = values.iter().map(|v| ValueSetMember {
            r#match: vec![exact(1, v)],
        });
        Kind::ValueSetEntry(ValueSetEntry {
            value_set_id: ids.value_sets("label_types"),
            members: members.collect(),
        })
    };
    assert_eq!(
        a.read(vec![Kind::ValueSetEntry(Default::default())])
            .await
            .unwrap(),
        [set(&[])]
    );
    // A label goes to port 3; type 0x4321 has one as soon as the value set says so.
    let to = TableEntry {
        table_id: ids.tables("ternary_table"),
        is_default_action: true,
        action: ids.action("forward", &[&[3]]),
        ..Default::default()
    };
    a.modify(Kind::TableEntry(to)).await.unwrap();
    let mut unknown = labelled(1, 1, 1);
    unknown[12..14].copy_from_slice(&[0x43, 0x21]);
    switch.receive(1, unknown.clone()).await;
    assert!(switch.sent_nothing().await);
    a.modify(set(&[&[0x11, 0x11], &[0x43, 0x21]]))
        .await
        .unwrap();
    assert_eq!(
        a.read(vec![set(&[])]).await.unwrap(),
        [set(&[&[0x11, 0x11], &[0x43, 0x21]])]
    );
    switch.receive(1, unknown.clone()).await;
    assert_eq!(switch.sent().await.0, 3);
    let (code, text) = a
        .modify(set(&[&[1], &[2], &[3], &[4], &[5]]))
        .await
        .unwrap_err();
    assert_eq!(
        (code, text.as_str()),
        (
            Code::ResourceExhausted,
            "value set EntitiesParser.label_types: 5 members; at most 4 are possible"
        )
    );
    let (code, text) = a.modify(set(&[&[1], &[0, 1]])).await.unwrap_err();
    assert_eq!(
        (code, text.as_str()),
        (
            Code::AlreadyExists,
            "value set EntitiesParser.label_types: member 1 is given twice"
        )
    );
    // A member that is no key of the set changes nothing.
    for wrong in [
        vec![exact(1, &[1, 0, 0])],
        vec![exact(2, &[1])],
        vec![],
        vec![exact(1, &[1]), exact(1, &[2])],
    ] {
        let members = vec![ValueSetMember { r#match: wrong }];
        let value_set_id = ids.value_sets("label_types");
        let entry = ValueSetEntry {
            value_set_id,
            members,
        };
        let (code, text) = a.modify(Kind::ValueSetEntry(entry)).await.unwrap_err();
        assert!(
            [Code::InvalidArgument, Code::OutOfRange, Code::NotFound].contains(&code),
            "{code:?}: {text}"
        );
    }
    assert_eq!(
        a.read(vec![set(&[])]).await.unwrap(),
        [set(&[&[0x11, 0x11], &[0x43, 0x21]])]
    );
    assert_eq!(
        a.insert(set(&[])).await.unwrap_err().0,
        Code::InvalidArgument
    );
    a.modify(set(&[&[0, 1], &[0x43, 0x21]])).await.unwrap();
    let read = a.read(vec![set(&[])]).await.unwrap();
    assert_eq!(read, [set(&[&[1], &[0x43, 0x21]])]);
    a.modify(set(&[])).await.unwrap();
    switch.receive(1, unknown).await;
    assert!(switch.sent_nothing().await);
}

#[tokio::test]
async fn digests_are_switched_on_and_off() {
    let switch = Switch::start().await;
    let (ids, mut a) = (Ids::default(), switch.primary().await);
    let digest_id = ids.digests("learn_t");
    let entry = |ms: i64| {
        let config = Config {
            max_timeout_ns: ms * 1_000_000,
            max_list_size: 10,
            ack_timeout_ns: 1_000_000_000,
        };
        Kind::DigestEntry(DigestEntry {
            digest_id,
            config: Some(config),
        })
    };
    let all = Kind::DigestEntry(DigestEntry::default());
    assert_eq!(a.read(vec![all.clone()]).await.unwrap(), []);
    assert_eq!(
        a.modify(entry(1)).await.unwrap_err(),
        (Code::NotFound, "digest learn_t is off; use INSERT".into())
    );
    a.insert(entry(1)).await.unwrap();
    assert_eq!(a.insert(entry(1)).await.unwrap_err().0, Code::AlreadyExists);
    a.modify(entry(2)).await.unwrap();
    assert_eq!(a.read(vec![all.clone()]).await.unwrap(), [entry(2)]);
    let (code, text) = a.modify(entry(-1)).await.unwrap_err();
    assert_eq!(
        (code, text.as_str()),
        (
            Code::InvalidArgument,
            "digest learn_t: max_timeout_ns -1000000 is negative"
        )
    );
    a.delete(entry(0)).await.unwrap();
    assert_eq!(a.read(vec![all]).await.unwrap(), []);
}

#[tokio::test]
async fn externs_are_unimplemented_and_reads_of_all_find_none() {
    let switch = Switch::start().await;
    let mut a = switch.primary().await;
    let one = Kind::ExternEntry(ExternEntry {
        extern_type_id: 0x81,
        extern_id: 1,
        entry: None,
    });
    let (code, text) = a.insert(one.clone()).await.unwrap_err();
    assert_eq!(code, Code::Unimplemented);
    assert!(
        text.starts_with("extern entries (extern type id 0x00000081) are not supported"),
        "{text}"
    );
    assert_eq!(
        errors(&a.read(vec![one]).await.unwrap_err())[0].0,
        Code::Unimplemented
    );
    assert_eq!(
        a.read(vec![Kind::ExternEntry(ExternEntry::default())])
            .await
            .unwrap(),
        []
    );
}
