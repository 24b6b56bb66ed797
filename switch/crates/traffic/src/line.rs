// SPDX-License-Identifier: Apache-2.0
//! A line of a given bit rate: when it is free again, exact to the nanosecond over any run.
//!
//! The instant is kept as whole nanoseconds and a fraction of 1/rate ns, so nothing is rounded away however
//! long the line stays busy. `rate_bps * ns` is a number of nano-bits: one bit is 10^9 of them.
//!
//! And what a frame takes on a port's line: its bytes, an Ethernet frame with its surroundings, or ATM cells.

use crate::limits::cells_of;
use crate::names::named;

/// Time in nanoseconds.
pub type Nanos = u64;

/// Highest rate that a line takes, bit/s (1 Tbit/s).
pub const RATE_BPS_MAX: u64 = 1_000_000_000_000;

/// The rate of a line that stands.
const STANDS: u64 = u64::MAX;
/// When a frame leaves that is on a line that stands.
const FAR: Nanos = 1 << 62;

/// A line; a rate of 0 is unlimited (no frame takes any time).
#[derive(Clone, Debug)]
pub struct Line {
    rate_bps: u64,
    /// The line is free at `free_ns + free_part / rate_bps` nanoseconds.
    free_ns: Nanos,
    free_part: u64,
}

impl Line {
    /// An idle line.
    ///
    /// # Panics
    /// When `rate_bps` is above [`RATE_BPS_MAX`].
    pub fn new(rate_bps: u64) -> Line {
        assert!(rate_bps <= RATE_BPS_MAX, "rate_bps above {RATE_BPS_MAX}");
        Line {
            rate_bps,
            free_ns: 0,
            free_part: 0,
        }
    }

    /// Rate in bit/s, 0 for unlimited.
    pub fn rate_bps(&self) -> u64 {
        self.rate_bps
    }

    /// First whole nanosecond at which the line is free.
    #[inline]
    pub fn free_at(&self) -> Nanos {
        self.free_ns + Nanos::from(self.free_part > 0)
    }

    /// Puts a frame of `len_bytes` on the line at `now`, or as soon as the line is free.
    /// A frame that starts at `free_at()` continues at the exact instant, fraction included.
    #[inline]
    pub fn occupy(&mut self, now: Nanos, len_bytes: u32) {
        if now > self.free_at() {
            self.free_ns = now;
            self.free_part = 0;
        }
        if self.rate_bps == 0 {
            return;
        }
        let work = u64::from(len_bytes) * 8_000_000_000 + self.free_part;
        if self.rate_bps == STANDS {
            (self.free_ns, self.free_part) = (FAR, work);
            return;
        }
        self.free_ns += work / self.rate_bps;
        self.free_part = work % self.rate_bps;
    }

    /// Changes the rate at `now`; what is left of the frame on the line goes on at the new rate.
    ///
    /// # Panics
    /// When `rate_bps` is above [`RATE_BPS_MAX`].
    pub fn set_rate(&mut self, now: Nanos, rate_bps: u64) {
        assert!(rate_bps <= RATE_BPS_MAX, "rate_bps above {RATE_BPS_MAX}");
        let left = self.left(now);
        self.rate_bps = rate_bps;
        if left == 0 || rate_bps == 0 {
            self.free_ns = self.free_ns.min(now);
            self.free_part = 0;
            return;
        }
        let rate = u128::from(rate_bps);
        self.free_ns = now + (left / rate) as u64;
        self.free_part = (left % rate) as u64;
    }

    /// From `now` on nothing moves on it, until `set_rate`: neither the rest of the frame on the line nor one that is put on it.
    pub fn stand(&mut self, now: Nanos) {
        let left = self.left(now);
        self.rate_bps = STANDS;
        (self.free_ns, self.free_part) = match left {
            0 => (self.free_ns.min(now), 0),
            left => (FAR, left as u64), // a frame has less than 2^64 nano-bits
        };
    }

    /// Nano-bits of the frame on the line that have not left it.
    fn left(&self, now: Nanos) -> u128 {
        match self.free_at() > now {
            false => 0,
            true if self.rate_bps == STANDS => u128::from(self.free_part),
            true => {
                u128::from(self.free_ns - now.min(self.free_ns)) * u128::from(self.rate_bps)
                    + u128::from(self.free_part)
            }
        }
    }
}

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

    /// Frames sent back to back are done at ceil(bits / rate), to the nanosecond, after any number of them.
    #[test]
    fn exact_over_a_long_run_at_every_rate() {
        for rate_bps in [
            1_000u64,
            9_600,
            1_544_000,
            10_000_000,
            33_333_333,
            999_999_937,
            100_000_000_000,
        ] {
            let mut line = Line::new(rate_bps);
            let mut bits = 0u128;
            let start = 12_345u64;
            line.occupy(start, 0);
            for i in 0..10_000u32 {
                let len = 64 + (i * 7919) % 1455;
                bits += u128::from(len) * 8;
                line.occupy(line.free_at(), len);
                let due = u128::from(start) + (bits * 1_000_000_000).div_ceil(u128::from(rate_bps));
                assert_eq!(
                    u128::from(line.free_at()),
                    due,
                    "{rate_bps} bit/s, frame {i}"
                );
            }
        }
    }

    #[test]
    fn an_idle_line_starts_now() {
        let mut line = Line::new(8_000_000_000); // one byte a nanosecond
        line.occupy(100, 50);
        assert_eq!(line.free_at(), 150);
        line.occupy(1_000, 50);
        assert_eq!(line.free_at(), 1_050);
    }

    #[test]
    fn a_new_rate_counts_for_what_is_left_of_the_frame() {
        let mut line = Line::new(8_000_000_000);
        line.occupy(0, 1_000);
        line.set_rate(400, 4_000_000_000);
        assert_eq!(line.free_at(), 400 + 1_200);
        line.set_rate(1_000, 0);
        assert_eq!(line.free_at(), 1_000);
        line.set_rate(1_001, 8_000_000_000);
        line.occupy(2_000, 10);
        assert_eq!(line.free_at(), 2_010);
    }

    #[test]
    fn what_stands_goes_on_where_it_was() {
        let mut line = Line::new(8_000_000_000);
        line.occupy(0, 1_000);
        line.stand(400);
        assert!(line.free_at() > 1 << 60);
        line.stand(500);
        line.set_rate(10_000, 4_000_000_000);
        assert_eq!(line.free_at(), 10_000 + 1_200);
        // Idle when it stops: the next frame waits on the line.
        line.stand(20_000);
        assert!(line.free_at() <= 20_000);
        line.occupy(21_000, 10);
        line.set_rate(30_000, 8_000_000_000);
        assert_eq!(line.free_at(), 30_010);
    }

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
