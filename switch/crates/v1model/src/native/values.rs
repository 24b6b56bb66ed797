// SPDX-License-Identifier: Apache-2.0
//! What is known of a packet's slots at a place of the code: constants and values in registers, and which of them
//! are not in memory yet.

use cranelift_codegen::ir::Value;

/// Where the value of a slot is to be had.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Known {
    /// In memory only.
    No,
    Const(u64),
    Value(Value),
    /// In the memory of a table's entry: `offset` bytes behind an address.
    Argument {
        entry: Value,
        offset: i32,
    },
}

/// One slot.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Place {
    pub known: Known,
    /// Memory has an older value.
    pub dirty: bool,
}

const UNKNOWN: Place = Place {
    known: Known::No,
    dirty: false,
};

/// All slots, and those of `Native` behind them.
#[derive(Clone, Debug)]
pub(super) struct State {
    pub places: Vec<Place>,
    /// Slots that are dirty, perhaps with others and twice.
    pub dirty: Vec<u32>,
    /// Bytes of the frame that are known to be there.
    pub checked: u64,
}

impl State {
    /// Nothing is known.
    pub fn new(slots: usize) -> State {
        State {
            places: vec![UNKNOWN; slots],
            dirty: Vec::new(),
            checked: 0,
        }
    }

    /// A slot gets another value, which memory does not have.
    pub fn set(&mut self, slot: usize, known: Known) {
        if !self.places[slot].dirty {
            self.dirty.push(slot as u32);
        }
        self.places[slot] = Place { known, dirty: true };
    }

    /// Memory has the only value of a slot.
    pub fn forget(&mut self, slot: usize) {
        self.places[slot] = UNKNOWN;
    }

    /// What holds here and in `other`; what only one of them has in memory is in neither.
    pub fn meet(&mut self, other: &State) {
        for (place, other) in self.places.iter_mut().zip(&other.places) {
            if *place != *other || place.dirty {
                *place = UNKNOWN;
            }
        }
        self.dirty.clear();
        self.checked = self.checked.min(other.checked);
    }

    /// What is not in memory is gone.
    pub fn drop_dirty(&mut self) {
        for slot in self.dirty.drain(..) {
            let place = &mut self.places[slot as usize];
            if place.dirty {
                *place = UNKNOWN;
            }
        }
    }
}
