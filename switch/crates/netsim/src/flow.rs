// SPDX-License-Identifier: Apache-2.0
//! A flow: who sends to whom, its application and chance, the connection in use and what closed ones counted.

use crate::calendar::EntityId;
use crate::region::Member;
use crate::results::{add_counts, FlowReport};
use crate::sockets::Endpoint;
use apps::{AppState, Chance, LaterPorts};
use device::Nanos;
use std::net::SocketAddr;
use tcp::TcpConfig;

pub(crate) struct Flow {
    /// The sending host.
    pub(crate) from: u32,
    pub(crate) sender: SocketAddr,
    pub(crate) receiver: SocketAddr,
    pub(crate) stop: Option<Nanos>,
    pub(crate) app: AppState,
    pub(crate) chance: Chance,
    /// Of initial sequence numbers.
    pub(crate) sequence_numbers: Chance,
    pub(crate) tcp: TcpConfig,
    /// Of the receiving application; 0: it reads at once.
    pub(crate) read_interval: Nanos,
    pub(crate) entity: EntityId,
    /// The flow once more, where its receiver is in another region: here is the sender.
    pub(crate) receiver_in: Option<Member>,
    /// Sender's end of the connection in use (of the latest one, for web).
    pub(crate) current: Option<u32>,
    later_ports: LaterPorts,
    /// Of connections that are closed, and all that is not a connection's.
    pub(crate) counts: FlowReport,
}

/// What a flow needs to know when it is made.
pub(crate) struct FlowOptions<'a> {
    pub(crate) name: &'a str,
    pub(crate) index: usize,
    pub(crate) from: u32,
    pub(crate) sender: SocketAddr,
    pub(crate) receiver: SocketAddr,
    pub(crate) receiver_in: Option<Member>,
    pub(crate) stop: Option<Nanos>,
    pub(crate) tcp: TcpConfig,
    pub(crate) read_interval: Nanos,
}

impl Flow {
    pub(crate) fn new(
        options: FlowOptions<'_>,
        app: AppState,
        seed: u64,
        entity: EntityId,
    ) -> Flow {
        let (chance, sequence_numbers) = Chance::of_flow(seed, options.name);
        let cc = match app.is_udp() {
            true => "udp",
            false => options.tcp.cc.as_str(),
        };
        Flow {
            from: options.from,
            sender: options.sender,
            receiver: options.receiver,
            stop: options.stop,
            app,
            chance,
            sequence_numbers,
            entity,
            receiver_in: options.receiver_in,
            current: None,
            later_ports: LaterPorts::new(options.index),
            counts: FlowReport {
                flow: options.name.to_owned(),
                cc: cc.to_owned(),
                ..FlowReport::default()
            },
            tcp: options.tcp,
            read_interval: options.read_interval,
        }
    }

    /// The port of the next connection to try.
    pub(crate) fn next_port(&mut self) -> u16 {
        match self.app.is_web() {
            true => self.later_ports.take(),
            false => self.sender.port(),
        }
    }

    /// How many ports there are to try.
    pub(crate) fn ports(&self) -> usize {
        match self.app.is_web() {
            true => LaterPorts::COUNT,
            false => 1,
        }
    }
}

impl FlowReport {
    /// Adds what an end of one of its connections has counted.
    pub(crate) fn add(&mut self, endpoint: &Endpoint) {
        let connection = &endpoint.connection;
        if !endpoint.is_sender {
            self.received_bytes += connection.received_bytes();
            self.ena_corrupted += connection.stats().ena_corrupted;
            return;
        }
        let stats = connection.stats();
        self.acked_bytes += connection.acked_bytes();
        self.sent_segments += stats.data_segments_sent;
        add_counts!(stats => self; retransmits timeouts spurious_timeouts bw_est_pps erto_probes fast_retransmits
            window_reductions ena_notified ena_kept ena_reduced ena_allowed ena_restored);
    }

    /// Adds what the receiver has counted in another region.
    pub(crate) fn add_receiver(&mut self, receiver: &FlowReport) {
        self.sum(receiver);
    }

    /// Sets what belongs to the connection in use.
    pub(crate) fn show(&mut self, endpoint: &Endpoint) {
        let sender = endpoint.connection.sender();
        self.srtt_ns = sender.srtt_ns;
        self.cwnd_packets = sender.snd_cwnd;
    }
}
