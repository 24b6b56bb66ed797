// SPDX-License-Identifier: Apache-2.0
//! Links in virtual time: frames cross to the other end, its memory is bounded, and steady state allocates nothing.

#[path = "../../traffic/tests/counting/mod.rs"]
mod counting;
mod outbox;

use counting::allocations;
use fabric::Sink;
use outbox::{offer, take, Left};
use traffic::link::{Link, LinkStreams};
use wire::config::parse;
use wire::network::Network;

/// Links between interfaces: link `i` from `2 * i` to the next.
fn network(links: usize, settings: &str, frames: usize) -> Network {
    let text = format!(
        r#"{{"links": [{{"name": "l", "a": {{"interface": "x"}}, "b": {{"interface": "y"}}, "a_to_b": {settings}, "b_to_a": {settings}}}]}}"#
    );
    let link = parse(&text).unwrap().links.remove(0);
    let mut network = Network::new(0, 1, frames);
    for i in 0..links as u32 {
        let ends = [2 * i, 2 * i + 1].map(Sink::Interface);
        let options = [&link.a_to_b, &link.b_to_a];
        network.add_link(&format!("l{i}"), ends, options).unwrap();
    }
    network
}

#[test]
fn frames_come_out_at_the_other_end_of_their_own_link() {
    let mut network = network(3, r#"{"delay_us": 1000}"#, 64);
    for port in 0..6 {
        offer(&mut network, port, 100 * port as u64, &[port as u8; 60]);
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
        offer(&mut network, 0, k * 100_000, &[0; 100]);
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
        offer(&mut network, 0, 0, &[0; 60]);
    }
    assert_eq!(network.direction(0).0.dropped_no_memory, 2);
    assert_eq!(take(&mut network, 1_000_000).len(), 8);
}

#[test]
fn a_busy_direction_does_not_keep_the_others_waiting() {
    let mut network = network(2, r#"{"delay_us": 1000}"#, 256);
    for _ in 0..200 {
        offer(&mut network, 0, 0, &[0; 60]);
    }
    offer(&mut network, 2, 0, &[2; 60]);
    let left = take(&mut network, 1_000_000);
    let other = left.iter().position(|one| *one == (3, 2));
    assert!(left.len() == 201 && other < Some(100), "{other:?}");
}

#[test]
fn lateness_is_what_the_caller_was_late() {
    let mut network = network(1, r#"{"delay_us": 1000}"#, 8);
    offer(&mut network, 0, 0, &[0; 60]);
    take(&mut network, 1_030_000);
    assert_eq!(network.direction(0).1.lateness.max(), 30_000);
}

/// The simulator's links begin at 0; those of the wire when it does, and then go the same way.
#[test]
fn series_begin_with_the_network_and_are_those_of_the_simulator() {
    const BEGIN: u64 = 77_777_777_777;
    let settings = r#"{"delay_us": {"uniform": [5, 100], "every_s": 3}, "rate_bps": {"choice": [100000, 300000], "every_s": 0.7}}"#;
    let text = format!(
        r#"{{"links": [{{"name": "l0", "a": {{"interface": "x"}}, "b": {{"interface": "y"}}, "a_to_b": {settings}}}]}}"#
    );
    let options = parse(&text).unwrap().links.remove(0).a_to_b;
    let mut link = Link::new(options, LinkStreams::new(1, "l0/a_to_b"), 8).unwrap();
    let mut network = network(1, settings, 64);
    network.begin(BEGIN);
    for k in 0..100 {
        let at = k * 300_000_000;
        link.transmit(at, &mut [0; 1000], ()).unwrap();
        let mut due = None;
        while due.is_none() {
            let next = link.next_event().unwrap();
            due = link.poll(next).map(|exit| exit.at);
        }
        offer(&mut network, 0, BEGIN + at, &[0; 1000]);
        let due = BEGIN + due.unwrap();
        assert_eq!(take(&mut network, due - 1), [], "frame {k}");
        assert_eq!(take(&mut network, due), [(1, 0)], "frame {k}");
    }
}

#[test]
fn steady_state_allocates_nothing() {
    carries_without_allocating(
        r#"{"delay_us": 2000, "jitter_us": 500, "rate_bps": 50000000, "loss": 0.01, "ber": 1e-5, "queue_packets": 100}"#,
    );
    carries_without_allocating(
        r#"{"delay_us": {"steps": [[0, 2], [0.01, 3]], "repeat_s": 0.02, "glide": true}, "jitter_us": 500, "queue_packets": 100,
            "rate_bps": {"normal": [50e6, 5e6], "every_s": 0.0017}, "loss": {"choice": [0, 0.02], "every_s": 0.5}}"#,
    );
}

fn carries_without_allocating(settings: &str) {
    let mut network = network(50, settings, 4096);
    let mut left = Left::default();
    left.frames.reserve(4096);
    let mut delivered = 0;
    let mut run = |rounds: u64| {
        for k in 0..rounds {
            left.now += 3_000;
            network.offer((k * 7 % 100) as usize, left.now, &[0; 1000], &mut left);
            delivered += left.frames.drain(..).count();
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
fn more_than_one_turn_may_do_gives_all_else_its_turn() {
    let mut network = network(1, r#"{"delay_us": 1000}"#, 6_000);
    for k in 0..5_000 {
        offer(&mut network, 0, k, &[0; 60]);
    }
    let mut left = Left::default();
    assert!(!network.advance(2_000_000, &mut left));
    assert_eq!(left.frames.len(), 4_096);
    assert!(network.advance(2_000_000, &mut left));
    assert_eq!(left.frames.len(), 5_000);
}
