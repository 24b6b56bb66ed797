// SPDX-License-Identifier: Apache-2.0
//! Links: two ends, the settings of each direction, and captures of their frames.

use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};
use std::path::PathBuf;
use traffic::link::{LinkOptionError, LinkOptions, Unit};

/// A link between two nodes.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkConfig {
    /// Unique.
    pub name: String,
    pub a: End,
    pub b: End,
    /// Bytes of the longest IP packet, 576 to 9000. Linux's hosts and queues have it; the simulator's own do not ask for it.
    #[serde(default = "default_mtu")]
    pub mtu: u32,
    /// What differs from a perfect line.
    #[serde(default)]
    pub a_to_b: LinkSettings,
    #[serde(default)]
    pub b_to_a: LinkSettings,
}

pub(crate) const DEFAULT_MTU: u32 = 1500;

fn default_mtu() -> u32 {
    DEFAULT_MTU
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

    /// Those that are meant.
    pub(crate) fn names(self) -> impl Iterator<Item = &'static str> {
        self.indices().map(|index| ["a_to_b", "b_to_a"][index])
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

/// Settings of one direction, times in ns; what is not given stays as it is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LinkSettings(traffic::link::LinkSettings);

impl<'de> Deserialize<'de> for LinkSettings {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<LinkSettings, D::Error> {
        let object = Map::deserialize(reader)?;
        let settings = LinkSettings::read(&object);
        settings.map_err(|e| apps::within(&e.key, e.message))
    }
}

impl LinkSettings {
    /// Reads the members of a JSON object.
    ///
    /// # Errors
    /// The first setting that cannot be taken.
    pub fn read(object: &Map<String, Value>) -> Result<LinkSettings, LinkOptionError> {
        let settings = traffic::link::LinkSettings::read(object, Unit::Ns);
        settings.map(LinkSettings)
    }

    /// `options` with these settings.
    ///
    /// # Errors
    /// Settings that do not fit each other.
    pub fn applied_to(&self, options: &LinkOptions) -> Result<LinkOptions, LinkOptionError> {
        self.0.applied_to(options, Unit::Ns)
    }
}

/// A link's frames in a file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CaptureConfig {
    pub link: String,
    /// pcapng; one that is there is replaced.
    pub file: PathBuf,
    #[serde(default)]
    pub direction: Direction,
    #[serde(default)]
    pub at: Side,
    /// Of each frame.
    pub snap_bytes: Option<u32>,
}

/// The end of a link at which frames are seen: those that it sends as they come to the link, those for it as they are delivered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    #[default]
    A,
    B,
}

impl Side {
    /// As a document has it.
    pub(crate) fn name(self) -> &'static str {
        ["a", "b"][self as usize]
    }
}
