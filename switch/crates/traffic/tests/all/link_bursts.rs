// SPDX-License-Identifier: Apache-2.0
//! Gilbert–Elliott bursts and delivery traces: the chain's own laws, each with a seed and a bound of four deviations.

use serde_json::json;
use traffic::link::{Link, LinkOptions, LinkStreams, Refused, Trace, Unit};

const MS: u64 = 1_000_000;

fn link(options: LinkOptions, seed: u64) -> Link<usize> {
    Link::new(options, LinkStreams::new(seed, "s1-s2/a_to_b"), 64).unwrap()
}

/// Which of `frames` frames of 114 bytes are lost, and how many bits flip in those that are not.
fn fates(options: &LinkOptions, seed: u64, frames: usize) -> (Vec<bool>, Vec<u32>) {
    let mut link = link(options.clone(), seed);
    let (mut lost, mut flips) = (vec![false; frames], vec![0; frames]);
    for (k, flips) in flips.iter_mut().enumerate() {
        let mut frame = [0u8; 114];
        link.transmit(k as u64 * MS, &mut frame, k).unwrap();
        *flips = frame.iter().map(|byte| byte.count_ones()).sum();
        while let Some(exit) = link.poll(k as u64 * MS) {
            lost[exit.item] = exit.dropped.is_some();
        }
    }
    (lost, flips)
}

/// Lengths of the runs of `true`.
fn runs(of: &[bool]) -> Vec<usize> {
    of.split(|lost| !lost)
        .map(<[bool]>::len)
        .filter(|len| *len > 0)
        .collect()
}

fn gilbert(ge_enter: f64, ge_leave: f64, ge_loss: f64, loss: f64) -> LinkOptions {
    LinkOptions {
        ge_enter,
        ge_leave,
        ge_loss,
        loss,
        ..LinkOptions::default()
    }
}

/// Gilbert (1960): all is lost in the bad state, so a burst is a stay in it: geometric, 1/leave frames on average.
#[test]
fn bursts_have_the_length_and_the_share_of_the_formula() {
    for (seed, enter, leave) in [(1, 0.01, 0.25), (2, 0.002, 0.1), (3, 0.1, 0.5)] {
        let frames = 400_000;
        let (lost, _) = fates(&gilbert(enter, leave, 1.0, 0.0), seed, frames);
        let bursts = runs(&lost);
        let (n, share) = (bursts.len() as f64, enter / (enter + leave));
        let mean = bursts.iter().sum::<usize>() as f64 / n;
        // Of a geometric length: mean 1/leave, variance (1 - leave)/leave².
        let deviation = ((1.0 - leave) / n).sqrt() / leave;
        assert!(
            (mean - 1.0 / leave).abs() < 4.0 * deviation,
            "enter {enter}, leave {leave}: bursts of {mean}"
        );
        // Of the share of a two-state chain: variance share (1 - share) (1 + r) / (1 - r) / frames, r = 1 - enter - leave.
        let r = 1.0 - enter - leave;
        let deviation = (share * (1.0 - share) * (1.0 + r) / (1.0 - r) / frames as f64).sqrt();
        let measured = lost.iter().filter(|lost| **lost).count() as f64 / frames as f64;
        assert!(
            (measured - share).abs() < 4.0 * deviation,
            "enter {enter}, leave {leave}: {measured} lost, not {share}"
        );
    }
}

/// Elliott (1963): some is lost in each state. Rate of loss = (leave·loss + enter·ge_loss) / (enter + leave).
#[test]
fn both_states_have_their_own_loss() {
    let (enter, leave, ge_loss, loss) = (0.02, 0.2, 0.6, 0.01);
    let frames = 400_000;
    let (lost, _) = fates(&gilbert(enter, leave, ge_loss, loss), 7, frames);
    let expected = (leave * loss + enter * ge_loss) / (enter + leave);
    let measured = lost.iter().filter(|lost| **lost).count() as f64 / frames as f64;
    let r = 1.0 - enter - leave;
    let deviation = (expected * (1.0 - expected) * (1.0 + r) / (1.0 - r) / frames as f64).sqrt();
    assert!(
        (measured - expected).abs() < 4.0 * deviation,
        "{measured} lost, not {expected}"
    );
}

#[test]
fn both_states_have_their_own_bit_error_rate() {
    let options = LinkOptions {
        ber: 1e-5,
        ge_ber: 1e-2,
        ..gilbert(0.02, 0.1, 0.0, 0.0)
    };
    let frames = 200_000;
    let mut link = link(options, 5);
    let (mut flips, mut hit) = (0u64, 0u64);
    for k in 0..frames {
        let mut frame = [0u8; 114];
        link.transmit(k as u64 * MS, &mut frame, k).unwrap();
        let bits: u64 = frame.iter().map(|byte| u64::from(byte.count_ones())).sum();
        flips += bits;
        hit += u64::from(bits > 0);
        while link.poll(k as u64 * MS).is_some() {}
    }
    let bad = link.stats().bad_state_packets as f64;
    let share = bad / frames as f64;
    assert!((share - 1.0 / 6.0).abs() < 0.01, "{share} in the bad state");
    let expected = 800.0 * (bad * 1e-2 + (frames as f64 - bad) * 1e-5);
    assert!(
        (flips as f64 - expected).abs() < 4.0 * expected.sqrt(),
        "{flips} bits, not {expected}"
    );
    // 800 bits at 1e-2: hardly a frame of the bad state is whole, and few of the good one are not.
    let expected = bad * (1.0 - 0.99f64.powi(800)) + (frames as f64 - bad) * 0.008;
    assert!(
        (hit as f64 / expected - 1.0).abs() < 0.02,
        "{hit} frames, not {expected}"
    );
}

#[test]
fn bursts_do_not_disturb_what_else_happens() {
    let base = LinkOptions {
        loss: 0.05,
        ber: 1e-4,
        ..LinkOptions::default()
    };
    let with_bursts = LinkOptions {
        ge_enter: 0.01,
        ge_leave: 0.2,
        ..base.clone()
    };
    let (lost, flips) = fates(&base, 3, 20_000);
    let (more_lost, same_flips) = fates(&with_bursts, 3, 20_000);
    assert!(
        lost.iter().zip(&more_lost).all(|(a, b)| *b || !*a),
        "a superset is lost"
    );
    let count = |lost: &[bool]| lost.iter().filter(|lost| **lost).count();
    assert!(count(&more_lost) > count(&lost) + 500);
    let whole = (0..20_000).filter(|k| !more_lost[*k]);
    assert!(whole.clone().all(|k| same_flips[k] == flips[k]));
    assert!(whole.filter(|k| flips[*k] > 0).count() > 1_000);
    let off = LinkOptions {
        ge_enter: 0.0,
        ge_leave: 0.5,
        ge_loss: 0.3,
        ge_ber: 0.1,
        ..base
    };
    assert_eq!(
        fates(&off, 3, 20_000),
        (lost, flips),
        "a chain that is off changes nothing"
    );
}

#[test]
fn a_seed_fixes_the_bursts_and_settings_may_change_in_them() {
    let options = gilbert(0.05, 0.1, 1.0, 0.0);
    assert_eq!(fates(&options, 1, 5_000), fates(&options, 1, 5_000));
    assert_ne!(fates(&options, 1, 5_000), fates(&options, 2, 5_000));
    // In the bad state for ever; off ends it at once.
    let mut link = link(gilbert(1.0, 1e-6, 1.0, 0.0), 1);
    let send = |link: &mut Link<usize>, now: u64| {
        link.transmit(now, &mut [0; 64], 0).unwrap();
        link.poll(now).unwrap().dropped.is_some()
    };
    assert!((1..100).all(|now| send(&mut link, now)));
    link.set(100, gilbert(0.0, 1e-6, 1.0, 0.0)).unwrap();
    assert!((101..200).all(|now| !send(&mut link, now)));
    assert_eq!(link.stats().bad_state_packets, 99);
}

fn traced(at_ms: &[u32], queue_packets: usize) -> LinkOptions {
    let settings =
        json!({"delay_ns": 10 * MS, "queue_packets": queue_packets, "rate_bps": {"trace": at_ms}});
    LinkOptions::read(settings.as_object().unwrap(), Unit::Ns).unwrap()
}

fn deliveries(link: &mut Link<usize>) -> Vec<(usize, u64)> {
    let mut all = Vec::new();
    while let Some(next) = link.next_event() {
        while let Some(exit) = link.poll(next) {
            assert_eq!(exit.dropped, None);
            all.push((exit.item, exit.at / MS));
        }
    }
    all
}

#[test]
fn a_trace_delivers_at_its_instants_after_the_delay() {
    let mut link = link(traced(&[3, 4, 8], 10), 1);
    link.begin(100 * MS);
    for k in 0..5 {
        link.transmit(100 * MS, &mut [0; 1514], k).unwrap();
    }
    let at = [113, 114, 118, 121, 122];
    assert_eq!(
        deliveries(&mut link),
        Vec::from_iter(at.into_iter().enumerate())
    );
}

/// As on a line: one frame is carried, `queue_packets` wait, the rest is refused.
#[test]
fn the_queue_before_a_trace_is_finite() {
    let mut link = link(traced(&[5], 3), 1);
    let accepted = (0..10)
        .filter(|k| !matches!(link.transmit(0, &mut [0; 1514], *k), Err(Refused(_))))
        .count();
    assert_eq!(accepted, 4);
    assert_eq!(link.stats().dropped_queue_full, 6);
    assert_eq!(deliveries(&mut link).len(), 4);
}

#[test]
fn a_saturated_trace_carries_its_mean_rate() {
    let at_ms: Vec<u32> = (0..500).map(|k: u32| k * 7 + k % 7).collect();
    let times: Vec<f64> = at_ms.iter().map(|ms| f64::from(*ms)).collect();
    let trace = Trace::new("t", &times).unwrap();
    let mut link = link(traced(&at_ms, 100_000), 1);
    for k in 0..5_000 {
        link.transmit(0, &mut [0; 1514], k).unwrap();
    }
    let last = deliveries(&mut link).last().unwrap().1 - 10;
    let rate_bps = 5_000.0 * 12_000.0 / (last as f64 / 1e3);
    assert!(
        (rate_bps / trace.mean_rate_bps() - 1.0).abs() < 0.01,
        "{rate_bps}"
    );
}

#[test]
fn rate_and_trace_change_into_each_other_without_a_loss() {
    let mut link = link(traced(&[10], 100), 1);
    for k in 0..4 {
        link.transmit(0, &mut [0; 1514], k).unwrap();
    }
    // 0 leaves at 10 ms; at 15 ms the others go on at 1514 B/ms.
    let line = LinkOptions {
        series: LinkOptions::default().series,
        rate_bps: 1514 * 8 * 1000,
        ..traced(&[10], 100)
    };
    link.set(15 * MS, line).unwrap();
    assert_eq!(link.queued(), 3);
    // 1 leaves at 16 ms; from 16.5 ms on a trace with one each 5 ms, the frame on the line anew.
    link.set(16 * MS + MS / 2, traced(&[5], 100)).unwrap();
    let all = deliveries(&mut link);
    let at: Vec<u64> = all.iter().map(|(_, at)| *at).collect();
    assert_eq!(at, [20, 26, 31, 36], "31.5 and 36.5 in whole ms");
    // The same trace again changes nothing: it does not begin anew.
    link.transmit(100 * MS, &mut [0; 1514], 9).unwrap();
    link.set(100 * MS, traced(&[5], 50)).unwrap();
    assert_eq!(deliveries(&mut link), [(9, 111)]);
}

/// Which of the frames that come each `period` within `until` are lost.
fn fates_in_time(options: &LinkOptions, period: u64, until: u64) -> Vec<bool> {
    let mut link = link(options.clone(), 5);
    (0..until / period)
        .map(|k| {
            let now = k * period;
            link.transmit(now, &mut [0u8; 114], 0).unwrap();
            link.poll(now).unwrap().dropped.is_some()
        })
        .collect()
}

/// Bursts in time: exponential stays, at the same instants whatever is sent, and through silence.
#[test]
fn bursts_in_time_do_not_depend_on_the_frames() {
    let options = LinkOptions {
        ge_good_ns: 300 * MS,
        ge_bad_ns: 100 * MS,
        ..LinkOptions::default()
    };
    let lost = fates_in_time(&options, MS, 1_000_000 * MS);
    let bursts = runs(&lost);
    let n = bursts.len() as f64;
    let mean = bursts.iter().sum::<usize>() as f64 / n;
    // An exponential stay of 100 ms is seen by this many frames on average, one with none left out.
    let expected = 1.0 / (1.0 - (-0.01f64).exp());
    assert!((mean - expected).abs() < 4.0 * 100.0 / n.sqrt(), "{mean}");
    // So many begin in 1000 s: one each 400 ms.
    assert!((n - 2_475.0).abs() < 4.0 * 50.0, "{n}");
    let seldom = fates_in_time(&options, 250 * MS, 1_000_000 * MS);
    let same = lost.iter().step_by(250).zip(&seldom);
    assert!(
        same.clone().count() == 4_000 && same.into_iter().all(|(often, seldom)| often == seldom)
    );
}

/// The trace and the bursts of a link begin when it does, however late by the clock that is.
#[test]
fn bursts_in_time_begin_in_the_good_state_when_the_link_begins() {
    let options = LinkOptions {
        ge_good_ns: 60_000 * MS,
        ge_bad_ns: MS,
        ..LinkOptions::default()
    };
    let at = 1 << 60;
    let mut link = link(options, 1);
    link.begin(at);
    link.transmit(at, &mut [0u8; 114], 0).unwrap();
    assert_eq!(link.poll(at).unwrap().dropped, None);
}

#[test]
fn bursts_in_time_stand_alone_and_are_not_shorter_than_a_millisecond() {
    let error = |ge_good_ns, ge_bad_ns, ge_enter| {
        let options = LinkOptions {
            ge_good_ns,
            ge_bad_ns,
            ge_enter,
            ..LinkOptions::default()
        };
        options.check().unwrap_err().to_string()
    };
    assert_eq!(
        error(2 * MS, 3 * MS, 0.1),
        "ge_good_ns: 2000000 stands beside ge_enter (0.1); allowed: one of them, the other 0"
    );
    assert_eq!(
        error(2 * MS, 0, 0.0),
        "ge_good_ns: 2000000 with ge_bad_ns 0; allowed: both at least 1000000 ns, or both 0"
    );
    assert_eq!(
        error(0, MS / 2, 0.0),
        "ge_good_ns: 0 with ge_bad_ns 500000; allowed: both at least 1000000 ns, or both 0"
    );
}
