// SPDX-License-Identifier: Apache-2.0
//! What holds for a link whatever is done to it: conservation, order, no early delivery, exact instants.

use proptest::prelude::*;
use serde_json::json;
use std::sync::Arc;
use traffic::link::{
    ErrorsIn, JitterDistribution, Link, LinkOptions, LinkStreams, Series, SpikeBlocks, Unit,
};

#[derive(Debug, Clone)]
enum Step {
    Transmit {
        len: usize,
    },
    Set(LinkOptions),
    Spike {
        duration_us: u64,
        blocks: SpikeBlocks,
    },
    Outage {
        duration_us: u64,
    },
    Poll,
}

/// None, or a trace of up to eight opportunities.
fn trace() -> impl Strategy<Value = Option<Arc<Series>>> {
    prop::option::weighted(0.3, prop::collection::vec(0u32..4, 1..8)).prop_map(|gaps| {
        let mut at = 0;
        let mut at_ms: Vec<u32> = gaps?
            .iter()
            .map(|gap| {
                at += gap;
                at
            })
            .collect();
        *at_ms.last_mut().unwrap() += 1;
        let settings = json!({"rate_bps": {"trace": at_ms}});
        LinkOptions::read(settings.as_object().unwrap(), Unit::Ns)
            .unwrap()
            .series[2]
            .clone()
    })
}

fn options() -> impl Strategy<Value = LinkOptions> {
    (
        0u64..20_000_000,
        0.0f64..=1.0,
        any::<bool>(),
        prop_oneof![Just(0), 1_000u64..1_000_000, 1_000_000u64..10_000_000_000],
        prop_oneof![Just(0.0), 0.0f64..=1.0],
        prop_oneof![Just(0.0), 0.0f64..1e-3],
        1usize..20,
        prop_oneof![Just(0.0), 0.0f64..=1.0],
        (1e-6f64..=1.0, 0.0f64..=1.0, 0.0f64..1e-2),
        trace(),
    )
        .prop_map(
            |(
                delay_ns,
                jitter,
                normal,
                rate_bps,
                loss,
                ber,
                queue_packets,
                ge_enter,
                ge,
                trace,
            )| LinkOptions {
                delay_ns,
                jitter_ns: (delay_ns as f64 * jitter) as u64,
                jitter_distribution: if normal {
                    JitterDistribution::Normal
                } else {
                    JitterDistribution::Uniform
                },
                reorder: false,
                rate_bps,
                loss,
                ber,
                errors_in: if normal {
                    ErrorsIn::Payload
                } else {
                    ErrorsIn::Frame
                },
                spare_retransmissions: queue_packets % 2 == 0,
                queue_packets,
                ge_enter,
                ge_leave: ge.0,
                ge_loss: ge.1,
                ge_ber: ge.2,
                ge_good_ns: if ge_enter == 0.0 { 5_000_000 } else { 0 },
                ge_bad_ns: if ge_enter == 0.0 { 2_000_000 } else { 0 },
                dama_frame_ns: if normal && rate_bps > 0 && trace.is_none() {
                    3_000_000
                } else {
                    0
                },
                dama_delay_ns: delay_ns,
                dama_cra_bps: (rate_bps / 4).max(1_000),
                series: [None, None, trace, None],
                ..LinkOptions::default()
            },
        )
}

fn blocks() -> impl Strategy<Value = SpikeBlocks> {
    prop_oneof![Just(SpikeBlocks::Delivery), Just(SpikeBlocks::Line)]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (14usize..1515).prop_map(|len| Step::Transmit { len }),
        1 => options().prop_map(Step::Set),
        1 => (1u64..50_000, blocks()).prop_map(|(duration_us, blocks)| Step::Spike { duration_us, blocks }),
        1 => (1u64..50_000).prop_map(|duration_us| Step::Outage { duration_us }),
        4 => Just(Step::Poll),
    ]
}

/// Links that have a delay only, and now and then more.
fn mostly_plain() -> impl Strategy<Value = Step> {
    let plain = (0u64..20_000_000).prop_map(|delay_ns| {
        Step::Set(LinkOptions {
            delay_ns,
            ..LinkOptions::default()
        })
    });
    prop_oneof![6 => step(), 2 => plain]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Frames leave once, in order, never before they came, and none disappears.
    #[test]
    fn frames_are_conserved_and_ordered(
        first in options(),
        steps in prop::collection::vec((step(), 0u64..3_000_000), 1..200),
    ) {
        let mut link: Link<usize> = Link::new(first, LinkStreams::new(1, "p"), 8).unwrap();
        let mut now = 0;
        let mut sent_at = Vec::new();
        let mut outcome: Vec<u8> = Vec::new();
        let mut last = (0, 0);
        let mut refused = 0;
        let mut take = |link: &mut Link<usize>, now: u64, sent_at: &[u64], outcome: &mut [u8]| {
            while let Some(exit) = link.poll(now) {
                outcome[exit.item] += 1;
                assert!(exit.at <= now && exit.at >= sent_at[exit.item]);
                if exit.dropped.is_none() {
                    assert!((exit.at, exit.item) >= last, "out of order");
                    last = (exit.at, exit.item);
                }
            }
        };
        for (step, wait) in steps {
            now += wait;
            match step {
                Step::Transmit { len } => {
                    sent_at.push(now);
                    outcome.push(0);
                    if link.transmit(now, &mut vec![0; len], sent_at.len() - 1).is_err() {
                        refused += 1;
                        *outcome.last_mut().unwrap() += 1;
                    }
                }
                Step::Set(options) => link.set(now, options).unwrap(),
                Step::Spike { duration_us, blocks } => {
                    link.spike(now, duration_us * 1000, blocks);
                }
                Step::Outage { duration_us } => link.outage(now, duration_us * 1000),
                Step::Poll => take(&mut link, now, &sent_at, &mut outcome),
            }
            let stats = *link.stats();
            let held = stats.offered_packets - stats.delivered_packets - stats.dropped_packets();
            prop_assert_eq!(held as usize, link.queued() + link.in_flight());
        }
        while let Some(next) = link.next_event() {
            prop_assert!(next < u64::MAX);
            now = now.max(next);
            take(&mut link, now, &sent_at, &mut outcome);
        }
        prop_assert!(outcome.iter().all(|count| *count == 1));
        prop_assert_eq!(link.stats().dropped_queue_full, refused);
        prop_assert_eq!(link.stats().offered_packets, sent_at.len() as u64);
    }

    /// A frame that meets nothing but the delay passes in one step: all is as if it had gone through the whole link, also the
    /// chance of the frames behind it.
    #[test]
    fn a_frame_that_passes_meets_what_a_transmitted_one_does(
        steps in prop::collection::vec((mostly_plain(), 0u64..3_000_000), 1..200),
    ) {
        let mut links = [true, false].map(|passes| {
            let link: Link<usize> = Link::new(LinkOptions::default(), LinkStreams::new(1, "p"), 8).unwrap();
            (link, passes)
        });
        let (mut now, mut item, mut passed) = (0, 0, 0);
        for (step, wait) in steps {
            now += wait;
            item += 1;
            let [one, other] = links.each_mut().map(|(link, passes)| {
                let mut exits = Vec::new();
                match step.clone() {
                    Step::Transmit { len } if *passes && link.is_plain(now) => {
                        let before = link.next_event();
                        let is_next = link.pass(now, len, item);
                        assert!(is_next || link.next_event() == before);
                        passed += 1;
                    }
                    Step::Transmit { len } => {
                        for _ in 0..=usize::from(link.draw_duplicate()) {
                            let _ = link.transmit(now, &mut vec![0; len], item);
                        }
                    }
                    Step::Set(options) => link.set(now, options).unwrap(),
                    Step::Spike { duration_us, blocks } => link.spike(now, duration_us * 1000, blocks),
                    Step::Outage { duration_us } => link.outage(now, duration_us * 1000),
                    Step::Poll => exits.extend(std::iter::from_fn(|| link.poll(now))),
                }
                (exits, *link.stats(), link.next_event(), link.queued(), link.in_flight())
            });
            prop_assert_eq!(one, other);
        }
        prop_assume!(passed > 0);
    }

    /// Polling at every announced instant, or once at the end, gives the same deliveries at the same instants, also around
    /// spikes and new settings.
    #[test]
    fn instants_do_not_depend_on_when_they_are_asked_for(
        settings in options(),
        frames in prop::collection::vec((14usize..1515, 0u64..500_000), 1..100),
        spike in (0usize..100, 1u64..50_000_000, blocks()),
        change in (0usize..100, 0u64..1_000_000_000),
    ) {
        let run = |eager: bool| {
            let mut link: Link<usize> = Link::new(settings.clone(), LinkStreams::new(3, "q"), 8).unwrap();
            let mut now = 0;
            let mut delivered = Vec::new();
            for (k, (len, wait)) in frames.iter().enumerate() {
                let arrival = now + wait;
                while eager && link.next_event().is_some_and(|next| next <= arrival) {
                    now = now.max(link.next_event().unwrap());
                    while let Some(exit) = link.poll(now) {
                        delivered.push((exit.item, exit.at, exit.dropped));
                    }
                }
                now = arrival;
                if k == spike.0 {
                    link.spike(now, spike.1, spike.2);
                }
                if k == change.0 && settings.series[2].is_none() {
                    let least = if settings.dama_frame_ns > 0 { settings.dama_cra_bps } else { 0 };
                    let rate_bps = change.1.max(least);
                    link.set(now, LinkOptions { rate_bps, ..settings.clone() }).unwrap();
                }
                let _ = link.transmit(now, &mut vec![0; *len], k);
            }
            while let Some(exit) = link.poll(u64::MAX / 2) {
                delivered.push((exit.item, exit.at, exit.dropped));
            }
            delivered.sort_by_key(|(item, ..)| *item);
            delivered
        };
        prop_assert_eq!(run(true), run(false));
    }
}
