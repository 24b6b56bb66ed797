// SPDX-License-Identifier: Apache-2.0
//! Open addressing from a key's hash to the index of its record: linear probing, no tombstones, at most half full.

/// Up to this many records the index doubles; then it goes to the table's full size at once, whose zero pages cost
/// nothing until touched. So no insert ever has to move more than this many slots.
const SMALL: usize = 1024;
/// The largest size that is reserved in advance; beyond it the index doubles again.
const RESERVED: usize = 1 << 20;

/// Records by hash. A slot holds the high half of the hash and, below it, the record's index + 1; 0 is free.
#[derive(Clone)]
pub struct HashIndex {
    slots: Vec<u64>,
    /// 64 - log2(slots): the home of a hash is in its highest bits, which the slot itself holds.
    shift: u32,
    len: usize,
    max_len: usize,
}

impl HashIndex {
    /// Memory for each record of a full index, which is a quarter to a half full.
    pub const BYTES: u64 = 4 * size_of::<u64>() as u64;

    /// An index that is meant for up to `max_len` records (it takes more, but has to grow then).
    pub fn new(max_len: u32) -> Self {
        HashIndex {
            slots: vec![0; 4],
            shift: 62,
            len: 0,
            max_len: max_len as usize,
        }
    }

    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.len
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
            if (slot ^ hash) >> 32 == 0 {
                let record = slot as u32 - 1;
                if is_it(record) {
                    return Some(record);
                }
            }
            at += 1;
        }
    }

    /// Adds a record that is not there yet.
    pub fn insert(&mut self, hash: u64, record: u32) {
        if (self.len + 1) * 2 > self.slots.len() {
            self.grow();
        }
        self.place(hash & !0xffff_ffff | (u64::from(record) + 1));
        self.len += 1;
    }

    /// Points the slot of `from` to `to`, whose hash is the same.
    pub fn replace(&mut self, hash: u64, from: u32, to: u32) {
        let at = self.position(hash, from);
        self.slots[at] = self.slots[at] & !0xffff_ffff | (u64::from(to) + 1);
    }

    /// Takes a record out that is there.
    pub fn remove(&mut self, hash: u64, record: u32) {
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
            let home = (slot >> self.shift) as usize;
            if (at.wrapping_sub(home) & mask) >= (at.wrapping_sub(hole) & mask) {
                self.slots[hole] = slot;
                hole = at;
            }
        }
        self.slots[hole] = 0;
        self.len -= 1;
    }

    #[inline(always)]
    fn position(&self, hash: u64, record: u32) -> usize {
        let mask = self.slots.len() - 1;
        let wanted = hash & !0xffff_ffff | (u64::from(record) + 1);
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

    fn place(&mut self, slot: u64) {
        let mask = self.slots.len() - 1;
        let mut at = (slot >> self.shift) as usize;
        while self.slots[at & mask] != 0 {
            at += 1;
        }
        self.slots[at & mask] = slot;
    }

    fn grow(&mut self) {
        let mut slots = self.slots.len() * 2;
        if self.len >= SMALL {
            slots = slots.max((2 * self.max_len.min(RESERVED)).next_power_of_two());
        }
        let old = std::mem::replace(&mut self.slots, vec![0; slots]);
        self.shift = 64 - slots.trailing_zeros();
        for slot in old.into_iter().filter(|&slot| slot != 0) {
            self.place(slot);
        }
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
            let hash_of = |key: u64| (key % 6) << 61 | (key % 12) << 33;
            let mut index = HashIndex::new(16);
            let mut map = HashMap::new();
            for (key, insert) in ops {
                let record = key as u32;
                if insert && !map.contains_key(&key) {
                    index.insert(hash_of(key), record);
                    map.insert(key, record);
                } else if !insert && map.remove(&key).is_some() {
                    index.remove(hash_of(key), record);
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
            index.insert(i.wrapping_mul(0x9e37_79b9_7f4a_7c15), i as u32);
        }
        assert_eq!(index.slots.len(), 131_072);
    }
}
