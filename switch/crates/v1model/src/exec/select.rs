// SPDX-License-Identifier: Apache-2.0
//! Where a select of the parser goes on: its key compared with the cases.

use super::Machine;
use crate::compile::code::{Case, Select};
use crate::trace::Observer;

impl<O: Observer> Machine<'_, O> {
    /// The first case that the key matches; their number where none does.
    pub fn select(&mut self, slots: &[u64], select: &Select) -> usize {
        let key = &mut self.scratch.key;
        key.clear();
        for &(slot, limbs, _) in &select.parts {
            let slot = usize::from(slot);
            key.extend_from_slice(&slots[slot..slot + usize::from(limbs)]);
        }
        let matches = |case: &Case| match case {
            Case::Masked { values, masks } => {
                let mut limbs = key.iter().zip(masks).zip(values);
                limbs.all(|((key, mask), value)| key & mask == *value)
            }
            Case::ValueSet(set) => {
                let mut joined = [0u64; 64];
                let width: u32 = select.parts.iter().map(|p| p.2).sum();
                let limbs = (width.div_ceil(64) as usize).min(joined.len());
                join(slots, select, &mut joined[..limbs]);
                self.state.value_sets[*set as usize].contains(&joined[..limbs])
            }
        };
        let found = select.cases.iter().position(matches);
        found.unwrap_or(select.cases.len())
    }
}

/// The parts of a select's key as one number, the first part most significant.
fn join(slots: &[u64], select: &Select, out: &mut [u64]) {
    let mut low = 0usize;
    for &(slot, limbs, width) in select.parts.iter().rev() {
        for i in 0..usize::from(limbs) {
            let value = slots[usize::from(slot) + i];
            let at = low + i * 64;
            let (word, shift) = (at / 64, at % 64);
            if word < out.len() {
                out[word] |= value << shift;
            }
            if shift > 0 && word + 1 < out.len() {
                out[word + 1] |= value >> (64 - shift);
            }
        }
        low += width as usize;
    }
}
