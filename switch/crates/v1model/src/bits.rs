// SPDX-License-Identifier: Apache-2.0
//! `Bits`: an unsigned value with a width in bits, as the control plane gives and gets it.
//!
//! Values that the control plane passes in and out: match keys, action calls, table entries, statistics, meter rates.

use std::fmt;

use crate::schema::{ActionId, MatchKind};

/// An unsigned value of a fixed width, kept as ceil(width/8) big-endian bytes.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Bits {
    width: u32,
    bytes: Box<[u8]>,
}

/// Why bytes do not make a value of the asked width.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the value 0x{value} needs {needed} bits, but the field is bit<{width}>")]
pub struct BitsError {
    /// The value offered, in hexadecimal.
    pub value: String,
    /// The width that it needs.
    pub needed: u32,
    /// The width that it should have had.
    pub width: u32,
}

/// A big-endian number without its leading zeros, when it fits in `width` bits.
fn fitting(width: u32, bytes: &[u8]) -> Result<&[u8], BitsError> {
    let zeros = bytes.iter().take_while(|b| **b == 0).count();
    let value = &bytes[zeros..];
    let unused = value.first().map_or(0, |first| first.leading_zeros());
    let needed = value.len() as u32 * 8 - unused;
    if needed <= width {
        return Ok(value);
    }
    let value = hex(value);
    Err(BitsError {
        value,
        needed,
        width,
    })
}

/// Appends the limbs of a big-endian number of at most `width` bits, least significant first.
///
/// # Errors
/// When it needs more bits.
pub fn push_number(width: u32, bytes: &[u8], out: &mut Vec<u64>) -> Result<(), BitsError> {
    let value = fitting(width, bytes)?;
    let end = out.len() + limbs_for(width);
    let limb = |bytes: &[u8]| bytes.iter().fold(0, |limb, b| limb << 8 | u64::from(*b));
    out.extend(value.rchunks(8).map(limb));
    out.resize(end, 0);
    Ok(())
}

impl Bits {
    /// The value of `bytes` (big-endian, leading zeros allowed, empty is 0) at `width` bits.
    pub fn from_be_bytes(width: u32, bytes: &[u8]) -> Result<Bits, BitsError> {
        let value = fitting(width, bytes)?;
        let mut out = vec![0u8; width.div_ceil(8) as usize];
        let first = out.len() - value.len();
        out[first..].copy_from_slice(value);
        Ok(Bits {
            width,
            bytes: out.into(),
        })
    }

    /// `value` at `width` bits.
    pub fn from_u64(width: u32, value: u64) -> Result<Bits, BitsError> {
        Bits::from_be_bytes(width, &value.to_be_bytes())
    }

    /// `value` at `width` bits.
    pub fn from_u128(width: u32, value: u128) -> Result<Bits, BitsError> {
        Bits::from_be_bytes(width, &value.to_be_bytes())
    }

    /// The low `width` bits of `limbs` (least significant limb first); higher bits are cut off.
    pub fn from_limbs(width: u32, limbs: &[u64]) -> Bits {
        let len = width.div_ceil(8) as usize;
        let mut bytes = vec![0u8; len];
        for (i, byte) in bytes.iter_mut().rev().enumerate() {
            *byte = limbs.get(i / 8).map_or(0, |l| (l >> (8 * (i % 8))) as u8);
        }
        let spare = len as u32 * 8 - width;
        if spare > 0 {
            bytes[0] &= 0xff >> spare;
        }
        Bits {
            width,
            bytes: bytes.into(),
        }
    }

    /// Zero at `width` bits.
    pub fn zero(width: u32) -> Bits {
        Bits {
            width,
            bytes: vec![0u8; width.div_ceil(8) as usize].into(),
        }
    }

    /// All `width` bits set.
    pub fn ones(width: u32) -> Bits {
        Bits::from_limbs(width, &vec![u64::MAX; limbs_for(width)])
    }

    /// Width in bits.
    pub fn width(&self) -> u32 {
        self.width
    }

    /// ceil(width/8) big-endian bytes.
    pub fn as_be_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// ceil(width/8) big-endian bytes.
    pub fn to_be_bytes(&self) -> Vec<u8> {
        self.bytes.to_vec()
    }

    /// The shortest big-endian form, at least one byte (P4Runtime 1.5 §8.4, canonical).
    pub fn to_canonical_bytes(&self) -> Vec<u8> {
        let first = self.bytes.iter().position(|&b| b != 0);
        match first {
            Some(first) => self.bytes[first..].to_vec(),
            None => vec![0],
        }
    }

    /// Appends ceil(width/64) limbs, least significant first.
    pub fn push_limbs(&self, out: &mut Vec<u64>) {
        for i in 0..limbs_for(self.width) {
            out.push(self.limb(i));
        }
    }

    /// ceil(width/64) limbs, least significant first.
    pub fn to_limbs(&self) -> Vec<u64> {
        let mut out = Vec::with_capacity(limbs_for(self.width));
        self.push_limbs(&mut out);
        out
    }

    /// The value, when it is below 2^64.
    pub fn to_u64(&self) -> Option<u64> {
        let limbs = limbs_for(self.width);
        ((1..limbs).all(|i| self.limb(i) == 0)).then(|| self.limb(0))
    }

    /// True when every bit is zero.
    pub fn is_zero(&self) -> bool {
        self.bytes.iter().all(|&b| b == 0)
    }

    fn limb(&self, index: usize) -> u64 {
        let end = self.bytes.len().saturating_sub(index * 8);
        let start = end.saturating_sub(8);
        self.bytes[start..end]
            .iter()
            .fold(0, |v, &b| v << 8 | u64::from(b))
    }
}

impl fmt::Debug for Bits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}w0x{}", self.width, hex(&self.to_canonical_bytes()))
    }
}

impl fmt::Display for Bits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0x{}", hex(&self.to_canonical_bytes()))
    }
}

/// Number of 64-bit limbs of a field of `width` bits.
pub const fn limbs_for(width: u32) -> usize {
    width.div_ceil(64) as usize
}

/// All ones in the low `width` bits (64 and more give all ones).
pub const fn low_mask(width: u32) -> u64 {
    if width >= 64 {
        u64::MAX
    } else {
        (1 << width) - 1
    }
}

/// Shifted to the left, or by a negative number of bits to the right.
#[inline]
pub(crate) fn shifted(value: u64, by: i8) -> u64 {
    match by {
        0.. => value << by,
        _ => value >> -by,
    }
}

/// Clears all bits of a number, its least significant limb first, from `bits` on.
pub(crate) fn cut(limbs: &mut [u64], bits: u32) {
    for (limb, at) in limbs.iter_mut().zip((0..).step_by(64)) {
        *limb &= low_mask(bits.saturating_sub(at));
    }
}

/// The digits of a number, the first 32 bytes of it.
pub fn hex(bytes: &[u8]) -> String {
    use fmt::Write;
    let mut out = String::with_capacity(bytes.len().min(33) * 2);
    for byte in bytes.iter().take(32) {
        let _ = write!(out, "{byte:02x}");
    }
    if bytes.len() > 32 {
        out.push('…');
    }
    out
}

/// Time in nanoseconds of CLOCK_MONOTONIC, or of a simulation.
pub type Nanos = u64;

/// What one key field of an entry matches.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum KeyMatch<V = Bits> {
    /// This value.
    Exact(V),
    /// The high `prefix_len` bits of `value`; the others must be 0.
    Lpm {
        /// Value.
        value: V,
        /// Bits that matter, from the most significant.
        prefix_len: u32,
    },
    /// The bits of `value` where `mask` is 1; `value` must be 0 elsewhere.
    Ternary {
        /// Value.
        value: V,
        /// Mask.
        mask: V,
    },
    /// Both bounds included.
    Range {
        /// Lowest value.
        low: V,
        /// Highest value.
        high: V,
    },
    /// This value, or any.
    Optional(Option<V>),
}

impl<V> KeyMatch<V> {
    /// How it matches.
    pub fn kind(&self) -> MatchKind {
        match self {
            KeyMatch::Exact(_) => MatchKind::Exact,
            KeyMatch::Lpm { .. } => MatchKind::Lpm,
            KeyMatch::Ternary { .. } => MatchKind::Ternary,
            KeyMatch::Range { .. } => MatchKind::Range,
            KeyMatch::Optional(_) => MatchKind::Optional,
        }
    }
}

impl KeyMatch {
    /// The same, with its numbers in big-endian bytes.
    pub fn as_bytes(&self) -> KeyMatch<&[u8]> {
        match self {
            KeyMatch::Exact(value) => KeyMatch::Exact(value.as_be_bytes()),
            KeyMatch::Lpm { value, prefix_len } => KeyMatch::Lpm {
                value: value.as_be_bytes(),
                prefix_len: *prefix_len,
            },
            KeyMatch::Ternary { value, mask } => KeyMatch::Ternary {
                value: value.as_be_bytes(),
                mask: mask.as_be_bytes(),
            },
            KeyMatch::Range { low, high } => KeyMatch::Range {
                low: low.as_be_bytes(),
                high: high.as_be_bytes(),
            },
            KeyMatch::Optional(value) => KeyMatch::Optional(value.as_ref().map(Bits::as_be_bytes)),
        }
    }
}

/// The whole key of an entry, as people see it; a table has it as a [`crate::Key`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct EntryKey {
    /// One for each key field, in order.
    pub matches: Vec<KeyMatch>,
    /// As in P4Runtime: larger wins; 0 in tables without ternary, range or optional fields.
    pub priority: i32,
}

/// An action and its arguments.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ActionCall {
    /// The action.
    pub action: ActionId,
    /// Limbs of the arguments, side by side; unused high bits are zero.
    pub args: Vec<u64>,
}

/// What an entry does.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum EntryAction {
    /// Calls an action (direct tables).
    Direct(ActionCall),
    /// Calls the action of a profile member.
    Member(u32),
    /// Calls the action of a member of a group, chosen by hash.
    Group(u32),
}

/// A table entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry<K = EntryKey> {
    /// Its key, unique in the table.
    pub key: K,
    /// What it does.
    pub action: EntryAction,
    /// Told as expired when not hit for so long; 0 never.
    pub idle_timeout: Nanos,
    /// Opaque to this crate.
    pub cookie: u64,
}

/// What was measured at an entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EntryStats {
    /// Packets that hit it (tables with a direct counter).
    pub packets: u64,
    /// Bytes of these packets.
    pub bytes: u64,
    /// When it was inserted or last hit (tables that support time-outs).
    pub last_hit: Nanos,
    /// Rates of its direct meter, when configured.
    pub meter: Option<MeterConfig>,
}

/// Rates of a two-rate three-colour marker (RFC 2698); bytes or packets by the meter's unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MeterConfig {
    /// Committed rate, units per second.
    pub cir: u64,
    /// Committed burst, units.
    pub cburst: u64,
    /// Peak rate, units per second.
    pub pir: u64,
    /// Peak burst, units.
    pub pburst: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn range_is_checked_and_leading_zeros_are_accepted() {
        assert_eq!(
            Bits::from_be_bytes(9, &[0, 0, 1, 0xff]).unwrap().to_u64(),
            Some(511)
        );
        let error = Bits::from_be_bytes(9, &[2, 0]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the value 0x0200 needs 10 bits, but the field is bit<9>"
        );
        assert!(Bits::from_be_bytes(0, &[]).unwrap().is_zero());
    }

    #[test]
    fn limbs_round_trip() {
        let bytes: Vec<u8> = (1..=17).collect();
        let bits = Bits::from_be_bytes(136, &bytes).unwrap();
        assert_eq!(Bits::from_limbs(136, &bits.to_limbs()), bits);
        assert_eq!(bits.to_limbs().len(), 3);
        assert_eq!(bits.to_be_bytes(), bytes);
        assert_eq!(bits.to_u64(), None);
        assert_eq!(Bits::ones(12).to_u64(), Some(0xfff));
    }

    #[test]
    fn canonical_form_is_shortest() {
        assert_eq!(Bits::zero(32).to_canonical_bytes(), vec![0]);
        assert_eq!(
            Bits::from_u64(32, 256).unwrap().to_canonical_bytes(),
            vec![1, 0]
        );
    }
}
