// SPDX-License-Identifier: Apache-2.0
//! Queues and links. One binary, as each one more is linked anew; what counts allocations is apart.

#[path = "../common/mod.rs"]
mod common;

mod calendar;
mod fq_properties;
mod link_behaviour;
mod link_bursts;
mod link_chance;
mod link_dama;
mod link_errors;
mod link_properties;
mod link_series;
mod port_queues;
mod round_robin_properties;
mod shares;
