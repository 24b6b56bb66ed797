// SPDX-License-Identifier: Apache-2.0
//! What changes at given instants, and what is sampled.

use super::{Direction, LinkSettings};
use device::{Nanos, Rate};
use serde::Deserialize;
use traffic::link::SpikeBlocks;

/// A change: of a link (`link` with `set`, `spike_ns` or `outage_ns`) or of a switch port (`switch` and `port` with
/// `rate_bps`, `queue_packets` or `spike_ns`).
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Change {
    pub at_ns: Nanos,
    pub link: Option<String>,
    pub direction: Option<Direction>,
    /// New settings; those that are not named stay.
    pub set: Option<LinkSettings>,
    /// A delay spike of this time; of a port: it blocks the line.
    pub spike_ns: Option<Nanos>,
    /// Of a link's spike.
    pub spike_blocks: Option<SpikeBlocks>,
    /// Lose everything for this time.
    pub outage_ns: Option<Nanos>,
    pub switch: Option<String>,
    pub port: Option<u32>,
    pub rate_bps: Option<Rate>,
    pub queue_packets: Option<u64>,
}

/// What is sampled, from time 0 on. TCP flows are sampled always.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sample {
    pub period_ns: Nanos,
    #[serde(default)]
    pub ports: Vec<PortSample>,
    #[serde(default)]
    pub registers: Vec<RegisterSample>,
}

/// A switch port to sample.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PortSample {
    pub switch: String,
    pub port: u32,
}

/// Elements of a P4 register to sample.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RegisterSample {
    pub switch: String,
    /// Name in the program, such as `flow_occupancy`, or its last part where that is unique.
    pub register: String,
    pub indices: Vec<u32>,
}
