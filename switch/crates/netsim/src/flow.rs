// SPDX-License-Identifier: Apache-2.0
//! A flow: who sends to whom, its application and chance, the connection in use and what closed ones counted.

use crate::app::AppState;
use crate::calendar::EntityId;
use crate::chance::Chance;
use crate::results::FlowReport;
use crate::sockets::Endpoint;
use device::Nanos;
use tcp::{Addr, TcpConfig};

/// Ports of connections after the first: from here to the last one, then here again.
const LATER_PORTS: std::ops::RangeInclusive<u16> = 20_000..=65_535;
/// Between the first ports of two neighbours.
const LATER_PORTS_STEP: usize = 100;

pub(crate) struct Flow {
    /// The sending host.
    pub(crate) from: u32,
    pub(crate) sender: Addr,
    pub(crate) receiver: Addr,
    pub(crate) stop: Option<Nanos>,
    pub(crate) app: AppState,
    pub(crate) chance: Chance,
    /// Of initial sequence numbers.
    pub(crate) sequence_numbers: Chance,
    pub(crate) tcp: TcpConfig,
    /// Of the receiving application; 0: it reads at once.
    pub(crate) read_interval: Nanos,
    pub(crate) entity: EntityId,
    /// Sender's end of the connection in use (of the latest one, for web).
    pub(crate) current: Option<u32>,
    later_port: u16,
    /// Of connections that are closed, and all that is not a connection's.
    pub(crate) counts: FlowReport,
}

/// What a flow needs to know when it is made.
pub(crate) struct FlowOptions<'a> {
    pub(crate) name: &'a str,
    pub(crate) index: usize,
    pub(crate) from: u32,
    pub(crate) sender: Addr,
    pub(crate) receiver: Addr,
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
        let ports = LATER_PORTS.len();
        let later_port = LATER_PORTS.start() + (options.index * LATER_PORTS_STEP % ports) as u16;
        Flow {
            from: options.from,
            sender: options.sender,
            receiver: options.receiver,
            stop: options.stop,
            app,
            chance,
            sequence_numbers,
            entity,
            current: None,
            later_port,
            counts: FlowReport {
                flow: options.name.to_owned(),
                cc: cc.to_owned(),
                ..FlowReport::default()
            },
            tcp: options.tcp,
            read_interval: options.read_interval,
        }
    }

    /// The port of the next connection to try; they come round after 45,536.
    pub(crate) fn next_port(&mut self) -> u16 {
        if !self.app.is_web() {
            return self.sender.port;
        }
        let port = self.later_port;
        self.later_port = match port == *LATER_PORTS.end() {
            true => *LATER_PORTS.start(),
            false => port + 1,
        };
        port
    }

    /// How many ports there are to try.
    pub(crate) fn ports(&self) -> usize {
        match self.app.is_web() {
            true => LATER_PORTS.len(),
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
        self.retransmits += stats.retransmits;
        self.timeouts += stats.timeouts;
        self.spurious_timeouts += stats.spurious_timeouts;
        self.erto_probes += stats.erto_probes;
        self.fast_retransmits += stats.fast_retransmits;
        self.window_reductions += stats.window_reductions;
        self.ena_notified += stats.ena_notified;
        self.ena_kept += stats.ena_kept;
        self.ena_presumed += stats.ena_presumed;
        self.ena_reduced += stats.ena_reduced;
    }

    /// Sets what belongs to the connection in use.
    pub(crate) fn show(&mut self, endpoint: &Endpoint) {
        let sender = endpoint.connection.sender();
        self.srtt_ns = sender.srtt_ns;
        self.cwnd_packets = sender.snd_cwnd;
    }
}
