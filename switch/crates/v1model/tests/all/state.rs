// SPDX-License-Identifier: Apache-2.0
//! Counters by value, digests, random numbers, registers, time-outs and reconciliation (p4/state.p4).

use crate::common::{bits, take_over, Bench, Probe};
use v1model::{Bits, Entry, EntryAction, EntryKey, ErrorKind, KeyMatch, TableId};

const S: u64 = 1_000_000_000;

fn table(bench: &Bench) -> TableId {
    bench.pipeline.find_table("MyIngress.by_key").unwrap()
}

fn route(bench: &Bench, value: u64, prefix_len: u32, tag: u64) -> Entry {
    Entry {
        key: EntryKey {
            matches: vec![KeyMatch::Lpm {
                value: bits(32, value),
                prefix_len,
            }],
            priority: 0,
        },
        action: EntryAction::Direct(bench.call("MyIngress.by_key", "MyIngress.tag", &[tag])),
        idle_timeout: 0,
        cookie: tag,
    }
}

#[test]
fn counters_count_packets_and_bytes() {
    let mut bench = Bench::load("state");
    let t = table(&bench);
    let (net, host) = (
        route(&bench, 0x0a00_0000, 8, 1),
        route(&bench, 0x0a01_0203, 32, 2),
    );
    bench.pipeline.table_insert(t, &net, 0).unwrap();
    bench.pipeline.table_insert(t, &host, 0).unwrap();
    let probe = |key, a| Probe {
        key,
        a,
        b: 10,
        ..Probe::default()
    };
    assert_eq!(bench.probe(probe(0x0a00_0001, 0), 100 - Probe::LEN, 0).x, 1);
    assert_eq!(bench.probe(probe(0x0a01_0203, 0), 0, 0).x, 2);
    assert_eq!(
        bench.probe(probe(0x0aff_ffff, 3), 1500 - Probe::LEN, 0).x,
        1
    );
    assert_eq!(bench.probe(probe(0x0b00_0000, 3), 0, 0).x, 0xff);
    assert_eq!(
        bench.probe(probe(0x0b00_0000, 4), 0, 0).x,
        0xff,
        "index out of range"
    );
    let p = &mut bench.pipeline;
    assert_eq!(p.table(t).count(&net.key), Ok((2, 1600)));
    assert_eq!(p.table(t).count(&host.key), Ok((1, 18)));
    let counter = p.find_counter("MyIngress.by_index").unwrap();
    let all: Vec<_> = (0..4).map(|i| p.counter_get(counter, i).unwrap()).collect();
    assert_eq!(all, [(2, 118), (0, 0), (0, 0), (2, 1518)]);
    let error = p.counter_get(counter, 4).unwrap_err();
    assert_eq!(error.kind, ErrorKind::OutOfRange);
    assert_eq!(
        error.message,
        "counter MyIngress.by_index: index 4 is out of range; its indices are 0 to 3"
    );
    p.counter_set(counter, 0, 1000, 0).unwrap();
    p.table_mut(t).set_count(&net.key, 0, 0).unwrap();
    bench.probe(probe(0x0a00_0001, 0), 0, 0);
    assert_eq!(bench.pipeline.counter_get(counter, 0), Ok((1001, 18)));
    assert_eq!(bench.pipeline.table(t).count(&net.key), Ok((1, 18)));
    assert_eq!(bench.pipeline.table(t).default_stats().packets, 2);
}

#[test]
fn digests_carry_their_members() {
    let mut bench = Bench::load("state");
    let digest = bench.pipeline.schema().digests[0].clone();
    assert_eq!(
        (digest.name.as_str(), digest.widths.as_slice()),
        ("sample_t", &[32, 9, 48][..])
    );
    bench.probe(
        Probe {
            b: 10,
            ..Probe::default()
        },
        0,
        0,
    );
    assert!(bench.effects.digests.is_empty());
    let frame = Probe {
        key: 0xdead_beef,
        b: 0x0102_0304,
        y: 1,
        ..Probe::default()
    }
    .emit();
    bench.frame(&frame, 300, 0);
    let samples: Vec<_> = bench.effects.digests.iter().collect();
    // 32, 9 and 48 bits, each in whole bytes; the port is 300.
    let value = [0xde, 0xad, 0xbe, 0xef, 1, 44, 0, 0, 1, 2, 3, 4];
    assert_eq!(samples, [(digest.id, &value[..])]);
}

#[test]
fn random_numbers_keep_their_bounds_and_repeat_with_the_seed() {
    let draw = |seed| {
        let mut bench = Bench::load("state");
        bench.pipeline.seed(seed);
        let probe = Probe {
            b: 13,
            ..Probe::default()
        };
        (0..400)
            .map(|_| bench.probe(probe, 0, 0).b)
            .collect::<Vec<_>>()
    };
    let numbers = draw(1);
    for n in 10..=13 {
        let times = numbers.iter().filter(|&&x| x == n).count();
        assert!((50..150).contains(&times), "{n} came {times} times of 400");
    }
    assert!(numbers.iter().all(|n| (10..=13).contains(n)));
    assert_eq!(numbers, draw(1));
    assert_ne!(numbers, draw(2));
}

#[test]
fn registers_are_read_and_written_by_both_sides() {
    let mut bench = Bench::load("state");
    let register = bench.pipeline.find_register("MyIngress.last_key").unwrap();
    let wide = bench.pipeline.find_register("MyIngress.wide").unwrap();
    bench
        .pipeline
        .register_set(register, 2, &bits(32, 0xcafe))
        .unwrap();
    let probe = Probe {
        key: 7,
        a: 2,
        b: 10,
        ..Probe::default()
    };
    assert_eq!(bench.probe(probe, 0, 0).a, 0xcafe);
    assert_eq!(bench.pipeline.register_get(register, 2), Ok(bits(32, 7)));
    let value = Bits::from_u128(128, 7 << 96 | 2 << 64 | 10 << 32 | 0xcafe).unwrap();
    assert_eq!(bench.pipeline.register_get(wide, 1), Ok(value));
    assert_eq!(bench.probe(probe, 0, 0).a, 7);
    assert_eq!(
        bench
            .pipeline
            .register_set(register, 0, &bits(31, 0))
            .unwrap_err()
            .message,
        "register MyIngress.last_key: the value is 31 bits wide, the register 32"
    );
    assert_eq!(
        bench.pipeline.register_get(register, 4).unwrap_err().kind,
        ErrorKind::OutOfRange
    );
}

#[test]
fn idle_entries_are_told_each_time_out() {
    let mut bench = Bench::load("state");
    let t = table(&bench);
    let aged = Entry {
        idle_timeout: 5 * S,
        ..route(&bench, 0x0a00_0000, 8, 1)
    };
    bench.pipeline.table_insert(t, &aged, S).unwrap();
    assert_eq!(bench.pipeline.next_expiry(), Some(6 * S));
    bench.probe(
        Probe {
            key: 0x0a00_0001,
            b: 10,
            ..Probe::default()
        },
        0,
        4 * S,
    );
    let mut out = Vec::new();
    let told = [
        (6, 0),
        (8, 0),
        (9, 1),
        (10, 1),
        (14, 2),
        (18, 2),
        (20, 3),
        (40, 4),
    ];
    for (now, times) in told {
        bench.pipeline.expired(now * S, &mut out);
        assert_eq!(out.len(), times, "at {now} s");
    }
    assert!(out.iter().all(|o| *o == (t, aged.clone())));
    assert_eq!(
        bench.pipeline.table_get(t, &aged.key).unwrap().1.last_hit,
        4 * S
    );
}

#[test]
fn a_new_pipeline_takes_the_state_over() {
    let mut old = Bench::load("state");
    let t = table(&old);
    let aged = Entry {
        idle_timeout: 5 * S,
        ..route(&old, 0x0a00_0000, 8, 1)
    };
    old.pipeline.table_insert(t, &aged, S).unwrap();
    let default = old.call("MyIngress.by_key", "MyIngress.tag", &[55]);
    old.pipeline
        .table_mut(t)
        .set_default(Some(&default))
        .unwrap();
    old.probe(
        Probe {
            key: 0x0a00_0001,
            a: 1,
            b: 10,
            ..Probe::default()
        },
        0,
        2 * S,
    );

    let mut new = Bench::load("state");
    take_over(&mut new.pipeline, &mut old.pipeline);
    assert_eq!(
        new.pipeline.table_get(t, &aged.key),
        old.pipeline.table_get(t, &aged.key)
    );
    assert_eq!(new.pipeline.table(t).count(&aged.key), Ok((1, 18)));
    let counter = new.pipeline.find_counter("MyIngress.by_index").unwrap();
    assert_eq!(new.pipeline.counter_get(counter, 1), Ok((1, 18)));
    let probe = Probe {
        key: 0x0b00_0000,
        a: 1,
        b: 10,
        ..Probe::default()
    };
    let out = new.probe(probe, 0, 3 * S);
    assert_eq!((out.x, out.a), (55, 0x0a00_0001));
    let mut told = Vec::new();
    new.pipeline.expired(7 * S - 1, &mut told);
    assert!(told.is_empty());
    new.pipeline.expired(7 * S, &mut told);
    assert_eq!(told, [(t, aged)]);

    // Another program keeps its own.
    let mut other = Bench::load("profiles");
    take_over(&mut other.pipeline, &mut old.pipeline);
    assert_eq!(other.probe(Probe::default(), 0, 0), Probe::default());
}
