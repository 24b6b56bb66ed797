// SPDX-License-Identifier: Apache-2.0
//! Parser value sets in a running program (p4/value_sets.p4).

use crate::common::{bits, Bench};
use v1model::{Key, KeyMatch, KeySchema, ValueSet};

/// 1 if `kinds` took the packet, 2 if `pairs` did, 0 if neither.
fn taken(bench: &mut Bench, kind: u16, part: u8) -> u8 {
    let [k0, k1] = kind.to_be_bytes();
    let out = bench.frame(&[k0, k1, part, 0, 0xaa, 0xbb], 1, 0);
    assert_eq!((out.len(), out[4..].to_vec()), (6, vec![0xaa, 0xbb]));
    out[3]
}

fn exact(value: u64) -> Vec<KeyMatch> {
    vec![KeyMatch::Exact(bits(16, value))]
}

/// Replaces the members of a set whose fields have these widths.
fn replace(bench: &mut Bench, set: &str, widths: &[u32], members: &[Vec<KeyMatch>]) {
    let kinds = members.first().into_iter().flatten().map(|m| m.kind());
    let fields = kinds.zip(widths).map(|(kind, width)| KeySchema {
        name: String::new(),
        kind,
        width: *width,
    });
    let fields: Vec<KeySchema> = fields.collect();
    let key = |matches: &Vec<KeyMatch>| {
        let mut key = Key::new(&fields);
        for (field, given) in fields.iter().zip(matches) {
            key.push(field, &given.as_bytes()).unwrap();
        }
        key
    };
    let keys: Vec<Key> = members.iter().map(key).collect();
    let id = bench.pipeline.find_value_set(set).unwrap();
    let set = ValueSet::new(&fields, &keys);
    bench.pipeline.value_set_replace(id, set);
}

#[test]
fn empty_sets_take_nothing_and_members_come_and_go() {
    let mut bench = Bench::load("value_sets");
    let kinds = |bench: &mut Bench, members: &[Vec<KeyMatch>]| {
        replace(bench, "SetParser.kinds", &[16], members);
    };
    assert_eq!(taken(&mut bench, 0, 0), 0);
    kinds(&mut bench, &[exact(0x800), exact(0x86dd)]);
    for (kind, expected) in [(0x800, 1), (0x86dd, 1), (0x801, 0), (0, 0)] {
        assert_eq!(taken(&mut bench, kind, 9), expected, "{kind:#x}");
    }
    kinds(&mut bench, &[exact(7)]);
    assert_eq!(taken(&mut bench, 0x800, 0), 0);
    assert_eq!(taken(&mut bench, 7, 0), 1);
    kinds(&mut bench, &[]);
    assert_eq!(taken(&mut bench, 7, 0), 0);
}

#[test]
fn several_fields_match_each_in_its_way() {
    let mut bench = Bench::load("value_sets");
    let range = |low, high| KeyMatch::Range {
        low: bits(8, low),
        high: bits(8, high),
    };
    let exact_and_range = vec![
        vec![KeyMatch::Exact(bits(16, 0x1234)), range(3, 5)],
        vec![KeyMatch::Exact(bits(16, 0x5566)), range(0x77, 0x77)],
    ];
    replace(&mut bench, "SetParser.pairs", &[16, 8], &exact_and_range);
    for (kind, part, expected) in [
        (0x1234, 2, 0),
        (0x1234, 3, 2),
        (0x1234, 5, 2),
        (0x1234, 6, 0),
        (0x1235, 4, 0),
        (0x5566, 0x77, 2),
        (0x5566, 0x78, 0),
    ] {
        assert_eq!(
            taken(&mut bench, kind, part),
            expected,
            "{kind:#x} {part:#x}"
        );
    }
    let ternary_and_prefix = vec![vec![
        KeyMatch::Ternary {
            value: bits(16, 0xab00),
            mask: bits(16, 0xff00),
        },
        KeyMatch::Lpm {
            value: bits(8, 0x40),
            prefix_len: 2,
        },
    ]];
    replace(&mut bench, "SetParser.pairs", &[16, 8], &ternary_and_prefix);
    for (kind, part, expected) in [(0xab12, 0x7f, 2), (0xab12, 0x80, 0), (0xac12, 0x40, 0)] {
        assert_eq!(
            taken(&mut bench, kind, part),
            expected,
            "{kind:#x} {part:#x}"
        );
    }
}
