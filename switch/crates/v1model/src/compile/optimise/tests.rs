// SPDX-License-Identifier: Apache-2.0
//! A program in fewer operations, as machine code, does what it does as written: random entries, registers and packets
//! through both.

use rand::rngs::SmallRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};

use crate::bits::Bits;
use crate::bits::{ActionCall, Entry, EntryAction, EntryKey, KeyMatch};
use crate::packet::Effects;
use crate::packet::Packet;
use crate::pipeline::Engine;
use crate::pipeline::{Pipeline, Std};
use crate::schema::{ActionId, CounterId, MatchKind, RegisterId, TableId};

/// Values that fields, keys and arguments have: few, so that they meet.
const VALUES: [u64; 15] = [
    0,
    0,
    1,
    1,
    2,
    3,
    4,
    5,
    6,
    17,
    255,
    510,
    5001,
    0x0a00_0001,
    0x0a00_0002,
];

fn value(rng: &mut SmallRng, width: u32) -> Bits {
    let value = match rng.random_range(0..10) {
        0 => rng.random(),
        1 => u64::MAX,
        _ => *VALUES.choose(rng).unwrap(),
    };
    Bits::from_limbs(width, &[value, 0, 0])
}

fn call(pipeline: &Pipeline, rng: &mut SmallRng, action: ActionId) -> ActionCall {
    let params = pipeline.action_schema(action).params.clone();
    let args = params.iter().flat_map(|p| value(rng, p.width).to_limbs());
    let args = args.collect();
    ActionCall { action, args }
}

fn matches(rng: &mut SmallRng, kind: MatchKind, width: u32) -> KeyMatch {
    let value = value(rng, width);
    let two = [value.clone(), Bits::ones(width)];
    match kind {
        MatchKind::Exact => KeyMatch::Exact(value),
        MatchKind::Lpm => match rng.random_range(0..3) {
            0 => KeyMatch::Lpm {
                value: Bits::zero(width),
                prefix_len: 0,
            },
            _ => KeyMatch::Lpm {
                value,
                prefix_len: width,
            },
        },
        MatchKind::Ternary if rng.random() => KeyMatch::Ternary {
            value: Bits::zero(width),
            mask: Bits::zero(width),
        },
        MatchKind::Ternary => {
            let [value, mask] = two;
            KeyMatch::Ternary { value, mask }
        }
        MatchKind::Range => {
            let [low, high] = two;
            KeyMatch::Range { low, high }
        }
        MatchKind::Optional => KeyMatch::Optional(rng.random::<bool>().then_some(value)),
    }
}

/// The same random entries, members and registers in both.
fn fill(pipelines: &mut [Pipeline; 2], rng: &mut SmallRng) -> usize {
    let schema = pipelines[0].schema().clone();
    let mut inserted = 0;
    for profile in &schema.profiles {
        for member in 0..4 {
            let action = *profile.actions.choose(rng).unwrap();
            let call = call(&pipelines[0], rng, action);
            for pipeline in &mut *pipelines {
                let _ = pipeline
                    .profile_mut(profile.id)
                    .insert_member(member, &call);
            }
        }
    }
    for table in schema.tables.iter().filter(|t| !t.keys.is_empty()) {
        for priority in 1..=40 {
            let keys = table.keys.iter();
            let key = EntryKey {
                matches: keys.map(|k| matches(rng, k.kind, k.width)).collect(),
                priority: if table.needs_priority() { priority } else { 0 },
            };
            let action = *table.actions.choose(rng).unwrap();
            let action = match table.profile {
                Some(_) => EntryAction::Member(rng.random_range(0..4)),
                None => EntryAction::Direct(call(&pipelines[0], rng, action)),
            };
            let entry = Entry {
                key,
                action,
                idle_timeout: 0,
                cookie: 0,
            };
            let done = pipelines
                .each_mut()
                .map(|p| p.table_insert(table.id, &entry, 0).is_ok());
            assert_eq!(done[0], done[1]);
            inserted += usize::from(done[0]);
        }
    }
    for register in &schema.registers {
        for index in (0..register.size).take(600) {
            let value = value(rng, register.width);
            for pipeline in &mut *pipelines {
                pipeline.register_set(register.id, index, &value).unwrap();
            }
        }
    }
    inserted
}

/// Ethernet, perhaps a VLAN tag, IPv4 or IPv6, TCP or UDP, nearly right; or just bytes.
fn frame(rng: &mut SmallRng) -> Vec<u8> {
    if rng.random_range(0..8) == 0 {
        let n = rng.random_range(0..60);
        return (0..n).map(|_| *VALUES.choose(rng).unwrap() as u8).collect();
    }
    let mut f: Vec<u8> = vec![8, 0, 0, 0, 1, 1, 8, 0, 0, 0, 1, 2];
    if rng.random_range(0..5) == 0 {
        f.extend([0x81, 0, rng.random(), 1]);
    }
    let four = |rng: &mut SmallRng| (*VALUES.choose(rng).unwrap() as u32).to_be_bytes();
    let protocol = *[6u8, 6, 6, 17, 1].choose(rng).unwrap();
    let data = *[0usize, 0, 7, 100].choose(rng).unwrap();
    let transport = match protocol {
        6 => 20 + data,
        17 => 8 + data,
        _ => data,
    };
    let ttl = *[64u8, 64, 64, 2, 1].choose(rng).unwrap();
    if rng.random_range(0..4) == 0 {
        f.extend([0x86, 0xdd, 0x60, 0, 0, 0]);
        f.extend((transport as u16).to_be_bytes());
        f.extend([protocol, ttl]);
        for _ in 0..2 {
            f.extend([0; 12]);
            f.extend(four(rng));
        }
    } else {
        f.extend([8, 0]);
        let at = f.len();
        let options = [0, 0, 0, 2][rng.random_range(0..4)];
        f.extend([0x45 + options as u8, 0]);
        let length = 20 + options * 4 + transport - usize::from(rng.random_range(0..20) == 0);
        f.extend((length as u16).to_be_bytes());
        f.extend([
            0,
            0,
            0,
            [0, 0, 0, 9][rng.random_range(0..4)],
            ttl,
            protocol,
            0,
            0,
        ]);
        f.extend(four(rng));
        f.extend(four(rng));
        f.extend(vec![1; options * 4]);
        let sum = checksum::csum16(&f[at..]);
        f[at + 10..at + 12].copy_from_slice(&sum.to_be_bytes());
    }
    let ports = [four(rng), four(rng)];
    f.extend(ports.iter().flat_map(|p| [p[2], p[3]]));
    match protocol {
        6 => {
            f.extend(four(rng));
            f.extend(four(rng));
            f.extend([0x50, rng.random(), 1, 0, 0, 0, 0, 0]);
        }
        _ => f.extend([0, 8, 0, 0]),
    }
    f.extend(vec![0; data]);
    // Cut short, or one bit wrong.
    match rng.random_range(0..20) {
        0 => f.truncate(rng.random_range(0..f.len())),
        1 => {
            let at = rng.random_range(0..f.len());
            f[at] ^= 1 << rng.random_range(0..8);
        }
        _ => {}
    }
    f
}

/// All that a program's user can see of a packet.
fn seen(pipeline: &Pipeline, packet: &Packet, fx: &Effects) -> String {
    let slots: Vec<u64> = pipeline
        .visible_slots()
        .into_iter()
        .map(|s| packet.slots[s])
        .collect();
    format!(
        "{slots:?} {:?} {:?} {} {} {} {fx:?}",
        packet.frame(),
        packet.payload(),
        packet.parsed,
        packet.length_bytes,
        packet.truncate_bytes
    )
}

/// One packet through everything; true when ingress does not drop it.
fn pass(
    pipeline: &mut Pipeline,
    packet: &mut Packet,
    frame: &[u8],
    port: u64,
    now: u64,
    seen_at: &mut Vec<String>,
) -> bool {
    let mut fx = Effects::new();
    fx.log.enabled = true;
    packet.load(frame);
    pipeline.reset(packet);
    pipeline.std_set(packet, Std::IngressPort, port);
    pipeline.std_set(packet, Std::PacketLength, frame.len() as u64);
    pipeline.std_set(packet, Std::IngressGlobalTimestamp, now / 1_000);
    pipeline.parse(packet, &mut fx);
    seen_at.push(seen(pipeline, packet, &fx));
    fx.clear();
    pipeline.ingress(packet, now, &mut fx);
    seen_at.push(seen(pipeline, packet, &fx));
    let to = pipeline.std_get(packet, Std::EgressSpec);
    fx.clear();
    pipeline.std_set(packet, Std::EgressPort, to);
    pipeline.std_set(packet, Std::EgressGlobalTimestamp, now / 1_000 + 7);
    pipeline.egress(packet, now + 7_000, &mut fx);
    seen_at.push(seen(pipeline, packet, &fx));
    fx.clear();
    pipeline.deparse_with(packet, &mut fx);
    seen_at.push(seen(pipeline, packet, &fx));
    to != u64::from(pipeline.drop_port())
}

/// Registers, counters and tables' counts.
fn state(pipeline: &Pipeline) -> String {
    let schema = pipeline.schema();
    let mut out = String::new();
    for (i, register) in schema.registers.iter().enumerate() {
        let values = (0..register.size).map(|at| {
            let value = pipeline.register_get(RegisterId(i as u32), at).unwrap();
            (at, value)
        });
        let some: Vec<_> = values.filter(|(_, v)| !v.is_zero()).collect();
        out += &format!("{} {some:?}\n", register.name);
    }
    for (i, counter) in schema.counters.iter().enumerate() {
        let counts = (0..counter.size)
            .map(|at| (at, pipeline.counter_get(CounterId(i as u32), at).unwrap()));
        let some: Vec<_> = counts.filter(|(_, count)| *count != (0, 0)).collect();
        out += &format!("{} {some:?}\n", counter.name);
    }
    for (i, table) in schema.tables.iter().enumerate() {
        let stats = pipeline.table(TableId(i as u32)).default_stats();
        out += &format!("{} {stats:?}\n", table.name);
        let mut entries = Vec::new();
        pipeline.table_scan(table.id, 0, usize::MAX, &mut entries);
        out += &format!("{entries:?}\n");
    }
    out
}

/// The same packets through a program as it is written, by the interpreter, and as it is optimised, by machine code;
/// entries inserted, packets that ingress does not drop.
fn compare(json: &[u8], packets: usize, seed: u64) -> (usize, usize) {
    let mut rng = SmallRng::seed_from_u64(seed);
    let load = || Pipeline::from_json(json).unwrap();
    let mut both = [load(), load()];
    assert!(both[0].set_engine(Engine::Interpreter));
    // There is none where tests are for the interpreter alone.
    let native = both[1].not_native();
    assert!(native.is_none(), "{native:?}");
    let inserted = fill(&mut both, &mut rng);
    let mut buffers = both.each_ref().map(|p| p.new_packet());
    let mut forwarded = 0;
    let mut now = 1_000_000;
    for n in 0..packets {
        now += rng.random_range(0..2_000_000);
        let (frame, port) = (
            frame(&mut rng),
            *[1, 1, 2, 3, 510].choose(&mut rng).unwrap(),
        );
        let mut seen = [Vec::new(), Vec::new()];
        for ((pipeline, packet), seen) in both.iter_mut().zip(&mut buffers).zip(&mut seen) {
            forwarded += usize::from(pass(pipeline, packet, &frame, port, now, seen));
        }
        let stages = ["parse", "ingress", "egress", "deparse"];
        for (stage, (written, optimised)) in stages.iter().zip(seen[0].iter().zip(&seen[1])) {
            assert_eq!(
                written, optimised,
                "packet {n} after {stage}: {frame:02x?} from {port}"
            );
        }
    }
    assert_eq!(state(&both[0]), state(&both[1]));
    (inserted, forwarded / 2)
}

fn program(path: &str) -> Vec<u8> {
    std::fs::read(format!("{}/{path}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

#[test]
fn compiled_programs_do_what_they_do_as_written() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../p4src/compiled");
    let mut programs = 0;
    for file in std::fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        if path.extension().is_none_or(|e| e != "json") || path.ends_with("manifest.json") {
            continue;
        }
        let json = std::fs::read(&path).unwrap();
        for seed in 1..=4 {
            let (inserted, forwarded) = compare(&json, 500, seed);
            assert!(inserted > 50, "{path:?}: {inserted} entries");
            assert!(
                (25..475).contains(&forwarded),
                "{path:?}: {forwarded} forwarded"
            );
        }
        programs += 1;
    }
    assert!(programs > 0);
}

#[test]
fn test_programs_do_what_they_do_as_written() {
    for name in ["headers", "meters", "profiles", "state", "value_sets"] {
        let json = program(&format!("tests/p4/compiled/{name}.json"));
        for seed in 1..=4 {
            compare(&json, 300, seed);
        }
    }
}
