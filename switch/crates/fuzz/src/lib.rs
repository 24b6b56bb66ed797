// SPDX-License-Identifier: Apache-2.0
//! Mutated inputs through the switch's own code: nothing may panic, hang, take too much memory, or leave half of a change.
//!
//! | module | idea |
//! |---|---|
//! | `input` | a document of ours and the edits that make it hostile, short and readable; the next edits |
//! | `guard` | one execution under watch: panics, time, memory, and which parts of the code it reached |
//! | `campaign` | executions until a finding, or until the time is up |
//! | `targets` | what is executed |

pub mod campaign;
pub mod guard;
pub mod input;
pub mod targets;
