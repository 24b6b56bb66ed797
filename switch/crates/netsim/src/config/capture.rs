// SPDX-License-Identifier: Apache-2.0
//! Captures of links.

use super::Direction;
use serde::Deserialize;
use std::path::PathBuf;

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
