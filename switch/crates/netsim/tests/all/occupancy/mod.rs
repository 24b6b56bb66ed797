// SPDX-License-Identifier: Apache-2.0
//! What the programs count as waiting is what waits: of each flow or VC and each port, after every step of random walks
//! through links, ports, queues, entries, programs and traffic, and nothing when nothing waits.

mod walk;

use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use walk::{
    frame, packet_out, port_config, probe, Counted, Match, Shape, Step, Walk, CPU, DROP, NOWHERE,
};
use Match::{Exact, Lpm, Ternary};

const QTHRESH: Counted = Counted {
    program: "qthresh",
    flag: "counted",
    of_slots: &[("flow_occupancy", None)],
    of_ports: &[
        ("port_occupancy", None),
        ("port_occupancy_bytes", Some("length")),
    ],
};

const GFR: Counted = Counted {
    program: "gfr",
    flag: "scheme",
    of_slots: &[("vc_cells", Some("cells"))],
    of_ports: &[("port_cells", Some("cells"))],
};

/// Runs walks that are the same at every run; one that fails is reported as short as it can be made.
fn walk(counted: &'static Counted, walks: u32, step: impl Strategy<Value = Step>) {
    let config = Config {
        cases: walks,
        failure_persistence: None,
        ..Config::default()
    };
    let random = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let steps = proptest::collection::vec(step, 1..300);
    let checked = TestRunner::new_with_rng(config, random).run(&steps, |steps| {
        let mut walk = Walk::new(counted);
        // Routes to every port, from the start.
        for (host, port) in (1..).zip([1, 2, 3, 3, NOWHERE, DROP, CPU]) {
            walk.take(&route(host, port));
        }
        for step in &steps {
            walk.take(step);
            let compared = walk.compare();
            compared.map_err(|e| TestCaseError::fail(format!("after {step:?}: {e}")))?;
        }
        walk.end().map_err(TestCaseError::fail)
    });
    checked.unwrap_or_else(|failed| panic!("{failed}"));
}

fn route(host: u8, port: u32) -> Step {
    let matches = vec![Lpm(u32::from_be_bytes([10, 0, 0, host]).into(), 32)];
    let action = ("forward", vec![0x0800_0000_0001, port.into()]);
    Step::Write("ipv4_lpm", matches, 0, Some(action))
}

fn a_port() -> impl Strategy<Value = u32> {
    select(vec![1, 2, 3, 3, 3])
}

fn any_port() -> impl Strategy<Value = u32> {
    select(vec![1, 2, 3, 3, 3, 3, NOWHERE, DROP, CPU])
}

fn a_frame() -> impl Strategy<Value = Vec<u8>> {
    let vid = || select(vec![None, None, Some(5), Some(6)]);
    let ether_type = select(vec![0x0800, 0x0800, 0x0800, 0x0800, 0x8847, 0x8864, 0x0806]);
    let ends = (
        1..6u8,
        select(vec![1, 2, 3, 3, 3, 3, 4, 5, 6, 7, 8]),
        0..4u16,
    );
    let rest = (
        select(vec![0, 2, 8 << 2, 46 << 2 | 1]),
        select(vec![60, 104, 300, 1500]),
    );
    (vid(), vid(), ether_type, ends, rest).prop_map(|(outer, inner, ether_type, ends, rest)| {
        let (src, dst, src_port) = ends;
        let (tos, len) = rest;
        let vids = [outer, outer.and(inner)];
        frame(Shape {
            vids,
            ether_type,
            src,
            dst,
            src_port,
            tos,
            len,
        })
    })
}

/// What is the same for both programs.
fn common_step() -> impl Strategy<Value = Step> {
    let action = |port: u32| Some(("l2_forward", vec![port.into()]));
    prop_oneof![
        8 => (0..20_000_000u64).prop_map(Step::Wait),
        40 => (a_port(), a_frame()).prop_map(|(port, frame)| Step::Frame(port, frame)),
        3 => (any_port(), a_frame()).prop_map(|(to, f)| Step::Frame(CPU, packet_out(to, &f))),
        2 => (any_port(), any::<u8>()).prop_map(|(to, n)| Step::Frame(CPU, packet_out(to, &probe(n)))),
        1 => (a_port(), any::<u8>()).prop_map(|(port, nonce)| Step::Frame(port, probe(nonce))),
        3 => (a_port(), any::<bool>()).prop_map(|(port, up)| Step::Link(port, up)),
        3 => (a_port(), 0..4usize, 1..30u64, 1..60u64, 0..3usize)
            .prop_map(|(port, rate, queue, all, kind)| Step::Port(port, port_config(rate, queue, all, kind))),
        2 => (1..8u8, any_port()).prop_map(|(host, port)| route(host, port)),
        2 => any_port().prop_map(move |port| {
            Step::Write("l2", vec![Ternary(0, 0), Ternary(0, 0), Ternary(0, 0)], 1, action(port))
        }),
        1 => (a_port(), 1..9u64).prop_map(|(port, frames)| Step::Lost(port, frames)),
        1 => select(vec![Step::Flush, Step::Reconcile, Step::Reload]),
    ]
}

fn maybe<T: Clone>(value: T, there: bool) -> Option<T> {
    there.then_some(value)
}

#[test]
fn flows_and_ports_count_what_waits() {
    let limit = (
        any_port(),
        1..50u64,
        select(vec![2_000, 9_000, 0xffff_ffff]),
        0..2u64,
        0..4,
    )
        .prop_map(|(port, packets, bytes, ecn, there)| {
            let action = ("set_port_limit", vec![packets, bytes, 1_000, ecn]);
            Step::Write(
                "port_limit",
                vec![Exact(port.into())],
                0,
                maybe(action, there > 0),
            )
        });
    let policy = (any_port(), 0..2u64, 1..12u64, 0..4).prop_map(|(port, class, packets, kind)| {
        let action = match kind {
            0 => None,
            1 => Some(("drop_tail", vec![])),
            _ => Some(("set_qthresh", vec![packets, 256])),
        };
        Step::Write("policy", vec![Exact(port.into()), Exact(class)], 0, action)
    });
    let class = (0..2u64, any::<bool>()).prop_map(|(class, there)| {
        let matches = vec![Ternary(0, 0), Ternary(46, 63), Ternary(0, 0)];
        Step::Write(
            "flow_class",
            matches,
            1,
            maybe(("set_class", vec![class]), there),
        )
    });
    let flow = (
        1..6u8,
        1..5u8,
        0..4u64,
        select(vec![0, 5]),
        0..6u64,
        any::<bool>(),
    )
        .prop_map(|(src, dst, src_port, vid, id, there)| {
            let address = |a, b| u64::from(u32::from_be_bytes([10, 0, a, b]));
            let ends = [address(1, src), address(0, dst), 6, src_port, 5001, vid];
            let matches = ends.map(Exact).to_vec();
            Step::Write("flow_v4", matches, 0, maybe(("set_flow", vec![id]), there))
        });
    let key = proptest::collection::vec(any::<u64>(), 11)
        .prop_map(|key| Step::Write("hash_key", vec![], 0, Some(("set_hash_key", key))));
    let step =
        prop_oneof![66 => common_step(), 8 => limit, 5 => policy, 2 => class, 6 => flow, 1 => key];
    walk(&QTHRESH, 150, step);
}

#[test]
fn vcs_and_ports_count_what_waits() {
    let scheme =
        (any_port(), 20..400u64, 0..2u64, 0..8usize).prop_map(|(port, qmax, queues, kind)| {
            let (lbo, hbo) = (qmax / 3, qmax * 2 / 3);
            let span = (1 << 32) / (hbo - lbo).max(1);
            let action = [
                None,
                Some(("drop_tail", vec![qmax, queues])),
                Some(("double_epd", vec![qmax, lbo, hbo, queues])),
                Some(("pervc_threshold", vec![qmax, lbo, hbo, queues])),
                Some(("wfba", vec![qmax, lbo, queues, 256])),
                Some((
                    "dfba",
                    vec![qmax, lbo, hbo, queues, 256, 128, span.min(u32::MAX.into())],
                )),
                Some(("proposed", vec![qmax, lbo, hbo, queues, 2, 0, 128, 0, 0])),
                Some(("proposed", vec![qmax, lbo, hbo, queues, 2, 1, 128, 1, 1000])),
            ][kind]
                .clone();
            Step::Write("port_scheme", vec![Exact(port.into())], 0, action)
        });
    let vc = (1..6u8, 0..4u64, any::<bool>()).prop_map(|(src, vc, there)| {
        let src = u64::from(u32::from_be_bytes([10, 0, 1, src]));
        let mut matches = vec![Ternary(0, 0); 5];
        matches[3] = Ternary(src, 0xffff_ffff);
        Step::Write(
            "vc_classify",
            matches,
            1,
            maybe(("set_vc", vec![vc]), there),
        )
    });
    // Queue 200 is not there.
    let share = (
        any_port(),
        1..4u64,
        0..6u64,
        select(vec![0, 1, 2, 200]),
        any::<bool>(),
    )
        .prop_map(|(port, vc, slot, queue, there)| {
            let args = vec![slot, queue, 1_000_000, 1, 20_000, 200_000, 90_000, 40];
            let action = maybe(("set_share", args), there);
            Step::Write("vc_share", vec![Exact(port.into()), Exact(vc)], 0, action)
        });
    let edge = (a_port(), 1..4u64, select(vec![200, 9_000]), any::<bool>()).prop_map(
        |(port, vc, mfs, there)| {
            let action = maybe(("set_edge", vec![mfs, 12, 1]), there);
            Step::Write("vc_edge", vec![Exact(port.into()), Exact(vc)], 0, action)
        },
    );
    let step = prop_oneof![66 => common_step(), 8 => scheme, 4 => vc, 6 => share, 2 => edge];
    walk(&GFR, 150, step);
}
