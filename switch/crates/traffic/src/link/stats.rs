// SPDX-License-Identifier: Apache-2.0
//! What happened on a direction of a link.

/// Why the link did not deliver a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DropReason {
    /// The queue before the line was full.
    QueueFull,
    /// Lost by chance.
    Loss,
    /// The last bit entered the medium during an outage.
    Outage,
}

/// Counts since the link was made, as they are shown by name. `offered = delivered + all drops + frames still on the link`, always.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
pub struct LinkStats {
    pub offered_packets: u64,
    pub offered_bytes: u64,
    /// Copies, offered like all others.
    pub duplicated_packets: u64,
    pub delivered_packets: u64,
    pub delivered_bytes: u64,
    pub dropped_queue_full: u64,
    pub dropped_loss: u64,
    pub dropped_outage: u64,
    /// Frames delivered with at least one flipped bit, and the bits flipped in them.
    pub corrupted_packets: u64,
    pub flipped_bits: u64,
    /// Frames offered that met the bad state of the Gilbert–Elliott chain, whatever became of them.
    pub bad_state_packets: u64,
}

impl LinkStats {
    pub(super) fn count_drop(&mut self, reason: DropReason) {
        match reason {
            DropReason::QueueFull => self.dropped_queue_full += 1,
            DropReason::Loss => self.dropped_loss += 1,
            DropReason::Outage => self.dropped_outage += 1,
        }
    }

    pub fn dropped_packets(&self) -> u64 {
        self.dropped_queue_full + self.dropped_loss + self.dropped_outage
    }
}
