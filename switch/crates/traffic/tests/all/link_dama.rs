// SPDX-License-Identifier: Apache-2.0
//! Capacity on request: when a packet leaves, by arithmetic.

use traffic::link::{Link, LinkOptions, LinkStreams};

const MS: u64 = 1_000_000;
/// Of OpenSAND's return link: 26.5 ms; 2 Mbit/s are 53,000 bit a frame.
const FRAME: u64 = 26_500_000;
/// 500 ms are 19 frames.
const GRANT: u64 = 19 * FRAME;

fn options() -> LinkOptions {
    LinkOptions {
        rate_bps: 2_000_000,
        dama_frame_ns: FRAME,
        dama_delay_ns: 500 * MS,
        ..LinkOptions::default()
    }
}

/// When packets of 1000 bytes leave that come at these instants.
fn leave(options: LinkOptions, at: &[u64]) -> Vec<u64> {
    let mut link = Link::new(options, LinkStreams::new(1, "x"), 64).unwrap();
    for &now in at {
        link.transmit(now, &mut [0u8; 1000], now).unwrap();
    }
    std::iter::from_fn(|| link.poll(u64::MAX / 2).map(|exit| exit.at)).collect()
}

/// A request at the next frame's start, the grant a round trip later, and 8000 bit at 2 Mbit/s: 4 ms.
#[test]
fn an_idle_terminal_waits_for_its_first_grant() {
    for (at, granted) in [
        (0, GRANT),
        (1, FRAME + GRANT),
        (FRAME, FRAME + GRANT),
        (3 * FRAME - 1, 3 * FRAME + GRANT),
    ] {
        assert_eq!(leave(options(), &[at]), [granted + 4 * MS], "{at}");
    }
    // What comes while the first waits is granted by itself, in its own frame.
    assert_eq!(
        leave(options(), &[0, 0, 30 * MS]),
        [GRANT + 4 * MS, GRANT + 8 * MS, 2 * FRAME + GRANT + 4 * MS]
    );
}

/// A frame carries 53,000 bit: six packets and 5,000 bit of the seventh, which goes on with the next frame.
#[test]
fn a_full_frame_is_continued_in_the_next_one() {
    let left = leave(options(), &[0; 8]);
    let within = (1..=6).map(|n| GRANT + n * 4 * MS);
    assert!(left.iter().copied().take(6).eq(within), "{left:?}");
    assert_eq!(
        left[6..],
        [GRANT + FRAME + 1_500_000, GRANT + FRAME + 5_500_000]
    );
}

/// Whoever sends more than the rate gets the rate: the second packet and all behind it are asked for a frame later, and fill
/// their frames.
#[test]
fn a_saturated_terminal_gets_its_rate() {
    let at: Vec<u64> = (0..900).map(|n| n * MS).collect();
    let left = leave(options(), &at);
    assert_eq!(left.len(), 900);
    assert_eq!(left[..2], [GRANT + 4 * MS, GRANT + FRAME + 4 * MS]);
    let span = left[899] - left[1];
    assert!(span.abs_diff(898 * 4 * MS) <= 898, "{span}");
}

/// 302 kbit/s without a request are 8,003 bit a frame: a packet now and then never waits for a grant, and what was asked
/// for it carries others.
#[test]
fn a_constant_rate_needs_no_request() {
    let constant = LinkOptions {
        dama_cra_bps: 302_000,
        ..options()
    };
    let left = leave(constant.clone(), &[5 * MS, 200 * MS]);
    assert_eq!(left, [9 * MS, 204 * MS]);
    // The second of two has 3 bit of this frame, and the rest of the next.
    let left = leave(constant, &[0, 0]);
    assert_eq!(left[0], 4 * MS);
    assert_eq!(left[1], FRAME + (8_000 - 3) * 500);
}

/// Requests of the old settings are gone; what waits asks anew.
#[test]
fn a_change_begins_anew() {
    let mut link = Link::new(
        LinkOptions {
            rate_bps: 2_000_000,
            ..LinkOptions::default()
        },
        LinkStreams::new(1, "x"),
        8,
    )
    .unwrap();
    for now in 0..3 {
        link.transmit(now, &mut [0u8; 1000], now).unwrap();
    }
    link.set(MS, options()).unwrap();
    let left: Vec<u64> =
        std::iter::from_fn(|| link.poll(u64::MAX / 2).map(|exit| exit.at)).collect();
    assert_eq!(left, [1, 2, 3].map(|n| MS + GRANT + n * 4 * MS));
}

#[test]
fn what_makes_no_sense_is_told() {
    let error = |change: fn(&mut LinkOptions)| {
        let mut options = options();
        change(&mut options);
        options.check().unwrap_err().to_string()
    };
    assert_eq!(
        error(|o| o.rate_bps = 0),
        "dama_frame_ns: 26500000 cannot be; allowed: beside a rate_bps that is a number"
    );
    assert_eq!(
        error(|o| o.dama_frame_ns = 5),
        "dama_frame_ns: 5 cannot be; allowed: at least 1000000 ns, or 0"
    );
    assert_eq!(
        error(|o| o.dama_cra_bps = 3_000_000),
        "dama_frame_ns: 26500000 cannot be; allowed: with dama_cra_bps (3000000) of at most rate_bps (2000000)"
    );
}
