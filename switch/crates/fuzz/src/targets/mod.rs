// SPDX-License-Identifier: Apache-2.0
//! What is executed: each target turns a document into calls of the switch, and says what must hold afterwards.
//!
//! | target | document |
//! |---|---|
//! | `program` | a BMv2 JSON; what is taken also runs frames |
//! | `config` | BMv2 JSON and P4Info, given to a switch that forwards with another program |
//! | `requests` | P4Runtime writes, reads, stream messages, and frames, to one switch |
//! | `frames` | frames and pauses through a switch with one of our programs |
//! | `gnmi` | gNMI Gets and Sets to a switch with four ports |
//! | `wire` | the bytes of one request to a server of P4Runtime and gNMI: what it takes is bounded by its length |
//!
//! `config`, `requests`, `frames` and `gnmi` are steps of one kind (`switch`), from different documents (`seeds`).

mod program;
mod seeds;
mod switch;
pub mod wire;

use serde_json::Value;

use crate::input::{Input, Places};
use crate::memory;

/// Most bytes that an execution may take.
const MEMORY_MAX: usize = 1 << 30;

/// What an execution says: a sentence about what should have held.
pub type Outcome = Result<(), String>;

/// A document by its name.
pub type Base = (String, Value);

/// Something to execute documents on.
pub struct Target {
    /// The documents that inputs are made of; at least one.
    pub bases: Vec<Base>,
    /// The places of each.
    pub places: Vec<Places>,
    run: Box<dyn FnMut(Value) -> Outcome>,
}

impl Target {
    fn new(bases: Vec<Base>, run: impl FnMut(Value) -> Outcome + 'static) -> Target {
        let places = bases.iter();
        Target {
            places: places
                .map(|(name, base)| Places::find(name, base))
                .collect(),
            run: Box::new(run),
            bases,
        }
    }

    /// Executes an input.
    ///
    /// # Errors
    /// What should have held, or that it took too much memory.
    pub fn execute(&mut self, input: &Input) -> Outcome {
        let document = input.document(&self.bases);
        let (outcome, peak) = memory::peak_of(|| (self.run)(document));
        outcome?;
        match peak > MEMORY_MAX {
            true => Err(format!("it took {peak} bytes; {MEMORY_MAX} are allowed")),
            false => Ok(()),
        }
    }
}

type Make = fn() -> Target;

const ALL: [(&str, Make); 6] = [
    ("program", program::target),
    ("config", || switch::target(seeds::configs(), true)),
    ("requests", || switch::target(seeds::requests(), true)),
    ("frames", || switch::target(seeds::frames(), false)),
    ("gnmi", || switch::target(seeds::gnmi(), false)),
    ("wire", wire::target),
];

/// The targets' names.
pub fn names() -> [&'static str; 6] {
    ALL.map(|(name, _)| name)
}

/// Makes a target.
///
/// # Panics
/// When there is none of this name.
pub fn make(name: &str) -> Target {
    let target = ALL.iter().find(|(known, _)| *known == name);
    target.expect("a known target").1()
}

/// What has this name, or else the first.
pub fn named<'a, T>(all: &'a [(String, T)], name: &str) -> &'a T {
    let found = all.iter().find(|(known, _)| known == name);
    &found.unwrap_or(&all[0]).1
}
