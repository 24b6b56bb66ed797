// SPDX-License-Identifier: Apache-2.0
//! What the guest is to do: `plan.json` in its root directory. Both sides know it.

use serde::{Deserialize, Serialize};
use std::net::Ipv4Addr;

/// The whole run.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// Instant 0 of the experiment on the machine's clock: the hosts are set up before.
    pub start_ns: u64,
    /// Length of the experiment.
    pub end_ns: u64,
    /// TCP_INFO of every flow each so often; null: never.
    pub sample_ns: Option<u64>,
    /// In the order of the interfaces.
    pub hosts: Vec<Host>,
    pub flows: Vec<Flow>,
}

/// A host: a network namespace with one interface.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Host {
    pub name: String,
    pub ip: Ipv4Addr,
    /// Everybody it may talk to, and the Ethernet address to send to: it never asks.
    pub neighbours: Vec<(Ipv4Addr, String)>,
    /// Name and value, in the order in which they are set.
    pub sysctls: Vec<(String, String)>,
}

/// A TCP connection; instants are the experiment's.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Flow {
    pub name: String,
    /// Indices of hosts.
    pub from: usize,
    pub to: usize,
    pub from_port: u16,
    pub to_port: u16,
    /// Null: what the host's sysctl says.
    pub congestion_control: Option<String>,
    pub start_ns: u64,
    /// Nothing is written any more from then on; null: until the end.
    pub stop_ns: Option<u64>,
    /// Then it closes; null: greedy.
    pub bytes: Option<u64>,
}
