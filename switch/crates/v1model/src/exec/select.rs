// SPDX-License-Identifier: Apache-2.0
//! Where a select of the parser goes on: its key compared with the cases.

use super::Machine;
use crate::compile::code::{Case, Pc, Select};

impl Machine<'_> {
    #[inline]
    pub fn select(&mut self, slots: &[u64], select: &Select) -> Pc {
        if !select.narrow.is_empty() {
            let key = slots[usize::from(select.parts[0].0)];
            for &(value, mask, to) in &select.narrow {
                if key & mask == value {
                    return to;
                }
            }
            return select.default;
        }
        self.select_wide(slots, select)
    }

    #[inline(never)]
    fn select_wide(&mut self, slots: &[u64], select: &Select) -> Pc {
        let key = &mut self.scratch.key;
        key.clear();
        for &(slot, limbs, _) in &select.parts {
            let slot = usize::from(slot);
            key.extend_from_slice(&slots[slot..slot + usize::from(limbs)]);
        }
        for case in &select.cases {
            match case {
                Case::Masked { values, masks, to } => {
                    if key
                        .iter()
                        .zip(masks)
                        .zip(values)
                        .all(|((key, mask), value)| key & mask == *value)
                    {
                        return *to;
                    }
                }
                Case::ValueSet { set, to } => {
                    let mut joined = [0u64; 64];
                    let width: u32 = select.parts.iter().map(|p| p.2).sum();
                    let limbs = (width.div_ceil(64) as usize).min(joined.len());
                    join(slots, select, &mut joined[..limbs]);
                    if self.state.value_sets[*set as usize].contains(&joined[..limbs]) {
                        return *to;
                    }
                }
            }
        }
        select.default
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
