// SPDX-License-Identifier: Apache-2.0
//! The receiving side of ENA: which segments came in with a bad checksum, and which of them the next ACK names.

use crate::seq::before;

/// Names that are kept; of more the lowest.
const NAMES: usize = 64;

/// First sequence numbers of corrupted segments that are still missing.
#[derive(Debug)]
pub struct Corrupted {
    /// Ascending.
    names: Vec<u32>,
    /// The one that came in last waits for an ACK.
    answer_due: bool,
}

impl Default for Corrupted {
    fn default() -> Corrupted {
        Corrupted {
            names: Vec::with_capacity(NAMES),
            answer_due: false,
        }
    }
}

impl Corrupted {
    /// A corrupted segment that was attributed.
    pub fn note(&mut self, seq: u32) {
        self.answer_due = true;
        let index = self.names.partition_point(|&name| before(name, seq));
        if self.names.get(index) == Some(&seq) {
            return;
        }
        if self.names.len() == NAMES {
            if index == NAMES {
                return;
            }
            self.names.pop();
        }
        self.names.insert(index, seq);
    }

    /// `[left, right)` has arrived, above a gap.
    pub fn repaired(&mut self, left: u32, right: u32) {
        let here = |name: u32| !before(name, left) && before(name, right);
        self.names.retain(|&name| !here(name));
    }

    /// All below `rcv_nxt` has arrived.
    pub fn advance(&mut self, rcv_nxt: u32) {
        let passed = self.names.partition_point(|&name| before(name, rcv_nxt));
        self.names.drain(..passed);
    }

    pub fn owes_an_answer(&self) -> bool {
        self.answer_due
    }

    /// For an ACK that leaves: the lowest that is missing, which is what it asks for.
    pub fn take_name(&mut self) -> Option<u32> {
        self.answer_due = false;
        self.names.first().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(names: impl IntoIterator<Item = u32>) -> Corrupted {
        let mut corrupted = Corrupted::default();
        names.into_iter().for_each(|name| corrupted.note(name));
        corrupted
    }

    #[test]
    fn the_lowest_that_is_missing_is_named() {
        let mut corrupted = with([30, 10, 20]);
        assert_eq!(corrupted.take_name(), Some(10));
        corrupted.advance(10);
        assert_eq!(corrupted.take_name(), Some(10), "not acknowledged yet");
        corrupted.advance(11);
        assert_eq!(corrupted.take_name(), Some(20));
        corrupted.repaired(15, 31);
        assert_eq!(corrupted.take_name(), None);
    }

    #[test]
    fn across_the_wrap_and_beyond_the_room_the_lowest_are_kept() {
        let first = u32::MAX - 9;
        let mut corrupted = with((0..100).rev().map(|i| first.wrapping_add(i)));
        assert_eq!(corrupted.names.len(), NAMES);
        assert_eq!(corrupted.names.last(), Some(&first.wrapping_add(63)));
        corrupted.note(first.wrapping_add(80));
        assert_eq!(corrupted.take_name(), Some(first));
    }
}
