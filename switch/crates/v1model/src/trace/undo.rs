// SPDX-License-Identifier: Apache-2.0
//! What a traced packet changes of the program's state, and how it is put back.

use crate::externs::{Hash, Meter, Random};
use crate::state::State;
use crate::table::Touched;

/// One thing as it was before.
pub(super) enum Undo {
    Counter(usize, u64, (u64, u64)),
    Meter(usize, u64, Meter),
    Register(usize, u64, Vec<u64>),
    Table(usize, Touched),
    Hash(usize, Box<Hash>),
    Random(Random),
}

impl Undo {
    fn apply(self, state: &mut State) {
        match self {
            Undo::Counter(counter, index, (packets, bytes)) => {
                state.counters[counter].set(index, packets, bytes);
            }
            Undo::Meter(meter, index, cell) => state.meters[meter].put(index, cell),
            Undo::Register(register, index, limbs) => {
                state.registers[register].write(index, &limbs);
            }
            Undo::Table(table, before) => state.tables[table].untouch(&before),
            Undo::Hash(calculation, hash) => state.hashes[calculation] = *hash,
            Undo::Random(random) => state.random = random,
        }
    }
}

/// Puts everything back, the last change first.
pub(super) fn undo(state: &mut State, log: &mut Vec<Undo>) {
    while let Some(one) = log.pop() {
        one.apply(state);
    }
}
