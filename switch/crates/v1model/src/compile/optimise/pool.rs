// SPDX-License-Identifier: Apache-2.0
//! `Pool`: the constants among a program's slots, and room for more.

use std::collections::HashMap;

use crate::compile::layout::Slot;

/// Slots that never change.
pub(super) struct Pool {
    values: HashMap<Slot, u64>,
    slots: HashMap<u64, Slot>,
    /// A fresh packet's slots.
    pub template: Vec<u64>,
}

impl Pool {
    /// The constants `values` of a program with this template.
    pub fn new(values: HashMap<Slot, u64>, template: Vec<u64>) -> Pool {
        let mut slots: HashMap<u64, Slot> = HashMap::new();
        for (&slot, &value) in &values {
            let first = slots.entry(value).or_insert(slot);
            *first = slot.min(*first);
        }
        Pool {
            values,
            slots,
            template,
        }
    }

    /// All constants by slot.
    pub fn values(&self) -> &HashMap<Slot, u64> {
        &self.values
    }

    /// The constant in `slot`, if that is one.
    pub fn value(&self, slot: Slot) -> Option<u64> {
        self.values.get(&slot).copied()
    }

    /// A slot that holds `value`; None when there is no more room. `most` grows with the slots.
    pub fn slot(&mut self, value: u64, most: &mut Vec<u64>) -> Option<Slot> {
        if let Some(&slot) = self.slots.get(&value) {
            return Some(slot);
        }
        let slot = Slot::try_from(self.template.len())
            .ok()
            .filter(|&slot| slot < Slot::MAX)?;
        self.template.push(value);
        most.push(value);
        self.values.insert(slot, value);
        self.slots.insert(value, slot);
        Some(slot)
    }
}
