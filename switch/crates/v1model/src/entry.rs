// SPDX-License-Identifier: Apache-2.0
//! Values that the control plane passes in and out: match keys, action calls, table entries, statistics, meter rates.

use crate::bits::Bits;
use crate::schema::{ActionId, MatchKind};

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
