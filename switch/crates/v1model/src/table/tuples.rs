// SPDX-License-Identifier: Apache-2.0
//! Tuple space search (Srinivasan, Suri, Varghese 1999): entries with the same mask share one hash index. While tuples are
//! few, they are tried from the best possible entry down, until none can be better than what was found; then those that
//! `Prune` leaves.
//!
//! Pruned tuple space search (Srinivasan, Suri, Varghese 1999): some bytes of a key say which tuples can have an entry
//! for it at all, 64 tuples at a time; only those are tried.

use std::collections::{BTreeMap, HashMap};

use super::hash_index::{HashIndex, Seeds};
use super::key::Key;
use super::records::{Records, NONE};
use crate::bits::limbs_for;
use crate::schema::{KeySchema, MatchKind};

/// Up to so many values of one mask are compared one by one instead of hashed.
const FEW: usize = 4;

/// Up to so many tuples are tried in their order.
const FEW_TUPLES: usize = if cfg!(test) { 2 } else { 8 };

/// A range field: where its limbs are in a key, and how many.
#[derive(Clone, Copy)]
struct RangeField {
    at: usize,
    limbs: usize,
}

/// All entries with one mask. Those with the same masked value are a chain through `Records::next`, by priority from
/// the largest down, then by index.
#[derive(Clone)]
struct Tuple {
    mask: Box<[u64]>,
    /// Heads of the chains, while they are few; the index is used afterwards.
    few: [u32; FEW],
    chains: usize,
    index: Option<HashIndex>,
    /// How many entries have which priority.
    orders: BTreeMap<i32, u32>,
    /// The largest of these.
    most: i32,
}

/// Entries by mask. The order of an entry is its priority.
#[derive(Clone)]
pub struct TupleSpace {
    seeds: Seeds,
    tuples: Vec<Tuple>,
    free: Vec<u32>,
    /// Live tuples with their largest order, from the largest down.
    ranking: Vec<(i32, u32)>,
    by_mask: HashMap<Box<[u64]>, u32>,
    prune: Prune,
    ranges: Vec<RangeField>,
}

impl TupleSpace {
    pub fn new(keys: &[KeySchema]) -> Self {
        let mut at = 0;
        let mut ranges = Vec::new();
        for key in keys {
            let field = RangeField {
                at,
                limbs: limbs_for(key.width),
            };
            at += field.limbs;
            if key.kind == MatchKind::Range {
                ranges.push(field);
            }
        }
        TupleSpace {
            seeds: Seeds::random(),
            tuples: Vec::new(),
            free: Vec::new(),
            ranking: Vec::new(),
            by_mask: HashMap::new(),
            prune: Prune::new(keys),
            ranges,
        }
    }

    /// The mask of a tuple.
    pub fn mask(&self, tuple: u32) -> &[u64] {
        &self.tuples[tuple as usize].mask
    }

    /// The entry with the largest priority that `key` matches; of equal ones that with the smallest index.
    #[inline]
    pub fn best(&self, records: &Records, key: &[u64]) -> Option<u32> {
        let mut best: Option<(i32, u32)> = None;
        if self.ranking.len() <= FEW_TUPLES {
            for &(order, tuple) in &self.ranking {
                if best.is_some_and(|(b, _)| order < b) {
                    break;
                }
                self.try_tuple(&self.tuples[tuple as usize], records, key, &mut best);
            }
        } else {
            let mut consider = |tuple: u32| {
                let tuple = &self.tuples[tuple as usize];
                if best.is_none_or(|(b, _)| b <= tuple.most) {
                    self.try_tuple(tuple, records, key, &mut best);
                }
            };
            self.prune.candidates(key, &mut consider);
            (TUPLES..self.tuples.len() as u32).for_each(consider);
        }
        best.map(|(_, at)| at)
    }

    /// Looks for an entry of a tuple that is better than `best`.
    #[inline(always)]
    fn try_tuple(
        &self,
        tuple: &Tuple,
        records: &Records,
        key: &[u64],
        best: &mut Option<(i32, u32)>,
    ) {
        let Some(mut at) = self.head(tuple, records, key) else {
            return;
        };
        while !self.in_ranges(records, at, key) {
            at = records.next(at);
            if at == NONE {
                return;
            }
        }
        let priority = records.priority(at);
        if best.is_none_or(|(b, i)| priority > b || (priority == b && at < i)) {
            *best = Some((priority, at));
        }
    }

    /// The entry with exactly this key.
    pub fn find(&self, records: &Records, key: &Key) -> Option<u32> {
        let tuple = *self.by_mask.get(key.mask.as_slice())?;
        let mut at = self.head(&self.tuples[tuple as usize], records, &key.value)?;
        while at != NONE {
            if records.priority(at) == key.priority && records.ranges(at) == key.ranges {
                return Some(at);
            }
            at = records.next(at);
        }
        None
    }

    /// Adds the entry at `at`, whose record holds key, ranges and priority already. Its tuple is noted in the record.
    pub fn insert(&mut self, records: &mut Records, at: u32, key: &Key) {
        let order = key.priority;
        let t = match self.by_mask.get(key.mask.as_slice()) {
            Some(&t) => t,
            None => self.add_tuple(&key.mask),
        };
        records.cold_mut(at).tuple = t;
        self.chain_in(records, t, at, &key.value);
        let before = self.tuples[t as usize].max_order();
        *self.tuples[t as usize].orders.entry(order).or_insert(0) += 1;
        self.prune.add(t, key);
        self.rerank(t, before);
    }

    /// Takes the entry at `at` out.
    pub fn remove(&mut self, records: &mut Records, at: u32, key: &Key) {
        let order = key.priority;
        let t = records.cold(at).tuple;
        self.chain_out(records, t, at, &key.value);
        let tuple = &mut self.tuples[t as usize];
        let before = tuple.max_order();
        if let Some(n) = tuple.orders.get_mut(&order) {
            *n -= 1;
            if *n == 0 {
                tuple.orders.remove(&order);
            }
        }
        self.rerank(t, before);
        let tuple = &mut self.tuples[t as usize];
        if tuple.orders.is_empty() {
            self.by_mask.remove(&tuple.mask);
            tuple.index = None;
            self.prune.clear(t);
            self.free.push(t);
        }
    }

    /// The head of the chain that `key` falls into.
    #[inline(always)]
    fn head(&self, tuple: &Tuple, records: &Records, key: &[u64]) -> Option<u32> {
        let mask = &tuple.mask[..key.len()];
        let is_it = |at: u32| {
            let value = records.key(at);
            key.iter()
                .zip(mask)
                .zip(value)
                .fold(0, |diff, ((k, m), v)| diff | ((k & m) ^ v))
                == 0
        };
        match &tuple.index {
            None => tuple.few[..tuple.chains]
                .iter()
                .copied()
                .find(|&at| is_it(at)),
            Some(index) => index.find(self.seeds.hash(key.len(), |i| key[i] & mask[i]), is_it),
        }
    }

    #[inline(always)]
    fn in_ranges(&self, records: &Records, at: u32, key: &[u64]) -> bool {
        if self.ranges.is_empty() {
            return true;
        }
        let mut bounds = records.ranges(at);
        for field in &self.ranges {
            let value = &key[field.at..][..field.limbs];
            let (low, rest) = bounds.split_at(field.limbs);
            let (high, rest) = rest.split_at(field.limbs);
            bounds = rest;
            if less(value, low) || less(high, value) {
                return false;
            }
        }
        true
    }

    fn add_tuple(&mut self, mask: &[u64]) -> u32 {
        let tuple = Tuple {
            mask: mask.into(),
            few: [NONE; FEW],
            chains: 0,
            index: None,
            orders: BTreeMap::new(),
            most: 0,
        };
        let t = match self.free.pop() {
            Some(t) => {
                self.tuples[t as usize] = tuple;
                t
            }
            None => {
                self.tuples.push(tuple);
                self.tuples.len() as u32 - 1
            }
        };
        self.by_mask.insert(mask.into(), t);
        t
    }

    /// Moves a tuple to where its largest order belongs.
    fn rerank(&mut self, t: u32, before: Option<i32>) {
        let now = self.tuples[t as usize].max_order();
        self.tuples[t as usize].most = now.unwrap_or(0);
        if before == now {
            return;
        }
        // From the largest order down, then by tuple: no two are equal.
        let place = |ranking: &[(i32, u32)], order: i32| {
            ranking.binary_search_by(|&(o, u)| order.cmp(&o).then(u.cmp(&t)))
        };
        if let Some(order) = before {
            if let Ok(at) = place(&self.ranking, order) {
                self.ranking.remove(at);
            }
        }
        if let Some(order) = now {
            if let Err(at) = place(&self.ranking, order) {
                self.ranking.insert(at, (order, t));
            }
        }
    }

    fn chain_in(&mut self, records: &mut Records, t: u32, at: u32, value: &[u64]) {
        let head = self.head(&self.tuples[t as usize], records, value);
        let Some(head) = head else {
            self.add_chain(records, t, at, value);
            return;
        };
        let rank = |records: &Records, at: u32| (std::cmp::Reverse(records.priority(at)), at);
        if rank(records, at) < rank(records, head) {
            records.set_next(at, head);
            self.replace_head(records, t, head, at, value);
            return;
        }
        let mut before = head;
        loop {
            let next = records.next(before);
            if next == NONE || rank(records, at) < rank(records, next) {
                records.set_next(at, next);
                records.set_next(before, at);
                return;
            }
            before = next;
        }
    }

    fn chain_out(&mut self, records: &mut Records, t: u32, at: u32, value: &[u64]) {
        let head = self
            .head(&self.tuples[t as usize], records, value)
            .expect("an entry is in the chain of its value");
        let next = records.next(at);
        if head != at {
            let mut before = head;
            while records.next(before) != at {
                before = records.next(before);
            }
            records.set_next(before, next);
        } else if next != NONE {
            self.replace_head(records, t, at, next, value);
        } else {
            let hash = self.seeds.hash(value.len(), |i| value[i]);
            let hash_of = hash_of(self.seeds, records);
            let tuple = &mut self.tuples[t as usize];
            tuple.chains -= 1;
            match &mut tuple.index {
                Some(index) => index.remove(hash, at, hash_of),
                None => {
                    let n = tuple.chains;
                    let place = tuple.few[..=n].iter().position(|&a| a == at);
                    tuple.few.swap(place.expect("a chain is listed"), n);
                    tuple.few[n] = NONE;
                }
            }
        }
    }

    fn add_chain(&mut self, records: &mut Records, t: u32, at: u32, value: &[u64]) {
        let seeds = self.seeds;
        let hash = |value: &[u64]| seeds.hash(value.len(), |i| value[i]);
        records.set_next(at, NONE);
        let tuple = &mut self.tuples[t as usize];
        if tuple.index.is_none() && tuple.chains == FEW {
            let mut index = HashIndex::new(records.layout.max_size);
            for head in tuple.few {
                index.insert(hash(records.key(head)), head, hash_of(seeds, records));
            }
            tuple.index = Some(index);
        }
        match &mut tuple.index {
            Some(index) => index.insert(hash(value), at, hash_of(seeds, records)),
            None => tuple.few[tuple.chains] = at,
        }
        tuple.chains += 1;
    }

    fn replace_head(&mut self, records: &Records, t: u32, from: u32, to: u32, value: &[u64]) {
        let hash = self.seeds.hash(value.len(), |i| value[i]);
        let hash_of = hash_of(self.seeds, records);
        let tuple = &mut self.tuples[t as usize];
        match &mut tuple.index {
            Some(index) => index.replace(hash, from, to, hash_of),
            None => {
                for head in tuple.few.iter_mut().filter(|h| **h == from) {
                    *head = to;
                }
            }
        }
    }
}

impl Tuple {
    fn max_order(&self) -> Option<i32> {
        self.orders.last_key_value().map(|(&order, _)| order)
    }
}

/// The hashes of records' keys.
fn hash_of(seeds: Seeds, records: &Records) -> impl Fn(u32) -> u64 + '_ {
    move |at| {
        let words = records.key(at);
        seeds.hash(words.len(), |i| words[i])
    }
}

/// `a < b` for numbers in limbs, least significant first.
#[inline(always)]
fn less(a: &[u64], b: &[u64]) -> bool {
    if let ([a], [b]) = (a, b) {
        return a < b;
    }
    a.iter().rev().lt(b.iter().rev())
}

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
