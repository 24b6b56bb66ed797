// SPDX-License-Identifier: Apache-2.0
//! Match tables: what a packet's key finds, and the entries behind it.
//!
//! | file | idea |
//! |---|---|
//! | `mod` | `Table`, and the packet path through it |
//! | `manage` | insert, modify, delete, read: checked first, then applied |
//! | `key` | keys, action calls and parser value sets as limbs, with the errors a client sees |
//! | `records` | one arena of u64 words, one record an entry; idle time-outs |
//! | `hash_index` | hash of words; open addressing from hash to record; exact match: narrow fields packed together |
//! | `lengths` | longest prefix: one hash index for each length, searched by halves |
//! | `tuples` | ternary, range: one hash index for each mask; which masks are worth a look |
//! | `profile` | action profiles and selectors |

mod hash_index;
mod key;
mod lengths;
mod manage;
mod profile;
mod records;
#[cfg(test)]
mod tests;
mod tuples;

use std::mem::offset_of;
use std::sync::Arc;

use hash_index::{Exact, HashIndex};
use key::Callee;
use lengths::Lengths;
use records::{Ageing, EntryIndex, Records};
use tuples::{Prune, TupleSpace};

use crate::bits::{limbs_for, Entry, EntryAction, Nanos};
use crate::error::{At, ControlResult};
use crate::externs::{Meter, Meters};
use crate::schema::{ActionId, ActionSchema, MatchKind, Schema, TableId, TableSchema};
use crate::{refusal, refuse};

pub(crate) use hash_index::{packing, Place};
pub(crate) use key::{check_call, push_prefix, show as show_key, ActionWord};
pub use key::{AsKey, Key, ValueSet};
pub use profile::Profile;

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
    pub fn new(program: &Arc<Schema>, id: TableId) -> ControlResult<Table> {
        let (schema, actions) = (&program.tables[id.index()], &program.actions);
        let has = |kind| schema.keys.iter().any(|k| k.kind == kind);
        let index = if schema.keys.is_empty() {
            Index::Keyless
        } else if schema.needs_priority() {
            Index::Priority(TupleSpace::new(&schema.keys))
        } else if has(MatchKind::Lpm) {
            let prefixes = schema.keys.iter().filter(|k| k.kind == MatchKind::Lpm);
            if prefixes.count() > 1 {
                refuse!(
                    "table {}: more than one lpm field; at most one is allowed",
                    schema.name
                );
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
            let (word, args) = own_entry(schema, actions, entry)?;
            table.insert(entry, word, args, 0)?;
        }
        table.immutable = schema.const_entries.is_some();
        Ok(table)
    }

    /// Sees that one of the program's own entries fits, and returns its key, which no other may have.
    pub(crate) fn check_own(
        schema: &TableSchema,
        actions: &[ActionSchema],
        entry: &Entry,
    ) -> ControlResult<Key> {
        if schema.keys.is_empty() {
            refuse!("table {}: it has no key, so no entries", schema.name);
        }
        own_entry(schema, actions, entry)?;
        Ok(entry.key.as_key(schema)?.into_owned())
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

/// The call of one of the program's own entries as `Table::insert` takes it.
fn own_entry<'a>(
    schema: &TableSchema,
    actions: &[ActionSchema],
    entry: &'a Entry,
) -> ControlResult<(ActionWord, &'a [u64])> {
    let place = format_args!("table {}", schema.name);
    match &entry.action {
        EntryAction::Direct(call) if schema.profile.is_none() => {
            let word = check_call(&schema.actions, actions, call).at(place)?;
            Ok((word, &call.args))
        }
        _ => Err(refusal!("its own entries call an action themselves").at(place)),
    }
}

/// What a packet does after a lookup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target<'a> {
    /// Nothing: a miss in a table without default action.
    None,
    /// This action with these argument limbs, packed like a key.
    Action(ActionId, &'a [u64]),
    /// The member at this place of the table's profile.
    Member(u32),
    /// A member of the group at this place, to be chosen by hash.
    Group(u32),
}

/// Result of a lookup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lookup<'a> {
    /// An entry matched; otherwise `target` is the default action.
    pub hit: bool,
    /// The entry that matched.
    pub entry: Option<EntryIndex>,
    /// What to do.
    pub target: Target<'a>,
}

/// See `Table::touched`.
pub(crate) struct Touched {
    found: Option<u32>,
    count: (u64, u64),
    last_hit: Nanos,
    meter: Option<Meter>,
}

impl Table {
    /// Looks `key` up: limbs of all fields in order, least significant limb first, unused high bits zero. Counts the
    /// packet and stamps the entry at `now`, where the table does so.
    #[inline]
    pub fn lookup(&mut self, key: &[u64], now: Nanos, packet_len: u32) -> Lookup<'_> {
        let found = self.peek(key);
        self.hit(found, now, packet_len)
    }

    /// The same in an exact table by the packed key, which has so many words.
    #[inline(always)]
    pub(crate) fn lookup_packed<const W: usize>(
        &mut self,
        key: [u64; W],
        now: Nanos,
        packet_len: u32,
    ) -> Lookup<'_> {
        let found = match &self.index {
            Index::Exact(exact) => exact.find_key(&self.records, key),
            _ => None,
        };
        self.hit(found, now, packet_len)
    }

    /// The same in a table of prefixes, whose key is this limb.
    #[inline(always)]
    pub(crate) fn lookup_prefix(&mut self, key: u64, now: Nanos, packet_len: u32) -> Lookup<'_> {
        let found = match &self.index {
            Index::Lpm(lengths) => lengths.longest(&[key]),
            _ => None,
        };
        self.hit(found, now, packet_len)
    }

    /// Has the place of a packed key in the index come into the cache.
    #[inline(always)]
    pub(crate) fn warm_index<const W: usize>(&self, key: [u64; W]) {
        if let Index::Exact(exact) = &self.index {
            exact.warm_index(key);
        }
    }

    /// Has the entry of a packed key come into the cache.
    #[inline(always)]
    pub(crate) fn warm_entry<const W: usize>(&self, key: [u64; W]) {
        if let Index::Exact(exact) = &self.index {
            exact.warm_entry(&self.records, key);
        }
    }

    /// What follows from the entry that was found.
    #[inline(always)]
    fn hit(&mut self, found: Option<u32>, now: Nanos, packet_len: u32) -> Lookup<'_> {
        match found {
            Some(at) => {
                let layout = self.records.layout;
                let record = self.records.record_mut(at);
                if let Some(c) = layout.count_at {
                    record[c] = record[c].wrapping_add(1);
                    record[c + 1] = record[c + 1].wrapping_add(u64::from(packet_len));
                }
                if let Some(h) = layout.hit_at {
                    record[h] = now;
                }
                Lookup {
                    hit: true,
                    entry: Some(EntryIndex(at)),
                    target: target(
                        ActionWord(record[0] as u32),
                        &record[layout.args_at..][..layout.arg_limbs],
                    ),
                }
            }
            None => {
                let default = &mut self.default;
                default.packets = default.packets.wrapping_add(1);
                default.bytes = default.bytes.wrapping_add(u64::from(packet_len));
                Lookup {
                    hit: false,
                    entry: None,
                    target: default
                        .action
                        .map_or(Target::None, |word| target(word, &default.args)),
                }
            }
        }
    }

    /// The entry that a lookup of `key` would find; nothing is counted.
    #[inline(always)]
    pub(crate) fn peek(&self, key: &[u64]) -> Option<u32> {
        match &self.index {
            Index::Exact(exact) => exact.find(&self.records, key),
            Index::Keyless => None,
            Index::Lpm(lengths) => lengths.longest(key),
            Index::Priority(space) => space.best(&self.records, key),
        }
    }

    /// All that a lookup that ends at `found`, and a direct meter, can change.
    pub(crate) fn touched(&self, found: Option<u32>) -> Touched {
        Touched {
            found,
            count: match found {
                Some(at) => self.records.count(at),
                None => (self.default.packets, self.default.bytes),
            },
            last_hit: found.map_or(0, |at| self.records.last_hit(at)),
            meter: found.and_then(|at| self.meters.as_ref()?.cell(u64::from(at))),
        }
    }

    /// Makes it as it was.
    pub(crate) fn untouch(&mut self, before: &Touched) {
        let Some(at) = before.found else {
            (self.default.packets, self.default.bytes) = before.count;
            return;
        };
        self.records.set_count(at, before.count.0, before.count.1);
        self.records.set_last_hit(at, before.last_hit);
        if let (Some(meters), Some(cell)) = (&mut self.meters, before.meter) {
            meters.put(u64::from(at), cell);
        }
    }

    /// The colour of a packet at an entry's direct meter; green without one.
    #[inline]
    pub fn meter_color(&mut self, entry: EntryIndex, now: Nanos, packet_len: u32) -> u8 {
        self.meters
            .as_mut()
            .and_then(|m| m.execute(u64::from(entry.0), now, packet_len))
            .unwrap_or(crate::externs::GREEN)
    }
}

#[inline(always)]
fn target(word: ActionWord, args: &[u64]) -> Target<'_> {
    match word.callee() {
        Callee::Action(action) => Target::Action(action, args),
        Callee::Member(place) => Target::Member(place),
        Callee::Group(place) => Target::Group(place),
    }
}
