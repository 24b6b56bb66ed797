// SPDX-License-Identifier: Apache-2.0
//! Programs, packet by packet. One binary, as each one more is linked anew; what counts allocations is apart.

#[path = "../common/mod.rs"]
mod common;

mod compiled;
mod headers;
mod loops;
mod meters;
mod negative;
mod primitives;
mod profiles;
mod refusals;
mod state;
mod trace;
mod value_sets;
