// SPDX-License-Identifier: Apache-2.0
//! What a frame takes on a port's line: its bytes, an Ethernet frame with its surroundings, or ATM cells.

use crate::limits::cells_of;
use crate::names::named;

/// Bytes of an ATM cell on the line: 48 of payload, 5 of header.
const CELL_LINE_BYTES: u32 = 53;
/// Shortest Ethernet frame without its check sequence (IEEE 802.3, 3.2.8).
const ETHERNET_FRAME_MIN: u32 = 60;
/// Check sequence 4, preamble and start 8, gap between frames 12.
const ETHERNET_OVERHEAD: u32 = 24;

named! {
    /// The lines that a port may have; its rate is bits on that line.
    pub enum LinkLayer ("link_layer") {
        /// A frame takes its bytes.
        #[default]
        None = "none",
        /// A frame takes max(bytes, 60) + 24.
        Ethernet = "ethernet",
        /// A frame takes 53 bytes for each of its cells, see [`cells_of`].
        Atm = "atm",
    }
}

impl LinkLayer {
    /// Bytes on the line of a frame of `len_bytes`.
    #[inline]
    pub fn line_bytes(self, len_bytes: u32) -> u32 {
        match self {
            LinkLayer::None => len_bytes,
            LinkLayer::Ethernet => len_bytes.max(ETHERNET_FRAME_MIN) + ETHERNET_OVERHEAD,
            LinkLayer::Atm => cells_of(len_bytes) as u32 * CELL_LINE_BYTES,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_layer_has_its_own_length() {
        // 1500 bytes of IP and 8 of trailer are 32 cells; a pure acknowledgement of 40 bytes is one.
        for (len_bytes, none, ethernet, atm) in [
            (1_514, 1_514, 1_538, 32 * 53),
            (54, 54, 84, 53),
            (60, 60, 84, 2 * 53),
            (0, 0, 84, 53),
        ] {
            assert_eq!(LinkLayer::None.line_bytes(len_bytes), none);
            assert_eq!(LinkLayer::Ethernet.line_bytes(len_bytes), ethernet);
            assert_eq!(LinkLayer::Atm.line_bytes(len_bytes), atm);
        }
    }

    #[test]
    fn names_are_read_and_written_and_a_wrong_one_is_told() {
        assert_eq!("atm".parse(), Ok(LinkLayer::Atm));
        assert_eq!(LinkLayer::Ethernet.to_string(), "ethernet");
        assert_eq!(
            "ATM".parse::<LinkLayer>().unwrap_err().to_string(),
            "link_layer \"ATM\" is unknown; allowed: none, ethernet, atm"
        );
    }
}
