// SPDX-License-Identifier: Apache-2.0
//! Counters, meters, registers, action profiles, one-shots, replication, value sets and digests as entities.

mod common;

use common::*;
use p4rt::proto::p4rt::action_profile_group::Member;
use p4rt::proto::p4rt::digest_entry::Config;
use p4rt::proto::p4rt::entity::Entity as Kind;
use p4rt::proto::p4rt::packet_replication_engine_entry::Type as PreType;
use p4rt::proto::p4rt::replica::PortKind;
use p4rt::proto::p4rt::table_action::Type as ActionType;
use p4rt::proto::p4rt::update::Type as Verb;
use p4rt::proto::p4rt::{
    action_profile_action::WatchKind, p4_data::Data, ActionProfileAction, ActionProfileActionSet,
    ActionProfileGroup, ActionProfileMember, CloneSessionEntry, CounterData, CounterEntry,
    DigestEntry, ExternEntry, Index, MeterConfig, MeterEntry, MulticastGroupEntry, P4Data,
    PacketReplicationEngineEntry, RegisterEntry, Replica, TableAction, TableEntry, ValueSetEntry,
    ValueSetMember,
};
use tonic::Code;

fn index(index: i64) -> Option<Index> {
    Some(Index { index })
}

fn bits(value: &[u8]) -> Option<P4Data> {
    Some(P4Data {
        data: Some(Data::Bitstring(value.to_vec().into())),
    })
}

#[tokio::test]
async fn counters_by_cell_and_by_wildcard() {
    let switch = Switch::start().await;
    let (ids, mut a) = (Ids::default(), switch.primary().await);
    let id = ids.counters("port_counter");
    let cell = |i, packet_count| {
        let data = Some(CounterData {
            packet_count,
            byte_count: 10 * packet_count,
        });
        Kind::CounterEntry(CounterEntry {
            counter_id: id,
            index: index(i),
            data,
        })
    };
    a.modify(cell(63, 7)).await.unwrap();
    let ask = |counter_id, index| {
        Kind::CounterEntry(CounterEntry {
            counter_id,
            index,
            data: None,
        })
    };
    assert_eq!(
        a.read(vec![ask(id, index(63))]).await.unwrap(),
        [cell(63, 7)]
    );
    let all = a.read(vec![ask(id, None)]).await.unwrap();
    assert_eq!(
        (all.len(), &all[0], &all[63]),
        (64, &cell(0, 0), &cell(63, 7))
    );
    assert_eq!(a.read(vec![ask(0, None)]).await.unwrap(), all);
    // No index: every cell. No data: nothing changes.
    let every = CounterEntry {
        counter_id: id,
        index: None,
        data: Some(CounterData {
            packet_count: 2,
            byte_count: 20,
        }),
    };
    a.modify(Kind::CounterEntry(every)).await.unwrap();
    a.modify(ask(id, index(1))).await.unwrap();
    assert_eq!(a.read(vec![ask(id, index(1))]).await.unwrap(), [cell(1, 2)]);

    for (kind, code, text) in [
        (
            cell(64, 1),
            Code::OutOfRange,
            "counter EntitiesIngress.port_counter: index 64 is not below the size, 64",
        ),
        (
            cell(-1, 1),
            Code::InvalidArgument,
            "counter EntitiesIngress.port_counter: index -1 is negative",
        ),
        (
            cell(1, -1),
            Code::InvalidArgument,
            "counter EntitiesIngress.port_counter: packet_count -1 is negative",
        ),
    ] {
        let (got, message) = a.modify(kind).await.unwrap_err();
        assert_eq!((got, message.as_str()), (code, text));
    }
    let (code, text) = a.modify(ask(5, None)).await.unwrap_err();
    assert_eq!(code, Code::NotFound);
    assert!(
        text.starts_with("counter id 0x00000005 is unknown; known: "),
        "{text}"
    );
    for verb in [Verb::Insert, Verb::Delete] {
        assert_eq!(
            a.one(verb, cell(1, 1)).await.unwrap_err().0,
            Code::InvalidArgument
        );
    }
}

#[tokio::test]
async fn meters_by_cell_and_by_wildcard() {
    let switch = Switch::start().await;
    let (ids, mut a) = (Ids::default(), switch.primary().await);
    let meter_id = ids.meters("port_meter");
    let cell = |i, config| {
        Kind::MeterEntry(MeterEntry {
            meter_id,
            index: index(i),
            config,
            counter_data: None,
        })
    };
    let config = MeterConfig {
        cir: 10,
        cburst: 5,
        pir: 20,
        pburst: 8,
        eburst: 0,
    };
    a.modify(cell(3, Some(config))).await.unwrap();
    assert_eq!(
        a.read(vec![cell(3, None)]).await.unwrap(),
        [cell(3, Some(config))]
    );
    let wild = Kind::MeterEntry(MeterEntry {
        meter_id,
        ..Default::default()
    });
    let all = a.read(vec![wild]).await.unwrap();
    assert_eq!(
        (all.len(), &all[2], &all[3]),
        (16, &cell(2, None), &cell(3, Some(config)))
    );
    a.modify(cell(3, None)).await.unwrap();
    assert_eq!(a.read(vec![cell(3, None)]).await.unwrap(), [cell(3, None)]);
    let (code, text) = a.modify(cell(16, None)).await.unwrap_err();
    assert_eq!(
        (code, text.as_str()),
        (
            Code::OutOfRange,
            "meter EntitiesIngress.port_meter: index 16 is not below the size, 16"
        )
    );
    let (code, _) = a
        .modify(cell(1, Some(MeterConfig { pir: 1, ..config })))
        .await
        .unwrap_err();
    assert_eq!(code, Code::InvalidArgument); // the peak rate is below the committed one
    let counted = MeterEntry {
        meter_id,
        counter_data: Some(Default::default()),
        ..Default::default()
    };
    let (code, text) = a.modify(Kind::MeterEntry(counted)).await.unwrap_err();
    assert_eq!(
        (code, text.contains("counter_data must be unset")),
        (Code::Unimplemented, true),
        "{text}"
    );
}

#[tokio::test]
async fn registers_are_written_and_read() {
    let switch = Switch::start().await;
    let (ids, mut a) = (Ids::default(), switch.primary().await);
    let cells = ids.registers("cells");
    let cell = |i, value: &[u8]| {
        Kind::RegisterEntry(RegisterEntry {
            register_id: cells,
            index: index(i),
            data: bits(value),
        })
    };
    a.modify(cell(4999, &[0xde, 0xad, 0xbe, 0xef]))
        .await
        .unwrap();
    let ask = |index| {
        Kind::RegisterEntry(RegisterEntry {
            register_id: cells,
            index,
            data: None,
        })
    };
    assert_eq!(
        a.read(vec![ask(index(4999))]).await.unwrap(),
        [cell(4999, &[0xde, 0xad, 0xbe, 0xef])]
    );
    // All 5,000, in several messages; then all of them written at once.
    let all = a.read(vec![ask(None)]).await.unwrap();
    assert_eq!((all.len(), &all[4998]), (5000, &cell(4998, &[0])));
    let every = RegisterEntry {
        register_id: cells,
        index: None,
        data: bits(&[9]),
    };
    a.modify(Kind::RegisterEntry(every)).await.unwrap();
    let all = a.read(vec![ask(None)]).await.unwrap();
    assert!((0..5000).zip(&all).all(|(i, e)| *e == cell(i, &[9])));

    let signed = ids.registers("signed_cells");
    let minus = Kind::RegisterEntry(RegisterEntry {
        register_id: signed,
        index: index(2),
        data: bits(&[0xfd, 0x1d]),
    });
    a.modify(minus.clone()).await.unwrap();
    let ask = Kind::RegisterEntry(RegisterEntry {
        register_id: signed,
        index: index(2),
        data: None,
    });
    assert_eq!(a.read(vec![ask]).await.unwrap(), [minus]);

    for (kind, code, text) in [
        (cell(5000, &[1]), Code::OutOfRange, "register EntitiesIngress.cells: index 5000 is not below the size, 5000"),
        (cell(1, &[1, 0, 0, 0, 0]), Code::OutOfRange, "register EntitiesIngress.cells: the value 0x0100000000 needs 33 bits, but the field is bit<32>"),
        (
            Kind::RegisterEntry(RegisterEntry { register_id: cells, index: index(1), data: None }),
            Code::InvalidArgument,
            "register EntitiesIngress.cells: the data is unset",
        ),
        (
            Kind::RegisterEntry(RegisterEntry { register_id: cells, index: index(1), data: Some(P4Data { data: Some(Data::Bool(true)) }) }),
            Code::InvalidArgument,
            "register EntitiesIngress.cells: the data must be a bitstring (bit<32>)",
        ),
    ] {
        let (got, message) = a.modify(kind).await.unwrap_err();
        assert_eq!((got, message.as_str()), (code, text));
    }
}

fn member(ids: &Ids, profile: &str, member_id: u32, port: u8) -> Kind {
    let action_profile_id = ids.action_profiles(profile);
    Kind::ActionProfileMember(ActionProfileMember {
        action_profile_id,
        member_id,
        action: Some(ids.call("forward", &[&[port]])),
    })
}

fn group(ids: &Ids, group_id: u32, members: &[(u32, i32)]) -> ActionProfileGroup {
    let members = members.iter().map(|(member_id, weight)| Member {
        member_id: *member_id,
        weight: *weight,
        watch_kind: None,
    });
    ActionProfileGroup {
        action_profile_id: ids.action_profiles("spread"),
        group_id,
        members: members.collect(),
        max_size: 8,
    }
}

fn points_to(ids: &Ids, table: &str, kind: u8, to: ActionType) -> Kind {
    Kind::TableEntry(TableEntry {
        table_id: ids.tables(table),
        r#match: vec![exact(1, &[kind])],
        action: Some(TableAction { r#type: Some(to) }),
        ..Default::default()
    })
}

#[tokio::test]
async fn members_groups_and_entries_that_point_to_them() {
    let switch = Switch::start().await;
    let (ids, mut a) = (Ids::default(), switch.primary().await);
    for (id, port) in [(1, 2), (2, 3)] {
        a.insert(member(&ids, "spread", id, port)).await.unwrap();
    }
    let pair = group(&ids, 1, &[(1, 1), (2, 2)]);
    a.insert(Kind::ActionProfileGroup(pair.clone()))
        .await
        .unwrap();
    let entry = points_to(
        &ids,
        "selector_table",
        4,
        ActionType::ActionProfileGroupId(1),
    );
    a.insert(entry.clone()).await.unwrap();
    let spread = ids.action_profiles("spread");
    let wild = |action_profile_id| {
        Kind::ActionProfileMember(ActionProfileMember {
            action_profile_id,
            ..Default::default()
        })
    };
    let groups = Kind::ActionProfileGroup(ActionProfileGroup::default());
    assert_eq!(
        a.read(vec![wild(spread)]).await.unwrap(),
        [member(&ids, "spread", 1, 2), member(&ids, "spread", 2, 3)]
    );
    assert_eq!(a.read(vec![wild(0)]).await.unwrap().len(), 2);
    assert_eq!(
        a.read(vec![groups.clone()]).await.unwrap(),
        [Kind::ActionProfileGroup(pair.clone())]
    );
    let table = Kind::TableEntry(TableEntry {
        table_id: ids.tables("selector_table"),
        ..Default::default()
    });
    assert_eq!(
        a.read(vec![table]).await.unwrap(),
        std::slice::from_ref(&entry)
    );

    switch.receive(1, labelled(1, 1, 4)).await;
    let (port, _) = switch.sent().await;
    assert!(port == 2 || port == 3, "{port}");
    let solo = group(&ids, 1, &[(2, 1)]);
    a.modify(Kind::ActionProfileGroup(solo)).await.unwrap();
    switch.receive(1, labelled(1, 1, 4)).await;
    assert_eq!(switch.sent().await.0, 3);
    a.modify(member(&ids, "spread", 2, 4)).await.unwrap();
    switch.receive(1, labelled(1, 1, 4)).await;
    assert_eq!(switch.sent().await.0, 4);

    let in_use = Code::FailedPrecondition;
    assert_eq!(
        a.delete(member(&ids, "spread", 2, 0)).await.unwrap_err().0,
        in_use
    );
    assert_eq!(
        a.delete(Kind::ActionProfileGroup(pair.clone()))
            .await
            .unwrap_err()
            .0,
        in_use
    );
    a.delete(entry).await.unwrap();
    a.delete(Kind::ActionProfileGroup(pair)).await.unwrap();
    a.delete(member(&ids, "spread", 2, 0)).await.unwrap();
    assert_eq!(a.read(vec![groups]).await.unwrap(), []);
}

#[tokio::test]
async fn a_profile_without_selector_takes_members_only() {
    let switch = Switch::start().await;
    let (ids, mut a) = (Ids::default(), switch.primary().await);
    a.insert(member(&ids, "plain_profile", 7, 3)).await.unwrap();
    a.insert(points_to(
        &ids,
        "profile_table",
        4,
        ActionType::ActionProfileMemberId(7),
    ))
    .await
    .unwrap();
    switch.receive(1, labelled(1, 1, 4)).await;
    assert_eq!(switch.sent().await.0, 3);
    let (code, text) = a
        .insert(points_to(
            &ids,
            "profile_table",
            5,
            ActionType::ActionProfileGroupId(1),
        ))
        .await
        .unwrap_err();
    assert_eq!(
        (code, text.contains("has no selector, so no groups")),
        (Code::InvalidArgument, true),
        "{text}"
    );
    let (code, text) = a
        .insert(points_to(
            &ids,
            "profile_table",
            5,
            ActionType::Action(ids.call("drop", &[])),
        ))
        .await
        .unwrap_err();
    assert_eq!(
        (code, text.contains("hold no action of their own")),
        (Code::InvalidArgument, true),
        "{text}"
    );
    let (code, text) = a
        .insert(points_to(
            &ids,
            "profile_table",
            5,
            ActionType::ActionProfileMemberId(9),
        ))
        .await
        .unwrap_err();
    assert_eq!(code, Code::NotFound, "{text}");
    let mut other = group(&ids, 1, &[(7, 1)]);
    other.action_profile_id = ids.action_profiles("plain_profile");
    let (code, text) = a.insert(Kind::ActionProfileGroup(other)).await.unwrap_err();
    assert_eq!(
        (code, text.as_str()),
        (
            Code::InvalidArgument,
            "action profile EntitiesIngress.plain_profile: it has no selector, so no groups"
        )
    );
}

#[tokio::test]
async fn bad_members_and_groups_say_what_is_wrong() {
    let switch = Switch::start().await;
    let (ids, mut a) = (Ids::default(), switch.primary().await);
    a.insert(member(&ids, "spread", 1, 2)).await.unwrap();
    assert_eq!(
        a.insert(member(&ids, "spread", 1, 2)).await.unwrap_err().0,
        Code::AlreadyExists
    );
    assert_eq!(
        a.modify(member(&ids, "spread", 9, 2)).await.unwrap_err().0,
        Code::NotFound
    );
    let (code, text) = a.insert(member(&ids, "spread", 0, 2)).await.unwrap_err();
    assert_eq!(
        (
            code,
            text.contains("member id 0 is not within 1 to 2147483647")
        ),
        (Code::InvalidArgument, true),
        "{text}"
    );
    let bad = [
        (
            group(&ids, 1, &[(1, 0)]),
            Code::InvalidArgument,
            "weight 0 is not allowed: it must be 1 or more",
        ),
        (
            group(&ids, 1, &[(1, 1), (1, 1)]),
            Code::InvalidArgument,
            "group 1: member 1 is given twice",
        ),
        (
            group(&ids, 1, &[(1, 9)]),
            Code::ResourceExhausted,
            "a group of 9 as the sum of weights is above the limit of 8",
        ),
        (
            ActionProfileGroup {
                max_size: 9,
                ..group(&ids, 1, &[])
            },
            Code::InvalidArgument,
            "group 1: max_size 9 is not allowed: 1 to 8",
        ),
        (
            ActionProfileGroup {
                action_profile_id: 3,
                ..group(&ids, 1, &[])
            },
            Code::NotFound,
            "action profile id 0x00000003 is unknown",
        ),
        (group(&ids, 1, &[(5, 1)]), Code::NotFound, ""),
    ];
    for (group, code, text) in bad {
        let (got, message) = a.insert(Kind::ActionProfileGroup(group)).await.unwrap_err();
        assert_eq!(got, code, "{message}");
        assert!(message.contains(text), "{message}");
    }
    a.insert(Kind::ActionProfileGroup(group(&ids, 1, &[(1, 1)])))
        .await
        .unwrap();
    let resized = ActionProfileGroup {
        max_size: 4,
        ..group(&ids, 1, &[(1, 1)])
    };
    let (code, text) = a
        .modify(Kind::ActionProfileGroup(resized))
        .await
        .unwrap_err();
    assert_eq!(
        (
            code,
            text.contains("max_size 4 differs from the 8 it was made with")
        ),
        (Code::InvalidArgument, true),
        "{text}"
    );
}

fn one_shot(ids: &Ids, ports: &[u8]) -> ActionType {
    let actions = ports.iter().map(|port| ActionProfileAction {
        action: Some(ids.call("forward", &[&[*port]])),
        weight: 1,
        watch_kind: Some(WatchKind::WatchPort(vec![*port].into())),
    });
    ActionType::ActionProfileActionSet(ActionProfileActionSet {
        action_profile_actions: actions.collect(),
        ..Default::default()
    })
}

#[tokio::test]
async fn one_shots_are_read_back_and_leave_nothing_behind() {
    let switch = Switch::start().await;
    let (ids, mut a) = (Ids::default(), switch.primary().await);
    let entry = |ports: &[u8]| points_to(&ids, "selector_table", 4, one_shot(&ids, ports));
    a.insert(entry(&[2, 3])).await.unwrap();
    let all = Kind::TableEntry(TableEntry {
        table_id: ids.tables("selector_table"),
        ..Default::default()
    });
    assert_eq!(a.read(vec![all.clone()]).await.unwrap(), [entry(&[2, 3])]);
    let hidden = [
        Kind::ActionProfileMember(Default::default()),
        Kind::ActionProfileGroup(Default::default()),
    ];
    assert_eq!(a.read(hidden.to_vec()).await.unwrap(), []);
    switch.receive(1, labelled(1, 1, 4)).await;
    let (port, _) = switch.sent().await;
    assert!(port == 2 || port == 3, "{port}");
    // Mixing the two styles is refused.
    let (code, text) = a.insert(member(&ids, "spread", 1, 2)).await.unwrap_err();
    assert_eq!(
        (code, text.contains("it has 1 one-shot entries")),
        (Code::InvalidArgument, true),
        "{text}"
    );
    a.modify(entry(&[4])).await.unwrap();
    assert_eq!(a.read(vec![all.clone()]).await.unwrap(), [entry(&[4])]);
    switch.receive(1, labelled(1, 1, 4)).await;
    assert_eq!(switch.sent().await.0, 4);
    a.delete(entry(&[])).await.unwrap();
    a.insert(member(&ids, "spread", 1, 2)).await.unwrap();
    let (code, text) = a.insert(entry(&[2])).await.unwrap_err();
    assert_eq!(
        (code, text.contains("it has 1 members")),
        (Code::InvalidArgument, true),
        "{text}"
    );
    // 64 members fit: 63 rounds of insert and delete would fill the selector if anything leaked.
    a.delete(member(&ids, "spread", 1, 2)).await.unwrap();
    for _ in 0..40 {
        a.insert(entry(&[2, 3, 4])).await.unwrap();
        a.delete(entry(&[])).await.unwrap();
    }
}

#[tokio::test]
async fn a_member_whose_watched_port_is_down_is_left_out() {
    let switch = Switch::start().await;
    let (ids, mut a) = (Ids::default(), switch.primary().await);
    a.insert(points_to(
        &ids,
        "selector_table",
        4,
        one_shot(&ids, &[2, 3]),
    ))
    .await
    .unwrap();
    for (down, up, want) in [(2, 3, 3), (3, 2, 2)] {
        switch
            .handle
            .call(move |d, _| {
                d.set_port_up(up, true);
                d.set_port_up(down, false)
            })
            .await
            .unwrap();
        soon("the group to follow", async {
            loop {
                let mut ports = std::collections::BTreeSet::new();
                for value in 0..8 {
                    let mut frame = labelled(value, 1, 4);
                    frame[11] = value as u8; // the selector hashes the source address
                    switch.receive(1, frame).await;
                }
                switch.pass(1_000);
                tokio::time::sleep(std::time::Duration::from_millis(5)).await;
                while !switch.sent_nothing().await {
                    ports.insert(switch.sent().await.0);
                }
                if ports == [want].into() {
                    break;
                }
            }
        })
        .await;
    }
}

fn replicas(copies: &[(u8, u32)]) -> Vec<Replica> {
    let replica = |(port, instance): &(u8, u32)| Replica {
        port_kind: Some(PortKind::Port(vec![*port].into())),
        instance: *instance,
        ..Default::default()
    };
    copies.iter().map(replica).collect()
}

fn multicast(id: u32, copies: &[(u8, u32)]) -> Kind {
    let entry = MulticastGroupEntry {
        multicast_group_id: id,
        replicas: replicas(copies),
        metadata: b"why".as_slice().into(),
    };
    Kind::PacketReplicationEngineEntry(PacketReplicationEngineEntry {
        r#type: Some(PreType::MulticastGroupEntry(entry)),
    })
}

fn clone_session(id: u32, copies: &[(u8, u32)]) -> Kind {
    let entry = CloneSessionEntry {
        session_id: id,
        replicas: replicas(copies),
        class_of_service: 2,
        packet_length_bytes: 100,
    };
    Kind::PacketReplicationEngineEntry(PacketReplicationEngineEntry {
        r#type: Some(PreType::CloneSessionEntry(entry)),
    })
}

#[tokio::test]
async fn multicast_groups_and_clone_sessions() {
    let switch = Switch::start().await;
    let mut a = switch.primary().await;
    a.insert(multicast(5, &[(1, 1), (2, 1)])).await.unwrap();
    a.insert(clone_session(9, &[(3, 1)])).await.unwrap();
    let all = |r#type| Kind::PacketReplicationEngineEntry(PacketReplicationEngineEntry { r#type });
    assert_eq!(
        a.read(vec![all(None)]).await.unwrap(),
        [multicast(5, &[(1, 1), (2, 1)]), clone_session(9, &[(3, 1)])]
    );
    let groups = all(Some(PreType::MulticastGroupEntry(Default::default())));
    assert_eq!(
        a.read(vec![groups]).await.unwrap(),
        [multicast(5, &[(1, 1), (2, 1)])]
    );
    let ports = switch
        .handle
        .call(|d, _| {
            d.mcast_group(5)
                .unwrap()
                .replicas
                .iter()
                .map(|r| r.port)
                .collect::<Vec<_>>()
        })
        .await;
    assert_eq!(ports.unwrap(), [1, 2]);
    a.modify(multicast(5, &[(4, 0)])).await.unwrap();
    assert_eq!(
        a.insert(multicast(5, &[])).await.unwrap_err(),
        (
            Code::AlreadyExists,
            "multicast group 5 exists already".into()
        )
    );
    assert_eq!(
        a.modify(multicast(6, &[])).await.unwrap_err(),
        (Code::NotFound, "multicast group 6 does not exist".into())
    );
    assert_eq!(
        a.delete(clone_session(8, &[])).await.unwrap_err(),
        (Code::NotFound, "clone session 8 does not exist".into())
    );
    for (kind, code, text) in [
        (
            multicast(0, &[]),
            Code::InvalidArgument,
            "multicast group id 0 is not within 1 to 65535",
        ),
        (
            multicast(7, &[(1, 1), (1, 1)]),
            Code::InvalidArgument,
            "multicast group 7: replica 1: port 1 with instance 1 is given twice",
        ),
        (
            multicast(7, &[(1, 70_000)]),
            Code::InvalidArgument,
            "multicast group 7: replica 0: instance 70000 is not within 0 to 65535",
        ),
        (
            clone_session(0, &[]),
            Code::InvalidArgument,
            "clone session id 0 is not within 1 to 32767",
        ),
    ] {
        assert_eq!(a.insert(kind).await.unwrap_err(), (code, text.to_owned()));
    }
    a.delete(multicast(5, &[])).await.unwrap();
    a.delete(clone_session(9, &[])).await.unwrap();
    assert_eq!(a.read(vec![all(None)]).await.unwrap(), []);
    assert!(switch
        .handle
        .call(|d, _| d.mcast_group(5).is_none() && d.clone_session(9).is_none())
        .await
        .unwrap());
    // The controller's port has a number of its own in P4Runtime.
    let mut cpu = CloneSessionEntry {
        session_id: 3,
        replicas: replicas(&[(1, 0)]),
        ..Default::default()
    };
    cpu.replicas[0].port_kind = Some(PortKind::Port(vec![0xff, 0xff, 0xff, 0xfd].into()));
    let cpu = all(Some(PreType::CloneSessionEntry(cpu)));
    a.insert(cpu.clone()).await.unwrap();
    assert_eq!(a.read(vec![all(None)]).await.unwrap(), [cpu]);
    let port = switch
        .handle
        .call(|d, _| d.clone_session(3).unwrap().replicas[0].port)
        .await
        .unwrap();
    assert_eq!(port, 510);
}

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
            "value set EntitiesParser.label_types: 5 members do not fit; it holds 4"
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
    assert_eq!(
        a.insert(set(&[])).await.unwrap_err().0,
        Code::InvalidArgument
    );
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
        (
            Code::NotFound,
            "digest learn_t is not switched on; use INSERT".into()
        )
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
