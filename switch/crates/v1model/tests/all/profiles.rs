// SPDX-License-Identifier: Apache-2.0
//! Action profiles and selectors in a running program (p4/profiles.p4).

use crate::common::{bits, take_over, Bench, Probe};
use v1model::{
    Entry, EntryAction, EntryKey, ErrorKind, GroupMember, KeyMatch, Pipeline, ProfileId, TableId,
};

struct Setup {
    bench: Bench,
    first: TableId,
    second: TableId,
    spread: TableId,
    shared: ProfileId,
    balance: ProfileId,
}

fn setup() -> Setup {
    let bench = Bench::load("profiles");
    let p = &bench.pipeline;
    Setup {
        first: p.find_table("MyIngress.first").unwrap(),
        second: p.find_table("MyIngress.second").unwrap(),
        spread: p.find_table("MyIngress.spread").unwrap(),
        shared: p.find_action_profile("MyIngress.shared").unwrap(),
        balance: p.find_action_profile("MyIngress.balance").unwrap(),
        bench,
    }
}

fn exact(key: u64, action: EntryAction) -> Entry {
    let key = EntryKey {
        matches: vec![KeyMatch::Exact(bits(32, key))],
        priority: 0,
    };
    Entry {
        key,
        action,
        idle_timeout: 0,
        cookie: 0,
    }
}

fn any(priority: i32, action: EntryAction) -> Entry {
    let matches = vec![KeyMatch::Ternary {
        value: bits(32, 0),
        mask: bits(32, 0),
    }];
    Entry {
        key: EntryKey { matches, priority },
        action,
        idle_timeout: 0,
        cookie: 0,
    }
}

impl Setup {
    fn member(&mut self, id: u32, action: &str, args: &[u64]) {
        let call = self.bench.call("MyIngress.first", action, args);
        self.bench
            .pipeline
            .profile_mut(self.shared)
            .insert_member(id, &call)
            .unwrap();
    }

    fn spread_member(&mut self, id: u32, z: u64) {
        let call = self.bench.call("MyIngress.spread", "MyIngress.set_z", &[z]);
        self.bench
            .pipeline
            .profile_mut(self.balance)
            .insert_member(id, &call)
            .unwrap();
    }

    fn group(&mut self, id: u32, members: &[(u32, u32)]) {
        self.bench
            .pipeline
            .profile_mut(self.balance)
            .insert_group(id, &weighted(members))
            .unwrap();
    }

    /// How often each z comes out over 6,400 flows of key 1.
    fn shares(&mut self) -> [u32; 256] {
        let mut shares = [0; 256];
        for i in 0..6400u32 {
            let probe = Probe {
                key: 1,
                a: i,
                b: i.wrapping_mul(0x9e37_79b9),
                ..Probe::default()
            };
            let z = self.bench.probe(probe, 0, 0).z;
            assert_eq!(
                self.bench.probe(probe, 20, 0).z,
                z,
                "a flow keeps its member"
            );
            shares[usize::from(z)] += 1;
        }
        shares
    }
}

fn weighted(members: &[(u32, u32)]) -> Vec<GroupMember> {
    members
        .iter()
        .map(|&(member, weight)| GroupMember { member, weight })
        .collect()
}

/// Ids of all members, ascending.
fn member_ids(pipeline: &Pipeline, profile: ProfileId) -> Vec<u32> {
    let mut members = Vec::new();
    assert_eq!(
        pipeline.profile(profile).scan_members(0, 100, &mut members),
        None
    );
    members.into_iter().map(|(id, _)| id).collect()
}

#[test]
fn two_tables_share_members_and_a_changed_member_acts_in_both() {
    let mut s = setup();
    s.member(900, "MyIngress.set_x", &[11]);
    s.member(17, "MyIngress.set_both", &[22, 0x1234]);
    s.bench
        .pipeline
        .table_insert(s.first, &exact(1, EntryAction::Member(900)), 0)
        .unwrap();
    s.bench
        .pipeline
        .table_insert(s.first, &exact(2, EntryAction::Member(17)), 0)
        .unwrap();
    s.bench
        .pipeline
        .table_insert(s.second, &any(1, EntryAction::Member(900)), 0)
        .unwrap();
    let probe = |key, hit| Probe {
        key,
        hit,
        ..Probe::default()
    };
    assert_eq!(
        s.bench.probe(probe(1, 0), 0, 0),
        Probe {
            x: 11,
            hit: 9,
            ..probe(1, 0)
        }
    );
    assert_eq!(
        s.bench.probe(probe(2, 0), 0, 0),
        Probe {
            x: 22,
            c: 0x1234,
            hit: 9,
            ..probe(2, 0)
        }
    );
    assert_eq!(
        s.bench.probe(probe(3, 0), 0, 0),
        probe(3, 0),
        "a miss does nothing"
    );
    assert_eq!(
        s.bench.probe(probe(3, 1), 0, 0),
        Probe {
            x: 11,
            y: 6,
            ..probe(3, 1)
        }
    );

    let call = s.bench.call("MyIngress.first", "MyIngress.set_x", &[99]);
    s.bench
        .pipeline
        .profile_mut(s.shared)
        .modify_member(900, &call)
        .unwrap();
    let read = s.bench.pipeline.profile(s.shared).get_member(900).unwrap();
    let name = |a| s.bench.pipeline.action_schema(a).name.clone();
    assert_eq!(
        (name(read.action), read.args),
        (name(call.action), call.args)
    );
    assert_eq!(s.bench.probe(probe(1, 0), 0, 0).x, 99);
    assert_eq!(s.bench.probe(probe(3, 1), 0, 0).x, 99);
    // A branch on action_run knows an action by its name, whichever table's copy the member holds.
    s.bench
        .pipeline
        .table_modify(s.second, &any(1, EntryAction::Member(17)), 0)
        .unwrap();
    let out = s.bench.probe(probe(3, 1), 0, 0);
    assert_eq!((out.x, out.y), (22, 5));
    // Entries read back with the client's ids.
    let (read, _) = s
        .bench
        .pipeline
        .table_get(s.first, &exact(2, EntryAction::Member(0)).key)
        .unwrap();
    assert_eq!(read.action, EntryAction::Member(17));
    assert_eq!(member_ids(&s.bench.pipeline, s.shared), [17, 900]);
}

#[test]
fn what_is_in_use_cannot_be_deleted() {
    let mut s = setup();
    s.member(1, "MyIngress.set_x", &[1]);
    s.member(2, "MyIngress.set_x", &[2]);
    s.bench
        .pipeline
        .table_insert(s.first, &exact(1, EntryAction::Member(1)), 0)
        .unwrap();
    let error = s
        .bench
        .pipeline
        .profile_mut(s.shared)
        .delete_member(1)
        .unwrap_err();
    assert_eq!(error.kind, ErrorKind::FailedPrecondition);
    assert_eq!(
        error.message,
        "action profile MyIngress.shared: member 1 is in use by 1 entries and groups; delete these first"
    );
    // A modify moves the use; a refused insert uses nothing.
    s.bench
        .pipeline
        .table_modify(s.first, &exact(1, EntryAction::Member(2)), 0)
        .unwrap();
    s.bench
        .pipeline
        .table_insert(s.first, &exact(1, EntryAction::Member(1)), 0)
        .unwrap_err();
    s.bench
        .pipeline
        .profile_mut(s.shared)
        .delete_member(1)
        .unwrap();
    assert_eq!(
        s.bench
            .pipeline
            .profile_mut(s.shared)
            .delete_member(1)
            .unwrap_err()
            .kind,
        ErrorKind::NotFound
    );
    s.bench
        .pipeline
        .profile_mut(s.shared)
        .delete_member(2)
        .unwrap_err();
    s.bench.pipeline.table_clear(s.first).unwrap();
    s.bench
        .pipeline
        .profile_mut(s.shared)
        .delete_member(2)
        .unwrap();

    s.spread_member(5, 50);
    s.group(3, &[(5, 1)]);
    s.bench
        .pipeline
        .profile_mut(s.balance)
        .delete_member(5)
        .unwrap_err();
    s.bench
        .pipeline
        .table_insert(s.spread, &exact(1, EntryAction::Group(3)), 0)
        .unwrap();
    let error = s
        .bench
        .pipeline
        .profile_mut(s.balance)
        .delete_group(3)
        .unwrap_err();
    assert_eq!(
        error.message,
        "action profile MyIngress.balance: group 3 is in use by 1 entries; delete these first"
    );
    s.bench
        .pipeline
        .table_delete(s.spread, &exact(1, EntryAction::Group(0)).key)
        .unwrap();
    s.bench
        .pipeline
        .profile_mut(s.balance)
        .delete_group(3)
        .unwrap();
    s.bench
        .pipeline
        .profile_mut(s.balance)
        .delete_member(5)
        .unwrap();
    assert_eq!(s.bench.pipeline.profile(s.balance).members(), 0);
}

#[test]
fn a_selector_spreads_flows_by_weight_and_keeps_each_on_its_member() {
    let mut s = setup();
    for id in 1..=4 {
        s.spread_member(id, u64::from(10 * id));
    }
    s.group(7, &[(1, 1), (2, 1), (3, 1), (4, 1)]);
    s.bench
        .pipeline
        .table_insert(s.spread, &exact(1, EntryAction::Group(7)), 0)
        .unwrap();
    let shares = s.shares();
    assert!(
        [10, 20, 30, 40]
            .iter()
            .all(|&z| (1400..1800).contains(&shares[z])),
        "{shares:?}"
    );

    s.bench
        .pipeline
        .profile_mut(s.balance)
        .modify_group(7, &weighted(&[(4, 3), (2, 1)]))
        .unwrap();
    let shares = s.shares();
    assert!(
        (4600..5000).contains(&shares[40]) && (1400..1800).contains(&shares[20]),
        "{shares:?}"
    );
    assert_eq!(shares[10] + shares[30], 0);
    assert_eq!(
        s.bench.pipeline.profile(s.balance).get_group(7),
        Some(weighted(&[(4, 3), (2, 1)]))
    );
    // Members out of the group are free again.
    s.bench
        .pipeline
        .profile_mut(s.balance)
        .delete_member(1)
        .unwrap();
    s.bench
        .pipeline
        .profile_mut(s.balance)
        .delete_member(2)
        .unwrap_err();
    // A member that is not live gets no packets, and is the group's all the same.
    let balance = s.bench.pipeline.profile_mut(s.balance);
    balance.set_live(7, &weighted(&[(4, 3)])).unwrap();
    balance.delete_member(2).unwrap_err();
    assert_eq!(balance.get_group(7), Some(weighted(&[(4, 3), (2, 1)])));
    for (id, live, text) in [
        (7, (3, 1), "group 7: those to be live must be its members"),
        (8, (4, 3), "there is no group 8"),
    ] {
        let error = balance.set_live(id, &weighted(&[live])).unwrap_err();
        assert!(error.message.contains(text), "{error}");
    }
    assert_eq!(s.shares()[40], 6400);

    // An empty group does nothing.
    s.bench
        .pipeline
        .profile_mut(s.balance)
        .modify_group(7, &[])
        .unwrap();
    assert_eq!(s.shares()[0], 6400);
    // A single member needs no group.
    s.bench
        .pipeline
        .table_modify(s.spread, &exact(1, EntryAction::Member(3)), 0)
        .unwrap();
    assert_eq!(s.shares()[30], 6400);
}

#[test]
fn wrong_requests_are_refused_and_change_nothing() {
    let mut s = setup();
    let direct = EntryAction::Direct(s.bench.call("MyIngress.first", "MyIngress.set_x", &[1]));
    let p = &mut s.bench.pipeline;
    let text = |e: v1model::ControlError| e.message;
    assert_eq!(
        text(p.table_insert(s.first, &exact(1, direct), 0).unwrap_err()),
        "table MyIngress.first: its entries must name a member or group of action profile MyIngress.shared"
    );
    assert_eq!(
        text(
            p.table_insert(s.first, &exact(1, EntryAction::Member(4)), 0)
                .unwrap_err()
        ),
        "action profile MyIngress.shared: there is no member 4"
    );
    assert_eq!(
        text(p.profile_mut(s.shared).insert_group(1, &[]).unwrap_err()),
        "action profile MyIngress.shared: group 1: it has no selector, so it has no groups"
    );
    for id in 1..=4 {
        s.member(id, "MyIngress.set_x", &[1]);
    }
    let call = s.bench.call("MyIngress.first", "MyIngress.set_x", &[1]);
    let p = &mut s.bench.pipeline;
    let error = p.profile_mut(s.shared).insert_member(5, &call).unwrap_err();
    assert_eq!(error.kind, ErrorKind::ResourceExhausted);
    assert_eq!(
        error.message,
        "action profile MyIngress.shared: it is full: 4 members of at most 4"
    );
    assert_eq!(
        p.profile_mut(s.shared)
            .insert_member(4, &call)
            .unwrap_err()
            .kind,
        ErrorKind::AlreadyExists
    );

    s.spread_member(1, 10);
    s.spread_member(2, 20);
    let p = &mut s.bench.pipeline;
    let mut group = |members: &[(u32, u32)]| {
        let e = p
            .profile_mut(s.balance)
            .insert_group(1, &weighted(members))
            .unwrap_err();
        (e.kind, e.message)
    };
    let of = "action profile MyIngress.balance: group 1: ";
    assert_eq!(
        group(&[(1, 0)]),
        (
            ErrorKind::InvalidArgument,
            format!("{of}member 1 has weight 0; a weight is at least 1")
        )
    );
    assert_eq!(
        group(&[(1, 1), (9, 1)]),
        (ErrorKind::NotFound, format!("{of}there is no member 9"))
    );
    assert_eq!(
        group(&[(2, 1), (2, 1)]),
        (
            ErrorKind::InvalidArgument,
            format!("{of}member 2 is listed twice")
        )
    );
    assert_eq!(
        p.profile(s.balance).scan_groups(0, 1, &mut Vec::new()),
        None
    );
    assert!(p.profile(s.balance).get_group(1).is_none());
    // Nothing of the refused groups holds a member.
    p.profile_mut(s.balance).delete_member(1).unwrap();
    p.profile_mut(s.balance).delete_member(2).unwrap();
}

#[test]
fn a_new_pipeline_takes_members_groups_and_entries_over() {
    let mut old = setup();
    old.member(900, "MyIngress.set_x", &[11]);
    old.spread_member(3, 30);
    old.group(7, &[(3, 2)]);
    let p = &mut old.bench.pipeline;
    p.table_insert(old.first, &exact(1, EntryAction::Member(900)), 0)
        .unwrap();
    p.table_insert(old.second, &any(4, EntryAction::Member(900)), 0)
        .unwrap();
    p.table_insert(old.spread, &exact(1, EntryAction::Group(7)), 0)
        .unwrap();
    let mut new = setup();
    take_over(&mut new.bench.pipeline, &mut old.bench.pipeline);
    for hit in [0, 1] {
        let probe = Probe {
            key: 1,
            hit,
            ..Probe::default()
        };
        let out = new.bench.probe(probe, 0, 0);
        assert_eq!((out.x, out.z), (11, 30));
        assert_eq!(out, old.bench.probe(probe, 0, 0));
    }
    let error = new
        .bench
        .pipeline
        .profile_mut(new.shared)
        .delete_member(900)
        .unwrap_err();
    assert_eq!(
        error.message,
        "action profile MyIngress.shared: member 900 is in use by 2 entries and groups; delete these first"
    );
}
