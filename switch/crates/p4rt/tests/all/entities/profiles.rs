// SPDX-License-Identifier: Apache-2.0
//! Action profiles: members, groups, one-shots, watched ports.

use crate::common::*;
use p4rt::proto::p4info::action_profile::{SelectorSizeSemantics, SumOfMembers};
use p4rt::proto::p4rt::action_profile_group::Member;
use p4rt::proto::p4rt::entity::Entity as Kind;
use p4rt::proto::p4rt::set_forwarding_pipeline_config_request::Action as ConfigAction;
use p4rt::proto::p4rt::table_action::Type as ActionType;
use p4rt::proto::p4rt::update::Type as Verb;
use p4rt::proto::p4rt::{
    action_profile_action::WatchKind, ActionProfileAction, ActionProfileActionSet,
    ActionProfileGroup, ActionProfileMember, TableAction, TableEntry,
};
use tonic::Code;

pub fn member(ids: &Ids, profile: &str, member_id: u32, port: u8) -> Kind {
    let action_profile_id = ids.action_profiles(profile);
    Kind::ActionProfileMember(ActionProfileMember {
        action_profile_id,
        member_id,
        action: Some(ids.call("forward", &[&[port]])),
    })
}

pub fn group(ids: &Ids, group_id: u32, members: &[(u32, i32)]) -> ActionProfileGroup {
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

pub fn points_to(ids: &Ids, table: &str, kind: u8, to: ActionType) -> Kind {
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
        (code, text.contains("have no action of their own")),
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
            "action profile EntitiesIngress.plain_profile: group 1: the action profile has no selector, so no groups"
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
            text.contains("member id 0 is not within 1 to 4294967295")
        ),
        (Code::InvalidArgument, true),
        "{text}"
    );
    let bad = [
        (
            group(&ids, 1, &[(1, 0)]),
            Code::InvalidArgument,
            "weight 0 is not within 1 to 2147483647",
        ),
        (
            group(&ids, 1, &[(1, 1), (1, 1)]),
            Code::InvalidArgument,
            "group 1: member 1 is listed twice",
        ),
        (
            group(&ids, 1, &[(1, 9)]),
            Code::ResourceExhausted,
            "a group of size 9 is above the limit of 8",
        ),
        (
            ActionProfileGroup {
                max_size: 9,
                ..group(&ids, 1, &[])
            },
            Code::InvalidArgument,
            "group 1: max_size 9 is not within 1 to 8",
        ),
        (
            ActionProfileGroup {
                action_profile_id: 3,
                ..group(&ids, 1, &[])
            },
            Code::NotFound,
            "action profile id 0x3 is unknown",
        ),
        (group(&ids, 1, &[(5, 1)]), Code::NotFound, ""),
        (
            group(&ids, 1, &vec![(1, 1); 513]),
            Code::ResourceExhausted,
            "513 members; at most 512 are possible",
        ),
    ];
    for (group, code, text) in bad {
        let (got, message) = a.insert(Kind::ActionProfileGroup(group)).await.unwrap_err();
        assert_eq!(got, code, "{message}");
        assert!(message.contains(text), "{message}");
    }
    a.insert(Kind::ActionProfileGroup(group(&ids, 1, &[(1, 1)])))
        .await
        .unwrap();
    let many = points_to(&ids, "selector_table", 4, one_shot(&ids, &[2; 257]));
    let (code, text) = a.insert(many).await.unwrap_err();
    assert_eq!(code, Code::ResourceExhausted);
    assert!(
        text.contains("257 actions of an action set; at most 256 are possible"),
        "{text}"
    );
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

/// The test's own selector counts weights.
#[tokio::test]
async fn a_selector_may_count_the_members_of_a_group() {
    let switch = Switch::start().await;
    let (ids, mut a) = (Ids::default(), switch.primary().await);
    let counting = with_info(|info| {
        let mut profiles = info.action_profiles.iter_mut();
        let spread = profiles.find(|p| p.with_selector).unwrap();
        let members = SumOfMembers {
            max_member_weight: 5,
        };
        spread.selector_size_semantics = Some(SelectorSizeSemantics::SumOfMembers(members));
    });
    a.configure(ConfigAction::VerifyAndCommit, Some(counting))
        .await
        .unwrap();
    for id in 1..=3 {
        a.insert(member(&ids, "spread", id, 2)).await.unwrap();
    }
    let of_two = |members: &[(u32, i32)]| {
        Kind::ActionProfileGroup(ActionProfileGroup {
            max_size: 2,
            ..group(&ids, 1, members)
        })
    };
    a.insert(of_two(&[(1, 5), (2, 5)])).await.unwrap();
    let three = of_two(&[(1, 1), (2, 1), (3, 1)]);
    let (code, text) = a.modify(three).await.unwrap_err();
    let part = "a group of size 3 is above the limit of 2";
    assert_eq!(code, Code::ResourceExhausted);
    assert!(text.contains(part), "{text}");
}

#[tokio::test]
async fn every_id_but_0_is_the_clients() {
    let switch = Switch::start().await;
    let (ids, mut a) = (Ids::default(), switch.primary().await);
    for (id, port) in [(u32::MAX, 2), (0x8000_0001, 3)] {
        a.insert(member(&ids, "spread", id, port)).await.unwrap();
    }
    let pair = group(&ids, u32::MAX, &[(0x8000_0001, 1), (u32::MAX, 1)]);
    a.insert(Kind::ActionProfileGroup(pair.clone()))
        .await
        .unwrap();
    let to = ActionType::ActionProfileGroupId(u32::MAX);
    a.insert(points_to(&ids, "selector_table", 4, to))
        .await
        .unwrap();
    let all = [
        Kind::ActionProfileMember(Default::default()),
        Kind::ActionProfileGroup(Default::default()),
    ];
    assert_eq!(
        a.read(all.to_vec()).await.unwrap(),
        [
            member(&ids, "spread", 0x8000_0001, 3),
            member(&ids, "spread", u32::MAX, 2),
            Kind::ActionProfileGroup(pair)
        ]
    );
}

#[tokio::test]
async fn entries_of_one_profile_are_all_one_shots_or_none() {
    let switch = Switch::start().await;
    let (ids, mut a) = (Ids::default(), switch.primary().await);
    let entry = |kind, to| points_to(&ids, "selector_table", kind, to);
    // A group that is empty is a group all the same.
    let empty = Kind::ActionProfileGroup(group(&ids, 1, &[]));
    a.insert(empty.clone()).await.unwrap();
    let (code, text) = a.insert(entry(4, one_shot(&ids, &[2]))).await.unwrap_err();
    assert_eq!(
        (code, text.contains("it has 1 groups, so a one-shot cannot")),
        (Code::InvalidArgument, true),
        "{text}"
    );
    a.delete(empty).await.unwrap();
    a.insert(entry(4, one_shot(&ids, &[2]))).await.unwrap();
    // Whatever the ids of the hidden ones are, no client can point to them.
    for to in (1..4).flat_map(|id| {
        [
            ActionType::ActionProfileMemberId(id),
            ActionType::ActionProfileGroupId(id),
        ]
    }) {
        for (code, text) in [
            a.insert(entry(5, to.clone())).await.unwrap_err(),
            a.modify(entry(4, to)).await.unwrap_err(),
        ] {
            assert_eq!(code, Code::InvalidArgument, "{text}");
            let part = "it has 1 one-shot entries, so an entry of a member or group cannot";
            assert!(text.contains(part), "{text}");
        }
    }
    // Nor change or delete them.
    for id in 1..4 {
        let own = Kind::ActionProfileGroup(group(&ids, id, &[]));
        for kind in [member(&ids, "spread", id, 3), own] {
            for verb in [Verb::Modify, Verb::Delete] {
                let (code, text) = a.one(verb, kind.clone()).await.unwrap_err();
                assert_eq!(code, Code::NotFound, "{text}");
                assert!(
                    text.contains("EntitiesIngress.spread: there is no "),
                    "{text}"
                );
            }
        }
    }
    a.delete(entry(4, one_shot(&ids, &[]))).await.unwrap();
    a.insert(entry(4, one_shot(&ids, &[3]))).await.unwrap();
}

pub fn one_shot(ids: &Ids, ports: &[u8]) -> ActionType {
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
    let (code, text) = a.insert(entry(&[2, 99])).await.unwrap_err();
    assert_eq!(
        (code, text.as_str()),
        (
            Code::InvalidArgument,
            "table EntitiesIngress.selector_table: watched port 99 does not exist"
        )
    );
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
    // Numbers are read in their shortest form.
    let long = ActionProfileAction {
        action: Some(ids.call("forward", &[&[0, 4]])),
        weight: 1,
        watch_kind: Some(WatchKind::WatchPort(vec![0, 4].into())),
    };
    let long = ActionType::ActionProfileActionSet(ActionProfileActionSet {
        action_profile_actions: vec![long],
        ..Default::default()
    });
    a.modify(points_to(&ids, "selector_table", 4, long))
        .await
        .unwrap();
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
