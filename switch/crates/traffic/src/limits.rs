// SPDX-License-Identifier: Apache-2.0
//! How much may wait, in packets, bytes and cells, and the buffer that all ports of a switch share.

/// A limit that nothing reaches.
pub const UNLIMITED: u64 = u64::MAX;

/// Bytes of an Ethernet header.
const ETHERNET_HEADER: u32 = 14;

/// Cells of a frame of `len_bytes`: the IP packet in it and the 8-byte AAL5 trailer in 48-byte cells (ITU-T I.363.5),
/// at least one. The one definition, of P4 programs and lab too (docs/switch.md).
#[inline]
pub fn cells_of(len_bytes: u32) -> u64 {
    u64::from((len_bytes.saturating_sub(ETHERNET_HEADER) + 8).div_ceil(48))
}

/// The most that may wait; `UNLIMITED` where a unit does not matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueLimits {
    /// Packets.
    pub packets: u64,
    /// Bytes of frames.
    pub bytes: u64,
    /// Cells, see [`cells_of`].
    pub cells: u64,
}

impl QueueLimits {
    /// No limit in any unit.
    pub const NONE: QueueLimits = QueueLimits {
        packets: UNLIMITED,
        bytes: UNLIMITED,
        cells: UNLIMITED,
    };

    /// A limit in packets alone.
    pub const fn packets(packets: u64) -> QueueLimits {
        QueueLimits {
            packets,
            ..QueueLimits::NONE
        }
    }
}

/// What waits now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Usage {
    /// Packets.
    pub packets: u64,
    /// Bytes of frames.
    pub bytes: u64,
    /// Cells, see [`cells_of`].
    pub cells: u64,
}

impl Usage {
    /// True when one more frame of `len_bytes` stays within `limits`.
    #[inline]
    pub fn fits(&self, len_bytes: u32, limits: &QueueLimits) -> bool {
        self.packets < limits.packets
            && self.bytes + u64::from(len_bytes) <= limits.bytes
            && self.cells + cells_of(len_bytes) <= limits.cells
    }

    /// Counts a frame in.
    #[inline]
    pub fn add(&mut self, len_bytes: u32) {
        self.packets += 1;
        self.bytes += u64::from(len_bytes);
        self.cells += cells_of(len_bytes);
    }

    /// Counts a frame out that was counted in. Should one not have been, the counts end at 0: at 2⁶⁴ no frame would be
    /// taken any more.
    #[inline]
    pub fn remove(&mut self, len_bytes: u32) {
        debug_assert!(self.packets > 0 && self.bytes >= u64::from(len_bytes));
        self.packets = self.packets.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(u64::from(len_bytes));
        self.cells = self.cells.saturating_sub(cells_of(len_bytes));
    }

    /// The larger of both in each unit.
    #[inline]
    pub fn max(&self, other: &Usage) -> Usage {
        Usage {
            packets: self.packets.max(other.packets),
            bytes: self.bytes.max(other.bytes),
            cells: self.cells.max(other.cells),
        }
    }
}

/// The buffer that the ports of a switch share; every waiting frame is in it.
#[derive(Clone, Copy, Debug)]
pub struct SharedBuffer {
    /// Its size.
    pub limits: QueueLimits,
    /// What is in it now.
    pub usage: Usage,
    /// The most that was ever in it.
    pub high_water: Usage,
}

impl SharedBuffer {
    /// An empty buffer of this size.
    pub fn new(limits: QueueLimits) -> SharedBuffer {
        SharedBuffer {
            limits,
            usage: Usage::default(),
            high_water: Usage::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_count_the_packet_and_the_aal5_trailer() {
        for (ip_bytes, cells) in [
            (0, 1),
            (40, 1),
            (41, 2),
            (1000, 21),
            (1500, 32),
            (7720, 161),
        ] {
            assert_eq!(cells_of(14 + ip_bytes), cells, "{ip_bytes}");
        }
        assert_eq!(cells_of(0), 1);
        assert_eq!(cells_of(u32::MAX), 89_478_486);
    }

    #[test]
    fn each_unit_limits_alone() {
        let mut usage = Usage::default();
        usage.add(114);
        assert!(!usage.fits(1, &QueueLimits::packets(1)));
        assert!(usage.fits(1, &QueueLimits::packets(2)));
        let bytes = QueueLimits {
            bytes: 164,
            ..QueueLimits::NONE
        };
        assert!(usage.fits(50, &bytes) && !usage.fits(51, &bytes));
        let cells = QueueLimits {
            cells: 4,
            ..QueueLimits::NONE
        };
        assert!(usage.fits(54, &cells) && !usage.fits(55, &cells));
        usage.remove(114);
        assert_eq!(usage, Usage::default());
    }
}
