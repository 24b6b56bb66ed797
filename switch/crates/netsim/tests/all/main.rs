// SPDX-License-Identifier: Apache-2.0
//! Whole topologies in virtual time. One binary, as each one more is linked anew; what counts allocations is apart.

#[path = "../common/mod.rs"]
mod common;
#[path = "../../../capture/tests/reading/mod.rs"]
mod reading;

mod captures;
mod config;
mod ena;
mod fast;
mod handover;
mod ipv6;
mod links;
mod machine;
mod occupancy;
mod regions;
mod tcp;
mod udp;
