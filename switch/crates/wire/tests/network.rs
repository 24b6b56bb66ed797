// SPDX-License-Identifier: Apache-2.0
//! Links in virtual time: frames cross to the other end, its memory is bounded, and steady state allocates nothing.

#[path = "../../traffic/tests/counting/mod.rs"]
mod counting;

use counting::allocations;
use fabric::Sink;
use traffic::link::LinkOptions;
use wire::config::parse;
use wire::network::{Departure, LinkPlan, Network, Progress};

/// Links between interfaces: link `i` from `2 * i` to the next.
fn network(links: usize, settings: &str, frames: usize) -> Network {
    let text = format!(
        r#"{{"links": [{{"name": "l", "a": {{"interface": "x"}}, "b": {{"interface": "y"}}, "a_to_b": {settings}, "b_to_a": {settings}}}]}}"#
    );
    let options: [LinkOptions; 2] = parse(&text).unwrap().links.remove(0).options;
    let names: Vec<String> = (0..links).map(|i| format!("l{i}")).collect();
    let plan = |(i, name): (u32, _)| LinkPlan {
        name,
        ends: [Sink::Interface(2 * i), Sink::Interface(2 * i + 1)],
        options: &options,
    };
    let plans: Vec<LinkPlan<'_>> = (0..)
        .zip(names.iter().map(String::as_str))
        .map(plan)
        .collect();
    Network::new(&plans, 0, 1, frames).unwrap()
}

fn advance(network: &mut Network, now: u64, out: &mut Vec<Departure>) -> Progress {
    network.advance(now, now, &mut 1_000_000, out)
}

/// All that is due by `now`: interface and first byte.
fn take(network: &mut Network, now: u64) -> Vec<(u32, u8)> {
    let mut taken = Vec::new();
    let mut out: Vec<Departure> = Vec::with_capacity(4);
    loop {
        let progress = advance(network, now, &mut out);
        for departure in out.drain(..) {
            taken.push((departure.interface, network.frame(departure)[0]));
            network.sent(departure, false);
        }
        if progress == Progress::Done {
            return taken;
        }
    }
}

#[test]
fn frames_come_out_at_the_other_end_of_their_own_link() {
    let mut network = network(3, r#"{"delay_us": 1000}"#, 64);
    for port in 0..6 {
        network.offer(port, 100 * port as u64, &[port as u8; 60]);
    }
    assert_eq!(network.next_event(), Some(1_000_000));
    assert_eq!(take(&mut network, 999_999), []);
    assert_eq!(take(&mut network, 1_000_000), [(1, 0)]);
    let mut rest = take(&mut network, 2_000_000);
    rest.sort_unstable();
    assert_eq!(rest, [(0, 1), (2, 3), (3, 2), (4, 5), (5, 4)]);
    assert_eq!(network.next_event(), None);
    assert_eq!(network.frames().0, 0);
}

#[test]
fn lost_and_refused_frames_give_their_memory_back() {
    let settings = r#"{"loss": 0.5, "rate_bps": 1000000, "queue_packets": 3}"#;
    let mut network = network(1, settings, 64);
    for k in 0..10_000u64 {
        network.offer(0, k * 100_000, &[0; 100]);
        take(&mut network, k * 100_000);
    }
    take(&mut network, 1 << 60);
    let stats = *network.direction(0).0.link.stats();
    assert!(stats.dropped_loss > 100 && stats.dropped_queue_full > 100);
    assert_eq!(stats.delivered_packets + stats.dropped_packets(), 10_000);
    assert_eq!(network.frames().0, 0);
}

#[test]
fn frames_that_find_all_memory_in_use_are_counted() {
    let mut network = network(1, r#"{"delay_us": 1000}"#, 8);
    for _ in 0..10 {
        network.offer(0, 0, &[0; 60]);
    }
    assert_eq!(network.direction(0).0.dropped_no_memory, 2);
    assert_eq!(take(&mut network, 1_000_000).len(), 8);
}

#[test]
fn a_busy_direction_does_not_keep_the_others_waiting() {
    let mut network = network(2, "{}", 64);
    for _ in 0..20 {
        network.offer(0, 0, &[0; 60]);
    }
    network.offer(2, 0, &[2; 60]);
    let mut out: Vec<Departure> = Vec::with_capacity(4);
    assert_eq!(advance(&mut network, 0, &mut out), Progress::Full);
    assert!(out.iter().all(|departure| departure.interface == 1));
    out.clear();
    assert_eq!(advance(&mut network, 0, &mut out), Progress::Full);
    assert_eq!(out[0].interface, 3, "the other link is next");
}

#[test]
fn lateness_is_what_the_caller_was_late() {
    let mut network = network(1, r#"{"delay_us": 1000}"#, 8);
    network.offer(0, 0, &[0; 60]);
    take(&mut network, 1_030_000);
    assert_eq!(network.direction(0).1.lateness.max(), 30_000);
}

#[test]
fn steady_state_allocates_nothing() {
    let settings = r#"{"delay_us": 2000, "jitter_us": 500, "rate_bps": 50000000, "loss": 0.01, "ber": 1e-5, "queue_packets": 100}"#;
    let mut network = network(50, settings, 4096);
    let mut out: Vec<Departure> = Vec::with_capacity(64);
    let mut now = 0;
    let mut delivered = 0u64;
    let mut run = |rounds: u64| {
        for k in 0..rounds {
            now += 3_000;
            network.offer((k * 7 % 100) as usize, now, &[0; 1000]);
            advance(&mut network, now, &mut out);
            delivered += out.len() as u64;
            for departure in out.drain(..) {
                network.sent(departure, false);
            }
        }
    };
    run(20_000);
    let before = allocations();
    run(200_000);
    let after = allocations();
    assert!(delivered > 150_000, "{delivered}");
    assert_eq!(after - before, 0, "allocations in 200,000 frames");
}

#[test]
fn frames_that_go_round_for_ever_give_all_else_its_turn() {
    let mut network = network(1, "{}", 8);
    network.offer(0, 0, &[0; 60]);
    let mut out = Vec::with_capacity(4);
    assert_eq!(network.advance(0, 0, &mut 0, &mut out), Progress::Busy);
    assert_eq!(network.advance(0, 0, &mut 1, &mut out), Progress::Done);
    assert_eq!(out.len(), 1);
}
