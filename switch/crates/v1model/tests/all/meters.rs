// SPDX-License-Identifier: Apache-2.0
//! Meters in a running program (p4/meters.p4), in virtual time.

use crate::common::{bits, Bench, Probe};
use v1model::{Entry, EntryAction, EntryKey, ErrorKind, KeyMatch, MeterConfig, MeterUnit};

const GREEN: u8 = 0;
const YELLOW: u8 = 1;
const RED: u8 = 2;
const S: u64 = 1_000_000_000;

fn entry(bench: &Bench, key: u64, tag: u64) -> Entry {
    Entry {
        key: EntryKey {
            matches: vec![KeyMatch::Exact(bits(32, key))],
            priority: 0,
        },
        action: EntryAction::Direct(bench.call("MyIngress.by_key", "MyIngress.metered", &[tag])),
        idle_timeout: 0,
        cookie: 0,
    }
}

#[test]
fn the_schema_tells_sizes_and_units() {
    let bench = Bench::load("meters");
    let meters: Vec<_> = bench
        .pipeline
        .schema()
        .meters
        .iter()
        .map(|m| (m.name.as_str(), m.size, m.unit))
        .collect();
    assert_eq!(
        meters,
        [
            ("MyIngress.byte_meter", 8, MeterUnit::Bytes),
            ("MyIngress.packet_meter", 4, MeterUnit::Packets)
        ]
    );
    let table = bench.pipeline.find_table("MyIngress.by_key").unwrap();
    let direct = bench
        .pipeline
        .table_schema(table)
        .direct_meter
        .clone()
        .unwrap();
    assert_eq!(
        (direct.name.as_str(), direct.unit),
        ("MyIngress.entry_meter", MeterUnit::Packets)
    );
}

#[test]
fn byte_meter_weighs_the_whole_frame() {
    let mut bench = Bench::load("meters");
    let meter = bench.pipeline.find_meter("MyIngress.byte_meter").unwrap();
    let probe = Probe {
        a: 5,
        ..Probe::default()
    };
    assert_eq!(bench.probe(probe, 82, 0).x, GREEN, "unconfigured");
    // 100-byte frames: two of them are committed, three are the peak.
    let config = MeterConfig {
        cir: 1000,
        cburst: 200,
        pir: 2000,
        pburst: 300,
    };
    bench.pipeline.meter_set(meter, 5, Some(config)).unwrap();
    assert_eq!(bench.pipeline.meter_get(meter, 5), Ok(Some(config)));
    let now = 10 * S;
    let colors: Vec<u8> = (0..4).map(|_| bench.probe(probe, 82, now).x).collect();
    assert_eq!(colors, [GREEN, GREEN, YELLOW, RED]);
    // After 50 ms the peak bucket has 100 bytes again, the committed one 50.
    assert_eq!(bench.probe(probe, 82, now + S / 20).x, YELLOW);
    assert_eq!(bench.probe(probe, 82, now + S / 10).x, GREEN);
    // Its neighbour is not configured, and an index out of range writes no colour.
    assert_eq!(
        bench
            .probe(
                Probe {
                    a: 4,
                    x: 77,
                    ..probe
                },
                82,
                now
            )
            .x,
        GREEN
    );
    assert_eq!(
        bench
            .probe(
                Probe {
                    a: 8,
                    x: 77,
                    ..probe
                },
                82,
                now
            )
            .x,
        77
    );
    bench.pipeline.meter_set(meter, 5, None).unwrap();
    assert_eq!(bench.pipeline.meter_get(meter, 5), Ok(None));
    assert_eq!(bench.probe(probe, 82, now + S / 10).x, GREEN);
}

#[test]
fn packet_meter_counts_frames_of_any_length() {
    let mut bench = Bench::load("meters");
    let meter = bench.pipeline.find_meter("MyIngress.packet_meter").unwrap();
    let config = MeterConfig {
        cir: 1,
        cburst: 1,
        pir: 2,
        pburst: 2,
    };
    bench.pipeline.meter_set(meter, 3, Some(config)).unwrap();
    let probe = Probe {
        b: 3,
        ..Probe::default()
    };
    let colors = [0, 1400, 10].map(|payload| bench.probe(probe, payload, S).y);
    assert_eq!(colors, [GREEN, YELLOW, RED]);
    let colors = [0; 3].map(|_| bench.probe(probe, 0, 2 * S).y);
    assert_eq!(colors, [GREEN, YELLOW, RED]);
}

#[test]
fn direct_meter_colours_the_packets_of_its_entry() {
    let mut bench = Bench::load("meters");
    let table = bench.pipeline.find_table("MyIngress.by_key").unwrap();
    for key in [7, 8] {
        let e = entry(&bench, key, key);
        bench.pipeline.table_insert(table, &e, 0).unwrap();
    }
    let config = MeterConfig {
        cir: 1,
        cburst: 2,
        pir: 1,
        pburst: 3,
    };
    let key = entry(&bench, 7, 0).key;
    bench
        .pipeline
        .table_mut(table)
        .set_meter(&key, Some(&config))
        .unwrap();
    let probe = |key| Probe {
        key,
        ..Probe::default()
    };
    let colors = [0; 5].map(|_| bench.probe(probe(7), 0, S).z);
    assert_eq!(colors, [GREEN, GREEN, YELLOW, RED, RED]);
    assert_eq!(bench.probe(probe(8), 0, S), Probe { hit: 8, ..probe(8) });
    assert_eq!(
        bench.probe(probe(9), 0, S),
        probe(9),
        "a miss is not metered"
    );
    let (_, stats) = bench.pipeline.table_get(table, &key).unwrap();
    assert_eq!(stats.meter, Some(config));
}

#[test]
fn bad_rates_and_indices_are_refused() {
    let mut bench = Bench::load("meters");
    let meter = bench.pipeline.find_meter("MyIngress.packet_meter").unwrap();
    let bad = MeterConfig {
        cir: 3,
        cburst: 1,
        pir: 2,
        pburst: 1,
    };
    let error = bench.pipeline.meter_set(meter, 0, Some(bad)).unwrap_err();
    assert_eq!(error.kind, ErrorKind::InvalidArgument);
    assert_eq!(
        error.message,
        "meter MyIngress.packet_meter: index 0: peak rate 2 is below the committed rate 3; \
         it must be at least the committed rate"
    );
    assert_eq!(bench.pipeline.meter_get(meter, 0), Ok(None));
    let error = bench.pipeline.meter_get(meter, 4).unwrap_err();
    assert_eq!(error.kind, ErrorKind::OutOfRange);
    assert_eq!(
        error.message,
        "meter MyIngress.packet_meter: index 4 is out of range; its indices are 0 to 3"
    );
    assert_eq!(bench.pipeline.meter_set(meter, 4, None), Err(error));
}
