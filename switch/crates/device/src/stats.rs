// SPDX-License-Identifier: Apache-2.0
//! Counts of a port and of the device, and the reasons why packets are dropped.

macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident = $text:literal,)*) => {
        /// Why a packet ended inside the switch.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(usize)]
        pub enum DropReason { $($(#[$doc])* $name,)* }

        impl DropReason {
            /// All reasons, in order.
            pub const ALL: &'static [DropReason] = &[$(DropReason::$name,)*];

            /// A stable name, as in `egress_drop`.
            pub fn name(self) -> &'static str {
                match self { $(DropReason::$name => $text,)* }
            }
        }
    };
}

reasons! {
    /// No P4 program is loaded.
    NoPipeline = "no_pipeline",
    /// Received with no byte in it.
    Empty = "empty",
    /// Received longer than `frame_bytes_max`.
    TooLong = "too_long",
    /// The program's ingress dropped it (`egress_spec` 511).
    Ingress = "ingress_drop",
    /// The program's egress dropped it.
    Egress = "egress_drop",
    /// `assert` or `assume` failed.
    Assertion = "assertion_failed",
    /// Sent to a port that is not there.
    NoSuchPort = "no_such_port",
    /// Sent to a port whose interface is down.
    PortDown = "port_down",
    /// Sent to a queue that the port does not have.
    NoSuchQueue = "no_such_queue",
    /// Its queue was full.
    QueueFull = "queue_full",
    /// The port was full, all queues together.
    PortFull = "port_full",
    /// The buffer that all ports share was full.
    BufferFull = "buffer_full",
    /// Sent to a multicast group that is not there or empty.
    NoMulticastGroup = "no_multicast_group",
    /// Cloned to a session that is not there (the original goes on).
    NoCloneSession = "no_clone_session",
    /// Went round (resubmit, recirculate, clone of a clone) more often than allowed.
    LoopLimit = "loop_limit",
    /// In a queue when the program was replaced.
    Flushed = "flushed",
    /// Packet-in that the control plane was too slow for.
    PacketInMissed = "packet_in_missed",
    /// The interface did not take it.
    TransmitFailed = "transmit_failed",
}

impl From<traffic::DropReason> for DropReason {
    fn from(reason: traffic::DropReason) -> DropReason {
        match reason {
            traffic::DropReason::QueueFull => DropReason::QueueFull,
            traffic::DropReason::PortFull => DropReason::PortFull,
            traffic::DropReason::BufferFull => DropReason::BufferFull,
            traffic::DropReason::NoSuchQueue => DropReason::NoSuchQueue,
        }
    }
}

/// Counts of the device since it was made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceStats {
    /// Packets that came in at a port, packet-out too.
    pub received: u64,
    /// Packets that left at a port, packet-in too.
    pub transmitted: u64,
    /// Copies made: clones and all replicas of a group but the first.
    pub copied: u64,
    /// Rounds by resubmit or recirculate.
    pub again: u64,
    dropped: [u64; DropReason::ALL.len()],
}

impl DeviceStats {
    /// Packets dropped for this reason.
    pub fn dropped(&self, reason: DropReason) -> u64 {
        self.dropped[reason as usize]
    }

    /// Packets dropped, for whatever reason; a clone without session is not a drop of a packet.
    pub fn dropped_total(&self) -> u64 {
        self.dropped.iter().sum::<u64>() - self.dropped(DropReason::NoCloneSession)
    }

    #[inline]
    pub(crate) fn drop(&mut self, reason: DropReason) {
        self.dropped[reason as usize] += 1;
    }

    #[inline]
    pub(crate) fn drop_many(&mut self, reason: DropReason, packets: u64) {
        self.dropped[reason as usize] += packets;
    }
}

/// Why a port refuses a packet that was to leave there.
pub const PORT_REFUSALS: [DropReason; 5] = [
    DropReason::PortDown,
    DropReason::NoSuchQueue,
    DropReason::QueueFull,
    DropReason::PortFull,
    DropReason::BufferFull,
];

/// Counts of a port since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortStats {
    /// Packets received.
    pub rx_packets: u64,
    /// Bytes received.
    pub rx_bytes: u64,
    /// Packets sent.
    pub tx_packets: u64,
    /// Bytes sent.
    pub tx_bytes: u64,
    /// Packets that were to leave here and were refused by queue, port or shared buffer, or by a port that is down.
    pub refused_packets: u64,
    /// Packets that the interface did not take.
    pub tx_errors: u64,
    refused: [u64; PORT_REFUSALS.len()],
}

impl PortStats {
    /// Packets refused for one of [`PORT_REFUSALS`]; 0 for any other reason.
    pub fn refused(&self, reason: DropReason) -> u64 {
        let found = PORT_REFUSALS.iter().position(|each| *each == reason);
        found.map_or(0, |i| self.refused[i])
    }

    #[inline]
    pub(crate) fn refuse(&mut self, reason: DropReason) {
        self.refused_packets += 1;
        if let Some(i) = PORT_REFUSALS.iter().position(|each| *each == reason) {
            self.refused[i] += 1;
        }
    }
}
