// SPDX-License-Identifier: Apache-2.0
//! The emulator in virtual time: frames cross to the other end, its memory is bounded, and steady state allocates nothing.

#[path = "../../traffic/tests/counting/mod.rs"]
mod counting;

use counting::allocations;
use wire::config::parse;
use wire::emulator::{Departure, Emulator};
use wire::pool::FramePool;

fn emulator(links: usize, settings: &str, frames: usize) -> Emulator {
    let links: Vec<String> = (0..links)
        .map(|i| {
            format!(
                r#"{{"name": "l{i}", "a": {{"interface": "w{i}a"}}, "b": {{"interface": "w{i}b"}}, "a_to_b": {settings}, "b_to_a": {settings}}}"#
            )
        })
        .collect();
    let links = parse(&format!(r#"{{"links": [{}]}}"#, links.join(","))).unwrap();
    Emulator::new(&links, 1, FramePool::new(frames, 1536)).unwrap()
}

/// All that is due by `now`: port and first byte.
fn take(emulator: &mut Emulator, now: u64) -> Vec<(usize, u8)> {
    let mut taken = Vec::new();
    let mut out: Vec<Departure> = Vec::with_capacity(4);
    loop {
        out.clear();
        let more = emulator.collect(now, &mut out);
        for departure in &out {
            taken.push((departure.port, emulator.frame(*departure)[0]));
            emulator.sent(*departure);
        }
        if !more {
            return taken;
        }
    }
}

#[test]
fn frames_come_out_at_the_other_end_of_their_own_link() {
    let mut emulator = emulator(3, r#"{"delay_us": 1000}"#, 64);
    for port in 0..6 {
        emulator.offer(port, 100 * port as u64, &[port as u8; 60]);
    }
    assert_eq!(emulator.next_event(), Some(1_000_000));
    assert_eq!(take(&mut emulator, 999_999), []);
    assert_eq!(take(&mut emulator, 1_000_000), [(1, 0)]);
    let mut rest = take(&mut emulator, 2_000_000);
    rest.sort_unstable();
    assert_eq!(rest, [(0, 1), (2, 3), (3, 2), (4, 5), (5, 4)]);
    assert_eq!(emulator.next_event(), None);
    assert_eq!(emulator.pool().free(), 64);
}

#[test]
fn lost_and_refused_frames_give_their_memory_back() {
    let settings = r#"{"loss": 0.5, "rate_bps": 1000000, "queue_packets": 3}"#;
    let mut emulator = emulator(1, settings, 64);
    for k in 0..10_000u64 {
        emulator.offer(0, k * 100_000, &[0; 100]);
        take(&mut emulator, k * 100_000);
    }
    take(&mut emulator, 1 << 60);
    let stats = emulator.direction(0).link.stats();
    assert!(stats.dropped_loss > 100 && stats.dropped_queue_full > 100);
    assert_eq!(stats.delivered_packets + stats.dropped_packets(), 10_000);
    assert_eq!(emulator.pool().free(), 64);
}

#[test]
fn a_full_pool_and_a_long_frame_are_counted() {
    let mut emulator = emulator(1, r#"{"delay_us": 1000}"#, 8);
    for _ in 0..10 {
        emulator.offer(0, 0, &[0; 60]);
    }
    assert_eq!(emulator.direction(0).dropped_no_memory, 2);
    assert_eq!(take(&mut emulator, 1_000_000).len(), 8);
    emulator.offer(0, 2_000_000, &[0; 1537]);
    assert_eq!(emulator.direction(0).dropped_no_memory, 3);
}

#[test]
fn a_busy_direction_does_not_keep_the_others_waiting() {
    let mut emulator = emulator(2, "{}", 64);
    for _ in 0..20 {
        emulator.offer(0, 0, &[0; 60]);
    }
    emulator.offer(2, 0, &[2; 60]);
    let mut out: Vec<Departure> = Vec::with_capacity(4);
    assert!(emulator.collect(0, &mut out));
    assert!(out.iter().all(|departure| departure.port == 1));
    out.clear();
    assert!(emulator.collect(0, &mut out));
    assert_eq!(out[0].port, 3, "the other link is next");
}

#[test]
fn lateness_is_what_the_caller_was_late() {
    let mut emulator = emulator(1, r#"{"delay_us": 1000}"#, 8);
    emulator.offer(0, 0, &[0; 60]);
    take(&mut emulator, 1_030_000);
    assert_eq!(emulator.direction(0).lateness.max(), 30_000);
}

#[test]
fn steady_state_allocates_nothing() {
    let settings = r#"{"delay_us": 2000, "jitter_us": 500, "rate_bps": 50000000, "loss": 0.01, "ber": 1e-5, "queue_packets": 100}"#;
    let mut emulator = emulator(50, settings, 4096);
    let mut out: Vec<Departure> = Vec::with_capacity(64);
    let mut now = 0;
    let mut delivered = 0u64;
    let mut run = |rounds: u64| {
        for k in 0..rounds {
            now += 3_000;
            emulator.offer((k * 7 % 100) as usize, now, &[0; 1000]);
            out.clear();
            emulator.collect(now, &mut out);
            delivered += out.len() as u64;
            for departure in &out {
                emulator.sent(*departure);
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
