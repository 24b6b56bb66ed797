// SPDX-License-Identifier: Apache-2.0
//! The stateful and computing externs of v1model: counters, meters, registers, hashes, checksums and random
//! numbers, each free of clocks (time is an argument) and of any knowledge of the program that uses them.

pub(crate) mod cells;
pub mod hash;
pub mod meter;

pub(crate) use cells::Cells;
pub use cells::{Counters, Registers};
pub use hash::{Hash, Random};
pub use meter::{Meter, Meters, GREEN, RED, YELLOW};
