// SPDX-License-Identifier: Apache-2.0
//! Mutated inputs through the switch's own code: nothing may panic, hang, take too much memory, or leave half of a change.
//!
//! | module | idea |
//! |---|---|
//! | `input` | a document of ours and the edits that make it hostile, short and readable; the next edits |
//! | `memory` | what one execution takes |
//! | `targets` | what is executed |
//!
//! The program `fuzz` gives libFuzzer these inputs (`make fuzz`); `tests/inputs.rs` runs known and seeded ones without it.

pub mod input;
pub mod memory;
pub mod targets;
