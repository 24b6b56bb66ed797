// SPDX-License-Identifier: Apache-2.0
//! Names and shapes of what the control plane can see: dense ids, tables, actions, profiles, externs, digests, value sets.

use crate::bits::{limbs_for, ActionCall, Bits, Entry};

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(pub u32);
        impl $name {
            /// As an index of the dense array of its kind.
            #[inline(always)]
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }
    )*};
}

ids! {
    /// Index of a table.
    TableId,
    /// Index of an action; the same P4 action may have several, one for each table that uses it.
    ActionId,
    /// Index of an indirect counter array.
    CounterId,
    /// Index of an indirect meter array.
    MeterId,
    /// Index of a register array.
    RegisterId,
    /// Index of an action profile or selector.
    ProfileId,
    /// Index of a digest (learn list).
    DigestId,
    /// Index of a parser value set.
    ValueSetId,
    /// Index of a field list (what a clone, resubmit or recirculate preserves).
    FieldListId,
}

/// How a key field is matched; `valid` of P4_14 appears as `Exact` of width 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MatchKind {
    /// All bits equal.
    Exact,
    /// Longest prefix.
    Lpm,
    /// Value and mask, by priority.
    Ternary,
    /// Low and high bound, both included, by priority.
    Range,
    /// Exact or absent, by priority.
    Optional,
}

impl MatchKind {
    /// Its name in P4.
    pub fn name(self) -> &'static str {
        match self {
            MatchKind::Exact => "exact",
            MatchKind::Lpm => "lpm",
            MatchKind::Ternary => "ternary",
            MatchKind::Range => "range",
            MatchKind::Optional => "optional",
        }
    }

    /// True where entries of a table with such a field have priorities.
    pub fn has_priority(self) -> bool {
        matches!(
            self,
            MatchKind::Ternary | MatchKind::Range | MatchKind::Optional
        )
    }
}

/// One field of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeySchema {
    /// Control-plane name, e.g. `hdr.ipv4.dst_addr`.
    pub name: String,
    /// How it is matched.
    pub kind: MatchKind,
    /// Width in bits; in a lookup key it takes ceil(width/64) limbs.
    pub width: u32,
}

/// One parameter of an action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParamSchema {
    /// P4 name.
    pub name: String,
    /// Width in bits; among action args it takes ceil(width/64) limbs.
    pub width: u32,
}

/// An action that a table entry or member can call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActionSchema {
    /// Its id.
    pub id: ActionId,
    /// Full P4 name, e.g. `MyIngress.forward`.
    pub name: String,
    /// Parameters in order.
    pub params: Vec<ParamSchema>,
}

impl ActionSchema {
    /// Limbs that the args of one call take.
    pub fn arg_limbs(&self) -> usize {
        self.params.iter().map(|p| limbs_for(p.width)).sum()
    }

    /// The numbers that the args of a call are.
    pub fn values<'a>(&'a self, args: &'a [u64]) -> impl Iterator<Item = Bits> + 'a {
        let mut rest = args;
        self.params.iter().map(move |param| {
            let (own, tail) = rest.split_at(limbs_for(param.width).min(rest.len()));
            rest = tail;
            Bits::from_limbs(param.width, own)
        })
    }
}

/// What a counter or meter measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MeterUnit {
    /// Rates in packets per second, bursts in packets.
    Packets,
    /// Rates in bytes per second, bursts in bytes.
    Bytes,
}

/// The direct meter of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirectMeterSchema {
    /// P4 name.
    pub name: String,
    /// What it measures.
    pub unit: MeterUnit,
}

/// A table as the control plane sees it, with the program's own entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableSchema {
    /// Its id.
    pub id: TableId,
    /// Full P4 name.
    pub name: String,
    /// Key fields in order; empty for a keyless table.
    pub keys: Vec<KeySchema>,
    /// Most entries it holds.
    pub max_size: u32,
    /// Actions that it may call.
    pub actions: Vec<ActionId>,
    /// Name of the direct counter, when entries count packets and bytes.
    pub direct_counter: Option<String>,
    /// Direct meter of the entries.
    pub direct_meter: Option<DirectMeterSchema>,
    /// Its action profile, for indirect tables.
    pub profile: Option<ProfileId>,
    /// True when entries may age.
    pub support_timeout: bool,
    /// Entries that the program fixes; when there are any (or the P4 said `const entries`), the table is immutable.
    pub const_entries: Option<Vec<Entry>>,
    /// The program's default action.
    pub default_action: Option<ActionCall>,
    /// True when the control plane may not change the default action.
    pub const_default_action: bool,
}

impl TableSchema {
    /// True when entries need a priority (a ternary, range or optional field is present).
    pub fn needs_priority(&self) -> bool {
        self.keys.iter().any(|k| k.kind.has_priority())
    }

    /// Limbs of a lookup key.
    pub fn key_limbs(&self) -> usize {
        self.keys.iter().map(|k| limbs_for(k.width)).sum()
    }
}

/// An action profile or action selector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProfileSchema {
    /// Its id.
    pub id: ProfileId,
    /// Full P4 name.
    pub name: String,
    /// Most members it holds.
    pub max_size: u32,
    /// True for a selector: entries may point to groups.
    pub selector: bool,
    /// Tables that use it.
    pub tables: Vec<TableId>,
    /// Actions that members may call (those of the first table; the same in all).
    pub actions: Vec<ActionId>,
}

/// An indirect counter array; packets and bytes are always both counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CounterSchema {
    /// Its id.
    pub id: CounterId,
    /// Full P4 name.
    pub name: String,
    /// Number of cells.
    pub size: u32,
}

/// An indirect meter array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeterSchema {
    /// Its id.
    pub id: MeterId,
    /// Full P4 name.
    pub name: String,
    /// Number of cells.
    pub size: u32,
    /// What it measures.
    pub unit: MeterUnit,
}

/// A register array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegisterSchema {
    /// Its id.
    pub id: RegisterId,
    /// Full P4 name.
    pub name: String,
    /// Number of cells.
    pub size: u32,
    /// Bits of a cell.
    pub width: u32,
}

/// A digest: a message of fixed members to the control plane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DigestSchema {
    /// Its id.
    pub id: DigestId,
    /// Name (of the P4 struct).
    pub name: String,
    /// Widths in bits of the members, in order; a sample holds ceil(width/8) bytes for each.
    pub widths: Vec<u32>,
}

/// A parser value set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValueSetSchema {
    /// Its id.
    pub id: ValueSetId,
    /// Full P4 name.
    pub name: String,
    /// Width in bits of a value, all its fields together.
    pub width: u32,
    /// Most values it holds (BMv2 JSON carries none: `u32::MAX` then).
    pub max_size: u32,
}

/// Everything the control plane can name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Schema {
    /// Tables by id, hidden ones of the compiler included.
    pub tables: Vec<TableSchema>,
    /// Actions by id.
    pub actions: Vec<ActionSchema>,
    /// Action profiles by id.
    pub profiles: Vec<ProfileSchema>,
    /// Indirect counters by id.
    pub counters: Vec<CounterSchema>,
    /// Indirect meters by id.
    pub meters: Vec<MeterSchema>,
    /// Registers by id.
    pub registers: Vec<RegisterSchema>,
    /// Digests by id.
    pub digests: Vec<DigestSchema>,
    /// Parser value sets by id.
    pub value_sets: Vec<ValueSetSchema>,
}
