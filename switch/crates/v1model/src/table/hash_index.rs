// SPDX-License-Identifier: Apache-2.0
//! Open addressing from a key's hash to the index of its record: linear probing, no tombstones, at most half full. The hash is
//! made of folded 64 × 64 → 128-bit products over limbs, seeded anew in each process.
//!
//! Exact tables: a hash index over keys whose narrow fields share words, so that a record fits a cache line.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};

use super::records::Records;
use crate::bits::limbs_for;
use crate::externs::cells::{ask_for_huge_pages, prefetch};
use crate::schema::{KeySchema, MatchKind};

/// Up to this many records the index doubles; then it goes to the table's full size at once, whose zero pages cost
/// nothing until touched. So no insert ever has to move more than this many slots.
const SMALL: usize = 1024;
/// The largest size that is reserved in advance; beyond it the index doubles again.
const RESERVED: usize = 1 << 20;

/// Records by hash. A slot holds the record's index + 1 in its low bits and, above it, bits of the hash; 0 is free. Half the
/// size of the whole hash is that many more records whose places are in the cache.
#[derive(Clone)]
pub struct HashIndex {
    slots: Vec<u32>,
    /// 64 - log2(slots): the home of a hash is in its highest bits.
    shift: u32,
    /// The bits of a slot that are the record.
    records: u32,
    len: usize,
    max_len: usize,
}

impl HashIndex {
    /// Memory for each record of a full index, which is a quarter to a half full.
    pub const BYTES: u64 = 4 * size_of::<u32>() as u64;

    /// An index that is meant for up to `max_len` records (it takes more, but has to grow then).
    pub fn new(max_len: u32) -> Self {
        HashIndex {
            slots: vec![0; 4],
            shift: 62,
            records: 0,
            len: 0,
            max_len: max_len as usize,
        }
    }

    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Has the home of a hash come into the cache.
    #[inline(always)]
    pub fn warm(&self, hash: u64) {
        prefetch(&raw const self.slots[(hash >> self.shift) as usize]);
    }

    /// The record whose hash is `hash` and for which `is_it` holds.
    #[inline(always)]
    pub fn find(&self, hash: u64, is_it: impl Fn(u32) -> bool) -> Option<u32> {
        let mask = self.slots.len() - 1;
        let mut at = (hash >> self.shift) as usize;
        loop {
            let slot = self.slots[at & mask];
            if slot == 0 {
                return None;
            }
            if (slot ^ hash as u32) & !self.records == 0 {
                let record = (slot & self.records) - 1;
                if is_it(record) {
                    return Some(record);
                }
            }
            at += 1;
        }
    }

    /// All records, in no order.
    pub fn records(&self) -> impl Iterator<Item = u32> + '_ {
        let taken = self.slots.iter().filter(|&&slot| slot != 0);
        taken.map(|slot| (slot & self.records) - 1)
    }

    /// Adds a record that is not there yet; `hash_of` gives the hashes of those that are.
    pub fn insert(&mut self, hash: u64, record: u32, hash_of: impl Fn(u32) -> u64) {
        let needed = record.saturating_add(1);
        if (self.len + 1) * 2 > self.slots.len() || needed > self.records {
            self.grow(needed, hash_of);
        }
        self.place(hash, record);
        self.len += 1;
    }

    /// Points the slot of `from` to `to`, whose hash is the same.
    pub fn replace(&mut self, hash: u64, from: u32, to: u32, hash_of: impl Fn(u32) -> u64) {
        let needed = to.saturating_add(1);
        if needed > self.records {
            self.grow(needed, hash_of);
        }
        let at = self.position(hash, from);
        self.slots[at] = self.slot(hash, to);
    }

    /// Takes a record out that is there.
    pub fn remove(&mut self, hash: u64, record: u32, hash_of: impl Fn(u32) -> u64) {
        let mask = self.slots.len() - 1;
        let mut hole = self.position(hash, record);
        let mut at = hole;
        // Pull back those that the hole would cut off from their home.
        loop {
            at = (at + 1) & mask;
            let slot = self.slots[at];
            if slot == 0 {
                break;
            }
            let home = (hash_of((slot & self.records) - 1) >> self.shift) as usize;
            if (at.wrapping_sub(home) & mask) >= (at.wrapping_sub(hole) & mask) {
                self.slots[hole] = slot;
                hole = at;
            }
        }
        self.slots[hole] = 0;
        self.len -= 1;
    }

    fn slot(&self, hash: u64, record: u32) -> u32 {
        hash as u32 & !self.records | (record + 1)
    }

    fn position(&self, hash: u64, record: u32) -> usize {
        let mask = self.slots.len() - 1;
        let wanted = self.slot(hash, record);
        let mut at = (hash >> self.shift) as usize;
        loop {
            let slot = self.slots[at & mask];
            if slot == wanted {
                return at & mask;
            }
            assert!(slot != 0, "record {record} is not in the index");
            at += 1;
        }
    }

    fn place(&mut self, hash: u64, record: u32) {
        let mask = self.slots.len() - 1;
        let mut at = (hash >> self.shift) as usize;
        while self.slots[at & mask] != 0 {
            at += 1;
        }
        self.slots[at & mask] = self.slot(hash, record);
    }

    /// Makes room for one more, and for numbers up to `needed`.
    fn grow(&mut self, needed: u32, hash_of: impl Fn(u32) -> u64) {
        let mut slots = self.slots.len();
        if (self.len + 1) * 2 > slots {
            slots *= 2;
        }
        let mut most = needed.max(2 * self.records.min(u32::MAX / 2));
        if self.len >= SMALL {
            let reserved = self.max_len.min(RESERVED);
            slots = slots.max((2 * reserved).next_power_of_two());
            most = most.max(reserved as u32);
        }
        let before = self.records;
        self.records = u32::MAX >> most.leading_zeros();
        self.shift = 64 - slots.trailing_zeros();
        let old = std::mem::replace(&mut self.slots, vec![0; slots]);
        ask_for_huge_pages(&mut self.slots);
        for slot in old.into_iter().filter(|&slot| slot != 0) {
            let record = (slot & before) - 1;
            self.place(hash_of(record), record);
        }
    }
}

/// The secret numbers of one table's hash. They decide where a record lies, never what a lookup finds.
#[derive(Clone, Copy)]
pub struct Seeds([u64; 4]);

impl Seeds {
    /// Fresh numbers from the process's random state, so that nobody can send flows that all collide.
    pub fn random() -> Self {
        let state = RandomState::new();
        Seeds([1u64, 2, 3, 4].map(|i| {
            let mut hasher = state.build_hasher();
            hasher.write_u64(i);
            hasher.finish() | 1
        }))
    }

    /// The hash of `limb(0) .. limb(n - 1)`.
    #[inline(always)]
    pub fn hash(&self, n: usize, limb: impl Fn(usize) -> u64) -> u64 {
        let [s0, s1, s2, s3] = self.0;
        let mut sum = s2;
        let mut i = 0;
        while i + 1 < n {
            sum = sum.rotate_left(25) ^ mix(limb(i) ^ s0, limb(i + 1) ^ s1);
            i += 2;
        }
        if i < n {
            mix(sum ^ limb(i), s3)
        } else {
            mix(sum, s3)
        }
    }
}

#[inline(always)]
fn mix(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

/// Where a limb of a lookup key goes in its word.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    pub shift: u8,
    /// Bits of the limb.
    bits: u8,
}

/// The limbs of each word of a packed key, in order; None for keys that are not exact, and without any.
pub(crate) fn packing(keys: &[KeySchema]) -> Option<Vec<Vec<Place>>> {
    if keys.is_empty() || keys.iter().any(|key| key.kind != MatchKind::Exact) {
        return None;
    }
    let mut words: Vec<Vec<Place>> = Vec::new();
    let mut used = 64;
    for key in keys {
        for i in 0..limbs_for(key.width) as u32 {
            let bits = (key.width - 64 * i).min(64);
            if used + bits > 64 {
                words.push(Vec::new());
                used = 0;
            }
            let place = Place {
                shift: used as u8,
                bits: bits as u8,
            };
            words.last_mut().expect("a word was begun").push(place);
            used += bits;
        }
    }
    Some(words)
}

/// Keys of at most so many bits are indexes themselves.
const DIRECT_BITS: u32 = 12;

/// The entries of an exact table.
#[derive(Clone)]
pub struct Exact {
    /// By the packed key, the record's index + 1, or 0; empty where keys are longer than `DIRECT_BITS`.
    direct: Vec<u32>,
    index: HashIndex,
    seeds: Seeds,
    /// One for each limb, in order.
    places: Vec<Place>,
    /// Of each word, the number of limbs that it and the words before it hold.
    ends: Vec<usize>,
    words: usize,
}

impl Exact {
    /// Memory of the direct index, at most.
    pub const BYTES: u64 = size_of::<u32>() as u64 * (1 << DIRECT_BITS);

    pub fn new(keys: &[KeySchema], max_size: u32) -> Self {
        let packed = packing(keys).unwrap_or_default();
        let words = packed.len();
        let limbs = |word: &Vec<Place>| word.len();
        let ends = packed.iter().map(limbs).scan(0, |end, limbs| {
            *end += limbs;
            Some(*end)
        });
        let ends = ends.collect();
        let bits: u32 = keys.iter().map(|k| k.width).sum();
        let direct = match words {
            1 if bits <= DIRECT_BITS => vec![0; 1 << bits],
            _ => Vec::new(),
        };
        Exact {
            direct,
            index: HashIndex::new(max_size),
            seeds: Seeds::random(),
            places: packed.concat(),
            ends,
            words,
        }
    }

    /// Words that a key takes in its record.
    pub fn words(&self) -> usize {
        self.words
    }

    /// Writes the key as it stands in a record.
    pub fn pack(&self, key: &[u64], words: &mut [u64]) {
        for (w, word) in words.iter_mut().enumerate() {
            *word = self.word(key, w);
        }
    }

    /// Word `w` of a packed key.
    #[inline(always)]
    fn word(&self, key: &[u64], w: usize) -> u64 {
        let start = if w == 0 { 0 } else { self.ends[w - 1] };
        let end = self.ends[w];
        key[start..end]
            .iter()
            .zip(&self.places[start..end])
            .fold(0, |word, (limb, place)| word | limb << (place.shift & 63))
    }

    /// The limbs of a key from its record; the inverse of `pack`.
    pub fn unpack(&self, words: &[u64]) -> Vec<u64> {
        let mut limbs = Vec::with_capacity(self.places.len());
        for (word, &end) in words.iter().zip(&self.ends) {
            for place in &self.places[limbs.len()..end] {
                limbs.push(word >> place.shift & (u64::MAX >> (64 - place.bits)));
            }
        }
        limbs
    }

    /// The entry whose key equals `key`.
    pub fn find(&self, records: &Records, key: &[u64]) -> Option<u32> {
        if !self.direct.is_empty() {
            return self.direct.get(self.word(key, 0) as usize)?.checked_sub(1);
        }
        // Without a copy of the key.
        let hash = self.seeds.hash(self.words, |w| self.word(key, w));
        self.index.find(hash, |at| {
            let mut stored = records.key(at).iter().enumerate();
            stored.all(|(w, &stored)| self.word(key, w) == stored)
        })
    }

    /// Adds the entry whose record holds its packed key already.
    pub fn insert(&mut self, records: &Records, at: u32) {
        match self.direct_place(records, at) {
            Some(place) => *place = at + 1,
            None => {
                let hash_of = self.hash_of(records);
                self.index.insert(hash_of(at), at, hash_of);
            }
        }
    }

    /// Takes an entry out.
    pub fn remove(&mut self, records: &Records, at: u32) {
        match self.direct_place(records, at) {
            Some(place) => *place = 0,
            None => {
                let hash_of = self.hash_of(records);
                self.index.remove(hash_of(at), at, hash_of);
            }
        }
    }

    fn direct_place(&mut self, records: &Records, at: u32) -> Option<&mut u32> {
        let word = records.key(at).first()?;
        self.direct.get_mut(*word as usize)
    }

    fn hash_of<'r>(&self, records: &'r Records) -> impl Fn(u32) -> u64 + 'r {
        let seeds = self.seeds;
        move |at| {
            let words = records.key(at);
            seeds.hash(words.len(), |i| words[i])
        }
    }

    /// The entry whose packed key is this.
    #[inline(always)]
    pub fn find_key<const W: usize>(&self, records: &Records, words: [u64; W]) -> Option<u32> {
        if !self.direct.is_empty() {
            return self.direct.get(words[0] as usize)?.checked_sub(1);
        }
        self.find_words(records, words)
    }

    /// Has the place of a packed key in the index come into the cache.
    #[inline(always)]
    pub fn warm_index<const W: usize>(&self, words: [u64; W]) {
        self.index.warm(self.seeds.hash(W, |i| words[i]));
    }

    /// Has what is probably the record of a packed key come into the cache.
    #[inline(always)]
    pub fn warm_entry<const W: usize>(&self, records: &Records, words: [u64; W]) {
        let hash = self.seeds.hash(W, |i| words[i]);
        if let Some(at) = self.index.find(hash, |_| true) {
            prefetch(records.record(at).as_ptr());
        }
    }

    #[inline(always)]
    fn find_words<const W: usize>(&self, records: &Records, words: [u64; W]) -> Option<u32> {
        self.index.find(self.seeds.hash(W, |i| words[i]), |at| {
            let stored = &records.key(at)[..W];
            (0..W).fold(0, |diff, i| diff | (words[i] ^ stored[i])) == 0
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    proptest! {
        /// Few homes and few tags, so that runs overlap, wrap around and share tags.
        #[test]
        fn agrees_with_a_map(ops in proptest::collection::vec((0u64..48, any::<bool>()), 1..400)) {
            let hash_of = |key: u64| (key % 6) << 61 | (key % 12) << 28;
            let mut index = HashIndex::new(16);
            let mut map = HashMap::new();
            for (key, insert) in ops {
                let record = key as u32;
                if insert && !map.contains_key(&key) {
                    index.insert(hash_of(key), record, |r| hash_of(r.into()));
                    map.insert(key, record);
                } else if !insert && map.remove(&key).is_some() {
                    index.remove(hash_of(key), record, |r| hash_of(r.into()));
                }
                prop_assert_eq!(index.len(), map.len());
                for k in 0..48 {
                    let found = index.find(hash_of(k), |r| u64::from(r) == k);
                    prop_assert_eq!(found, map.get(&k).copied(), "key {}", k);
                }
            }
        }
    }

    #[test]
    fn grows_to_the_full_size_in_one_step() {
        let mut index = HashIndex::new(65_536);
        for i in 0..=(SMALL as u64) {
            let hash_of = |i: u32| u64::from(i).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            index.insert(hash_of(i as u32), i as u32, hash_of);
        }
        assert_eq!(index.slots.len(), 131_072);
    }

    /// The high bits, which the index uses, spread dense and strided keys over buckets like chance does, but for seeds of
    /// bad luck: they are few, and even then no bucket gets a large part.
    #[test]
    fn dense_keys_spread() {
        const KEYS: u64 = 8192;
        let (mut cases, mut uneven) = (0, 0);
        for seeds in (0..32).map(numbered_seeds) {
            for (n, position) in
                (1..=6usize).flat_map(|n| (0..n).map(move |position| (n, position)))
            {
                for shift in [0, 8, 32, 48] {
                    let mut buckets = vec![0u32; 1024];
                    for value in 0..KEYS {
                        let h = seeds.hash(n, |i| if i == position { value << shift } else { 7 });
                        buckets[(h >> 54) as usize] += 1;
                    }
                    let max = *buckets.iter().max().unwrap();
                    assert!(
                        u64::from(max) < KEYS / 16,
                        "{n} limbs, limb {position} << {shift}: {max} in one of 1024 buckets"
                    );
                    // Mean 8 a bucket; chance makes the largest about 21.
                    cases += 1;
                    uneven += u32::from(max >= 40);
                }
            }
        }
        assert!(uneven * 100 < cases, "{uneven} of {cases} cases are uneven");
    }

    /// Seeds that are the same in every run, from SplitMix64.
    fn numbered_seeds(number: u64) -> Seeds {
        let mut state = number << 32;
        Seeds([(); 4].map(|()| {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let z = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            (z ^ (z >> 31)) | 1
        }))
    }
}

#[cfg(test)]
mod exact_tests {
    use super::*;

    fn exact(widths: &[u32]) -> Exact {
        let keys: Vec<_> = widths
            .iter()
            .map(|&width| KeySchema {
                name: String::new(),
                kind: MatchKind::Exact,
                width,
            })
            .collect();
        Exact::new(&keys, 16)
    }

    #[test]
    fn narrow_fields_share_words_and_come_back() {
        // IPv4 and IPv6 5-tuples, one wide field, odd widths.
        for (widths, words) in [
            (vec![32, 32, 8, 16, 16], 2),
            (vec![128, 128, 8, 16, 16], 5),
            (vec![64], 1),
            (vec![9], 1),
            (vec![65, 63], 2),
            (vec![48, 48, 16], 2),
        ] {
            let exact = exact(&widths);
            assert_eq!(exact.words(), words, "{widths:?}");
            let mut key = Vec::new();
            for &w in &widths {
                for i in 0..limbs_for(w) as u32 {
                    let bits = (w - 64 * i).min(64);
                    key.push(0xfeed_beef_dead_cafe_u64.rotate_left(w) & (u64::MAX >> (64 - bits)));
                }
            }
            let mut packed = vec![0; words];
            exact.pack(&key, &mut packed);
            assert_eq!(exact.unpack(&packed), key, "{widths:?}");
        }
    }
}
