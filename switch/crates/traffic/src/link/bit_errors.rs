// SPDX-License-Identifier: Apache-2.0
//! Bits flipped in a frame, independently of each other, at a cost that does not grow with its length.

use super::streams::{unit_above_zero, Stream};
use crate::names::named;
use std::ops::Range;

/// The Ethernet header is never touched. Everything behind it may be ([`ErrorsIn::Frame`]): IP and transport headers as
/// well as payload. A real receiver's NIC would drop the frame by its FCS; here it is delivered, so that the checksums
/// of IP, TCP and UDP have to find the error, as on links that hand damaged packets on.
pub const UNTOUCHED_BYTES: usize = 14;

named! {
    /// Which bits of a frame may be flipped.
    pub enum ErrorsIn ("errors_in") {
        /// All behind the Ethernet header.
        #[default]
        Frame = "frame",
        /// Those behind a TCP or UDP header: whose packet it is can still be told. All else arrives whole, pure ACKs too.
        Payload = "payload",
    }
}

/// An error process with a fixed bit error rate: draws the distance to the next error (geometric), which runs on
/// over the borders of frames.
#[derive(Debug, Clone, PartialEq)]
pub struct BitErrors {
    ber: f64,
    /// 1 / ln(1 - ber); meaningless while ber is 0.
    inverse_log: f64,
    /// Good bits before the next error.
    gap_bits: u64,
}

impl BitErrors {
    /// No errors.
    pub fn none() -> Self {
        Self {
            ber: 0.0,
            inverse_log: 0.0,
            gap_bits: u64::MAX,
        }
    }

    pub fn ber(&self) -> f64 {
        self.ber
    }

    /// Changes the rate; draws anew (the process has no memory), unless the rate is as before.
    pub(super) fn set(&mut self, ber: f64, stream: &mut Stream) {
        if ber == self.ber {
            return;
        }
        self.ber = ber;
        if ber == 0.0 {
            self.gap_bits = u64::MAX;
        } else {
            self.inverse_log = 1.0 / libm::log1p(-ber);
            self.gap_bits = self.draw_gap(stream);
        }
    }

    /// P(gap >= k) = (1 - ber)^k.
    fn draw_gap(&self, stream: &mut Stream) -> u64 {
        (libm::log(unit_above_zero(stream.draw())) * self.inverse_log) as u64
    }

    /// Flips bits in `exposed` of `frame`; returns how many. Not `in_force`: passes over the frame and leaves it whole, so
    /// that what happens to later frames does not depend on that.
    pub(super) fn apply(
        &mut self,
        frame: &mut [u8],
        exposed: Range<usize>,
        in_force: bool,
        stream: &mut Stream,
    ) -> u32 {
        if self.ber == 0.0 {
            return 0;
        }
        let bits = exposed.len() as u64 * 8;
        let mut flips = 0;
        while self.gap_bits < bits {
            if in_force {
                let at = exposed.start + (self.gap_bits / 8) as usize;
                frame[at] ^= 0x80 >> (self.gap_bits % 8);
                flips += 1;
            }
            let gap = self.draw_gap(stream);
            self.gap_bits = self.gap_bits.saturating_add(1).saturating_add(gap);
        }
        self.gap_bits -= bits;
        flips
    }
}
