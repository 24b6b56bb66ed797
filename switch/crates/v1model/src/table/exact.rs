// SPDX-License-Identifier: Apache-2.0
//! Exact tables: a hash index over keys whose narrow fields share words, so that a record fits a cache line.

use super::hash_index::{HashIndex, Seeds};
use super::records::Records;
use crate::bits::limbs_for;
use crate::memory::prefetch;
use crate::schema::{KeySchema, MatchKind};

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
