// SPDX-License-Identifier: Apache-2.0
//! The receiving side of ENA: which segments came in with a bad checksum, and which of them the next ACK names.

use crate::config::Naming;
use crate::seq::before;

/// Names that are kept; of more the lowest, or those that came first.
const NAMES: usize = 64;

/// First sequence numbers of corrupted segments.
#[derive(Debug)]
pub struct Corrupted {
    naming: Naming,
    /// `Own`: those without an answer, in the order in which they came. `Lowest`: those that are missing, ascending.
    names: Vec<u32>,
    /// The one that came in last waits for an ACK.
    answer_due: bool,
}

impl Corrupted {
    pub fn new(naming: Naming) -> Corrupted {
        Corrupted {
            naming,
            names: Vec::with_capacity(NAMES),
            answer_due: false,
        }
    }

    /// A corrupted segment that was attributed.
    pub fn note(&mut self, seq: u32) {
        self.answer_due = true;
        let index = match self.naming {
            Naming::Own => self.names.len(),
            Naming::Lowest => self.names.partition_point(|&name| before(name, seq)),
        };
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
        self.names.retain(|&name| !before(name, rcv_nxt));
    }

    pub fn owes_an_answer(&self) -> bool {
        self.answer_due
    }

    /// For an ACK that leaves: the segment that it answers, or the lowest that is missing, which is what it asks for.
    pub fn take_name(&mut self) -> Option<u32> {
        let name = self.names.first().copied();
        if self.naming == Naming::Own && name.is_some() {
            self.names.remove(0);
            self.answer_due = !self.names.is_empty();
        } else {
            self.answer_due = false;
        }
        name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(names: impl IntoIterator<Item = u32>) -> Corrupted {
        let mut corrupted = Corrupted::new(Naming::Lowest);
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
    fn each_is_named_once_in_the_order_of_arrival() {
        let mut corrupted = Corrupted::new(Naming::Own);
        [30, 10, 20, 40]
            .into_iter()
            .for_each(|name| corrupted.note(name));
        assert_eq!(corrupted.take_name(), Some(30));
        corrupted.advance(11);
        assert!(corrupted.owes_an_answer());
        assert_eq!(corrupted.take_name(), Some(20));
        assert_eq!(corrupted.take_name(), Some(40));
        assert!(!corrupted.owes_an_answer());
        assert_eq!(corrupted.take_name(), None);
        corrupted.note(20);
        assert_eq!(corrupted.take_name(), Some(20), "hit again");
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
