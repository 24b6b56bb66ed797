// SPDX-License-Identifier: Apache-2.0
//! What can be read at any instant: cumulative counts of flows, ports, links, hosts and switches, and finished transfers.

use device::{DropReason, Nanos};
use fabric::Switch;
use serde::Serialize;
use traffic::link::LinkStats;
use uml::LineCounts;

/// Counts of a flow, over all its connections.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FlowReport {
    pub flow: String,
    /// New application bytes acknowledged; 0 for UDP.
    pub acked_bytes: u64,
    /// Application bytes received, in order (TCP); payload received (UDP).
    pub received_bytes: u64,
    /// Segments with data, retransmissions too; UDP: datagrams sent.
    pub sent_segments: u64,
    pub retransmits: u64,
    pub timeouts: u64,
    /// Of these, found to be for nothing; of a real flow known where its sender estimates a bandwidth.
    pub spurious_timeouts: u64,
    /// At these, the bandwidth that the sender had estimated, packets/s, summed; 0 where it estimates none.
    pub bw_est_pps: u64,
    /// Timeouts answered by new data (E-RTO).
    pub erto_probes: u64,
    pub fast_retransmits: u64,
    /// Times that ssthresh was reduced for a loss.
    pub window_reductions: u64,
    /// Corrupted segments that the receiver attributed to the flow.
    pub ena_corrupted: u64,
    /// ACKs that named one.
    pub ena_notified: u64,
    /// Recoveries that left the window as it was, and recoveries that reduced it (with ENA only).
    pub ena_kept: u64,
    pub ena_reduced: u64,
    /// Segments that nobody named and that were taken for corrupted, and reductions that were taken back (ENA+).
    pub ena_allowed: u64,
    pub ena_restored: u64,
    /// Connections opened.
    pub connections: u64,
    /// Transfers finished.
    pub completed: u64,
    /// Transfers that found no free port.
    pub not_opened: u64,
    /// Of the connection in use: smoothed round-trip time; 0: none yet.
    pub srtt_ns: Nanos,
    /// Of the connection in use, packets.
    pub cwnd_packets: u32,
    /// Congestion control in use; `udp` for UDP.
    pub cc: String,
}

/// Adds counts, by name.
macro_rules! add_counts {
    ($from:expr => $to:expr; $($count:ident)*) => { $($to.$count += $from.$count;)* };
}
pub(crate) use add_counts;

impl FlowReport {
    /// Adds what others have counted of the flow.
    pub(crate) fn sum(&mut self, other: &FlowReport) {
        add_counts!(other => self; acked_bytes received_bytes sent_segments retransmits timeouts spurious_timeouts bw_est_pps
            erto_probes fast_retransmits window_reductions ena_corrupted ena_notified ena_kept ena_reduced ena_allowed
            ena_restored connections completed not_opened);
    }
}

/// Drops of a switch port's queues by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Drops {
    pub queue_full: u64,
    pub port_full: u64,
    pub buffer_full: u64,
}

/// Counts of a switch port.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PortReport {
    pub switch: String,
    pub port: u32,
    pub rate_bps: u64,
    pub queue_packets: u64,
    pub tx_packets: u64,
    pub tx_bytes: u64,
    pub rx_packets: u64,
    pub rx_bytes: u64,
    /// Packets that were to leave here and were refused, for whatever reason.
    pub refused_packets: u64,
    /// Frames that left where no link is plugged in.
    pub unplugged_packets: u64,
    pub drops: Drops,
    /// Waiting now, all queues.
    pub waiting_packets: u64,
    pub waiting_bytes: u64,
    pub waiting_cells: u64,
    /// Where its queue is the kernel's: what that has counted; the counts of packets sent, dropped and waiting are its.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub qdisc: Option<LineCounts>,
}

/// Counts of one direction of a link.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LinkReport {
    pub link: String,
    /// `a_to_b` or `b_to_a`.
    pub direction: &'static str,
    #[serde(flatten)]
    pub stats: LinkStats,
    /// Waiting, on the line or on the medium now.
    pub on_link_packets: u64,
}

/// Counts of a host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct HostReport {
    pub host: String,
    /// Frames with a wrong checksum: of the IPv4 header, of TCP or of UDP.
    pub corrupted: u64,
    pub tx_packets: u64,
    pub rx_packets: u64,
    /// Frames that reached a connection or a UDP receiver.
    pub accepted_packets: u64,
    /// Not IPv4, or lengths that disagree.
    pub malformed: u64,
    /// IPv4 header checksum.
    pub bad_ip_checksum: u64,
    /// TCP or UDP checksum.
    pub bad_transport_checksum: u64,
    /// Another host's address.
    pub not_for_us: u64,
    /// No connection and nobody listens.
    pub no_socket: u64,
}

/// Counts of a switch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SwitchReport {
    pub switch: String,
    /// Packets that came in, packet-out too: each went through the pipeline (unless dropped before it).
    pub received: u64,
    pub transmitted: u64,
    pub copied: u64,
    /// Reason (as in `device::DropReason`) and packets, those that happened.
    pub drops: std::collections::BTreeMap<&'static str, u64>,
}

/// A transfer of a `bytes`, `web` or `interactive` application.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Transfer {
    pub flow: String,
    /// When the application asked, before the handshake.
    pub start_ns: Nanos,
    /// When its last byte was acknowledged; of one that is not finished: now.
    pub end_ns: Nanos,
    /// Of one that is not finished: those that are acknowledged.
    pub bytes: u64,
    pub retransmits: u64,
    /// When its first data segment left, after the handshake; `start_ns` before that.
    pub first_sent_ns: Nanos,
    /// Segments with data or FIN that the sender sent for it, retransmissions too.
    pub segments: u64,
}

impl LinkReport {
    pub(crate) fn new<T>(
        name: &str,
        direction: &'static str,
        link: &traffic::link::Link<T>,
    ) -> LinkReport {
        LinkReport {
            link: name.to_owned(),
            direction,
            stats: *link.stats(),
            on_link_packets: (link.queued() + link.in_flight()) as u64,
        }
    }
}

impl SwitchReport {
    pub(crate) fn of(switch: &Switch) -> SwitchReport {
        let stats = switch.device.stats();
        let drops = DropReason::ALL
            .iter()
            .map(|r| (r.name(), stats.dropped(*r)));
        SwitchReport {
            switch: switch.name.clone(),
            received: stats.received,
            transmitted: stats.transmitted,
            copied: stats.copied,
            drops: drops.filter(|(_, packets)| *packets > 0).collect(),
        }
    }
}

impl PortReport {
    /// Reports of all ports but the CPU port, ascending.
    pub(crate) fn all_of(switch: &Switch) -> impl Iterator<Item = PortReport> + '_ {
        let (device, cpu) = (&switch.device, switch.device.config().cpu_port);
        let ports = device.ports().filter(move |port| Some(*port) != cpu);
        ports.filter_map(|port| PortReport::of(switch, port))
    }

    fn of(switch: &Switch, port: u32) -> Option<PortReport> {
        let device = &switch.device;
        let (config, stats) = (device.port(port)?, device.port_stats(port)?);
        let drops = Drops {
            queue_full: stats.refused(DropReason::QueueFull),
            port_full: stats.refused(DropReason::PortFull),
            buffer_full: stats.refused(DropReason::BufferFull),
        };
        let waiting = device.port_usage(port)?;
        Some(PortReport {
            switch: switch.name.clone(),
            port,
            rate_bps: config.rate_bps,
            queue_packets: config.queue_limits.packets,
            tx_packets: stats.tx_packets,
            tx_bytes: stats.tx_bytes,
            rx_packets: stats.rx_packets,
            rx_bytes: stats.rx_bytes,
            refused_packets: stats.refused_packets,
            unplugged_packets: switch.unplugged(port),
            drops,
            waiting_packets: waiting.packets,
            waiting_bytes: waiting.bytes,
            waiting_cells: waiting.cells,
            qdisc: None,
        })
    }

    /// Puts in what the kernel's queue has counted.
    pub(crate) fn show(&mut self, line: LineCounts) {
        (self.tx_packets, self.tx_bytes) = (line.sent_packets, line.sent_bytes);
        self.waiting_packets = line.waiting_packets;
        self.drops.queue_full += line.dropped_packets;
        self.qdisc = Some(line);
    }
}
