// SPDX-License-Identifier: Apache-2.0
//! Pruned tuple space search (Srinivasan, Suri, Varghese 1999): some bytes of a key say which tuples can have an entry
//! for it at all, 64 tuples at a time; only those are tried.

use super::key::Key;
use crate::bits::limbs_for;
use crate::schema::{KeySchema, MatchKind};

/// Bytes of a key that are looked at.
const BYTES: usize = 8;
/// Tuples that are told apart; those behind are always tried.
pub const TUPLES: u32 = 4096;

/// Which tuples may match, by some bytes of the key.
#[derive(Clone)]
pub struct Prune {
    /// Limb of the key and shift in it.
    places: Vec<(usize, u32)>,
    /// Words of a set.
    words: usize,
    /// For each byte and each of its 256 values, the set of tuples that have had an entry for it.
    sets: Vec<u64>,
}

impl Prune {
    /// The most significant bytes of all fields that have a mask, then those behind them.
    pub fn new(keys: &[KeySchema]) -> Self {
        let (mut fields, mut at) = (Vec::new(), 0);
        for key in keys {
            if key.kind != MatchKind::Range {
                fields.push((at, key.width.div_ceil(8)));
            }
            at += limbs_for(key.width);
        }
        let most = fields.iter().map(|f| f.1).max().unwrap_or(0);
        let place = |down: u32| {
            let fields = fields.iter().filter(move |(_, bytes)| down < *bytes);
            fields.map(move |&(at, bytes)| {
                let byte = bytes - 1 - down;
                (at + byte as usize / 8, byte % 8 * 8)
            })
        };
        Prune {
            places: (0..most).flat_map(place).take(BYTES).collect(),
            words: 0,
            sets: Vec::new(),
        }
    }

    /// Memory for a table of so many entries, at most.
    pub fn bytes(max_size: u32) -> u64 {
        let words = max_size.min(TUPLES).div_ceil(64).next_power_of_two();
        (BYTES * 256 * size_of::<u64>()) as u64 * u64::from(words)
    }

    /// A tuple has an entry with this key.
    pub fn add(&mut self, tuple: u32, key: &Key) {
        if tuple >= TUPLES {
            return;
        }
        let word = tuple as usize / 64;
        while word >= self.words {
            self.widen();
        }
        for (i, &(limb, shift)) in self.places.iter().enumerate() {
            let (value, mask) = (
                key.value[limb] >> shift & 0xff,
                key.mask[limb] >> shift & 0xff,
            );
            for byte in (0..256).filter(|byte| byte & mask == value) {
                let set = i * 256 + byte as usize;
                self.sets[set * self.words + word] |= 1 << (tuple % 64);
            }
        }
    }

    /// A tuple has no entries.
    pub fn clear(&mut self, tuple: u32) {
        if tuple >= TUPLES {
            return;
        }
        let word = tuple as usize / 64;
        let words = self.sets.iter_mut().skip(word).step_by(self.words);
        words.for_each(|word| *word &= !(1 << (tuple % 64)));
    }

    fn widen(&mut self) {
        let words = (2 * self.words).max(1);
        let mut sets = vec![0; self.places.len() * 256 * words];
        if self.words > 0 {
            let old = self.sets.chunks_exact(self.words);
            for (new, old) in sets.chunks_exact_mut(words).zip(old) {
                new[..self.words].copy_from_slice(old);
            }
        }
        (self.words, self.sets) = (words, sets);
    }

    /// Calls `f` with each tuple below `TUPLES` that may have an entry for `key`.
    #[inline]
    pub fn candidates(&self, key: &[u64], mut f: impl FnMut(u32)) {
        let mut sets = [0; BYTES];
        for ((set, &(limb, shift)), i) in sets.iter_mut().zip(&self.places).zip(0..) {
            *set = (i * 256 + (key[limb] >> shift & 0xff) as usize) * self.words;
        }
        let sets = &sets[..self.places.len()];
        for word in 0..self.words {
            let all = |left: u64, set: &usize| left & self.sets[set + word];
            let mut left = sets.iter().fold(u64::MAX, all);
            while left != 0 {
                f(word as u32 * 64 + left.trailing_zeros());
                left &= left - 1;
            }
        }
    }
}
