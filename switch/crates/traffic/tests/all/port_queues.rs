// SPDX-License-Identifier: Apache-2.0
//! Properties of a port in virtual time: nothing lost, never idle while something waits, strict priority, exact rate.

use proptest::prelude::*;
use traffic::{DropReason, PortQueues, QueueLimits, SharedBuffer, UNLIMITED};

#[derive(Clone, Debug)]
struct Arrival {
    gap_ns: u64,
    /// A delay spike that begins right before it.
    spike_ns: Option<u64>,
    queue: usize,
    len_bytes: u32,
}

#[derive(Debug, PartialEq)]
struct Served {
    id: usize,
    queue: usize,
    start: u64,
    end: u64,
}

const QUEUES: usize = 4;

fn arrivals() -> impl Strategy<Value = Vec<Arrival>> {
    let spike = prop::option::weighted(0.05, 1u64..5_000_000);
    let arrival = (0u64..200_000, spike, 0..QUEUES, 40u32..9_000).prop_map(
        |(gap_ns, spike_ns, queue, len_bytes)| Arrival {
            gap_ns,
            spike_ns,
            queue,
            len_bytes,
        },
    );
    prop::collection::vec(arrival, 1..200)
}

/// Drives a port through all arrivals until it is empty; returns what was served and what was dropped.
fn drive(
    port: &mut PortQueues<(usize, u32)>,
    buffer: &mut SharedBuffer,
    arrivals: &[Arrival],
) -> (Vec<Served>, Vec<(usize, DropReason)>) {
    let (mut served, mut dropped) = (Vec::new(), Vec::new());
    let mut now = 0;
    let mut serve_until =
        |port: &mut PortQueues<(usize, u32)>, buffer: &mut SharedBuffer, until: u64, from: u64| {
            let mut at = from;
            while let Some(due) = port.next_departure() {
                at = at.max(due);
                if at > until {
                    break;
                }
                let d = port.dequeue(at, buffer).expect("due, so there is one");
                let (id, len_bytes) = d.item;
                port.served(at, len_bytes);
                served.push(Served {
                    id,
                    queue: d.queue,
                    start: at,
                    end: port.free_at(),
                });
            }
        };
    for (id, a) in arrivals.iter().enumerate() {
        let before = now;
        now += a.gap_ns;
        serve_until(port, buffer, now, before);
        if let Some(duration) = a.spike_ns {
            port.spike(now, duration);
        }
        if let Err((reason, item)) =
            port.enqueue(now, a.queue, a.len_bytes, (id, a.len_bytes), buffer)
        {
            assert_eq!(item, (id, a.len_bytes), "the packet comes back");
            dropped.push((id, reason));
        }
    }
    serve_until(port, buffer, u64::MAX / 2, now);
    (served, dropped)
}

fn times(arrivals: &[Arrival]) -> Vec<u64> {
    arrivals
        .iter()
        .scan(0, |t, a| {
            *t += a.gap_ns;
            Some(*t)
        })
        .collect()
}

/// When a service that was possible at `from` starts, whether a spike that begins at its very instant comes before it or not.
fn behind_spikes(spikes: &[(u64, u64)], from: u64) -> [u64; 2] {
    [false, true].map(|at_once| {
        spikes.iter().fold(from, |start, (at, until)| {
            match *at < start || (at_once && *at == start) {
                true => start.max(*until),
                false => start,
            }
        })
    })
}

proptest! {
    #[test]
    fn nothing_is_lost_and_the_line_never_idles_while_a_packet_waits(
        arrivals in arrivals(),
        rate_bps in prop::sample::select(vec![1_000u64, 1_000_003, 2_000_000, 999_999_937, 100_000_000_000]),
        packets in 1u64..20,
    ) {
        let mut port = PortQueues::new(QUEUES, QueueLimits::packets(packets), rate_bps);
        let mut buffer = SharedBuffer::new(QueueLimits::packets(30));
        let (served, dropped) = drive(&mut port, &mut buffer, &arrivals);
        prop_assert_eq!(served.len() + dropped.len(), arrivals.len());
        prop_assert!(port.is_empty());
        prop_assert_eq!(buffer.usage.packets, 0);
        prop_assert_eq!(buffer.usage.bytes, 0);
        let at = times(&arrivals);
        let spikes: Vec<_> =
            arrivals.iter().zip(&at).filter_map(|(a, at)| Some((*at, at + a.spike_ns?))).collect();
        let mut free = 0;
        for s in &served {
            // Work-conserving: a service starts when the line is free and no spike blocks it, unless nothing was there yet.
            let waiting_since = served.iter().filter(|o| o.start >= s.start).map(|o| at[o.id]).min().unwrap_or(0);
            prop_assert!(s.start >= at[s.id]);
            let expected = behind_spikes(&spikes, free.max(waiting_since));
            prop_assert!(expected.contains(&s.start), "packet {}: {} {expected:?}", s.id, s.start);
            free = s.end;
        }
    }

    #[test]
    fn a_busy_period_takes_exactly_its_bits(
        arrivals in arrivals(),
        rate_bps in prop::sample::select(vec![1_000u64, 9_600, 1_000_003, 999_999_937, 100_000_000_000]),
    ) {
        let mut port = PortQueues::new(QUEUES, QueueLimits::NONE, rate_bps);
        let mut buffer = SharedBuffer::new(QueueLimits::NONE);
        let (served, _) = drive(&mut port, &mut buffer, &arrivals);
        let (mut begin, mut bits, mut free) = (0u64, 0u128, None);
        for s in &served {
            if free != Some(s.start) {
                (begin, bits) = (s.start, 0);
            }
            bits += u128::from(arrivals[s.id].len_bytes) * 8;
            let due = u128::from(begin) + (bits * 1_000_000_000).div_ceil(u128::from(rate_bps));
            // A busy period that began within a nanosecond of the last one's end continues its fraction.
            prop_assert!(u128::from(s.end).abs_diff(due) <= 1, "{} {}", s.end, due);
            free = Some(s.end);
        }
    }

    #[test]
    fn the_highest_queue_is_served_first_and_each_queue_in_order(arrivals in arrivals()) {
        let mut port = PortQueues::new(QUEUES, QueueLimits::NONE, 1_000_000);
        let mut buffer = SharedBuffer::new(QueueLimits::NONE);
        let (served, _) = drive(&mut port, &mut buffer, &arrivals);
        let at = times(&arrivals);
        for (i, s) in served.iter().enumerate() {
            for later in &served[i + 1..] {
                // What was there when `s` started and was served later is not of a higher queue.
                if at[later.id] < s.start {
                    prop_assert!(later.queue <= s.queue);
                }
                if later.queue == s.queue {
                    prop_assert!(later.id > s.id);
                }
            }
        }
    }

    #[test]
    fn a_queue_never_holds_more_than_its_limits(arrivals in arrivals(), bytes in 9_000u64..40_000, cells in 200u64..900) {
        let limits = QueueLimits { packets: UNLIMITED, bytes, cells };
        let mut port = PortQueues::new(QUEUES, limits, 10_000_000);
        let mut buffer = SharedBuffer::new(QueueLimits::NONE);
        drive(&mut port, &mut buffer, &arrivals);
        for queue in 0..QUEUES {
            let high = port.queue_stats(queue).high_water;
            prop_assert!(high.bytes <= bytes && high.cells <= cells);
        }
    }

    /// A rate change in the middle of a run: the bits before it at the old rate, those after it at the new one.
    #[test]
    fn a_live_rate_change_counts_from_its_instant(
        old in 1_000_000u64..1_000_000_000, new in 1_000_000u64..1_000_000_000, part in 0.0f64..1.0, frames in 1usize..50,
    ) {
        let mut port = PortQueues::new(1, QueueLimits::NONE, old);
        let mut buffer = SharedBuffer::new(QueueLimits::NONE);
        for _ in 0..frames {
            port.enqueue(0, 0, 1_500, (0usize, 1_500u32), &mut buffer).map_err(|_| ()).unwrap();
        }
        let bits = frames as f64 * 12_000.0;
        let change = (bits / old as f64 * 1e9 * part) as u64;
        let mut changed = false;
        while let Some(due) = port.next_departure() {
            if !changed && due >= change {
                port.set_rate(change, new, None);
                changed = true;
                continue;
            }
            port.dequeue(due, &mut buffer).unwrap();
            port.served(due, 1_500);
        }
        let end = port.free_at();
        if !changed {
            port.set_rate(change, new, None);
        }
        let end = if changed { end } else { port.free_at() };
        let expected = change as f64 + (bits - change as f64 * old as f64 / 1e9) / new as f64 * 1e9;
        prop_assert!((end as f64 - expected).abs() <= 3.0 + expected * 1e-9, "{end} {expected}");
    }
}

/// What waits is counted, the packet on the line is not: with room for two, a third waits only when one is on the line.
#[test]
fn the_packet_on_the_line_does_not_count() {
    let mut port = PortQueues::new(1, QueueLimits::packets(2), 8_000);
    let mut buffer = SharedBuffer::new(QueueLimits::NONE);
    assert_eq!(port.enqueue(0, 0, 1_000, 'a', &mut buffer), Ok(0));
    assert_eq!(port.dequeue(0, &mut buffer).unwrap().item, 'a');
    port.served(0, 1_000);
    assert_eq!(port.enqueue(1, 0, 1_000, 'b', &mut buffer), Ok(0));
    assert_eq!(port.enqueue(2, 0, 1_000, 'c', &mut buffer), Ok(1));
    assert_eq!(
        port.enqueue(3, 0, 1_000, 'd', &mut buffer),
        Err((DropReason::QueueFull, 'd'))
    );
    assert_eq!(port.next_departure(), Some(1_000_000_000));
    assert!(port.dequeue(999_999_999, &mut buffer).is_none());
    let b = port.dequeue(1_000_000_000, &mut buffer).unwrap();
    assert_eq!((b.item, b.enq, b.depth_at_enq, b.depth_now), ('b', 1, 0, 1));
    assert_eq!(
        port.enqueue(4, 9, 1_000, 'e', &mut buffer),
        Err((DropReason::NoSuchQueue, 'e'))
    );
}

/// The packet on the line goes on through a spike, the others wait where there is room, then leave at the rate of then.
#[test]
fn a_spike_keeps_packets_in_the_queue_until_its_end() {
    let mut port = PortQueues::new(1, QueueLimits::packets(2), 8_000_000);
    let mut buffer = SharedBuffer::new(QueueLimits::NONE);
    let offer = |port: &mut PortQueues<u64>, buffer: &mut SharedBuffer, now: u64| {
        port.enqueue(now, 0, 1_000, now, buffer)
            .map_err(|(reason, _)| reason)
    };
    offer(&mut port, &mut buffer, 0).unwrap();
    assert_eq!(port.dequeue(0, &mut buffer).unwrap().item, 0);
    port.served(0, 1_000);
    port.spike(500_000, 20_000_000);
    port.spike(1_000_000, 1_000_000); // does not end the first one
    assert_eq!(port.free_at(), 1_000_000, "on the line already");
    assert_eq!(port.next_departure(), None);
    offer(&mut port, &mut buffer, 2_000_000).unwrap();
    offer(&mut port, &mut buffer, 3_000_000).unwrap();
    let full = offer(&mut port, &mut buffer, 4_000_000);
    assert_eq!(full, Err(DropReason::QueueFull));
    port.set_rate(5_000_000, 800_000, None);
    assert_eq!(port.next_departure(), Some(20_500_000));
    assert!(port.dequeue(20_499_999, &mut buffer).is_none());
    assert_eq!(
        port.dequeue(20_500_000, &mut buffer).unwrap().item,
        2_000_000
    );
    port.served(20_500_000, 1_000);
    assert_eq!(port.next_departure(), Some(30_500_000));
}
