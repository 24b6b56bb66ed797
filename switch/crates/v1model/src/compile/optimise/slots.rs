// SPDX-License-Identifier: Apache-2.0
//! `SlotSet`: a set of slots, one bit each.

/// A set of slots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SlotSet {
    words: Vec<u64>,
}

impl SlotSet {
    /// The empty set, of slots below `slots`.
    pub fn new(slots: usize) -> SlotSet {
        SlotSet {
            words: vec![0; slots.div_ceil(64)],
        }
    }

    pub fn contains(&self, slot: usize) -> bool {
        self.words[slot / 64] >> (slot % 64) & 1 == 1
    }

    pub fn add(&mut self, slot: usize) {
        self.words[slot / 64] |= 1 << (slot % 64);
    }

    pub fn remove(&mut self, slot: usize) {
        self.words[slot / 64] &= !(1 << (slot % 64));
    }

    /// The union with `other`.
    pub fn add_all(&mut self, other: &SlotSet) {
        for (word, more) in self.words.iter_mut().zip(&other.words) {
            *word |= more;
        }
    }

    /// Adds what is in `other` and not in `except`; true when that is more.
    pub fn add_others(&mut self, other: &SlotSet, except: &SlotSet) -> bool {
        let mut more = 0;
        let theirs = other.words.iter().zip(&except.words);
        for (word, (other, except)) in self.words.iter_mut().zip(theirs) {
            let new = other & !except & !*word;
            *word |= new;
            more |= new;
        }
        more != 0
    }
}
