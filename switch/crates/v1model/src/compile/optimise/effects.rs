// SPDX-License-Identifier: Apache-2.0
//! The program around the operations, with what the passes know of it.

use std::collections::HashMap;

use crate::bits::low_mask;
use crate::compile::code::{Calculation, Input, Op, Program};
use crate::compile::layout::Slot;
use crate::compile::touch::{touches, Visit};

pub(crate) use crate::compile::touch::Touch;

/// The program around the operations.
pub(crate) struct Effects {
    pub program: Program,
    /// Size and width in bits of each register array.
    pub registers: Vec<(u64, u32)>,
    /// The largest value that each slot ever holds.
    pub most: Vec<u64>,
    /// Copies of calculations by the original and the slots that they read instead.
    pub copies: HashMap<(u16, Vec<Slot>), u16>,
}

impl Effects {
    /// Calls `f` with every range of slots that `op` touches.
    pub fn visit(&self, op: &Op, f: &mut Visit) {
        let certain = op.register_read().is_some_and(|(register, index)| {
            self.in_range(register, self.most[usize::from(index)])
        });
        touches(&self.program, op, &mut |touch, range| match touch {
            Touch::MayWrite if certain => f(Touch::Writes, range),
            touch => f(touch, range),
        });
    }

    /// The slot that gets another value for certain, and the largest that this may be; `index` is at most that.
    pub fn result(&self, op: &Op, index: impl FnOnce(Slot) -> u64) -> Option<(Slot, u64)> {
        let (d, w) = op.result()?;
        let most = low_mask(w.into());
        match op.register_read() {
            // Out of range the slot keeps what it had.
            Some((register, at)) if !self.in_range(register, index(at)) => None,
            Some((register, _)) => {
                Some((d, most & low_mask(self.registers[usize::from(register)].1)))
            }
            None => Some((d, most)),
        }
    }

    /// True when an index of at most `most` is always one of the register array's.
    fn in_range(&self, register: u16, most: u64) -> bool {
        most < self.registers[usize::from(register)].0
    }

    /// A copy of calculation `index` that reads other slots; None when there are too many.
    pub fn add_calculation(&mut self, index: u16, copy: Calculation) -> Option<u16> {
        let slot = |input: &Input| match *input {
            Input::Field { slot, .. } => slot,
            Input::Header { base, .. } => base,
            Input::Constant { .. } => 0,
        };
        let key = (index, copy.inputs.iter().map(slot).collect());
        if let Some(&known) = self.copies.get(&key) {
            return Some(known);
        }
        let new = u16::try_from(self.program.calculations.len()).ok()?;
        self.program.calculations.push(copy);
        self.copies.insert(key, new);
        Some(new)
    }

    /// True when a calculation's result depends on more than its inputs.
    pub fn has_state(&self, calculation: u16) -> bool {
        self.program.calculations[usize::from(calculation)].has_state()
    }
}
