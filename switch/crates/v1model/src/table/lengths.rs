// SPDX-License-Identifier: Apache-2.0
//! Longest prefix by binary search over prefix lengths (Waldvogel, Varghese, Turner, Plattner 1997): a hash index for each
//! length; where a search must go on to longer prefixes, a marker says so. What a marker's own longest match is, is found
//! when it is first asked for after a change, and kept.

use std::cell::Cell;

use super::hash_index::{HashIndex, Seeds};
use super::key::{push_prefix, Key};
use super::records::{Records, NONE};
use crate::bits::limbs_for;
use crate::schema::{KeySchema, MatchKind};

/// No level.
const STOP: u32 = u32::MAX;
/// Words of a node in front of its key: its entry and how many entries it is a marker of; its match and when that was
/// found.
const HEAD: usize = 2;

/// So many entries whose keys are one limb are compared one by one: that is quicker than to hash.
const FEW: usize = 32;

/// An entry whose key is one limb.
#[derive(Clone, Copy)]
struct Short {
    mask: u64,
    value: u64,
    entry: u32,
}

/// All prefixes of one length: those of entries, and markers of longer ones.
#[derive(Clone)]
struct Level {
    length: u32,
    mask: Box<[u64]>,
    /// To nodes.
    index: HashIndex,
    nodes: usize,
    /// The level to search next after a hit and after a miss.
    hit: u32,
    miss: u32,
}

/// The entries of a table with one longest-prefix field, the others exact.
#[derive(Clone)]
pub struct Lengths {
    seeds: Seeds,
    keys: Vec<KeySchema>,
    /// Where the limbs of the prefix are in a key, and their number.
    at: usize,
    field_limbs: usize,
    width: u32,
    /// Those that have nodes, by length.
    levels: Vec<Level>,
    /// The level to search first.
    root: u32,
    /// Of nodes, `stride` each.
    words: Vec<Cell<u64>>,
    stride: usize,
    free: Vec<u32>,
    entries: usize,
    /// All entries, the longest prefixes first, while they are few; else empty, and until only `FEW / 2` are left.
    few: Vec<Short>,
    /// Changes since the table was made; matches found before the last one do not count.
    changes: u32,
}

impl Lengths {
    pub fn new(keys: &[KeySchema]) -> Self {
        let mut limbs = 0;
        let (mut at, mut width) = (0, 0);
        for key in keys {
            if key.kind == MatchKind::Lpm {
                (at, width) = (limbs, key.width);
            }
            limbs += limbs_for(key.width);
        }
        Lengths {
            seeds: Seeds::random(),
            keys: keys.to_vec(),
            at,
            field_limbs: limbs_for(width),
            width,
            levels: Vec::new(),
            root: STOP,
            words: Vec::new(),
            stride: HEAD + limbs,
            free: Vec::new(),
            entries: 0,
            few: Vec::with_capacity(FEW),
            changes: 1,
        }
    }

    /// Memory of an entry with its markers, at most.
    pub fn bytes(keys: &[KeySchema]) -> u64 {
        let width = keys
            .iter()
            .filter(|k| k.kind == MatchKind::Lpm)
            .map(|k| k.width);
        let nodes = u64::from(u32::BITS - width.max().unwrap_or(0).leading_zeros()) + 1;
        let limbs: usize = keys.iter().map(|k| limbs_for(k.width)).sum();
        nodes * (((HEAD + limbs) * size_of::<u64>()) as u64 + HashIndex::BYTES)
    }

    /// The mask of prefixes of this length.
    pub fn mask(&self, length: u32) -> Vec<u64> {
        let mut mask = Vec::new();
        for key in &self.keys {
            let length = match key.kind {
                MatchKind::Lpm => length,
                _ => key.width,
            };
            push_prefix(key.width, length, &mut mask);
        }
        mask
    }

    /// The entry with the longest prefix that `key` matches.
    #[inline(always)]
    pub fn longest(&self, key: &[u64]) -> Option<u32> {
        if let (&[key], true) = (key, self.few.len() == self.entries) {
            let found = self.few.iter().find(|e| key & e.mask == e.value);
            return found.map(|e| e.entry);
        }
        self.longest_of_many(key)
    }

    #[inline(never)]
    fn longest_of_many(&self, key: &[u64]) -> Option<u32> {
        let mut found = None;
        let mut at = self.root;
        while let Some(level) = self.levels.get(at as usize) {
            at = match self.node(level, key) {
                Some(node) => {
                    found = Some((node, level));
                    level.hit
                }
                None => level.miss,
            };
        }
        match found {
            Some((node, level)) => self.longest_at(node, level, key),
            None => self.below(1, key),
        }
    }

    /// The entry of a node, or the longest one in front of it.
    #[inline]
    fn longest_at(&self, node: u32, level: &Level, key: &[u64]) -> Option<u32> {
        let entry = self.entry(node);
        if entry != NONE {
            return Some(entry);
        }
        let kept = &self.words[node as usize * self.stride + 1];
        let found = match (kept.get() >> 32) as u32 == self.changes {
            true => kept.get() as u32,
            false => {
                let found = self.below(level.length, key).unwrap_or(NONE);
                kept.set(u64::from(self.changes) << 32 | u64::from(found));
                found
            }
        };
        (found != NONE).then_some(found)
    }

    /// The entry with the longest prefix below `length` that `key` matches, length by length.
    #[inline(never)]
    fn below(&self, length: u32, key: &[u64]) -> Option<u32> {
        let shorter = self.levels.partition_point(|level| level.length < length);
        self.levels[..shorter].iter().rev().find_map(|level| {
            let entry = self.entry(self.node(level, key)?);
            (entry != NONE).then_some(entry)
        })
    }

    /// The entry with exactly this key.
    pub fn find(&self, key: &Key) -> Option<u32> {
        let length = self.length(key);
        let at = self
            .levels
            .binary_search_by_key(&length, |l| l.length)
            .ok()?;
        let entry = self.entry(self.node(&self.levels[at], &key.value)?);
        (entry != NONE).then_some(entry)
    }

    /// Adds the entry at `at`, whose length is noted in the record.
    pub fn insert(&mut self, records: &mut Records, at: u32, key: &Key) {
        let length = self.length(key);
        records.cold_mut(at).tuple = length;
        for marker in self.markers(length) {
            let node = self.add_node(records, marker, &key.value);
            self.set_head(node, |entry, markers| (entry, markers + 1));
        }
        let node = self.add_node(records, length, &key.value);
        self.set_head(node, |_, markers| (at, markers));
        self.change();
        if let (&[mask], &[value]) = (&key.mask[..], &key.value[..]) {
            if self.entries == FEW {
                self.few.clear();
            } else if self.few.len() == self.entries {
                let place = self.few.partition_point(|e| e.mask >= mask);
                let (value, entry) = (value & mask, at);
                self.few.insert(place, Short { mask, value, entry });
            }
        }
        self.entries += 1;
    }

    /// Takes the entry with this key out.
    pub fn remove(&mut self, key: &Key) {
        let length = self.length(key);
        self.release(length, &key.value, |_, markers| (NONE, markers));
        for marker in self.markers(length) {
            self.release(marker, &key.value, |entry, markers| (entry, markers - 1));
        }
        self.change();
        self.few
            .retain(|e| [e.mask] != key.mask[..] || e.value != key.value[0] & e.mask);
        self.entries -= 1;
        if self.few.len() != self.entries && self.entries == FEW / 2 {
            self.list_few();
        }
    }

    /// Lists the entries, which are few again, when their keys are one limb.
    fn list_few(&mut self) {
        if self.stride != HEAD + 1 {
            return;
        }
        for level in self.levels.iter().rev() {
            for node in level.index.records() {
                let (mask, entry) = (level.mask[0], self.entry(node));
                let value = self.words[node as usize * self.stride + HEAD].get();
                if entry != NONE {
                    self.few.push(Short { mask, value, entry });
                }
            }
        }
    }

    fn length(&self, key: &Key) -> u32 {
        let limbs = &key.mask[self.at..][..self.field_limbs];
        limbs.iter().map(|limb| limb.count_ones()).sum()
    }

    /// The lengths at which a search for a prefix of this length must find a node to go on to it.
    fn markers(&self, length: u32) -> Vec<u32> {
        let (mut low, mut high) = (0, self.width);
        let mut markers = Vec::new();
        while low < high {
            let middle = (low + high).div_ceil(2);
            if middle < length {
                markers.push(middle);
                low = middle;
            } else if middle == length {
                break;
            } else {
                high = middle - 1;
            }
        }
        markers
    }

    fn change(&mut self) {
        self.changes = self.changes.wrapping_add(1);
        if self.changes == 0 {
            self.changes = 1;
            let matches = self.words.iter().skip(1).step_by(self.stride);
            matches.for_each(|kept| kept.set(0));
        }
    }

    #[inline(always)]
    fn hash(&self, mask: &[u64], key: &[u64]) -> u64 {
        let n = mask.len().min(key.len());
        self.seeds.hash(n, |i| key[i] & mask[i])
    }

    /// The node of a level that `key` falls into.
    #[inline(always)]
    fn node(&self, level: &Level, key: &[u64]) -> Option<u32> {
        level.index.find(self.hash(&level.mask, key), |node| {
            let own = &self.words[node as usize * self.stride + HEAD..];
            key.iter()
                .zip(&level.mask)
                .zip(own)
                .fold(0, |diff, ((k, m), v)| diff | ((k & m) ^ v.get()))
                == 0
        })
    }

    #[inline(always)]
    fn entry(&self, node: u32) -> u32 {
        self.words[node as usize * self.stride].get() as u32
    }

    /// Changes a node's entry and how many entries it is a marker of; the result is whether it has any left.
    fn set_head(&mut self, node: u32, f: impl FnOnce(u32, u32) -> (u32, u32)) -> bool {
        let word = &self.words[node as usize * self.stride];
        let (entry, markers) = f(word.get() as u32, (word.get() >> 32) as u32);
        word.set(u64::from(markers) << 32 | u64::from(entry));
        entry != NONE || markers > 0
    }

    /// The node of a prefix, made when there is none.
    fn add_node(&mut self, records: &Records, length: u32, value: &[u64]) -> u32 {
        let at = match self.levels.binary_search_by_key(&length, |l| l.length) {
            Ok(at) => at,
            Err(at) => {
                let level = Level {
                    length,
                    mask: self.mask(length).into(),
                    index: HashIndex::new(records.layout.max_size),
                    nodes: 0,
                    hit: STOP,
                    miss: STOP,
                };
                self.levels.insert(at, level);
                self.plan();
                at
            }
        };
        if let Some(node) = self.node(&self.levels[at], value) {
            return node;
        }
        let node = self.free.pop().unwrap_or_else(|| {
            let node = self.words.len() / self.stride;
            self.words
                .resize(self.words.len() + self.stride, Cell::new(0));
            node as u32
        });
        let own = &self.words[node as usize * self.stride..][..self.stride];
        own[0].set(NONE.into());
        own[1].set(0);
        for ((word, value), mask) in own[HEAD..].iter().zip(value).zip(&self.levels[at].mask) {
            word.set(value & mask);
        }
        let hash = self.hash(&self.levels[at].mask, value);
        let (level, hash_of) = self.level(at);
        level.index.insert(hash, node, hash_of);
        level.nodes += 1;
        node
    }

    /// A level, and the hashes of nodes' keys.
    fn level(&mut self, at: usize) -> (&mut Level, impl Fn(u32) -> u64 + '_) {
        let (seeds, words, stride) = (self.seeds, &self.words, self.stride);
        let hash_of = move |node: u32| {
            let key = &words[node as usize * stride + HEAD..][..stride - HEAD];
            seeds.hash(key.len(), |i| key[i].get())
        };
        (&mut self.levels[at], hash_of)
    }

    /// Changes the node of a prefix, and takes it out when nothing needs it.
    fn release(&mut self, length: u32, value: &[u64], f: impl FnOnce(u32, u32) -> (u32, u32)) {
        let at = self.levels.binary_search_by_key(&length, |l| l.length);
        let at = at.expect("an entry's levels are there");
        let node = self.node(&self.levels[at], value);
        let node = node.expect("an entry's nodes are there");
        if self.set_head(node, f) {
            return;
        }
        let hash = self.hash(&self.levels[at].mask, value);
        let (level, hash_of) = self.level(at);
        level.index.remove(hash, node, hash_of);
        level.nodes -= 1;
        self.free.push(node);
        if self.levels[at].nodes == 0 {
            self.levels.remove(at);
            self.plan();
        }
    }

    /// Says for each level which is to be searched next; lengths without a level are misses.
    fn plan(&mut self) {
        let mut next = vec![(STOP, STOP); self.levels.len()];
        let ranges = |low: u32, high: u32| self.middle(low, high);
        for (at, level) in self.levels.iter().enumerate().filter(|(_, l)| l.length > 0) {
            let (mut low, mut high) = (0, self.width);
            while low < high {
                let middle = (low + high).div_ceil(2);
                match level.length.cmp(&middle) {
                    std::cmp::Ordering::Less => high = middle - 1,
                    std::cmp::Ordering::Greater => low = middle,
                    std::cmp::Ordering::Equal => {
                        next[at] = (ranges(middle, high), ranges(low, middle - 1));
                        break;
                    }
                }
            }
        }
        let root = ranges(0, self.width);
        self.root = root;
        for (level, (hit, miss)) in self.levels.iter_mut().zip(next) {
            (level.hit, level.miss) = (hit, miss);
        }
    }

    /// The level that a search of the lengths from `low` (known) to `high` asks first.
    fn middle(&self, low: u32, mut high: u32) -> u32 {
        while low < high {
            let middle = (low + high).div_ceil(2);
            match self.levels.binary_search_by_key(&middle, |l| l.length) {
                Ok(at) => return at as u32,
                Err(_) => high = middle - 1,
            }
        }
        STOP
    }
}

#[cfg(test)]
mod tests {
    use crate::bits::KeyMatch;
    use crate::schema::MatchKind;
    use crate::table::tests::{bits, entry, schema, Fixture};
    use crate::table::Index;

    /// A table that had many entries is as quick with its last ones as one that never had many.
    #[test]
    fn few_entries_are_compared_one_by_one_again() {
        for most in [1, 32, 33, 100] {
            let mut f = Fixture::new(schema(&[("a", MatchKind::Lpm, 32)], 1000));
            let prefixes: Vec<(u32, u32)> = (0..most)
                .map(|i| ((10 << 24) + (i << 12), 20 + i % 13))
                .collect();
            let of = |(value, prefix_len): (u32, u32)| {
                let value = bits(32, u128::from(value & u32::MAX << (32 - prefix_len)));
                entry(
                    vec![KeyMatch::Lpm { value, prefix_len }],
                    0,
                    prefix_len.into(),
                )
            };
            for (i, &prefix) in prefixes.iter().enumerate() {
                f.insert(&of(prefix), i as u64).unwrap();
            }
            let mut left = prefixes;
            while left.len() > 3.min(most as usize - 1) {
                let gone = left.remove(left.len() * 7 % 5 % left.len());
                f.table.delete(&of(gone).key).unwrap();
                for &(value, _) in &left {
                    for key in [value, value ^ 1, value | 0xfff] {
                        let under = |&&(v, len): &&(u32, u32)| (v ^ key) >> (32 - len) == 0;
                        let longest = left.iter().filter(under).map(|&(_, len)| len).max();
                        let found = f.look(&[key.into()], 0);
                        assert_eq!(found, longest.map(u64::from), "{key:#x} of {left:?}");
                    }
                }
            }
            let Index::Lpm(lengths) = &f.table.index else {
                panic!("a prefix")
            };
            assert_eq!(
                (lengths.few.len(), lengths.entries),
                (left.len(), left.len())
            );
        }
    }
}
