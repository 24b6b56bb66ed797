// SPDX-License-Identifier: Apache-2.0
//! The program around the operations, with what the passes know of it.

use crate::compile::code::{Op, Program};
use crate::compile::touch::{touches, Visit};

pub(crate) use crate::compile::touch::Touch;

/// The program around the operations.
pub(crate) struct Effects {
    pub program: Program,
    /// Size and width in bits of each register array.
    pub registers: Vec<(u64, u32)>,
    /// The largest value that each slot ever holds.
    pub most: Vec<u64>,
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

    /// True when an index of at most `most` is always one of the register array's.
    fn in_range(&self, register: u16, most: u64) -> bool {
        most < self.registers[usize::from(register)].0
    }
}
