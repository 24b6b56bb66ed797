// SPDX-License-Identifier: Apache-2.0
//! Links: two ends, and the settings of each direction.

use device::Nanos;
use serde::Deserialize;
use traffic::link::{JitterDistribution, LinkOptions};

/// A link between two nodes.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkConfig {
    /// Unique.
    pub name: String,
    pub a: End,
    pub b: End,
    /// What differs from a perfect line.
    #[serde(default)]
    pub a_to_b: LinkSettings,
    #[serde(default)]
    pub b_to_a: LinkSettings,
}

/// Where a link ends: a switch's port, or a host (which has one interface).
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct End {
    pub node: String,
    /// Of a switch; a host has none.
    #[serde(default)]
    pub port: Option<u32>,
}

/// Which direction of a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    AToB,
    BToA,
    #[default]
    Both,
}

impl Direction {
    /// The direction of this name.
    pub fn from_name(name: &str) -> Option<Direction> {
        match name {
            "a_to_b" => Some(Direction::AToB),
            "b_to_a" => Some(Direction::BToA),
            "both" => Some(Direction::Both),
            _ => None,
        }
    }

    /// Indices into [a_to_b, b_to_a].
    pub(crate) fn indices(self) -> std::ops::Range<usize> {
        match self {
            Direction::AToB => 0..1,
            Direction::BToA => 1..2,
            Direction::Both => 0..2,
        }
    }
}

/// Settings of one direction; what is not given stays as it is.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkSettings {
    pub delay_ns: Option<Nanos>,
    pub jitter_ns: Option<Nanos>,
    pub jitter_distribution: Option<Jitter>,
    pub reorder: Option<bool>,
    /// 0: unlimited.
    pub rate_bps: Option<u64>,
    pub loss: Option<f64>,
    pub ber: Option<f64>,
    /// Waiting for the line; without meaning while the rate is unlimited.
    pub queue_packets: Option<usize>,
}

/// How the delay deviates from its mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Jitter {
    Uniform,
    Normal,
}

impl LinkSettings {
    /// `options` with these settings.
    pub fn applied_to(&self, options: &LinkOptions) -> LinkOptions {
        LinkOptions {
            delay_ns: self.delay_ns.unwrap_or(options.delay_ns),
            jitter_ns: self.jitter_ns.unwrap_or(options.jitter_ns),
            jitter_distribution: match self.jitter_distribution {
                Some(Jitter::Uniform) => JitterDistribution::Uniform,
                Some(Jitter::Normal) => JitterDistribution::Normal,
                None => options.jitter_distribution,
            },
            reorder: self.reorder.unwrap_or(options.reorder),
            rate_bps: self.rate_bps.unwrap_or(options.rate_bps),
            loss: self.loss.unwrap_or(options.loss),
            ber: self.ber.unwrap_or(options.ber),
            queue_packets: self.queue_packets.unwrap_or(options.queue_packets),
        }
    }
}
