// SPDX-License-Identifier: Apache-2.0
//! What is executed: each target turns a document into calls of the switch, and says what must hold afterwards.
//!
//! | target | document |
//! |---|---|
//! | `program` | a BMv2 JSON; what is taken also runs frames |
//! | `config` | BMv2 JSON and P4Info, given to a switch that forwards with another program |
//! | `requests` | P4Runtime writes, reads, stream messages, and frames, to one switch |
//! | `frames` | frames and pauses through a device with one of our programs |
//! | `gnmi` | gNMI Gets and Sets to a switch with four ports |
//! | `wire` | the bytes of one request to a server of P4Runtime and gNMI: what it takes is bounded by its length |

mod config;
mod frames;
mod gnmi;
mod messages;
mod program;
mod requests;
mod seeds;
mod switch;
pub mod wire;

use serde_json::Value;

pub use seeds::named;

/// What an execution says: a sentence about what should have held.
pub type Outcome = Result<(), String>;

/// Something to execute documents on.
pub struct Target {
    /// The documents that inputs are made of, by name; at least one.
    pub bases: Vec<(String, Value)>,
    /// Executes one: what should have held, if it did not.
    pub run: Box<dyn FnMut(Value) -> Outcome>,
}

impl Target {
    fn new(bases: Vec<(String, Value)>, run: impl FnMut(Value) -> Outcome + 'static) -> Target {
        Target {
            bases,
            run: Box::new(run),
        }
    }
}

/// Makes a target.
pub type Make = fn() -> Target;

/// All targets by name.
pub const ALL: [(&str, Make); 6] = [
    ("program", program::target),
    ("config", config::target),
    ("requests", requests::target),
    ("frames", frames::target),
    ("gnmi", gnmi::target),
    ("wire", wire::target),
];
