// SPDX-License-Identifier: Apache-2.0
//! Match tables: what a packet's key finds, and the entries behind it.
//!
//! | file | idea |
//! |---|---|
//! | `mod`, `lookup` | `Table`, and the packet path through it |
//! | `manage` | insert, modify, delete, read: checked first, then applied |
//! | `key`, `call` | control-plane values as limbs, with the errors a client sees |
//! | `records` | one arena of u64 words, one record an entry |
//! | `hash_index` | hash of words; open addressing from hash to record |
//! | `exact` | exact match: one hash index, narrow fields packed together |
//! | `lengths` | longest prefix: one hash index for each length, searched by halves |
//! | `tuples`, `prune` | ternary, range: one hash index for each mask; which masks are worth a look |
//! | `ageing` | idle time-outs |
//! | `profile`, `value_set` | action profiles and selectors; parser value sets |

mod ageing;
mod call;
mod exact;
mod hash_index;
mod key;
mod lengths;
mod lookup;
mod manage;
mod profile;
mod prune;
mod records;
#[cfg(test)]
mod tests;
mod tuples;
mod value_set;

pub(crate) use call::{check_call, ActionWord};
pub(crate) use exact::{packing, Place};
pub(crate) use key::{push_prefix, show as show_key};
pub use key::{AsKey, Key};
pub(crate) use lookup::Touched;
pub use lookup::{Lookup, Target};
pub use profile::Profile;
pub use value_set::ValueSet;

use std::mem::offset_of;
use std::sync::Arc;

use crate::bits::limbs_for;
use crate::entry::{Entry, EntryAction};
use crate::error::ControlError;
use crate::externs::Meters;
use crate::schema::{ActionSchema, MatchKind, Schema, TableId, TableSchema};
use ageing::Ageing;
use exact::Exact;
use hash_index::HashIndex;
use lengths::Lengths;
use prune::Prune;
use records::Records;
use tuples::TupleSpace;

/// How a table finds the record of a key.
#[derive(Clone)]
enum Index {
    /// No key: every lookup misses.
    Keyless,
    /// All fields exact.
    Exact(Exact),
    /// One longest-prefix field, the others exact.
    Lpm(Lengths),
    /// Ternary, range or optional fields: the largest priority wins.
    Priority(TupleSpace),
}

/// The default entry: what a miss does.
#[derive(Clone, Default)]
struct DefaultEntry {
    action: Option<ActionWord>,
    args: Vec<u64>,
    packets: u64,
    bytes: u64,
}

/// A match table with its entries.
#[derive(Clone)]
pub struct Table {
    program: Arc<Schema>,
    id: TableId,
    index: Index,
    records: Records,
    default: DefaultEntry,
    ageing: Option<Ageing>,
    meters: Option<Meters>,
    /// Entries are the program's own and cannot be changed.
    immutable: bool,
    max_size: u32,
    /// It has `LARGE` entries or more: what a lookup reads is hardly in the cache.
    is_large: bool,
}

/// See `Table::is_large`.
pub(crate) const LARGE: usize = 4096;

impl Table {
    /// Where `is_large` lies in a table: a byte, 0 or 1.
    pub(crate) const IS_LARGE: usize = offset_of!(Table, is_large);

    /// An empty table of this program, with the program's own entries and default action in it.
    pub fn new(program: &Arc<Schema>, id: TableId) -> Result<Table, ControlError> {
        let (schema, actions) = (&program.tables[id.index()], &program.actions);
        let has = |kind| schema.keys.iter().any(|k| k.kind == kind);
        let index = if schema.keys.is_empty() {
            Index::Keyless
        } else if schema.needs_priority() {
            Index::Priority(TupleSpace::new(&schema.keys))
        } else if has(MatchKind::Lpm) {
            let prefixes = schema.keys.iter().filter(|k| k.kind == MatchKind::Lpm);
            if prefixes.count() > 1 {
                let text = "more than one lpm field; at most one is allowed";
                return Err(ControlError::invalid(text).at(format_args!("table {}", schema.name)));
            }
            Index::Lpm(Lengths::new(&schema.keys))
        } else {
            Index::Exact(Exact::new(&schema.keys, schema.max_size))
        };
        let key_limbs = match &index {
            Index::Exact(exact) => exact.words(),
            _ => schema.key_limbs(),
        };
        let mut table = Table {
            program: program.clone(),
            id,
            records: Records::new(layout(schema, actions, key_limbs)),
            index,
            default: DefaultEntry::default(),
            ageing: schema.support_timeout.then(Ageing::new),
            meters: schema
                .direct_meter
                .as_ref()
                .map(|m| Meters::new(u32::MAX, m.unit)),
            immutable: false,
            max_size: schema.max_size,
            is_large: false,
        };
        table.set_default(None)?;
        for entry in schema.const_entries.iter().flatten() {
            let (entry, word, args) = own_entry(schema, actions, entry)?;
            table.insert(&entry, word, args, 0)?;
        }
        table.immutable = schema.const_entries.is_some();
        Ok(table)
    }

    /// Sees that one of the program's own entries fits, and returns its key, which no other may have.
    pub(crate) fn check_own(
        schema: &TableSchema,
        actions: &[ActionSchema],
        entry: &Entry,
    ) -> Result<Key, ControlError> {
        if schema.keys.is_empty() {
            let text = format!("table {}: it has no key, so no entries", schema.name);
            return Err(ControlError::invalid(text));
        }
        let (entry, ..) = own_entry(schema, actions, entry)?;
        Ok(entry.key)
    }

    /// Memory that a full table takes.
    pub fn bytes(schema: &TableSchema, actions: &[ActionSchema]) -> u64 {
        if schema.keys.is_empty() {
            return 0;
        }
        let layout = layout(schema, actions, schema.key_limbs());
        let meter = schema.direct_meter.is_some() as u64 * Meters::bytes(1);
        let (mut prefixes, mut once) = (0, Exact::BYTES);
        if schema.needs_priority() {
            once += Prune::bytes(schema.max_size);
        } else if schema.keys.iter().any(|k| k.kind == MatchKind::Lpm) {
            prefixes = Lengths::bytes(&schema.keys);
        }
        let entry = layout.bytes() + HashIndex::BYTES + meter + prefixes;
        u64::from(schema.max_size) * entry + once
    }

    /// From now on the control plane may change the program's own entries and add further ones, up to `max_size`.
    pub fn allow_changes(&mut self, max_size: u32) {
        self.immutable = false;
        self.max_size = max_size;
        self.records.layout.max_size = max_size;
    }

    /// Most entries that it holds.
    pub fn max_size(&self) -> u32 {
        self.max_size
    }

    /// True when the control plane may not change the entries.
    pub fn is_const(&self) -> bool {
        self.immutable
    }

    /// It has so many entries that what a lookup reads is hardly in the cache.
    #[inline]
    pub(crate) fn is_large(&self) -> bool {
        self.is_large
    }

    /// Number of entries.
    pub fn entries(&self) -> usize {
        self.records.len()
    }
}

fn layout(schema: &TableSchema, actions: &[ActionSchema], key_limbs: usize) -> records::Layout {
    let args = schema.actions.iter();
    let args = args.map(|a| actions[a.index()].arg_limbs()).max();
    let ranges = schema.keys.iter().filter(|k| k.kind == MatchKind::Range);
    records::Layout::new(
        schema.needs_priority(),
        key_limbs,
        match schema.profile {
            Some(_) => 0,
            None => args.unwrap_or(0),
        },
        schema.direct_counter.is_some(),
        schema.support_timeout,
        ranges.map(|k| 2 * limbs_for(k.width)).sum(),
        schema.max_size,
    )
}

/// One of the program's own entries as `Table::insert` takes it.
fn own_entry<'a>(
    schema: &TableSchema,
    actions: &[ActionSchema],
    entry: &'a Entry,
) -> Result<(Entry<Key>, ActionWord, &'a [u64]), ControlError> {
    let place = format_args!("table {}", schema.name);
    let (word, args) = match &entry.action {
        EntryAction::Direct(call) if schema.profile.is_none() => {
            let word = check_call(&schema.actions, actions, call, place)?;
            (word, &call.args[..])
        }
        _ => {
            let text = "its own entries call an action themselves";
            return Err(ControlError::invalid(text).at(place));
        }
    };
    let entry = Entry {
        key: entry.key.as_key(schema)?.into_owned(),
        action: entry.action.clone(),
        idle_timeout: entry.idle_timeout,
        cookie: entry.cookie,
    };
    Ok((entry, word, args))
}
