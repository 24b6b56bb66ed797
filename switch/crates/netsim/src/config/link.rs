// SPDX-License-Identifier: Apache-2.0
//! Links: two ends, and the settings of each direction.

use device::Nanos;
use serde::de::Error;
use serde::{Deserialize, Deserializer};
use std::sync::Arc;
use traffic::link::{ErrorsIn, JitterDistribution, LinkOptions, Trace};

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
    pub jitter_distribution: Option<JitterDistribution>,
    pub reorder: Option<bool>,
    /// 0: unlimited.
    pub rate_bps: Option<u64>,
    pub loss: Option<f64>,
    pub ber: Option<f64>,
    pub errors_in: Option<ErrorsIn>,
    pub spare_retransmissions: Option<bool>,
    /// Waiting for the line; without meaning while the rate is unlimited and there is no trace.
    pub queue_packets: Option<usize>,
    pub ge_enter: Option<f64>,
    pub ge_leave: Option<f64>,
    pub ge_loss: Option<f64>,
    pub ge_ber: Option<f64>,
    /// In the JSON a file in Mahimahi's format, read with it, or the times themselves in ms; null: no trace any more.
    #[serde(default, deserialize_with = "trace")]
    pub trace: Option<Option<Arc<Trace>>>,
}

/// Where the times of a trace are.
#[derive(Deserialize)]
#[serde(untagged)]
enum TraceSource {
    File(String),
    Times(Vec<u32>),
}

fn trace<'de, D: Deserializer<'de>>(input: D) -> Result<Option<Option<Arc<Trace>>>, D::Error> {
    let trace = match Option::<TraceSource>::deserialize(input)
        .map_err(|_| D::Error::custom("must be a file, a list of times in ms, or null"))?
    {
        None => return Ok(Some(None)),
        Some(TraceSource::Times(at_ms)) => {
            Trace::new(format!("{} times", at_ms.len()), at_ms).map_err(D::Error::custom)?
        }
        Some(TraceSource::File(path)) => {
            let text = std::fs::read_to_string(&path)
                .map_err(|e| D::Error::custom(format!("{path}: cannot be read: {e}")))?;
            Trace::parse(path.as_str(), &text)
                .map_err(|e| D::Error::custom(format!("{path}: {e}")))?
        }
    };
    Ok(Some(Some(Arc::new(trace))))
}

impl LinkSettings {
    /// `options` with these settings.
    pub fn applied_to(&self, options: &LinkOptions) -> LinkOptions {
        LinkOptions {
            delay_ns: self.delay_ns.unwrap_or(options.delay_ns),
            jitter_ns: self.jitter_ns.unwrap_or(options.jitter_ns),
            jitter_distribution: self
                .jitter_distribution
                .unwrap_or(options.jitter_distribution),
            reorder: self.reorder.unwrap_or(options.reorder),
            rate_bps: self.rate_bps.unwrap_or(options.rate_bps),
            loss: self.loss.unwrap_or(options.loss),
            ber: self.ber.unwrap_or(options.ber),
            errors_in: self.errors_in.unwrap_or(options.errors_in),
            spare_retransmissions: self
                .spare_retransmissions
                .unwrap_or(options.spare_retransmissions),
            queue_packets: self.queue_packets.unwrap_or(options.queue_packets),
            ge_enter: self.ge_enter.unwrap_or(options.ge_enter),
            ge_leave: self.ge_leave.unwrap_or(options.ge_leave),
            ge_loss: self.ge_loss.unwrap_or(options.ge_loss),
            ge_ber: self.ge_ber.unwrap_or(options.ge_ber),
            trace: self.trace.clone().unwrap_or_else(|| options.trace.clone()),
        }
    }
}
