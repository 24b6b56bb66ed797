// SPDX-License-Identifier: Apache-2.0
//! The `tcp` object of a simulation's configuration: every knob of an endpoint with its default and range.

use crate::cc::{CcName, Params};
use crate::Nanos;
use serde::Deserialize;

/// How the sender repairs losses that duplicate ACKs reveal.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Recovery {
    /// Fast retransmit, then slow start from one packet (Jacobson 1988).
    Tahoe,
    /// Fast recovery that ends with the first ACK for new data (RFC 5681 §3.2).
    Reno,
    /// A partial ACK repairs the next hole (RFC 6582).
    #[default]
    Newreno,
    /// Scoreboard and pipe from SACK blocks, NextSeg() with its rules 3 and 4 (RFC 6675); as `newreno` when the peer does not permit SACK.
    Sack,
}

/// What the peer's window limits while the sender knows by SACK what lies above a hole.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SackLimit {
    /// What was sent above snd_una, as RFC 9293 has it.
    #[default]
    Window,
    /// What was sent and not SACKed; the receiver's buffer takes `sack_buffer_windows`. Without SACK as `window`.
    Outstanding,
}

/// How the retransmission timeout follows from the RTT samples.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RtoRule {
    /// RTO = SRTT + the largest deviation of late, `rto_min_ns` at least: `rto_min_ns` comes on top of SRTT.
    #[default]
    Linux,
    /// RTO = max(`rto_min_ns`, SRTT + max(G, 4·RTTVAR)) (RFC 6298 §2).
    Rfc6298,
    /// RTO = max(`rto_min_ns`, β·SRTT) (RFC 793 §3.7), β = `rto_beta_percent`/100.
    Rfc793,
}

/// Which corrupted segments a receiver's ACKs name.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Naming {
    /// The ACK that answers a corrupted segment names that one; others name nothing (the ENA paper, section IV).
    #[default]
    Own,
    /// Every ACK names the lowest that is missing (ENA+).
    Lowest,
}

/// When the doubling of the RTO by timeouts ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Backoff {
    /// With an RTT sample: an ACK of data that was sent once, or with a timestamp (Karn; RFC 6298 §5.7).
    #[default]
    Kept,
    /// With the first ACK of new data.
    Reset,
}

/// A value outside of its range.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{key}: {value} is not allowed (allowed: {allowed})")]
pub struct ConfigError {
    pub key: &'static str,
    pub value: u64,
    pub allowed: String,
}

/// One endpoint's options; `validate` checks the ranges.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TcpConfig {
    /// A sender of `hosts/cc/`: `reno`, `reno_recovery`, `vegas`, `tahoe`, `bcr`, …
    pub cc: CcName,
    /// Packets; none: the control's own default.
    pub alpha: Option<u32>,
    pub beta: Option<u32>,
    pub gamma: Option<u32>,
    pub recovery: Recovery,
    /// Application bytes of a full segment, 1..=65483: the options of a data segment come on top.
    pub mss_bytes: u32,
    /// Acknowledge every second full segment (RFC 9293 §3.8.6.3) instead of each.
    pub delayed_ack: bool,
    pub delayed_ack_timeout_ns: Nanos,
    /// Segments acknowledged at once when a connection begins (Linux: 16), 0..=255.
    pub quick_acks: u32,
    /// Offer timestamps (RFC 7323): an RTT sample with each ACK, undo by Eifel (RFC 3522).
    pub timestamps: bool,
    /// Offer window scaling (RFC 7323 §2); the shift follows from the receive window.
    pub window_scale: bool,
    /// Receive buffer, 0 (never the limit) or up to 2^30.
    pub receive_window_bytes: u64,
    /// With SACK: does the peer's window hold what lies above a hole too? Both ends need the same.
    pub sack_limit: SackLimit,
    /// With `sack_limit` `outstanding`: windows that the receive buffer takes, 2..=16.
    pub sack_buffer_windows: u32,
    /// cwnd after the handshake, 1..=65535.
    pub initial_window_packets: u32,
    /// 0: none, so slow start until the first loss.
    pub initial_ssthresh_packets: u32,
    /// Upper bound of cwnd; 0: none.
    pub cwnd_clamp_packets: u32,
    pub rto_rule: RtoRule,
    pub backoff: Backoff,
    /// Of the host's clock, in which its timers and its RTTs are counted (Linux: 1/HZ); 1: exact.
    pub tick_ns: Nanos,
    /// Before the first sample (RFC 6298 §2.1), 1 µs..=`rto_max_ns`.
    pub rto_initial_ns: Nanos,
    pub rto_min_ns: Nanos,
    /// Bound of the back-off, at most an hour.
    pub rto_max_ns: Nanos,
    /// G of RFC 6298 §2: the least value of 4·RTTVAR in the RTO.
    pub rto_granularity_ns: Nanos,
    /// With `Rfc793`: 100..=1000; the RFC's example is 130 to 200.
    pub rto_beta_percent: u32,
    /// Detect spurious timeouts (RFC 5682).
    pub frto: bool,
    /// New data instead of the head on the first three timeouts in a row (E-RTO).
    pub erto: bool,
    /// Proportional rate reduction (RFC 6937) in recovery, with `newreno` and `sack`.
    pub prr: bool,
    /// Find losses by time (RACK, RFC 8985), with SACK only.
    pub rack: bool,
    /// New data for the first duplicate ACKs (RFC 3042).
    pub limited_transmit: bool,
    /// Duplicate ACKs that mean a loss, 1..=255.
    pub dupack_threshold: u32,
    /// Restart from the initial window after an idle RTO (RFC 5681 §4.1).
    pub slow_start_after_idle: bool,
    /// Offer ECN, and grant it (RFC 3168); a control that needs it does without being told.
    pub ecn: bool,
    /// Data is ECT(1), as of an L4S sender (RFC 9331 §4.1): with ECN instead of ECT(0), datagrams in any case.
    pub ect1: bool,
    /// Error notification: this end names to the peer what it gets corrupted (docs/concepts/ena.md). What a sender makes of
    /// names is its control's.
    pub ena: bool,
    /// With `ena`: which of them its ACKs name.
    pub ena_naming: Naming,
    /// With a control that has ENA: a named segment counts as lost, and goes again, at the ACK that names it (the paper);
    /// false: when duplicate ACKs or SACK find it, as a kernel's does.
    pub repairs_named: bool,
}

impl Default for TcpConfig {
    fn default() -> TcpConfig {
        TcpConfig {
            cc: CcName::default(),
            alpha: None,
            beta: None,
            gamma: None,
            recovery: Recovery::default(),
            mss_bytes: 1460,
            delayed_ack: true,
            delayed_ack_timeout_ns: 40_000_000,
            quick_acks: 0,
            timestamps: false,
            window_scale: true,
            receive_window_bytes: 0,
            sack_limit: SackLimit::default(),
            sack_buffer_windows: 2,
            initial_window_packets: 10,
            initial_ssthresh_packets: 0,
            cwnd_clamp_packets: 0,
            rto_rule: RtoRule::default(),
            backoff: Backoff::default(),
            tick_ns: 1,
            rto_initial_ns: 1_000_000_000,
            rto_min_ns: 200_000_000,
            rto_max_ns: 120_000_000_000,
            rto_granularity_ns: 1_000_000,
            rto_beta_percent: 200,
            frto: false,
            erto: false,
            prr: false,
            rack: false,
            limited_transmit: true,
            dupack_threshold: 3,
            slow_start_after_idle: false,
            ecn: false,
            ect1: false,
            ena: false,
            ena_naming: Naming::default(),
            repairs_named: false,
        }
    }
}

/// The receive buffer when `receive_window_bytes` is 0: the largest window that TCP can announce (RFC 7323 §2.3).
pub const LARGEST_WINDOW_BYTES: u64 = 1 << 30;
const HOUR_NS: Nanos = 3_600_000_000_000;
const MIN_RTO_NS: Nanos = 1_000;
const MAX_TICK_NS: Nanos = 1_000_000_000;

impl TcpConfig {
    /// Checks every range.
    ///
    /// # Errors
    /// `ConfigError` with the first key whose value is not allowed, and what is.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let within = |key, value: u64, least: u64, most: u64| {
            if (least..=most).contains(&value) {
                Ok(())
            } else {
                Err(ConfigError {
                    key,
                    value,
                    allowed: format!("{least} to {most}"),
                })
            }
        };
        within("mss_bytes", self.mss_bytes.into(), 1, 65_483)?;
        within("quick_acks", self.quick_acks.into(), 0, 255)?;
        within(
            "delayed_ack_timeout_ns",
            self.delayed_ack_timeout_ns,
            1,
            HOUR_NS,
        )?;
        within(
            "receive_window_bytes",
            self.receive_window_bytes,
            0,
            LARGEST_WINDOW_BYTES,
        )?;
        within(
            "sack_buffer_windows",
            self.sack_buffer_windows.into(),
            2,
            16,
        )?;
        within(
            "initial_window_packets",
            self.initial_window_packets.into(),
            1,
            65_535,
        )?;
        within("tick_ns", self.tick_ns, 1, MAX_TICK_NS)?;
        within("rto_max_ns", self.rto_max_ns, MIN_RTO_NS, HOUR_NS)?;
        within(
            "rto_initial_ns",
            self.rto_initial_ns,
            MIN_RTO_NS,
            self.rto_max_ns,
        )?;
        within("rto_min_ns", self.rto_min_ns, 0, self.rto_max_ns)?;
        within(
            "rto_beta_percent",
            u64::from(self.rto_beta_percent),
            100,
            1000,
        )?;
        within(
            "rto_granularity_ns",
            self.rto_granularity_ns,
            0,
            self.rto_max_ns,
        )?;
        within("dupack_threshold", self.dupack_threshold.into(), 1, 255)?;
        let params = self.params();
        within("alpha", params.alpha.into(), 0, 10_000)?;
        within("beta", params.beta.into(), u64::from(params.alpha), 10_000)?;
        within("gamma", params.gamma.into(), 0, 10_000)
    }

    /// alpha, beta and gamma in force.
    pub fn params(&self) -> Params {
        let defaults = self.cc.default_params();
        Params {
            alpha: self.alpha.unwrap_or(defaults.alpha),
            beta: self.beta.unwrap_or(defaults.beta),
            gamma: self.gamma.unwrap_or(defaults.gamma),
        }
    }

    /// The receive buffer in force, bytes.
    pub fn receive_buffer_bytes(&self) -> u64 {
        match self.receive_window_bytes {
            0 => LARGEST_WINDOW_BYTES,
            bytes => bytes,
        }
    }
}
