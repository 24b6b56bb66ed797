// SPDX-License-Identifier: Apache-2.0
//! Match tables: what a packet's key finds, and the entries behind it.
//!
//! | file | idea |
//! |---|---|
//! | `mod`, `lookup` | `Table`, and the packet path through it |
//! | `manage` | insert, modify, delete, read: checked first, then applied |
//! | `key`, `call` | control-plane values ⇄ limbs, with the errors a client sees |
//! | `records` | one arena of u64 words, one record an entry |
//! | `hash`, `hash_index` | hash of words; open addressing from hash to record |
//! | `exact` | exact match: one hash index, narrow fields packed together |
//! | `tuples` | longest prefix, ternary, range: one hash index for each mask |
//! | `ageing` | idle time-outs |
//! | `profile`, `value_set` | action profiles and selectors; parser value sets |

mod ageing;
mod call;
mod exact;
mod hash;
mod hash_index;
mod key;
mod lookup;
mod manage;
mod profile;
mod records;
#[cfg(test)]
mod tests;
mod tuples;
mod value_set;

pub use call::{pack_call, unpack_call, ActionWord, Callee};
pub(crate) use key::show as show_key;
pub use lookup::Target;
pub(crate) use lookup::Touched;
pub use manage::StoredEntry;
pub use profile::Profile;
pub use value_set::ValueSet;

use crate::bits::limbs_for;
use crate::entry::{EntryAction, KeyMatch};
use crate::error::{ControlError, ErrorKind};
use crate::externs::Meters;
use crate::schema::{ActionSchema, MatchKind, TableSchema};
use ageing::Ageing;
use exact::Exact;
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
    Lpm(TupleSpace),
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
    index: Index,
    records: Records,
    default: DefaultEntry,
    ageing: Option<Ageing>,
    meters: Option<Meters>,
    /// Entries are the program's own and cannot be changed.
    immutable: bool,
    max_size: u32,
}

impl Table {
    /// An empty table of this shape, with the program's own entries and default action in it.
    pub fn new(schema: &TableSchema, actions: &[ActionSchema]) -> Result<Table, ControlError> {
        let has = |kind| schema.keys.iter().any(|k| k.kind == kind);
        let arg_limbs = schema
            .actions
            .iter()
            .map(|a| actions[a.index()].arg_limbs())
            .max()
            .unwrap_or(0);
        let range_limbs: usize = schema
            .keys
            .iter()
            .filter(|k| k.kind == MatchKind::Range)
            .map(|k| 2 * limbs_for(k.width))
            .sum();
        let index = if schema.keys.is_empty() {
            Index::Keyless
        } else if schema.needs_priority() {
            Index::Priority(TupleSpace::new(&schema.keys))
        } else if has(MatchKind::Lpm) {
            if schema
                .keys
                .iter()
                .filter(|k| k.kind == MatchKind::Lpm)
                .count()
                > 1
            {
                return Err(ControlError::new(
                    ErrorKind::InvalidArgument,
                    format!(
                        "table {}: more than one lpm field; at most one is allowed",
                        schema.name
                    ),
                ));
            }
            Index::Lpm(TupleSpace::new(&schema.keys))
        } else {
            Index::Exact(Exact::new(&schema.keys, schema.max_size))
        };
        let mut table = Table {
            records: Records::new(records::Layout::new(
                matches!(index, Index::Priority(_)),
                match &index {
                    Index::Exact(exact) => exact.words(),
                    _ => schema.key_limbs(),
                },
                if schema.profile.is_some() {
                    0
                } else {
                    arg_limbs
                },
                schema.direct_counter.is_some(),
                schema.support_timeout,
                range_limbs,
                schema.max_size,
            )),
            index,
            default: DefaultEntry::default(),
            ageing: schema.support_timeout.then(Ageing::new),
            meters: schema
                .direct_meter
                .as_ref()
                .map(|m| Meters::new(u32::MAX, m.unit)),
            immutable: false,
            max_size: schema.max_size,
        };
        table.reset_default(schema, actions)?;
        for entry in schema.const_entries.iter().flatten() {
            let mut entry = entry.clone();
            entry.key.matches.iter_mut().for_each(normalise);
            if !schema.needs_priority() {
                entry.key.priority = 0;
            }
            let EntryAction::Direct(call) = &entry.action else {
                return Err(ControlError::new(
                    ErrorKind::InvalidArgument,
                    format!(
                        "table {}: a const entry must call an action itself",
                        schema.name
                    ),
                ));
            };
            let (word, args) = pack_call(&schema.actions, actions, call, || {
                format!("table {}", schema.name)
            })?;
            table.insert(schema, &entry, word, &args, 0)?;
        }
        table.immutable = schema.const_entries.is_some();
        Ok(table)
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.records.len()
    }
}

/// Cuts the bits of a const entry that its mask hides: p4c leaves them, BMv2 ignores them.
fn normalise(field: &mut KeyMatch) {
    match field {
        KeyMatch::Ternary { value, mask } => *value = key::and(value, mask),
        KeyMatch::Lpm { value, prefix_len } => {
            *value = key::and(value, &key::prefix_mask(value.width(), *prefix_len));
        }
        KeyMatch::Exact(_) | KeyMatch::Range { .. } | KeyMatch::Optional(_) => {}
    }
}
