// SPDX-License-Identifier: Apache-2.0
//! The packet path through a table: from key to action, counting and stamping on the way; allocates nothing.

use super::call::{ActionWord, Callee};
use super::records::EntryIndex;
use super::{Index, Table};
use crate::entry::Nanos;
use crate::externs::Meter;
use crate::schema::ActionId;

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
