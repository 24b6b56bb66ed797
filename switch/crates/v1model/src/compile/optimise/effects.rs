// SPDX-License-Identifier: Apache-2.0
//! The program around the operations, with what the passes know of it.

use std::collections::HashMap;
use std::ops::Range;

use crate::compile::code::{Calculation, Input, Op, Program};
use crate::compile::layout::Slot;
use crate::compile::touch::{one, touches};

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
    pub fn visit(&self, op: &Op, f: &mut dyn FnMut(Touch, Range<usize>)) {
        match *op {
            Op::RegisterRead {
                register, index, d, ..
            } if self.in_range(register, self.most[usize::from(index)]) => {
                f(Touch::Reads, one(index));
                f(Touch::Writes, one(d));
            }
            _ => touches(&self.program, op, f),
        }
    }

    /// True when an index of at most `most` is always one of the register array's.
    pub fn in_range(&self, register: u16, most: u64) -> bool {
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
