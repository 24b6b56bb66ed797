// SPDX-License-Identifier: Apache-2.0
//! Round-trip time and retransmission timeout (RFC 6298; Linux's variation on request).

use crate::config::{RtoRule, TcpConfig};
use crate::seq::after;
use crate::Nanos;

/// RFC 6298 §5.7: the RTO for data when the SYN itself timed out.
const RTO_AFTER_LOST_SYN_NS: Nanos = 3_000_000_000;

#[derive(Debug)]
pub struct RttEstimator {
    rule: RtoRule,
    min_ns: Nanos,
    max_ns: Nanos,
    granularity_ns: Nanos,
    beta_percent: u32,
    tick_ns: Nanos,
    /// 0 before the first sample. Eight times the mean, so that an eighth of a sample is not lost to rounding.
    srtt_8ns: u64,
    /// Mean deviation, times four.
    deviation_4ns: u64,
    /// What stands for 4·RTTVAR in the RTO.
    margin_ns: Nanos,
    /// `Linux`: the largest 4·deviation of this round trip, which ends when `round_end` is acknowledged.
    round_margin_ns: Nanos,
    round_end: u32,
    min_rtt_ns: Nanos,
    rto_ns: Nanos,
}

impl RttEstimator {
    pub fn new(config: &TcpConfig) -> RttEstimator {
        RttEstimator {
            rule: config.rto_rule,
            min_ns: config.rto_min_ns,
            max_ns: config.rto_max_ns,
            granularity_ns: config.rto_granularity_ns,
            beta_percent: config.rto_beta_percent,
            tick_ns: config.tick_ns,
            srtt_8ns: 0,
            deviation_4ns: 0,
            margin_ns: 0,
            round_margin_ns: 0,
            round_end: 0,
            min_rtt_ns: 0,
            rto_ns: config.rto_initial_ns,
        }
    }

    /// A sample; `snd_una` and `snd_nxt` tell round trips apart. Ends any back-off (RFC 6298 §5.7).
    pub fn sample(&mut self, rtt_ns: Nanos, snd_una: u32, snd_nxt: u32) {
        let first = self.srtt_8ns == 0;
        if first {
            self.srtt_8ns = (rtt_ns * 8).max(1); // RFC 6298 §2.2
            self.deviation_4ns = rtt_ns * 2; // RTTVAR = R/2
        } else {
            let srtt_ns = self.srtt_ns();
            let error_ns = rtt_ns.abs_diff(srtt_ns);
            let deviation_ns = self.deviation_4ns / 4;
            // RFC 6298 §2.3. Linux: an RTT that falls is no reason to wait longer, its deviation counts an eighth.
            if self.rule == RtoRule::Linux && rtt_ns < srtt_ns && error_ns > deviation_ns {
                self.deviation_4ns += (error_ns - deviation_ns) / 8;
            } else {
                self.deviation_4ns = self.deviation_4ns - deviation_ns + error_ns;
            }
            self.srtt_8ns = (self.srtt_8ns - srtt_ns + rtt_ns).max(1);
        }
        self.min_rtt_ns = if first {
            rtt_ns
        } else {
            self.min_rtt_ns.min(rtt_ns)
        };
        match self.rule {
            RtoRule::Rfc6298 | RtoRule::Rfc793 => self.margin_ns = self.deviation_4ns,
            RtoRule::Linux => self.update_linux_margin(first, snd_una, snd_nxt),
        }
        self.set_rto();
    }

    /// Grows at once, and falls by a quarter of the difference once a round trip, never below `rto_min_ns`.
    fn update_linux_margin(&mut self, first: bool, snd_una: u32, snd_nxt: u32) {
        if first {
            self.margin_ns = self.deviation_4ns.max(self.min_ns);
            self.round_margin_ns = self.margin_ns;
            self.round_end = snd_nxt;
            return;
        }
        self.round_margin_ns = self.round_margin_ns.max(self.deviation_4ns);
        self.margin_ns = self.margin_ns.max(self.round_margin_ns);
        if after(snd_una, self.round_end) {
            self.margin_ns -= (self.margin_ns - self.round_margin_ns) / 4;
            self.round_margin_ns = self.min_ns;
            self.round_end = snd_nxt;
        }
    }

    fn set_rto(&mut self) {
        let rto_ns = self.srtt_ns() + self.margin_ns.max(self.granularity_ns);
        self.rto_ns = match self.rule {
            RtoRule::Rfc6298 => rto_ns.max(self.min_ns), // §2.4
            RtoRule::Linux => rto_ns,
            RtoRule::Rfc793 => {
                (self.srtt_ns() * Nanos::from(self.beta_percent) / 100).max(self.min_ns)
            }
        }
        .min(self.max_ns);
    }

    /// The timer ran out: RFC 6298 §5.5.
    pub fn back_off(&mut self) {
        self.rto_ns = self.rto_ns.saturating_mul(2).min(self.max_ns);
    }

    /// The RTO is again what the samples say.
    pub fn end_back_off(&mut self) {
        if self.srtt_8ns > 0 {
            self.set_rto();
        }
    }

    /// The SYN was retransmitted: it gave no sample, and the initial RTO was too small (RFC 6298 §5.7).
    pub fn syn_was_lost(&mut self) {
        if self.srtt_8ns == 0 {
            self.rto_ns = RTO_AFTER_LOST_SYN_NS.min(self.max_ns);
        }
    }

    pub fn rto_ns(&self) -> Nanos {
        self.rto_ns
    }

    /// 0 before the first sample. Whole ticks (Linux: `srtt >> 3`).
    pub fn srtt_ns(&self) -> Nanos {
        self.srtt_8ns / 8 / self.tick_ns * self.tick_ns
    }

    /// RTTVAR of RFC 6298; Linux's counts the largest deviation of late.
    pub fn rttvar_ns(&self) -> Nanos {
        self.margin_ns / 4
    }

    pub fn min_rtt_ns(&self) -> Nanos {
        self.min_rtt_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Nanos = 1_000_000;

    fn estimator(rule: RtoRule, min_ms: u64) -> RttEstimator {
        RttEstimator::new(&TcpConfig {
            rto_rule: rule,
            rto_min_ns: min_ms * MS,
            ..TcpConfig::default()
        })
    }

    #[test]
    fn rfc_6298_by_hand() {
        let mut rtt = estimator(RtoRule::Rfc6298, 0);
        assert_eq!(rtt.rto_ns(), 1000 * MS);
        rtt.sample(100 * MS, 0, 0);
        assert_eq!(
            (rtt.srtt_ns(), rtt.rttvar_ns(), rtt.rto_ns()),
            (100 * MS, 50 * MS, 300 * MS)
        );
        rtt.sample(180 * MS, 0, 0); // RTTVAR = 3/4·50 + 1/4·80, SRTT = 7/8·100 + 1/8·180
        assert_eq!(
            (rtt.srtt_ns(), rtt.rttvar_ns(), rtt.rto_ns()),
            (110 * MS, 57_500_000, 340 * MS)
        );
    }

    #[test]
    fn rfc_793_multiplies_the_mean_and_knows_no_deviation() {
        let config = TcpConfig {
            rto_rule: RtoRule::Rfc793,
            rto_min_ns: 4 * MS,
            rto_beta_percent: 100,
            ..TcpConfig::default()
        };
        let mut rtt = RttEstimator::new(&config);
        rtt.sample(100 * MS, 0, 0);
        assert_eq!(rtt.rto_ns(), 100 * MS);
        rtt.sample(180 * MS, 0, 0);
        assert_eq!(rtt.rto_ns(), 110 * MS); // 7/8·100 + 1/8·180
        let mut short = RttEstimator::new(&config);
        short.sample(MS, 0, 0);
        assert_eq!(short.rto_ns(), 4 * MS);
    }

    #[test]
    fn the_minimum_bounds_the_whole_rto_in_the_rfc_and_the_margin_in_linux() {
        let (mut rfc, mut linux) = (
            estimator(RtoRule::Rfc6298, 200),
            estimator(RtoRule::Linux, 200),
        );
        for round in 0..100 {
            rfc.sample(20 * MS, round, round);
            linux.sample(20 * MS, round, round);
        }
        assert_eq!((rfc.rto_ns(), linux.rto_ns()), (200 * MS, 220 * MS));
    }

    #[test]
    fn back_off_doubles_to_the_maximum_and_ends_with_a_sample() {
        let mut rtt = estimator(RtoRule::Rfc6298, 200);
        let seen: Vec<u64> = (0..9)
            .map(|_| (rtt.rto_ns() / MS, rtt.back_off()).0)
            .collect();
        assert_eq!(
            seen,
            [1000, 2000, 4000, 8000, 16000, 32000, 64000, 120_000, 120_000]
        );
        rtt.sample(10 * MS, 0, 0);
        assert_eq!(rtt.rto_ns(), 200 * MS);
    }

    #[test]
    fn granularity_is_the_least_margin() {
        let config = TcpConfig {
            rto_min_ns: 0,
            rto_granularity_ns: 10 * MS,
            rto_rule: RtoRule::Rfc6298,
            ..TcpConfig::default()
        };
        let mut rtt = RttEstimator::new(&config);
        for _ in 0..100 {
            rtt.sample(20 * MS, 0, 0);
        }
        assert_eq!(rtt.rto_ns(), 30 * MS);
    }

    /// As Linux's integers: `m -= srtt >> 3; srtt += m`, with m in ticks.
    #[test]
    fn the_mean_counts_in_whole_ticks() {
        let mut rtt = RttEstimator::new(&TcpConfig {
            rto_rule: RtoRule::Rfc793,
            rto_beta_percent: 100,
            rto_min_ns: 0,
            tick_ns: 10 * MS,
            ..TcpConfig::default()
        });
        let seen = [10, 40, 40, 40, 10, 10, 10].map(|sample_ms| {
            rtt.sample(sample_ms * MS, 0, 0);
            (rtt.srtt_ns() / MS, rtt.rto_ns() / MS)
        });
        let ticks = [10, 10, 10, 20, 20, 10, 10]; // srtt: 8, 11, 14, 17, 16, 15, 15 eighths
        assert_eq!(seen, ticks.map(|ms| (ms, ms)));
    }
}
