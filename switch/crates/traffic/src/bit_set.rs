// SPDX-License-Identifier: Apache-2.0
//! A set of numbers below 4096 in two levels of bits: lowest, highest and next member in a few instructions.

/// Numbers in a set are below this.
pub(crate) const MEMBERS_MAX: usize = 64 * 64;

/// The set.
#[derive(Clone, Debug)]
#[repr(C)]
pub(crate) struct BitSet {
    /// Bit i: `words[i]` is not 0.
    summary: u64,
    words: [u64; 64],
}

impl BitSet {
    /// No member.
    pub(crate) const EMPTY: BitSet = BitSet {
        summary: 0,
        words: [0; 64],
    };

    #[inline]
    pub(crate) fn insert(&mut self, member: usize) {
        self.words[member / 64] |= 1 << (member % 64);
        self.summary |= 1 << (member / 64);
    }

    #[inline]
    pub(crate) fn remove(&mut self, member: usize) {
        let word = &mut self.words[member / 64];
        *word &= !(1 << (member % 64));
        if *word == 0 {
            self.summary &= !(1 << (member / 64));
        }
    }

    #[inline]
    pub(crate) fn highest(&self) -> Option<usize> {
        if self.summary == 0 {
            return None;
        }
        let word = 63 - self.summary.leading_zeros() as usize;
        Some(word * 64 + 63 - self.words[word].leading_zeros() as usize)
    }

    /// The first member at or after `from`, wrapping round.
    #[inline]
    pub(crate) fn next_from(&self, from: usize) -> Option<usize> {
        let word = from / 64;
        let here = self.words[word] & (u64::MAX << (from % 64));
        if here != 0 {
            return Some(word * 64 + here.trailing_zeros() as usize);
        }
        if self.summary == 0 {
            return None;
        }
        let later = self.summary & (u64::MAX << word) & !(1 << word);
        let word = if later == 0 { self.summary } else { later }.trailing_zeros() as usize;
        Some(word * 64 + self.words[word].trailing_zeros() as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn it_agrees_with_a_tree_over_a_seeded_run() {
        let (mut set, mut tree) = (BitSet::EMPTY, BTreeSet::new());
        let mut seed = 7u64;
        for _ in 0..20_000 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let member = (seed >> 33) as usize % MEMBERS_MAX;
            if seed >> 60 < 8 {
                set.insert(member);
                tree.insert(member);
            } else {
                // Often one that is there, so that words become empty.
                let gone = tree.range(member..).next().copied().unwrap_or(member);
                set.remove(gone);
                tree.remove(&gone);
            }
            let next = tree.range(member..).next().or(tree.first());
            assert_eq!(set.next_from(member), next.copied());
            assert_eq!(set.highest(), tree.last().copied());
        }
    }
}
