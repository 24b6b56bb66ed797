// SPDX-License-Identifier: Apache-2.0
//! The calendar: queues in turn, each until it is empty; in random runs like a model that knows only lists.

use crate::common::*;
use std::collections::VecDeque;
use traffic::{LinkLayer, SchedulerKind};

fn rig(queues: usize) -> Rig {
    Rig::new(
        SchedulerKind::Calendar,
        LinkLayer::None,
        8_000_000_000,
        &vec![1; queues],
    )
}

#[test]
fn the_current_queue_is_served_until_it_is_empty() {
    let mut rig = rig(3);
    rig.put(1, 100);
    rig.put(2, 100);
    assert_eq!(rig.serve().unwrap().queue, 1);
    // Behind the turn: 0 and 2 wait until 1, which goes on, is empty.
    rig.put(0, 100);
    rig.put(1, 100);
    rig.put(1, 100);
    let order: Vec<usize> = std::iter::from_fn(|| rig.serve().map(|one| one.queue)).collect();
    assert_eq!(order, [1, 1, 2, 0]);
}

#[test]
fn the_turn_stays_where_it_was_while_nothing_waits() {
    let mut rig = rig(4);
    rig.put(2, 100);
    assert_eq!(rig.serve().unwrap().queue, 2);
    assert!(rig.serve().is_none());
    rig.put(1, 100);
    rig.put(3, 100);
    assert_eq!(rig.serve().unwrap().queue, 3);
    assert_eq!(rig.serve().unwrap().queue, 1);
}

#[test]
fn a_turn_that_the_program_names_is_kept() {
    let mut rig = rig(2);
    rig.put(0, 100);
    rig.put(1, 100);
    rig.port.set_turn(1);
    assert_eq!(rig.serve().unwrap().queue, 1);
    // The other one is served while the first is empty, and waits again when something comes there.
    rig.put(0, 100);
    assert_eq!(rig.serve().unwrap().queue, 0);
    rig.put(1, 100);
    assert_eq!(rig.serve().unwrap().queue, 1);
    rig.put(1, 100);
    rig.port.set_turn(2); // there is no such queue
    assert_eq!(rig.serve().unwrap().queue, 1);
    rig.put(1, 100);
    rig.port.set_turn(0);
    assert_eq!(rig.serve().unwrap().queue, 0);
    assert_eq!(rig.serve().unwrap().queue, 1);
}

#[test]
fn a_random_run_is_the_model_s() {
    for (seed, queues) in [(1, 1), (2, 2), (3, 8), (4, 33), (5, 200)] {
        let mut rig = rig(queues);
        rig.random = Random(seed);
        let mut model: Vec<VecDeque<u32>> = vec![VecDeque::new(); queues];
        let (mut turn, mut turns) = (0, 0);
        for length in 1..20_000 {
            // Bursts of arrivals and of departures, so that the port runs empty and full.
            if rig.random.within(0, 99) < if length / 500 % 2 == 0 { 60 } else { 40 } {
                let queue = rig.random.within(0, queues as u64 - 1) as usize;
                rig.put(queue, length);
                model[queue].push_back(length);
                continue;
            }
            let next = (0..queues)
                .map(|step| (turn + step) % queues)
                .find(|&queue| !model[queue].is_empty());
            turns += u32::from(next.is_some_and(|queue| queue != turn));
            turn = next.unwrap_or(turn);
            let expected = model[turn].pop_front().map(|length| (turn, length));
            let served = rig.serve().map(|one| (one.queue, one.item));
            assert_eq!(served, expected, "seed {seed}");
        }
        assert!(turns > 50 || queues == 1, "seed {seed}: {turns}");
    }
}
