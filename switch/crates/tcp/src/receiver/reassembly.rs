// SPDX-License-Identifier: Apache-2.0
//! Sequence ranges that arrived above a gap, and the SACK blocks that report them (RFC 2018 §4).

use crate::segment::options::SackBlocks;
use crate::seq::{after, before, max};

/// Disjoint ranges `[left, right)` above rcv_nxt, in order, none touching another.
#[derive(Debug, Default)]
pub struct Reassembly {
    ranges: Vec<(u32, u32)>,
    /// The ranges that segments came into last, the newest first.
    recent: SackBlocks,
}

impl Reassembly {
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Whether the byte at `seq` is here.
    pub fn contains(&self, seq: u32) -> bool {
        let index = self.ranges.partition_point(|&(_, end)| !after(end, seq));
        self.ranges
            .get(index)
            .is_some_and(|&(left, _)| !after(left, seq))
    }

    /// SACK blocks, the newest first.
    pub fn blocks(&self) -> SackBlocks {
        self.recent
    }

    /// A segment above a gap. False: it brought nothing new.
    pub fn insert(&mut self, left: u32, right: u32) -> bool {
        let first = self.ranges.partition_point(|&(_, end)| before(end, left));
        let behind =
            first + self.ranges[first..].partition_point(|&(begin, _)| !after(begin, right));
        let mut merged = (left, right);
        let mut news = true;
        if first == behind {
            self.ranges.insert(first, merged);
        } else {
            let (low, high) = (self.ranges[first].0, self.ranges[behind - 1].1);
            merged = (if before(low, left) { low } else { left }, max(high, right));
            news = first + 1 != behind || merged != self.ranges[first];
            self.ranges[first] = merged;
            self.ranges.drain(first + 1..behind);
        }
        self.remember(merged);
        news
    }

    /// Puts a range to the front of the blocks, instead of those that it has swallowed.
    fn remember(&mut self, newest: (u32, u32)) {
        let mut blocks = SackBlocks::default();
        blocks.push(newest.0, newest.1);
        for &(left, right) in self.recent.as_slice() {
            if before(left, newest.0) || after(right, newest.1) {
                blocks.push(left, right);
            }
        }
        self.recent = blocks;
    }

    /// Everything up to `next` has arrived in order: takes out the range that now follows and gives its end, or `next`.
    pub fn advance(&mut self, next: u32) -> u32 {
        let mut next = next;
        let reached = self
            .ranges
            .iter()
            .take_while(|&&(left, _)| !after(left, next))
            .count();
        for (_, right) in self.ranges.drain(..reached) {
            next = max(next, right);
        }
        // A drained range may have brought `next` to no other: ranges never touch.
        let above = self
            .recent
            .as_slice()
            .iter()
            .filter(|&&(left, _)| after(left, next))
            .copied();
        self.recent = above.collect();
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(ranges: &[(u32, u32)]) -> Reassembly {
        let mut queue = Reassembly::default();
        for &(left, right) in ranges {
            queue.insert(left, right);
        }
        queue
    }

    #[test]
    fn neighbours_become_one_range() {
        let queue = with(&[(10, 20), (40, 50), (20, 40)]);
        assert_eq!(
            (queue.ranges.as_slice(), queue.blocks().as_slice()),
            (&[(10, 50)][..], &[(10, 50)][..])
        );
    }

    #[test]
    fn the_newest_block_comes_first() {
        let mut queue = with(&[(10, 20), (40, 50), (70, 80), (100, 110), (130, 140)]);
        assert_eq!(
            queue.blocks().as_slice(),
            [(130, 140), (100, 110), (70, 80), (40, 50)]
        );
        queue.insert(50, 60);
        assert_eq!(
            queue.blocks().as_slice(),
            [(40, 60), (130, 140), (100, 110), (70, 80)]
        );
    }

    #[test]
    fn a_byte_is_there_or_not() {
        let queue = with(&[(10, 20), (40, 50)]);
        let there = [9, 10, 19, 20, 39, 40, 50].map(|seq| queue.contains(seq));
        assert_eq!(there, [false, true, true, false, false, true, false]);
    }

    #[test]
    fn what_is_known_is_not_news() {
        let mut queue = with(&[(10, 20)]);
        assert!(!queue.insert(12, 18) && !queue.insert(10, 20) && queue.insert(15, 25));
    }

    #[test]
    fn the_gap_is_filled_across_the_wrap() {
        let mut queue = with(&[(u32::MAX - 4, 5), (20, 30)]);
        assert_eq!(queue.advance(u32::MAX - 4), 5);
        assert_eq!(queue.blocks().as_slice(), [(20, 30)]);
        assert_eq!(queue.advance(12), 12);
        assert_eq!(queue.advance(25), 30);
        assert!(queue.is_empty() && queue.blocks().is_empty());
    }
}
