// SPDX-License-Identifier: Apache-2.0
//! The control bits of a TCP header (RFC 9293 §3.1).

use std::ops::BitOr;

/// The low eight control bits: CWR ECE URG ACK PSH RST SYN FIN.
#[derive(Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct Flags(u8);

impl Flags {
    pub const NONE: Flags = Flags(0);
    pub const FIN: Flags = Flags(0x01);
    pub const SYN: Flags = Flags(0x02);
    pub const RST: Flags = Flags(0x04);
    pub const PSH: Flags = Flags(0x08);
    pub const ACK: Flags = Flags(0x10);
    pub const URG: Flags = Flags(0x20);
    pub const ECE: Flags = Flags(0x40);
    pub const CWR: Flags = Flags(0x80);

    pub const fn from_bits(bits: u8) -> Flags {
        Flags(bits)
    }

    pub const fn bits(self) -> u8 {
        self.0
    }

    /// Whether every bit of `other` is set.
    pub const fn contains(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }

    pub const fn syn(self) -> bool {
        self.contains(Flags::SYN)
    }

    pub const fn ack(self) -> bool {
        self.contains(Flags::ACK)
    }

    pub const fn fin(self) -> bool {
        self.contains(Flags::FIN)
    }

    pub const fn rst(self) -> bool {
        self.contains(Flags::RST)
    }
}

impl BitOr for Flags {
    type Output = Flags;

    fn bitor(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }
}

/// `FIN|ACK`, or `-` when no bit is set.
impl std::fmt::Debug for Flags {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        const NAMES: [&str; 8] = ["FIN", "SYN", "RST", "PSH", "ACK", "URG", "ECE", "CWR"];
        let mut separator = "";
        for (bit, name) in NAMES.iter().enumerate() {
            if self.0 & 1 << bit != 0 {
                write!(f, "{separator}{name}")?;
                separator = "|";
            }
        }
        if self.0 == 0 {
            f.write_str("-")?;
        }
        Ok(())
    }
}
