// SPDX-License-Identifier: Apache-2.0
//! Parser value sets in a running program (p4/value_sets.p4).

use crate::common::{bits, Bench};
use v1model::{ErrorKind, KeyMatch};

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

#[test]
fn empty_sets_take_nothing_and_members_come_and_go() {
    let mut bench = Bench::load("value_sets");
    let kinds = bench.pipeline.find_value_set("SetParser.kinds").unwrap();
    assert_eq!(taken(&mut bench, 0, 0), 0);
    bench
        .pipeline
        .value_set_set(kinds, vec![exact(0x800), exact(0x86dd)])
        .unwrap();
    for (kind, expected) in [(0x800, 1), (0x86dd, 1), (0x801, 0), (0, 0)] {
        assert_eq!(taken(&mut bench, kind, 9), expected, "{kind:#x}");
    }
    assert_eq!(
        bench.pipeline.value_set_get(kinds),
        [exact(0x800), exact(0x86dd)]
    );
    bench.pipeline.value_set_set(kinds, vec![exact(7)]).unwrap();
    assert_eq!(taken(&mut bench, 0x800, 0), 0);
    assert_eq!(taken(&mut bench, 7, 0), 1);
    bench.pipeline.value_set_set(kinds, vec![]).unwrap();
    assert_eq!(taken(&mut bench, 7, 0), 0);
}

#[test]
fn several_fields_match_each_in_its_way() {
    let mut bench = Bench::load("value_sets");
    let pairs = bench.pipeline.find_value_set("SetParser.pairs").unwrap();
    let members = vec![
        vec![
            KeyMatch::Exact(bits(16, 0x1234)),
            KeyMatch::Range {
                low: bits(8, 3),
                high: bits(8, 5),
            },
        ],
        vec![
            KeyMatch::Ternary {
                value: bits(16, 0xab00),
                mask: bits(16, 0xff00),
            },
            KeyMatch::Lpm {
                value: bits(8, 0x40),
                prefix_len: 2,
            },
        ],
        // One number over both fields.
        vec![KeyMatch::Exact(bits(24, 0x55_66_77))],
    ];
    bench
        .pipeline
        .value_set_set(pairs, members.clone())
        .unwrap();
    for (kind, part, expected) in [
        (0x1234, 2, 0),
        (0x1234, 3, 2),
        (0x1234, 5, 2),
        (0x1234, 6, 0),
        (0x1235, 4, 0),
        (0xab12, 0x7f, 2),
        (0xab12, 0x80, 0),
        (0xac12, 0x40, 0),
        (0x5566, 0x77, 2),
        (0x5566, 0x78, 0),
    ] {
        assert_eq!(
            taken(&mut bench, kind, part),
            expected,
            "{kind:#x} {part:#x}"
        );
    }
    assert_eq!(bench.pipeline.value_set_get(pairs), members);
}

#[test]
fn wrong_members_are_refused_and_the_old_ones_stay() {
    let mut bench = Bench::load("value_sets");
    let kinds = bench.pipeline.find_value_set("SetParser.kinds").unwrap();
    bench.pipeline.value_set_set(kinds, vec![exact(7)]).unwrap();
    let cases = [
        (
            vec![exact(8), vec![KeyMatch::Exact(bits(15, 8))]],
            "value set SetParser.kinds: member 2: its fields have 15 bits together, the set has 16",
        ),
        (
            vec![vec![KeyMatch::Range { low: bits(16, 8), high: bits(16, 7) }]],
            "value set SetParser.kinds: member 1: low bound 0x08 is above high bound 0x07",
        ),
        (
            vec![vec![KeyMatch::Lpm { value: bits(16, 0), prefix_len: 17 }]],
            "value set SetParser.kinds: member 1: prefix length 17 is above the width 16",
        ),
        (
            vec![vec![KeyMatch::Ternary { value: bits(16, 3), mask: bits(16, 1) }]],
            "value set SetParser.kinds: member 1: the value has bits set where its mask or prefix is zero",
        ),
    ];
    for (members, text) in cases {
        let error = bench.pipeline.value_set_set(kinds, members).unwrap_err();
        assert_eq!(
            (error.kind, error.message.as_str()),
            (ErrorKind::InvalidArgument, text)
        );
        assert_eq!(taken(&mut bench, 7, 0), 1);
        assert_eq!(bench.pipeline.value_set_get(kinds), [exact(7)]);
    }
}
