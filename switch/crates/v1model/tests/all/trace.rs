// SPDX-License-Identifier: Apache-2.0
//! A trace says what the pipeline then does, and leaves no trace: of two equal pipelines, one traces every packet first.

use crate::common::{bits, minimal, Bench, Probe};
use serde_json::{json, Value};
use v1model::trace::{Kind, Place, Step, Tracer, Use};
use v1model::{
    Effects, Entry, EntryAction, EntryKey, KeyMatch, MeterConfig, Pipeline, Std, TableId,
};

fn tracer(bench: &Bench) -> Tracer {
    Tracer::new(bench.pipeline.traced()).unwrap()
}

/// What leaves, and the steps of the ingress control.
fn trace(tracer: &mut Tracer, real: &mut Pipeline, frame: &[u8], now: u64) -> (Vec<u8>, Vec<Step>) {
    tracer
        .with(real, |pipeline| {
            let (mut packet, mut effects) = (pipeline.new_packet(), Effects::new());
            packet.load(frame);
            pipeline.reset(&mut packet);
            pipeline.std_set(&mut packet, Std::IngressPort, 3);
            pipeline.std_set(&mut packet, Std::PacketLength, frame.len() as u64);
            pipeline.parse(&mut packet, &mut effects);
            pipeline.take_steps();
            pipeline.ingress(&mut packet, now, &mut effects);
            let steps = pipeline.take_steps().0;
            pipeline.egress(&mut packet, now, &mut effects);
            pipeline.deparse(&mut packet);
            (packet.frame().to_vec(), steps)
        })
        .expect("the same program")
}

/// Sends `packets` to two pipelines that `fill` made; the one that is traced must not differ from the other.
fn no_difference(program: &str, fill: impl Fn(&mut Bench), packets: &[(Probe, u64)]) {
    let (mut plain, mut traced) = (Bench::load(program), Bench::load(program));
    fill(&mut plain);
    fill(&mut traced);
    let mut tracer = tracer(&traced);
    for (number, (probe, now)) in packets.iter().enumerate() {
        let mut frame = probe.emit();
        frame.resize(60 + number % 40, 0xee);
        let mut shown = Vec::new();
        for _ in 0..3 {
            shown.push(trace(&mut tracer, &mut traced.pipeline, &frame, *now).0);
        }
        let out = traced.frame(&frame, 3, *now);
        assert_eq!(
            out,
            plain.frame(&frame, 3, *now),
            "{program}, packet {number}"
        );
        assert!(
            shown.iter().all(|s| *s == out),
            "{program}, packet {number}"
        );
    }
}

/// A few hundred packets that hit and miss and go beyond the arrays.
fn packets() -> Vec<(Probe, u64)> {
    (0..300u32)
        .map(|i| {
            let probe = Probe {
                key: [0x0a00_0001, 0x0a01_0203, 7, i][i as usize % 4],
                a: i % 9,
                b: i % 5 + 11,
                y: (i % 2) as u8,
                ..Probe::default()
            };
            (probe, u64::from(i) * 3_000_000)
        })
        .collect()
}

fn lpm(bench: &Bench, table: TableId) -> Entry {
    let _ = table;
    let matches = vec![KeyMatch::Lpm {
        value: bits(32, 0x0a00_0000),
        prefix_len: 8,
    }];
    Entry {
        key: EntryKey {
            matches,
            priority: 0,
        },
        action: EntryAction::Direct(bench.call("MyIngress.by_key", "MyIngress.tag", &[9])),
        idle_timeout: 0,
        cookie: 0,
    }
}

#[test]
fn counters_registers_and_random_numbers_are_as_if_nothing_had_been_traced() {
    let fill = |bench: &mut Bench| {
        let table = bench.pipeline.find_table("MyIngress.by_key").unwrap();
        let entry = lpm(bench, table);
        bench.pipeline.table_insert(table, &entry, 0).unwrap();
    };
    no_difference("state", fill, &packets());
    // And what the control plane reads.
    let mut bench = Bench::load("state");
    fill(&mut bench);
    let (table, counter) = (
        bench.pipeline.find_table("MyIngress.by_key").unwrap(),
        bench.pipeline.find_counter("MyIngress.by_index").unwrap(),
    );
    let mut tracer = tracer(&bench);
    for (probe, now) in packets() {
        trace(&mut tracer, &mut bench.pipeline, &probe.emit(), now);
    }
    let key = lpm(&bench, table).key;
    let p = &bench.pipeline;
    assert_eq!(p.table(table).count(&key), Ok((0, 0)));
    assert_eq!(p.table(table).default_stats().packets, 0);
    assert_eq!(p.counter_get(counter, 0), Ok((0, 0)));
}

/// The panic is the caller's; entries and numbers are again those of the pipeline that carries packets.
#[test]
fn after_a_panic_in_a_trace_the_state_is_back_too() {
    let mut bench = Bench::load("state");
    let table = bench.pipeline.find_table("MyIngress.by_key").unwrap();
    let entry = lpm(&bench, table);
    bench.pipeline.table_insert(table, &entry, 0).unwrap();
    let counter = bench.pipeline.find_counter("MyIngress.by_index").unwrap();
    let mut tracer = tracer(&bench);
    let frame = packets()[0].0.emit();
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        tracer.with(&mut bench.pipeline, |pipeline| {
            let (mut packet, mut effects) = (pipeline.new_packet(), Effects::new());
            packet.load(&frame);
            pipeline.reset(&mut packet);
            pipeline.parse(&mut packet, &mut effects);
            pipeline.ingress(&mut packet, 0, &mut effects);
            let counted = pipeline.table(table).count(&entry.key);
            assert_eq!(counted.unwrap().0, 1);
            panic!("in a trace");
        })
    }));
    assert!(panicked.is_err());
    let counted = bench.pipeline.table(table).count(&entry.key);
    assert_eq!(counted, Ok((0, 0)));
    assert_eq!(bench.pipeline.counter_get(counter, 0), Ok((0, 0)));
    // Neither of the two is spoilt.
    trace(&mut tracer, &mut bench.pipeline, &frame, 0);
    bench.frame(&frame, 3, 0);
    let counted = bench.pipeline.table(table).count(&entry.key);
    assert_eq!(counted.unwrap().0, 1);
}

#[test]
fn meters_keep_their_tokens() {
    let fill = |bench: &mut Bench| {
        let config = MeterConfig {
            cir: 1_000,
            cburst: 200,
            pir: 2_000,
            pburst: 300,
        };
        let table = bench.pipeline.find_table("MyIngress.by_key").unwrap();
        let call = bench.call("MyIngress.by_key", "MyIngress.metered", &[5]);
        let entry = Entry {
            key: EntryKey {
                matches: vec![KeyMatch::Exact(bits(32, 7))],
                priority: 0,
            },
            action: EntryAction::Direct(call),
            idle_timeout: 0,
            cookie: 0,
        };
        let p = &mut bench.pipeline;
        p.table_insert(table, &entry, 0).unwrap();
        let few = MeterConfig {
            cir: 10,
            cburst: 2,
            pir: 20,
            pburst: 3,
        };
        p.table_mut(table)
            .set_meter(&entry.key, Some(&few))
            .unwrap();
        let bytes = p.find_meter("MyIngress.byte_meter").unwrap();
        for index in 0..8 {
            p.meter_set(bytes, index, Some(config)).unwrap();
        }
    };
    no_difference("meters", fill, &packets());
}

#[test]
fn steps_name_tables_entries_registers_and_source_lines() {
    let mut bench = Bench::load("state");
    let table = bench.pipeline.find_table("MyIngress.by_key").unwrap();
    let entry = lpm(&bench, table);
    bench.pipeline.table_insert(table, &entry, 0).unwrap();
    let mut tracer = tracer(&bench);
    let probe = Probe {
        key: 0x0a00_0001,
        a: 2,
        b: 12,
        y: 1,
        ..Probe::default()
    };
    bench.probe(probe, 40, 0);
    let (_, steps) = trace(&mut tracer, &mut bench.pipeline, &probe.emit(), 0);

    let lookup = steps.iter().find(|s| s.name == "MyIngress.by_key").unwrap();
    let Kind::Table {
        key,
        hit,
        entry,
        action,
        args,
        packets,
    } = &lookup.kind
    else {
        panic!("{lookup:?}")
    };
    assert_eq!(
        (key[0].name.as_str(), key[0].value.as_str()),
        ("hdr.p.key", "0xa000001")
    );
    assert_eq!(
        (*hit, entry.as_deref()),
        (true, Some("hdr.p.key=0x0a000000/8"))
    );
    assert_eq!(action.as_deref(), Some("MyIngress.tag"));
    assert_eq!(
        (args[0].name.as_str(), args[0].value.as_str()),
        ("value", "0x9")
    );
    assert_eq!(*packets, Some(1));
    let source = lookup.source.as_ref().unwrap();
    assert!(
        source.file.ends_with("state.p4") && source.line == 15,
        "{source:?}"
    );
    let change = &lookup.lines.iter().flat_map(|l| &l.changes).next().unwrap();
    assert_eq!((change.name.as_str(), change.to.as_str()), ("p.x", "0x9"));

    let uses: Vec<&Use> = steps
        .iter()
        .flat_map(|s| &s.lines)
        .flat_map(|l| &l.uses)
        .collect();
    let counted = Use::Counter {
        name: "MyIngress.by_index".into(),
        index: 2,
        packets: Some(1),
        bytes: Some(58),
    };
    let read = Use::RegisterRead {
        name: "MyIngress.last_key".into(),
        index: 2,
        value: Some("0xa000001".into()),
    };
    let written = Use::RegisterWrite {
        name: "MyIngress.last_key".into(),
        index: 2,
        from: Some("0xa000001".into()),
        to: "0xa000001".into(),
    };
    let told = Use::Digest {
        name: "sample_t".into(),
    };
    for wanted in [counted, read, written, Use::Random, told] {
        assert!(uses.contains(&&wanted), "{wanted:?} is not in {uses:?}");
    }
    let holds = |text: &str| {
        let of = |s: &&Step| s.source.as_ref().is_some_and(|s| s.text.contains(text));
        let step = steps
            .iter()
            .find(of)
            .unwrap_or_else(|| panic!("{text}: {steps:#?}"));
        step.kind == Kind::Condition { result: true }
    };
    assert!(holds("hdr.p.y == 1"));
    assert_eq!(Place::find_drop(&steps, 511), None);
}

/// `primitive` with a place in a source of that text.
fn at(mut primitive: Value, text: &str) -> Value {
    primitive["source_info"] =
        json!({"filename": "x.p4", "line": 1, "column": 1, "source_fragment": text});
    primitive
}

#[test]
fn a_drop_through_a_copy_of_the_metadata_is_told_where_it_was_marked() {
    let copy = |to: &str, from: &str| {
        let of = |header| minimal::field(header, "egress_spec");
        at(minimal::assign(of(to), of(from)), "inout")
    };
    let mark = |header| {
        let primitive = minimal::op("mark_to_drop", json!([minimal::header(header)]));
        at(primitive, &format!("mark_to_drop({header})"))
    };
    let (real, own) = ("standard_metadata", "copy");
    for (ingress, told) in [
        (
            vec![copy(own, real), mark(own), copy(real, own)],
            Some("mark_to_drop(copy)"),
        ),
        (
            vec![mark(real), mark(own)],
            Some("mark_to_drop(standard_metadata)"),
        ),
        (vec![copy(own, real), mark(own)], None),
    ] {
        let program = minimal::bytes(&minimal::minimal(&ingress, &[]));
        let mut real = Pipeline::from_json(&program).unwrap();
        let mut tracer = Tracer::new(real.traced()).unwrap();
        let (_, steps) = trace(&mut tracer, &mut real, &minimal::frame(1, 2, 3), 0);
        let place = Place::find_drop(&steps, 511);
        let text = place.map(|p| p.source.unwrap().text);
        assert_eq!(text.as_deref(), told, "{steps:#?}");
    }
}

#[test]
fn another_program_is_not_traced() {
    let mut tracer = tracer(&Bench::load("meters"));
    let mut bench = Bench::load("state");
    assert!(tracer.with(&mut bench.pipeline, |_| ()).is_none());
}
