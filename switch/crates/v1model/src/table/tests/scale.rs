// SPDX-License-Identifier: Apache-2.0
//! 65,536 entries: all found, none lost over deletes and inserts, and how long a lookup and an insert take.

use super::*;

const ENTRIES: u64 = 65_536;

/// An IPv4 5-tuple as five limbs.
fn flow(i: u64) -> [u64; 5] {
    [
        0x0a00_0000 + (i >> 8),
        0x0a80_0000 + (i & 0xff),
        6,
        1024 + i % 60_000,
        5001 + i % 7,
    ]
}

fn flow_schema() -> TableSchema {
    schema(
        &[
            ("src", MatchKind::Exact, 32),
            ("dst", MatchKind::Exact, 32),
            ("protocol", MatchKind::Exact, 8),
            ("sport", MatchKind::Exact, 16),
            ("dport", MatchKind::Exact, 16),
        ],
        ENTRIES as u32,
    )
}

fn flow_entry(i: u64) -> Entry {
    let widths = [32, 32, 8, 16, 16];
    let matches = flow(i)
        .iter()
        .zip(widths)
        .map(|(&v, w)| KeyMatch::Exact(bits(w, v.into())))
        .collect();
    Entry {
        idle_timeout: 60_000_000_000,
        ..entry(matches, 0, i)
    }
}

#[test]
fn full_table_of_flows() {
    let mut f = Fixture::new(flow_schema());
    for i in 0..ENTRIES {
        f.insert(&flow_entry(i), 1).unwrap();
    }
    assert_eq!(
        f.insert(&flow_entry(ENTRIES), 1).unwrap_err().kind,
        ErrorKind::ResourceExhausted
    );
    for i in 0..ENTRIES {
        assert_eq!(f.look(&flow(i), 2), Some(i));
    }
    assert_eq!(f.look(&flow(ENTRIES), 2), None);
    for i in (0..ENTRIES).step_by(3) {
        f.table.delete(&flow_entry(i).key).unwrap();
    }
    for i in 0..ENTRIES {
        assert_eq!(f.look(&flow(i), 3), (i % 3 != 0).then_some(i), "flow {i}");
    }
    for i in (0..ENTRIES).step_by(3) {
        f.insert(&flow_entry(i), 4).unwrap();
    }
    for i in 0..ENTRIES {
        assert_eq!(f.look(&flow(i), 5), Some(i));
        assert_eq!(
            f.table.count(&flow_entry(i).key).unwrap().0,
            if i % 3 == 0 { 1 } else { 3 }
        );
    }
    f.table.clear(|_| {}).unwrap();
    assert!(f.is_empty());
    assert_eq!(f.look(&flow(1), 6), None);
}

#[test]
fn full_table_of_routes_and_of_masks() {
    // As many prefixes as lengths allow, then as many masks.
    let mut f = Fixture::new(schema(&[("dst", MatchKind::Lpm, 32)], ENTRIES as u32));
    let route = |i: u64| {
        let prefix_len = 16 + (i % 17) as u32;
        let mask = u32::MAX << (32 - prefix_len);
        let value = (i as u32).wrapping_mul(0x9e37_79b1) & mask;
        (value, prefix_len)
    };
    let mut known = std::collections::HashMap::new();
    for i in 0..ENTRIES {
        let (value, prefix_len) = route(i);
        let e = entry(
            vec![KeyMatch::Lpm {
                value: bits(32, value.into()),
                prefix_len,
            }],
            0,
            i,
        );
        if known.insert((prefix_len, value), i).is_none() {
            f.insert(&e, 0).unwrap();
        } else {
            f.modify(&e, 0).unwrap();
        }
    }
    for i in 0..ENTRIES {
        let address = (i as u32).wrapping_mul(0x9e37_79b1) | 1;
        let expected = (16..=32)
            .rev()
            .find_map(|p| known.get(&(p, address & (u32::MAX << (32 - p)))));
        assert_eq!(f.look(&[address.into()], 1), expected.copied());
    }
}

/// Nanoseconds that this thread has run; other threads' turns do not count.
fn cpu_ns() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is a valid place for the result, and the clock exists on Linux.
    let failed = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    assert_eq!(failed, 0);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// `cargo test --release -p v1model -- --ignored --nocapture nanoseconds`
#[test]
#[ignore = "a measurement: run it alone, in release"]
fn nanoseconds_and_bytes() {
    let resident = || -> u64 {
        let status = std::fs::read_to_string("/proc/self/statm").unwrap();
        status.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4096
    };
    for entries in [1, 1000, ENTRIES] {
        let before = resident();
        let mut f = Fixture::new(flow_schema());
        let all: Vec<Entry> = (0..entries).map(flow_entry).collect();
        let keys: Vec<[u64; 5]> = (0..entries).map(flow).collect();
        let with_entries = resident();
        let mut slowest = Vec::new();
        let start = cpu_ns();
        for e in &all {
            let one = cpu_ns();
            f.insert(e, 1).unwrap();
            slowest.push(cpu_ns() - one);
        }
        let insert = (cpu_ns() - start) as f64 / entries as f64;
        slowest.sort_unstable_by_key(|&ns| std::cmp::Reverse(ns));
        let slowest = (slowest[0], slowest[entries as usize / 10_000]);
        let memory = resident() - with_entries;
        let rounds = 4_000_000u64;
        let mut sum = 0u64;
        // An order that no prefetcher sees through, and one flow again and again.
        let mut order: Vec<usize> = (0..entries as usize).collect();
        let mut x = 1u64;
        for i in (1..order.len()).rev() {
            x = x
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            order.swap(i, (x >> 33) as usize % (i + 1));
        }
        let mut time = |order: &[usize]| {
            let start = cpu_ns();
            let mut at = 0;
            for i in 0..rounds {
                if let Target::Action(_, args) = f.table.lookup(&keys[order[at]], i, 1500).target {
                    sum = sum.wrapping_add(args[0]);
                }
                at = if at + 1 == order.len() { 0 } else { at + 1 };
            }
            (cpu_ns() - start) as f64 / rounds as f64
        };
        let random = time(&order);
        let same = time(&order[..1]);
        println!(
            "exact, 5 limbs, {entries} entries: {random:.1} ns a lookup in random order, {same:.1} ns of one flow; \
             insert {insert:.0} ns, slowest {} ns, 99.99 % within {} ns; {} bytes an entry resident (sum {sum}, {} before)",
            slowest.0, slowest.1, memory / entries, before
        );
    }
    lpm_and_ternary();
}

fn lpm_and_ternary() {
    let mut f = Fixture::new(schema(&[("dst", MatchKind::Lpm, 32)], 1024));
    for i in 0..512u64 {
        let (value, prefix_len) = match i % 3 {
            0 => (0x0a00_0000 + (i << 8), 24),
            1 => (0x0a00_0000 + (i << 8) + 1, 32),
            _ => (0x0b00_0000 + (i << 16), 16),
        };
        let value = bits(32, value.into());
        f.insert(&entry(vec![KeyMatch::Lpm { value, prefix_len }], 0, i), 0)
            .unwrap();
    }
    measure("lpm, 512 routes of 3 lengths", &mut f, |i| {
        0x0a00_0000 + ((i % 512) << 8) + 1
    });
    for entries in [1u64, 100, 10_000, 1_000_000] {
        let mut f = Fixture::new(schema(&[("dst", MatchKind::Lpm, 32)], 1 << 20));
        let address = |i: u64| (i % entries).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        for i in 0..entries {
            let prefix_len = 8 + (i % 25) as u32;
            let value = address(i) >> (32 - prefix_len) << (32 - prefix_len);
            let value = bits(32, value.into());
            let _ = f.insert(&entry(vec![KeyMatch::Lpm { value, prefix_len }], 0, i), 0);
        }
        let name = format!("lpm, {} routes of 8 to 32 bits", f.table.entries());
        measure(&name, &mut f, |i| address(i * 40_503));
    }
    for entries in [1u64, 100, 10_000] {
        // A mask of its own for each hundredth.
        let mut f = Fixture::new(schema(
            &[("a", MatchKind::Ternary, 32), ("b", MatchKind::Ternary, 32)],
            1 << 20,
        ));
        let value = |i: u64| (i % entries).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        for i in 0..entries {
            let lengths = [8 + i % 25, 8 + i / 25 % 4 * 8];
            let fields = [value(i) >> 32, value(i) & 0xffff_ffff];
            let matches = (0..2).map(|n| {
                let mask = u64::from(u32::MAX) << (32 - lengths[n]) & u64::from(u32::MAX);
                KeyMatch::Ternary {
                    value: bits(32, (fields[n] & mask).into()),
                    mask: bits(32, mask.into()),
                }
            });
            let e = entry(matches.collect(), 1 + (i % 1000) as i32, i);
            let _ = f.insert(&e, 0);
        }
        let name = format!("ternary, {} entries of up to 100 masks", f.table.entries());
        measure_keys(&name, &mut f, |i| {
            let value = value(i * 40_503);
            [value >> 32, value & 0xffff_ffff]
        });
    }
    for masks in [1u32, 8, 64] {
        let mut f = Fixture::new(schema(&[("dst", MatchKind::Ternary, 32)], 1024));
        for i in 0..512u64 {
            let mask = u128::from((u32::MAX << (i as u32 % masks / 2)) & !(i as u32 % masks));
            let value = bits(32, u128::from(0x0a00_0000 + (i << 8)) & mask);
            let e = entry(
                vec![KeyMatch::Ternary {
                    value,
                    mask: bits(32, mask),
                }],
                1 + (i % 4) as i32,
                i,
            );
            let _ = f.insert(&e, 0);
        }
        let name = format!("ternary, {} entries of {masks} masks", f.table.entries());
        measure(&name, &mut f, |i| 0x0a00_0000 + ((i % 512) << 8));
    }
    let mut f = Fixture::new(schema(&[("port", MatchKind::Range, 16)], 1024));
    for i in 0..64u64 {
        let (low, high) = (
            bits(16, u128::from(i * 1000)),
            bits(16, u128::from(i * 1000 + 999)),
        );
        f.insert(&entry(vec![KeyMatch::Range { low, high }], 1, i), 0)
            .unwrap();
    }
    measure("range, 64 entries", &mut f, |i| i % 64_000);
}

fn measure(what: &str, f: &mut Fixture, key: impl Fn(u64) -> u64) {
    measure_keys(what, f, |i| [key(i)]);
}

fn measure_keys<const N: usize>(what: &str, f: &mut Fixture, key: impl Fn(u64) -> [u64; N]) {
    let rounds = 2_000_000u64;
    let mut hits = 0u64;
    let start = cpu_ns();
    for i in 0..rounds {
        hits += u64::from(f.table.lookup(&key(i), i, 1500).hit);
    }
    let each = (cpu_ns() - start) as f64 / rounds as f64;
    println!(
        "{what}: {each:.1} ns a lookup, {:.0} % hits",
        100.0 * hits as f64 / rounds as f64
    );
}
