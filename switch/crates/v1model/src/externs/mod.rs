// SPDX-License-Identifier: Apache-2.0
//! The stateful and computing externs of v1model: counters, meters, registers, hashes, checksums and random
//! numbers, each free of clocks (time is an argument) and of any knowledge of the program that uses them.

mod cells;
pub mod crc;
pub mod hash;
pub mod meter;
pub mod random;
pub mod register;

pub(crate) use cells::Cells;
pub use cells::Counters;
pub use hash::Hash;
pub use meter::{Meter, Meters, GREEN, RED, YELLOW};
pub use random::Random;
pub use register::Registers;
