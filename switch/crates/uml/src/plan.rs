// SPDX-License-Identifier: Apache-2.0
//! What the guest is to do: `plan.json` in its root directory. Both sides know it.

use apps::App;
use serde::{Deserialize, Serialize};
use std::net::{IpAddr, SocketAddr};

/// So long before its instant a sample is taken, so that it is there then.
pub const SAMPLE_EARLY_NS: u64 = 10_000;
/// A sample: these numbers, u64 each in the machine's byte order, then TCP_INFO as the kernel gives it.
///
/// | number | what |
/// |---|---|
/// | 0 | instant of the experiment, ns |
/// | 1 | flow, by its place in the plan |
/// | 2 | connection of that flow, from 0 |
/// | 3 | bytes that the flow's receiving application has read, over all connections |
/// | 4 | datagrams that the flow has sent |
/// | 5 | 1: the connection is closed |
/// | 6 | timeouts that the connection's sender has undone, where it estimates a bandwidth |
/// | 7 | that bandwidth at each of them, packets/s, summed |
/// | 8 | bytes of TCP_INFO; 0 of UDP |
pub const SAMPLE_NUMBERS: usize = 9;

/// The whole run.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// Instant 0 of the experiment on the machine's clock: the hosts are set up before.
    pub start_ns: u64,
    /// Length of the experiment.
    pub end_ns: u64,
    /// TCP_INFO of every flow each so often, `SAMPLE_EARLY_NS` before; null: never.
    pub sample_ns: Option<u64>,
    /// Instants of further samples.
    #[serde(default)]
    pub marks_ns: Vec<u64>,
    /// Of all chance of the applications.
    pub seed: u64,
    /// In the order of the interfaces; then come the lines.
    pub hosts: Vec<Host>,
    pub lines: Vec<Line>,
    pub flows: Vec<Flow>,
}

impl Plan {
    /// The instant of the first sample behind another instant.
    pub fn next_sample(&self, after: u64) -> Option<u64> {
        let regular = self.sample_ns.map(|period| (after / period + 1) * period);
        let marks = self.marks_ns.iter().copied().filter(|mark| *mark > after);
        regular.into_iter().chain(marks).min()
    }
}

/// A host: a network namespace with one interface.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Host {
    pub name: String,
    /// Of its interface: bytes of the longest IP packet.
    pub mtu: u32,
    pub addresses: Vec<IpAddr>,
    /// Everybody it may talk to, and the Ethernet address to send to: it never asks.
    pub neighbours: Vec<(IpAddr, String)>,
    /// Name and value, in the order in which they are set.
    pub sysctls: Vec<(String, String)>,
    pub routes: Vec<Route>,
}

/// An interface that is the line of a switch's port.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Line {
    pub switch: String,
    pub port: u32,
    pub rate_bps: u64,
    pub mtu: u32,
    pub qdisc: Qdisc,
}

impl Line {
    /// Whether it is that of this port.
    pub fn is_of(&self, switch: &str, port: u32) -> bool {
        self.switch == switch && self.port == port
    }
}

/// A queueing discipline of the kernel's (tc(8)).
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Qdisc {
    pub kind: String,
    /// TCA_OPTIONS of rtnetlink(7).
    pub options: Vec<u8>,
}

/// What the kernel takes from the route to a peer (ip-route(8)); null: its default.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Route {
    pub to: IpAddr,
    /// First congestion window, packets.
    pub initcwnd: Option<u32>,
    /// Largest congestion window (`cwnd lock`), packets.
    pub cwnd: Option<u32>,
    pub rto_min_ms: Option<u32>,
    /// Every segment is acknowledged at once.
    #[serde(default)]
    pub quickack: bool,
}

/// A TCP connection; instants are the experiment's.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Flow {
    pub name: String,
    /// Indices of hosts.
    pub from: usize,
    pub to: usize,
    /// The sender's of the first connection, and the receiver's.
    pub ends: [SocketAddr; 2],
    /// Null: what the host's sysctl says.
    pub congestion_control: Option<String>,
    /// Payload of a segment at most, options included (TCP_MAXSEG); null: what the interface allows.
    pub mss_bytes: Option<u32>,
    /// The receiver's window at most; null: the kernel tunes it.
    pub receive_window_bytes: Option<u32>,
    pub start_ns: u64,
    /// When the application stops; null: never.
    pub stop_ns: Option<u64>,
    pub app: App,
    /// In the experiment: ports of its transfers follow from it.
    pub place: usize,
    /// The receiving application reads so long after the first byte that it has not read yet; 0: at once.
    pub read_interval_ns: u64,
}
