// SPDX-License-Identifier: Apache-2.0
//! `WordSum`: which words an Internet checksum is the sum of.

use crate::compile::code::Calculation;
use crate::compile::layout::Slot;

/// An Internet checksum whose input is never written down: one's complement sums do not mind in which order and in
/// how large words they are added, so each field is added where it lies in its 64-bit word, and fields that lie
/// across two words are rotated (2^64 is 1 modulo 2^64 - 1).
#[derive(Debug)]
pub(super) struct WordSum {
    /// Validity, sum of the constants, number of fields.
    pub runs: Vec<(Slot, u64, usize)>,
    /// Slot and rotation to the left, all runs one after another.
    pub fields: Vec<(Slot, u32)>,
    pub payload: bool,
}

impl WordSum {
    /// None when a run of fields has an odd number of bytes: then what follows depends on validity.
    pub fn from_calculation(calculation: &Calculation) -> Option<WordSum> {
        let mut sum = WordSum {
            runs: Vec::new(),
            fields: Vec::new(),
            payload: calculation.payload,
        };
        for run in calculation.words.as_ref()? {
            if run.words.iter().map(|w| u32::from(w.bytes)).sum::<u32>() % 2 != 0 {
                return None;
            }
            let (mut constant, first) = (0u128, sum.fields.len());
            for word in &run.words {
                constant += u128::from(word.constant);
                // A field across two words is in both: to the right here, to the left there, where it is added whole.
                let rests = word.fields.iter().filter(|(_, shift)| *shift >= 0);
                sum.fields
                    .extend(rests.map(|&(slot, shift)| (slot, shift as u32)));
            }
            sum.runs
                .push((run.valid, fold_64(constant), sum.fields.len() - first));
        }
        Some(sum)
    }
}

/// A one's complement sum as 64 bits.
#[inline]
fn fold_64(sum: u128) -> u64 {
    let (low, carry) = (sum as u64).overflowing_add((sum >> 64) as u64);
    low + u64::from(carry)
}
