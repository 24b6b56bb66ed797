// SPDX-License-Identifier: Apache-2.0
//! What is refused, with which kind and which words, and that nothing changes then.

use super::*;
use crate::table::records::EntryIndex;

fn kind_and_text(result: Result<EntryIndex, ControlError>) -> (ErrorKind, String) {
    let e = result.unwrap_err();
    (e.kind, e.message)
}

#[test]
fn bad_keys_name_table_field_and_what_is_allowed() {
    let mut f = Fixture::new(schema(
        &[
            ("hdr.ipv4.dst_addr", MatchKind::Lpm, 32),
            ("meta.mark", MatchKind::Ternary, 8),
            ("hdr.tcp.dst_port", MatchKind::Range, 16),
            ("port", MatchKind::Exact, 9),
        ],
        8,
    ));
    let good = || {
        vec![
            KeyMatch::Lpm {
                value: bits(32, 0x0a00_0000),
                prefix_len: 8,
            },
            KeyMatch::Ternary {
                value: bits(8, 1),
                mask: bits(8, 3),
            },
            KeyMatch::Range {
                low: bits(16, 80),
                high: bits(16, 90),
            },
            KeyMatch::Exact(bits(9, 5)),
        ]
    };
    let with = |i: usize, m: KeyMatch| {
        let mut all = good();
        all[i] = m;
        all
    };
    let lpm = |value, prefix_len| KeyMatch::Lpm { value, prefix_len };
    let cases = [
        (
            with(0, lpm(bits(32, 0), 33)),
            1,
            "table MyIngress.t: key hdr.ipv4.dst_addr: prefix length 33 is not within 1 to 32",
        ),
        (
            with(0, lpm(bits(32, 0x0a00_0001), 8)),
            1,
            "table MyIngress.t: key hdr.ipv4.dst_addr: the value 0x0a000001 has bits set behind its prefix of 8 bits",
        ),
        (
            with(0, lpm(bits(33, 1 << 32), 8)),
            1,
            "table MyIngress.t: key hdr.ipv4.dst_addr: the value 0x0100000000 needs 33 bits, but the field is bit<32>",
        ),
        (
            with(1, KeyMatch::Ternary { value: bits(8, 4), mask: bits(8, 3) }),
            1,
            "table MyIngress.t: key meta.mark: the value 0x04 has bits set where the mask 0x03 has none",
        ),
        (
            with(2, KeyMatch::Range { low: bits(16, 91), high: bits(16, 90) }),
            1,
            "table MyIngress.t: key hdr.tcp.dst_port: the low bound 0x5b is above the high bound 0x5a",
        ),
        (
            with(3, lpm(bits(9, 0), 0)),
            1,
            "table MyIngress.t: key port: it is matched as exact, not as lpm",
        ),
        (
            good()[..3].to_vec(),
            1,
            "table MyIngress.t: the key has 4 fields, 3 were given; its fields are: hdr.ipv4.dst_addr, meta.mark, hdr.tcp.dst_port, port",
        ),
        (
            good(),
            0,
            "table MyIngress.t: priority 0 is not allowed: a table with a ternary, range or optional field needs 1 or more",
        ),
        (
            good(),
            -4,
            "table MyIngress.t: priority -4 is not allowed: a table with a ternary, range or optional field needs 1 or more",
        ),
    ];
    for (matches, priority, text) in cases {
        let got = kind_and_text(f.insert(&entry(matches, priority, 1), 0));
        let kind = match text.contains("needs 33 bits") {
            true => ErrorKind::OutOfRange,
            false => ErrorKind::InvalidArgument,
        };
        assert_eq!(got, (kind, text.to_string()));
        assert!(f.is_empty());
    }
    f.insert(&entry(good(), 1, 1), 0).unwrap();
    assert_eq!(
        kind_and_text(f.insert(&entry(good(), 1, 2), 0)),
        (
            ErrorKind::AlreadyExists,
            "table MyIngress.t: an entry with key hdr.ipv4.dst_addr=0x0a000000/8, meta.mark=0x01&&&0x03, \
             hdr.tcp.dst_port=0x50..0x5a, port=0x05, priority=1 exists"
                .to_string()
        )
    );
    // The same match at another priority is another entry.
    f.insert(&entry(good(), 2, 2), 0).unwrap();
    assert_eq!(f.table.entries(), 2);
}

#[test]
fn priority_is_refused_where_it_means_nothing() {
    let mut f = Fixture::new(schema(&[("k", MatchKind::Exact, 8)], 8));
    let (kind, text) = kind_and_text(f.insert(&entry(vec![KeyMatch::Exact(bits(8, 1))], 5, 1), 0));
    assert_eq!(kind, ErrorKind::InvalidArgument);
    assert_eq!(
        text,
        "table MyIngress.t: priority 5 is not allowed: without a ternary, range or optional field it must be 0"
    );
}

#[test]
fn bad_calls_name_action_and_parameter() {
    let f = Fixture::new(TableSchema {
        actions: vec![ActionId(0)],
        ..schema(&[("k", MatchKind::Exact, 8)], 8)
    });
    let call = |action, args| Entry {
        action: EntryAction::Direct(ActionCall {
            action: ActionId(action),
            args,
        }),
        ..entry(vec![KeyMatch::Exact(bits(8, 1))], 0, 1)
    };
    let cases = [
        (call(0, vec![]), "table MyIngress.t: action MyIngress.set takes 1 limbs of arguments, 0 were given"),
        (
            call(0, vec![1 << 32]),
            "table MyIngress.t: action MyIngress.set: parameter value is 32 bits wide, the argument wider",
        ),
        (call(9, vec![]), "table MyIngress.t: there is no action with id 9"),
        (
            call(1, vec![]),
            "table MyIngress.t: action MyIngress.drop is not one of its actions: MyIngress.set",
        ),
    ];
    for (e, text) in cases {
        let EntryAction::Direct(c) = &e.action else {
            unreachable!()
        };
        let got = f.word(c).unwrap_err();
        assert_eq!(
            (got.kind, got.message.as_str()),
            (ErrorKind::InvalidArgument, text)
        );
    }
}

#[test]
fn full_table_and_room_again_after_a_delete() {
    let mut f = Fixture::new(schema(&[("k", MatchKind::Exact, 32)], 3));
    let e = |k: u64| entry(vec![KeyMatch::Exact(bits(32, k.into()))], 0, k);
    for k in 0..3 {
        f.insert(&e(k), 0).unwrap();
    }
    assert_eq!(
        kind_and_text(f.insert(&e(3), 0)),
        (
            ErrorKind::ResourceExhausted,
            "table MyIngress.t: it is full: 3 entries of at most 3".into()
        )
    );
    f.table.delete(&e(1).key).unwrap();
    f.insert(&e(3), 0).unwrap();
    assert_eq!(f.look(&[3], 0), Some(3));
    assert_eq!(f.look(&[1], 0), None);
}

#[test]
fn const_entries_match_and_cannot_be_changed() {
    let mut s = schema(&[("k", MatchKind::Ternary, 8)], 2);
    s.const_entries = Some(vec![
        entry(
            vec![KeyMatch::Ternary {
                value: bits(8, 0x01),
                mask: bits(8, 0x0f),
            }],
            i32::MAX - 1,
            10,
        ),
        entry(
            vec![KeyMatch::Ternary {
                value: bits(8, 0),
                mask: bits(8, 0),
            }],
            i32::MAX - 2,
            20,
        ),
    ]);
    let mut f = Fixture::new(s);
    assert_eq!(f.look(&[0x31], 0), Some(10));
    assert_eq!(f.look(&[0x32], 0), Some(20));
    let e = f.table.schema().const_entries.clone().unwrap().remove(1);
    let text =
        "table MyIngress.t: its entries are const; the program does not allow to change them";
    let denied = |e: ControlError| {
        assert_eq!(
            (e.kind, e.message.as_str()),
            (ErrorKind::PermissionDenied, text)
        )
    };
    denied(f.insert(&e, 0).unwrap_err());
    denied(f.modify(&e, 0).unwrap_err());
    denied(f.table.delete(&e.key).unwrap_err());
    denied(f.table.clear(|_| {}).unwrap_err());
    assert_eq!(f.table.entries(), 2);
}

#[test]
fn default_action_is_set_reset_and_const_where_the_program_says_so() {
    let mut f = Fixture::new(schema(&[("k", MatchKind::Exact, 8)], 2));
    f.table.set_default(Some(&set(77))).unwrap();
    assert!(matches!(
        f.table.lookup(&[1], 0, 64).target,
        Target::Action(ActionId(0), [77])
    ));
    assert_eq!(f.table.default_call(), Some(set(77)));
    let bad = ActionCall {
        action: ActionId(0),
        args: vec![],
    };
    assert_eq!(
        f.table
            .set_default(Some(&bad))
            .unwrap_err()
            .message,
        "table MyIngress.t: default action: action MyIngress.set takes 1 limbs of arguments, 0 were given"
    );
    assert_eq!(f.table.default_call(), Some(set(77)));
    f.table.set_default(None).unwrap();
    assert_eq!(f.table.default_call(), f.table.schema().default_action);

    let mut f = Fixture::new(TableSchema {
        const_default_action: true,
        ..f.table.schema().clone()
    });
    let e = f.table.set_default(Some(&set(1))).unwrap_err();
    assert_eq!(e.kind, ErrorKind::PermissionDenied);
    assert_eq!(f.table.default_call(), f.table.schema().default_action);
}

#[test]
fn resources_that_a_table_has_not_are_refused() {
    let mut s = schema(&[("k", MatchKind::Exact, 8)], 2);
    s.direct_counter = None;
    s.direct_meter = None;
    s.support_timeout = false;
    let mut f = Fixture::new(s);
    let e = entry(vec![KeyMatch::Exact(bits(8, 1))], 0, 1);
    f.insert(&e, 0).unwrap();
    assert_eq!(
        f.table.count(&e.key).unwrap_err().message,
        "table MyIngress.t: it has no direct counter"
    );
    assert_eq!(
        f.table.meter(&e.key).unwrap_err().message,
        "table MyIngress.t: it has no direct meter"
    );
    let aged = Entry {
        idle_timeout: 5,
        ..e
    };
    let error = f.modify(&aged, 0).unwrap_err();
    assert_eq!(error.kind, ErrorKind::InvalidArgument);
    assert!(
        error.message.contains("it does not support time-outs"),
        "{}",
        error.message
    );
}

#[test]
fn keyless_tables_take_no_entries() {
    let mut f = Fixture::new(schema(&[], 2));
    assert_eq!(f.look(&[], 0), None);
    assert_eq!(
        kind_and_text(f.insert(&entry(vec![], 0, 1), 0)),
        (
            ErrorKind::InvalidArgument,
            "table MyIngress.t: it has no key; only its default action can be set".into()
        )
    );
}

#[test]
fn direct_counter_counts_hits_and_survives_a_modify() {
    let mut f = Fixture::new(schema(&[("k", MatchKind::Exact, 8)], 4));
    let e = |k: u64, v| entry(vec![KeyMatch::Exact(bits(8, k.into()))], 0, v);
    f.insert(&e(1, 1), 0).unwrap();
    f.insert(&e(2, 2), 0).unwrap();
    for len in [60, 1500, 64] {
        f.table.lookup(&[1], 0, len);
    }
    f.table.lookup(&[9], 0, 99);
    assert_eq!(f.table.count(&e(1, 0).key), Ok((3, 1624)));
    assert_eq!(f.table.count(&e(2, 0).key), Ok((0, 0)));
    let missed = f.table.default_stats();
    assert_eq!((missed.packets, missed.bytes), (1, 99));
    f.modify(&e(1, 5), 0).unwrap();
    assert_eq!(f.table.count(&e(1, 0).key), Ok((3, 1624)));
    f.table.set_count(&e(1, 0).key, 10, 20).unwrap();
    f.table.lookup(&[1], 0, 5);
    assert_eq!(f.table.count(&e(1, 0).key), Ok((11, 25)));
    // The next entry at the same place starts at zero.
    f.table.delete(&e(1, 0).key).unwrap();
    f.insert(&e(3, 3), 0).unwrap();
    assert_eq!(f.table.count(&e(3, 0).key), Ok((0, 0)));
}

#[test]
fn direct_meter_belongs_to_its_entry() {
    use crate::bits::MeterConfig;
    let mut f = Fixture::new(schema(&[("k", MatchKind::Exact, 8)], 4));
    let e = |k: u64| entry(vec![KeyMatch::Exact(bits(8, k.into()))], 0, k);
    f.insert(&e(1), 0).unwrap();
    f.insert(&e(2), 0).unwrap();
    let config = MeterConfig {
        cir: 1,
        cburst: 1,
        pir: 1,
        pburst: 2,
    };
    f.table.set_meter(&e(2).key, Some(&config)).unwrap();
    let color = |f: &mut Fixture, k: u64| {
        let at = f.table.lookup(&[k], 0, 64).entry.unwrap();
        f.table.meter_color(at, 0, 64)
    };
    assert_eq!([0; 3].map(|_| color(&mut f, 2)), [0, 1, 2]);
    assert_eq!([0; 3].map(|_| color(&mut f, 1)), [0, 0, 0]);
    assert_eq!(f.table.meter(&e(2).key), Ok(Some(config)));
    let bad = MeterConfig { cir: 2, ..config };
    let error = f.table.set_meter(&e(2).key, Some(&bad)).unwrap_err();
    assert_eq!(
        error.message,
        "table MyIngress.t: direct meter: peak rate 1 is below the committed rate 2; it must be at least the committed rate"
    );
    assert_eq!(f.table.meter(&e(2).key), Ok(Some(config)));
    f.table.delete(&e(2).key).unwrap();
    f.insert(&e(3), 0).unwrap();
    assert_eq!(f.table.meter(&e(3).key), Ok(None));
    assert_eq!(color(&mut f, 3), 0);
}

#[test]
fn scan_tells_each_living_entry_once_whatever_happens_between_pieces() {
    let mut f = Fixture::new(schema(&[("k", MatchKind::Exact, 32)], 1000));
    let e = |k: u64| entry(vec![KeyMatch::Exact(bits(32, k.into()))], 0, k);
    for k in 0..100 {
        f.insert(&e(k), 0).unwrap();
    }
    let mut seen = Vec::new();
    let mut cursor = Some(0);
    let mut round = 0;
    while let Some(at) = cursor {
        let mut piece = Vec::new();
        cursor = f.table.scan(at, 10, None, &mut piece);
        assert!(piece.len() <= 10);
        seen.extend(piece.into_iter().map(|(entry, _)| entry.cookie));
        f.table.delete(&e((round * 10 + 5) % 100).key).unwrap();
        f.insert(&e(1000 + round), 0).unwrap();
        round += 1;
        assert!(round < 50);
    }
    for k in (0..100).filter(|k| k % 10 != 5) {
        assert_eq!(seen.iter().filter(|&&s| s == k).count(), 1, "entry {k}");
    }
}
