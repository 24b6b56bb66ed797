// SPDX-License-Identifier: Apache-2.0
//! The switch without interfaces. One binary, as each one more is linked anew; what counts allocations is apart.

#[path = "../common/mod.rs"]
mod common;
#[path = "../../../v1model/tests/common/minimal.rs"]
mod minimal;
#[path = "../../../traffic/tests/random/mod.rs"]
mod random;

mod ahead;
mod conservation;
mod counters;
mod handle;
mod limits;
mod operations;
mod queue_drop;
mod queues;
mod trace;
