// SPDX-License-Identifier: Apache-2.0
//! Parser value sets: the values that a parser's select takes for a set, changed at run time.

use super::key::{push_prefix, Key};
use crate::bits::limbs_for;
use crate::schema::{KeySchema, MatchKind};

/// How one member takes a value: `low ≤ (value & mask) ≤ high` for each of its parts.
#[derive(Clone)]
struct Part {
    mask: Vec<u64>,
    low: Vec<u64>,
    high: Vec<u64>,
}

/// The members of one value set. They are few: each is compared in turn.
#[derive(Clone, Default)]
pub struct ValueSet {
    members: Vec<Vec<Part>>,
}

impl ValueSet {
    /// A set of these members; the widths of its fields together are the set's.
    pub fn new(fields: &[KeySchema], members: &[Key]) -> ValueSet {
        let width: u32 = fields.iter().map(|f| f.width).sum();
        let parts = |key: &Key| {
            let (mut below, mut at, mut range_at) = (width, 0, 0);
            let parts = fields.iter().map(|field| {
                let n = limbs_for(field.width);
                below -= field.width;
                let shifted = |limbs: &[u64]| shift_left(limbs, below, limbs_for(width));
                let (value, mask) = (&key.value[at..at + n], &key.mask[at..at + n]);
                at += n;
                if field.kind != MatchKind::Range {
                    let value = shifted(value);
                    return Part {
                        mask: shifted(mask),
                        low: value.clone(),
                        high: value,
                    };
                }
                let (low, high) = key.ranges[range_at..range_at + 2 * n].split_at(n);
                range_at += 2 * n;
                let mut ones = Vec::with_capacity(n);
                push_prefix(field.width, field.width, &mut ones);
                Part {
                    mask: shifted(&ones),
                    low: shifted(low),
                    high: shifted(high),
                }
            });
            parts.collect()
        };
        ValueSet {
            members: members.iter().map(parts).collect(),
        }
    }

    /// True if a member takes `value`: one number of the set's width in limbs, least significant first, whose most
    /// significant bits are the set's first field.
    pub fn contains(&self, value: &[u64]) -> bool {
        let takes = |parts: &Vec<Part>| parts.iter().all(|part| part.takes(value));
        self.members.iter().any(takes)
    }
}

impl Part {
    fn takes(&self, value: &[u64]) -> bool {
        let masked = |i: usize| value.get(i).copied().unwrap_or(0) & self.mask[i];
        let n = self.mask.len();
        let above = (0..n).rev().map(masked).ge(self.low.iter().rev().copied());
        above && (0..n).rev().map(masked).le(self.high.iter().rev().copied())
    }
}

/// `value << bits` in `limbs` limbs.
fn shift_left(value: &[u64], bits: u32, limbs: usize) -> Vec<u64> {
    let (whole, part) = (bits as usize / 64, bits % 64);
    let mut out = vec![0u64; limbs];
    for (i, &limb) in value.iter().enumerate() {
        if let Some(o) = out.get_mut(i + whole) {
            *o |= limb << part;
        }
        if part > 0 {
            if let Some(o) = out.get_mut(i + whole + 1) {
                *o |= limb >> (64 - part);
            }
        }
    }
    out
}
