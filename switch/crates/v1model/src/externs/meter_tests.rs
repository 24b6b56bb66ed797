// SPDX-License-Identifier: Apache-2.0
//! Meters against BMv2's own test vector and against a reference that counts from the origin of time, in virtual time.

use super::*;
use proptest::prelude::*;

const MS: u64 = 1_000_000;
const S: u64 = 1_000_000_000;
const ZERO: MeterConfig = MeterConfig {
    cir: 0,
    cburst: 0,
    pir: 0,
    pburst: 0,
};

#[test]
fn two_rate_three_colours_as_in_bmv2() {
    // The same rates and times as BMv2's tests/test_meters.cpp (trTCM): 2 packets/s burst 3, 10 packets/s burst 1.
    let config = MeterConfig {
        cir: 2,
        cburst: 3,
        pir: 10,
        pburst: 1,
    };
    let mut t = 7 * S;
    let mut meter = Meter::new(&config);
    let mut colors = Vec::new();
    for _ in 0..9 {
        colors.push(meter.color(t, 1));
        t += 90 * MS;
    }
    for _ in 0..3 {
        colors.push(meter.color(t, 1));
        t += 10 * MS;
    }
    t += 200 * MS;
    colors.push(meter.color(t, 1));
    assert_eq!(
        colors,
        [
            GREEN, RED, GREEN, GREEN, YELLOW, YELLOW, GREEN, YELLOW, YELLOW, YELLOW, RED, RED,
            GREEN
        ]
    );
}

#[test]
fn unconfigured_is_green_and_reset_makes_it_so_again() {
    let mut m = Meters::new(4, MeterUnit::Bytes);
    assert_eq!(m.execute(3, 0, 1500), Some(GREEN));
    assert_eq!(m.get(3), Some(None));
    let zero = ZERO;
    assert!(m.set(3, Some(&zero)));
    assert_eq!(m.get(3), Some(Some(zero)));
    assert_eq!(m.execute(3, S, 1500), Some(RED));
    assert_eq!(m.execute(2, S, 1500), Some(GREEN));
    assert!(m.set(3, None));
    assert_eq!(m.execute(3, S, 1500), Some(GREEN));
    assert_eq!(m.get(3), Some(None));
}

#[test]
fn out_of_range_is_refused() {
    let mut m = Meters::new(4, MeterUnit::Packets);
    assert_eq!(m.execute(4, 0, 1), None);
    assert_eq!(m.get(4), None);
    assert!(!m.set(4, None));
    assert!(!m.set(u64::MAX, Some(&ZERO)));
}

#[test]
fn packets_weigh_one_and_bytes_their_length() {
    let config = MeterConfig {
        cir: 1,
        cburst: 3,
        pir: 1,
        pburst: 3,
    };
    let mut packets = Meters::new(1, MeterUnit::Packets);
    packets.set(0, Some(&config));
    assert_eq!(
        [0; 4].map(|_| packets.execute(0, 0, 1500).unwrap()),
        [GREEN, GREEN, GREEN, RED]
    );
    let mut bytes = Meters::new(1, MeterUnit::Bytes);
    bytes.set(0, Some(&config));
    assert_eq!(bytes.execute(0, 0, 4), Some(RED));
    assert_eq!(bytes.execute(0, 0, 3), Some(GREEN));
    assert_eq!(bytes.execute(0, 0, 1), Some(RED));
}

#[test]
fn peak_below_committed_is_refused_with_both_numbers() {
    let config = MeterConfig {
        cir: 10,
        cburst: 1,
        pir: 9,
        pburst: 1,
    };
    assert_eq!(
        check_config(&config).unwrap_err().message,
        "peak rate 9 is below the committed rate 10; it must be at least the committed rate"
    );
    assert!(check_config(&MeterConfig { pir: 10, ..config }).is_ok());
}

#[test]
fn no_burst_and_no_pause_overflows() {
    let config = MeterConfig {
        cir: u64::MAX,
        cburst: u64::MAX,
        pir: u64::MAX,
        pburst: u64::MAX,
    };
    let mut meter = Meter::new(&config);
    assert_eq!(meter.color(u64::MAX, u32::MAX), GREEN);
    assert_eq!(meter.color(0, u32::MAX), GREEN);
    assert_eq!(meter.config(), Some(config));
}

#[test]
fn long_run_rate_is_exact_from_1_kbit_to_100_gbit() {
    // Offered without a gap at twice the rate: what passes is burst + rate · time, to the packet.
    for rate_bps in [
        1_000u64,
        64_000,
        2_000_000,
        155_520_000,
        1_000_000_000,
        10_000_000_000,
        100_000_000_000,
    ] {
        let rate = rate_bps / 8;
        let len = 1500u32;
        let burst = 3 * u64::from(len);
        let mut meter = Meter::new(&MeterConfig {
            cir: rate,
            cburst: burst,
            pir: rate,
            pburst: burst,
        });
        let packets = 200_000u64;
        // Twice the rate: half of a packet's serialisation time apart.
        let at = |i: u64| {
            (u128::from(i) * u128::from(len) * 1_000_000_000 / (2 * u128::from(rate))) as u64
        };
        let passed = (0..packets)
            .filter(|&i| meter.color(at(i), len) == GREEN)
            .count() as u64;
        let tokens =
            u128::from(burst) + u128::from(rate) * u128::from(at(packets - 1)) / 1_000_000_000;
        let expected = (tokens / u128::from(len)) as u64;
        assert!(
            passed <= expected && passed + 1 >= expected,
            "{rate_bps} bit/s: {passed} of {expected}"
        );
    }
}

/// BMv2's way to the same numbers: all tokens since the origin of time, anew for each packet.
struct Reference {
    config: MeterConfig,
    tokens: [u128; 2],
    since_origin: [u128; 2],
}

impl Reference {
    fn color(&mut self, now: u64, units: u32) -> u8 {
        let rates = [self.config.pir, self.config.cir];
        let bursts = [self.config.pburst, self.config.cburst];
        for i in 0..2 {
            let since_origin = u128::from(rates[i]) * u128::from(now) / 1_000_000_000;
            let gained = since_origin - self.since_origin[i];
            self.since_origin[i] = since_origin;
            self.tokens[i] = (self.tokens[i] + gained).min(u128::from(bursts[i]));
        }
        let units = u128::from(units);
        if self.tokens[0] < units {
            return RED;
        }
        self.tokens[0] -= units;
        if self.tokens[1] < units {
            return YELLOW;
        }
        self.tokens[1] -= units;
        GREEN
    }
}

proptest! {
    #[test]
    fn agrees_with_the_reference(
        rate_exp in 7u32..34,
        fraction in 1u64..1000,
        peak_factor in 100u64..400,
        cburst in 0u64..100_000,
        pburst in 0u64..100_000,
        packets in proptest::collection::vec((0u64..5_000, 1u32..9000), 1..300),
    ) {
        // 1 kbit/s (125 bytes/s) to more than 100 Gbit/s.
        let cir = (1u64 << rate_exp) * fraction / 1000 + 1;
        let config = MeterConfig { cir, cburst, pir: cir * peak_factor / 100, pburst };
        let mut meter = Meter::new(&config);
        let mut reference = Reference {
            config,
            tokens: [u128::from(pburst), u128::from(cburst)],
            since_origin: [0, 0],
        };
        let mut now = 0u64;
        for (gap, units) in packets {
            // Gaps of the order of a packet's time at this rate.
            now += gap * S / cir / 10 + gap % 7;
            prop_assert_eq!(meter.color(now, units), reference.color(now, units));
        }
    }
}
