// SPDX-License-Identifier: Apache-2.0
//! Values that the control plane passes in and out: match keys, action calls, table entries, statistics, meter rates.

use crate::bits::Bits;
use crate::schema::ActionId;

/// Time in nanoseconds of CLOCK_MONOTONIC, or of a simulation.
pub type Nanos = u64;

/// What one key field of an entry matches.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum KeyMatch {
    /// This value.
    Exact(Bits),
    /// The high `prefix_len` bits of `value`; the others must be 0.
    Lpm {
        /// Value.
        value: Bits,
        /// Bits that matter, from the most significant.
        prefix_len: u32,
    },
    /// The bits of `value` where `mask` is 1; `value` must be 0 elsewhere.
    Ternary {
        /// Value.
        value: Bits,
        /// Mask.
        mask: Bits,
    },
    /// Both bounds included.
    Range {
        /// Lowest value.
        low: Bits,
        /// Highest value.
        high: Bits,
    },
    /// This value, or any.
    Optional(Option<Bits>),
}

/// The whole key of an entry.
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
    /// One for each parameter, of its width.
    pub args: Vec<Bits>,
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
pub struct Entry {
    /// Its key, unique in the table.
    pub key: EntryKey,
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
