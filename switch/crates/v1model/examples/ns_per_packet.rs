// SPDX-License-Identifier: Apache-2.0
//! Prints the nanoseconds that one packet takes in the pipeline alone, stage by stage, with 1 to 1,000,000 flows: by machine code, and
//! by the interpreter. Both take turns, batch by batch; `ratio` is the median of each turn's quotient, `low` and `high` its 95 %
//! interval.
//!
//! `cargo run --release -p v1model --example ns_per_packet [-- PROGRAM.json [FLOWS]]`; the default program is qthresh, whose
//! tables are then filled so that a packet takes its longest way: route, port limit, class, flow, threshold, admission. Beyond 65,536
//! flows its table of flows is made larger, and flows share their slots in the registers.
//! gfr.json has VCs instead of flows (6 and 1,000 when no number is given), one source address each: `core` is classification, share,
//! the proposed scheme's admission and its rate; `edge` polices the VCs too. Every seventh frame is marked.
//! ena.json has flows over a satellite link (1,000): `plain` is forwarding only, TCP's checksum verified all the same; `data` and
//! `acks` are good segments from the far side and ACKs to it; `errors` are corrupted ones that become ACKs, `marks` ACKs that get the option. `long` and `full` are `plain` and `data` of 1,514 bytes.

use std::hint::black_box;
use std::time::Instant;

use v1model::{
    ActionCall, Bits, Effects, Engine, Entry, EntryAction, EntryKey, KeyMatch, MatchKind, Packet,
    Pipeline, Std,
};

const PORT_OUT: u64 = 2;
/// Of qthresh.p4.
const FLOW_SLOTS: usize = 65_536;

fn main() {
    let default = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../../p4src/compiled/qthresh.json"
    );
    let path = std::env::args()
        .nth(1)
        .unwrap_or_else(|| default.to_string());
    let json = std::fs::read(&path).unwrap_or_else(|e| panic!("{path}: {e}"));
    let start = cpu_ns();
    let loaded = Pipeline::from_json(&json).unwrap_or_else(|e| panic!("{path}: {e}"));
    println!(
        "{path}: loaded in {:.1} ms",
        (cpu_ns() - start) as f64 / 1e6
    );
    drop(loaded);
    println!(
        "{:>8} {:>7} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9} {:>11} {:>6} {:>6} {:>6}",
        "flows",
        "path",
        "total ns",
        "load",
        "parse",
        "ingress",
        "egress",
        "deparse",
        "interpreter",
        "ratio",
        "low",
        "high"
    );
    let chosen = std::env::args()
        .nth(2)
        .map(|n| vec![n.parse().expect("a number of flows")]);
    let is_gfr = Pipeline::from_json(&json)
        .is_ok_and(|p| p.find_table("GfrIngress.port_scheme.port_scheme").is_some());
    if is_gfr {
        for vcs in chosen.unwrap_or(vec![6usize, 1_000]) {
            let mut pipeline = Pipeline::from_json(&json).unwrap_or_else(|e| panic!("{path}: {e}"));
            gfr(&mut pipeline, vcs);
            run(&mut pipeline, vcs, "core");
            gfr_edges(&mut pipeline, vcs);
            run(&mut pipeline, vcs, "edge");
        }
        return;
    }
    if Pipeline::from_json(&json).is_ok_and(|p| p.find_table(ENA_IN).is_some()) {
        for flows in chosen.unwrap_or(vec![1_000]) {
            let mut pipeline = Pipeline::from_json(&json).unwrap_or_else(|e| panic!("{path}: {e}"));
            ena(&mut pipeline, flows);
        }
        return;
    }
    for flows in chosen.unwrap_or(vec![1usize, 10, 1_000, FLOW_SLOTS, 1_000_000]) {
        let size = |flows: usize| format!("\"max_size\" : {flows},");
        let text = String::from_utf8_lossy(&json);
        let json = text.replace(&size(FLOW_SLOTS), &size(flows.max(FLOW_SLOTS)));
        let mut pipeline =
            Pipeline::from_json(json.as_bytes()).unwrap_or_else(|e| panic!("{path}: {e}"));
        if pipeline.find_table("LaneIngress.flow.flow_v4").is_none() {
            run(&mut pipeline, flows, "as is");
            continue;
        }
        routes(&mut pipeline);
        run(&mut pipeline, flows, "plain");
        limits(&mut pipeline);
        for flow in 0..flows {
            insert_flow(&mut pipeline, flow);
        }
        run(&mut pipeline, flows, "counted");
    }
}

fn insert(pipeline: &mut Pipeline, table: &str, matches: &[u64], action: &str, args: &[u64]) {
    let id = pipeline
        .find_table(table)
        .unwrap_or_else(|| panic!("no table {table}"));
    let keys = pipeline.table_schema(id).keys.clone();
    let mut out = Vec::new();
    for (key, &value) in keys.iter().zip(matches) {
        let bits = Bits::from_u64(key.width, value).expect("fits");
        out.push(match key.kind {
            MatchKind::Exact => KeyMatch::Exact(bits),
            MatchKind::Lpm => KeyMatch::Lpm {
                value: bits,
                prefix_len: 8,
            },
            // 0 stands for "any".
            MatchKind::Ternary => KeyMatch::Ternary {
                mask: if value == 0 {
                    bits.clone()
                } else {
                    Bits::from_u64(key.width, u64::MAX >> (64 - key.width)).expect("fits")
                },
                value: bits,
            },
            _ => panic!("{table}: not needed here"),
        });
    }
    let action = pipeline
        .table_action(id, action)
        .unwrap_or_else(|| panic!("no action {action}"));
    let params = pipeline.action_schema(action).params.clone();
    let args = params
        .iter()
        .zip(args)
        .flat_map(|(p, &v)| Bits::from_u64(p.width, v).expect("fits").to_limbs())
        .collect();
    let entry = Entry {
        key: EntryKey {
            matches: out,
            priority: i32::from(
                keys.iter()
                    .any(|key| matches!(key.kind, MatchKind::Ternary)),
            ),
        },
        action: EntryAction::Direct(ActionCall { action, args }),
        idle_timeout: 0,
        cookie: 0,
    };
    pipeline
        .table_insert(id, &entry, 0)
        .unwrap_or_else(|e| panic!("{table}: {e}"));
}

fn routes(pipeline: &mut Pipeline) {
    let forward = "LaneIngress.route.forward";
    insert(
        pipeline,
        "LaneIngress.route.ipv4_lpm",
        &[10 << 24],
        forward,
        &[0x0800_0000_0202, PORT_OUT],
    );
}

fn limits(pipeline: &mut Pipeline) {
    let limit = "LaneIngress.port_limit.set_port_limit";
    insert(
        pipeline,
        "LaneIngress.port_limit.port_limit",
        &[PORT_OUT],
        limit,
        &[1000, 1 << 30, 1_000_000, 0],
    );
    let threshold = "LaneIngress.policy.set_qthresh";
    insert(
        pipeline,
        "LaneIngress.policy.policy",
        &[PORT_OUT, 0],
        threshold,
        &[1000, 1],
    );
}

fn insert_flow(pipeline: &mut Pipeline, flow: usize) {
    let (src, dst, src_port) = addresses(flow);
    let table = "LaneIngress.flow.flow_v4";
    insert(
        pipeline,
        table,
        &[src, dst, 6, src_port, 5001, 0],
        "LaneIngress.flow.set_flow",
        &[(flow % FLOW_SLOTS) as u64],
    );
}

/// Port 2 by the proposed scheme, a VC for each source address.
fn gfr(pipeline: &mut Pipeline, vcs: usize) {
    insert(
        pipeline,
        "GfrIngress.route.ipv4_lpm",
        &[10 << 24],
        "GfrIngress.route.forward",
        &[0x0800_0000_0202, PORT_OUT],
    );
    insert(
        pipeline,
        "GfrIngress.port_scheme.port_scheme",
        &[PORT_OUT],
        "GfrIngress.port_scheme.proposed",
        &[4000, 1000, 3000, 1, vcs as u64, 0, 0, 0, 0],
    );
    insert(
        pipeline,
        "GfrIngress.vc.clp_mark",
        &[12, 0],
        "GfrIngress.vc.set_clp",
        &[1],
    );
    for vc in 0..vcs as u64 {
        insert(
            pipeline,
            "GfrIngress.vc.vc_classify",
            &[0, 0, 0, (10 << 24) + 0x10000 + vc, 0],
            "GfrIngress.vc.set_vc",
            &[vc + 1],
        );
        insert(
            pipeline,
            "GfrIngress.vc.vc_share",
            &[PORT_OUT, vc + 1],
            "GfrIngress.vc.set_share",
            &[vc, vc, 8_000_000, 8_000_000, 6553, 655_360, 72_818, 200],
        );
    }
}

fn gfr_edges(pipeline: &mut Pipeline, vcs: usize) {
    for vc in 1..=vcs as u64 {
        let key = [1, vc];
        insert(
            pipeline,
            "GfrIngress.edge.vc_edge",
            &key,
            "GfrIngress.edge.set_edge",
            &[1514, 12, 1],
        );
        for (table, action) in [
            ("GfrIngress.edge.vc_police", "GfrIngress.edge.police"),
            (
                "GfrIngress.edge.vc_police_marked",
                "GfrIngress.edge.police_marked",
            ),
        ] {
            insert(pipeline, table, &key, action, &[]);
        }
    }
}

const ENA_IN: &str = "EnaIngress.from_satellite.far_side_in";
const ENA_OUT: &str = "EnaIngress.to_satellite.far_side_out";

/// Port 1 is the far side of a satellite link, where the flows' data comes from and their ACKs go to.
fn ena(pipeline: &mut Pipeline, flows: usize) {
    let forward = "EnaIngress.route.forward";
    let lpm = "EnaIngress.route.ipv4_lpm";
    insert(
        pipeline,
        lpm,
        &[10 << 24],
        forward,
        &[0x0800_0000_0202, PORT_OUT],
    );
    let of = |payload, backwards| move |flow| segment(flow, payload, backwards);
    run_frames(pipeline, flows, of(60, false), "plain");
    run_frames(pipeline, flows, of(1460, false), "long");
    insert(
        pipeline,
        ENA_IN,
        &[1],
        "EnaIngress.from_satellite.check_segments",
        &[],
    );
    insert(
        pipeline,
        ENA_OUT,
        &[PORT_OUT],
        "EnaIngress.to_satellite.mark_acks",
        &[],
    );
    run_frames(pipeline, flows, of(0, true), "acks");
    run_frames(pipeline, flows, of(60, false), "data");
    run_frames(pipeline, flows, of(1460, false), "full");
    let bad = |flow| {
        let mut frame = segment(flow, 60, false);
        frame[113] ^= 1;
        frame
    };
    run_frames(pipeline, flows, bad, "errors");
    run_frames(pipeline, flows, of(0, true), "marks");
}

/// A TCP segment without options, both checksums right; backwards from the receiver, acknowledging nothing new.
fn segment(flow: usize, payload: usize, backwards: bool) -> Vec<u8> {
    let mut f = frame(flow);
    f.resize(54 + payload, 0x5a);
    f[54..].fill(0x5a);
    f[16..18].copy_from_slice(&(40 + payload as u16).to_be_bytes());
    if backwards {
        let (ends, ports) = (f[26..34].to_vec(), f[34..38].to_vec());
        f[26..30].copy_from_slice(&ends[4..]);
        f[30..34].copy_from_slice(&ends[..4]);
        f[34..36].copy_from_slice(&ports[2..]);
        f[36..38].copy_from_slice(&ports[..2]);
    }
    f[48..50].copy_from_slice(&60_000u16.to_be_bytes());
    f[24..26].fill(0);
    let sum = checksum(&f[14..34]);
    f[24..26].copy_from_slice(&sum.to_be_bytes());
    let mut pseudo = f[26..34].to_vec();
    pseudo.extend([0, 6]);
    pseudo.extend((20 + payload as u16).to_be_bytes());
    pseudo.extend(&f[34..]);
    let sum = checksum(&pseudo);
    f[50..52].copy_from_slice(&sum.to_be_bytes());
    f
}

/// Source, destination, source port.
fn addresses(flow: usize) -> (u64, u64, u64) {
    (
        (10 << 24) + 0x100 + (flow as u64 >> 12),
        (10 << 24) + 0x201,
        10_000 + (flow as u64 & 0xfff),
    )
}

fn checksum(header: &[u8]) -> u16 {
    ::checksum::csum16(header)
}

/// A TCP data segment of 100 bytes.
fn frame(flow: usize) -> Vec<u8> {
    let (src, dst, src_port) = addresses(flow);
    let mut f = vec![0u8; 114];
    f[..6].copy_from_slice(&[8, 0, 0, 0, 1, 1]);
    f[6..12].copy_from_slice(&[8, 0, 0, 0, 1, 0x11]);
    f[12..14].copy_from_slice(&0x0800u16.to_be_bytes());
    f[14] = 0x45;
    f[16..18].copy_from_slice(&100u16.to_be_bytes());
    f[22] = 64;
    f[23] = 6;
    f[26..30].copy_from_slice(&(src as u32).to_be_bytes());
    f[30..34].copy_from_slice(&(dst as u32).to_be_bytes());
    let sum = checksum(&f[14..34]);
    f[24..26].copy_from_slice(&sum.to_be_bytes());
    f[34..36].copy_from_slice(&(src_port as u16).to_be_bytes());
    f[36..38].copy_from_slice(&5001u16.to_be_bytes());
    f[46] = 0x50;
    f[47] = 0x10;
    f
}

/// CPU time of this thread, ns: other processes of a busy machine do not count.
fn cpu_ns() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the pointer is to a valid timespec.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Packets between two looks at the clock.
const BATCH: usize = 1_000;
const BATCHES: usize = 400;

/// Packets that are parsed ahead where tables are large, as the switch does with frames that came in one behind the other.
const AHEAD: usize = 3;

/// A batch of packets, `N` in work at a time; how many are sent.
fn forward_all<const N: usize>(
    pipeline: &mut Pipeline,
    packets: &mut [Box<Packet>; AHEAD],
    fx: &mut Effects,
    frames: &[Vec<u8>],
    now: u64,
) -> u64 {
    let mut sent = 0;
    for at in 0..frames.len() + N - 1 {
        if let Some(frame) = frames.get(at) {
            let packet = &mut packets[at % N];
            receive(pipeline, packet, frame, now + 1_000 * at as u64, |_| {});
            fx.clear();
            pipeline.parse(packet, fx);
        }
        if let Some(warm) = at.checked_sub(N / 2).filter(|&n| n < frames.len()) {
            pipeline.warm(&mut packets[warm % N]);
        }
        if let Some(handled) = at.checked_sub(N - 1) {
            let packet = &mut packets[handled % N];
            handle(pipeline, packet, fx, now + 1_000 * handled as u64, |_| {});
            sent += u64::from(pipeline.std_get(packet, Std::EgressSpec) != 511);
        }
    }
    sent
}

/// A packet from reception to the parser; `stage` is called after each stage.
fn receive(
    pipeline: &mut Pipeline,
    packet: &mut Packet,
    frame: &[u8],
    now: u64,
    mut stage: impl FnMut(usize),
) {
    stage(0);
    packet.load(frame);
    pipeline.reset(packet);
    pipeline.std_set(packet, Std::IngressPort, 1);
    pipeline.std_set(packet, Std::PacketLength, frame.len() as u64);
    pipeline.std_set(packet, Std::IngressGlobalTimestamp, now / 1_000);
    stage(1);
}

/// A parsed packet to the frame to be sent.
fn handle(
    pipeline: &mut Pipeline,
    packet: &mut Packet,
    fx: &mut Effects,
    now: u64,
    mut stage: impl FnMut(usize),
) {
    stage(2);
    fx.clear();
    pipeline.ingress(packet, now, fx);
    stage(3);
    fx.clear();
    pipeline.std_set(packet, Std::EgressPort, PORT_OUT);
    pipeline.egress(packet, now, fx);
    stage(4);
    pipeline.deparse_with(packet, fx);
    stage(5);
    black_box(packet.frame());
}

fn median(samples: &mut [f64]) -> f64 {
    samples.sort_unstable_by(f64::total_cmp);
    samples[samples.len() / 2]
}

fn run(pipeline: &mut Pipeline, flows: usize, what: &str) {
    let of_vc = |vc: usize| {
        let mut frame = frame(vc);
        frame[26..30].copy_from_slice(&((10u32 << 24) + 0x10000 + vc as u32).to_be_bytes());
        frame[15] = if vc % 7 == 6 { 12 << 2 } else { 10 << 2 };
        frame[24..26].fill(0);
        let sum = checksum(&frame[14..34]);
        frame[24..26].copy_from_slice(&sum.to_be_bytes());
        frame
    };
    match what {
        "core" | "edge" => run_frames(pipeline, flows, of_vc, what),
        _ => run_frames(pipeline, flows, frame, what),
    }
}

/// One line of the table: a frame of each flow, over and over, in an order that no prefetcher guesses. A batch's frames are made
/// before it, and so in the cache, as those are that a network card just received.
fn run_frames(pipeline: &mut Pipeline, flows: usize, frame: impl Fn(usize) -> Vec<u8>, what: &str) {
    let mut made = 0;
    let mut batch_of = |count: usize| -> Vec<Vec<u8>> {
        made += count;
        let order = (made - count..made).map(|i| i % flows * 40_503 % flows);
        order.map(&frame).collect()
    };
    let mut packets = [(); AHEAD].map(|()| pipeline.new_packet());
    let mut fx = Effects::new();
    let mut now = 1_000_000u64;
    let (mut sent, mut totals) = (0u64, [Vec::new(), Vec::new()]);
    for batch in 0..2 * BATCHES {
        let engine = [Engine::Native, Engine::Interpreter][batch % 2];
        assert!(pipeline.set_engine(engine), "{:?}", pipeline.not_native());
        let frames = batch_of(BATCH);
        let start = cpu_ns();
        let all = match pipeline.warm_pays() {
            true => forward_all::<AHEAD>,
            false => forward_all::<1>,
        };
        sent += all(pipeline, &mut packets, &mut fx, &frames, now);
        now += 1_000 * BATCH as u64;
        totals[batch % 2].push((cpu_ns() - start) as f64 / BATCH as f64);
    }
    assert!(
        what == "as is" || sent == (2 * BATCH * BATCHES) as u64,
        "{sent} packets are forwarded, not all"
    );
    let turns = totals[0].iter().zip(&totals[1]);
    let mut ratios: Vec<f64> = turns
        .map(|(native, interpreter)| interpreter / native)
        .collect();
    let ratio = median(&mut ratios);
    // Of sorted values, the true median lies between these with a probability of 95 %.
    let spread = (0.98 * (BATCHES as f64).sqrt()) as usize;
    let (low, high) = (
        ratios[BATCHES / 2 - spread - 1],
        ratios[BATCHES / 2 + spread],
    );
    assert!(pipeline.set_engine(Engine::Native));
    // The stages one by one, less what reading the clock takes; the median knows no interruptions.
    let mut stages = [const { Vec::new() }; 6];
    for frame in (0..20).flat_map(|_| batch_of(BATCH)) {
        now += 1_000;
        let mut at = [Instant::now(); 7];
        let mut stage = |stage: usize| at[stage] = Instant::now();
        let packet = &mut packets[0];
        receive(pipeline, packet, &frame, now, &mut stage);
        fx.clear();
        pipeline.parse(packet, &mut fx);
        handle(pipeline, packet, &mut fx, now, &mut stage);
        at[6] = Instant::now();
        for (i, samples) in stages.iter_mut().enumerate() {
            samples.push((at[i + 1] - at[i]).as_nanos() as f64);
        }
    }
    let clock = median(&mut stages[5]);
    let stage: Vec<String> = stages[..5]
        .iter_mut()
        .map(|s| format!("{:>9.0}", (median(s) - clock).max(0.0)))
        .collect();
    println!(
        "{flows:>8} {what:>7} {:>9.1} {} {:>11.1} {ratio:>6.2} {low:>6.2} {high:>6.2}",
        median(&mut totals[0]),
        stage.join(" "),
        median(&mut totals[1])
    );
}
