// SPDX-License-Identifier: Apache-2.0
//! Counts of a port and of the device, and the reasons why packets are dropped.

use serde::Serialize;

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
    /// Came in while the interface's receiving ring was full.
    RingFull = "ring_full",
    /// Came in longer than the interface's MTU.
    Truncated = "truncated",
    /// Came in with its segmentation left to the device: offloads are on where they must be off.
    Unsegmented = "unsegmented",
    /// The program's ingress dropped it (`egress_spec` 511).
    Ingress = "ingress_drop",
    /// The program's egress dropped it.
    Egress = "egress_drop",
    /// `assert` or `assume` failed.
    Assertion = "assertion_failed",
    /// The program went round a loop too often.
    StepLimit = "step_limit",
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
    /// A copy for a clone session that is not there (the original goes on).
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

/// Why a packet ends behind ingress without the egress pass of a packet that leaves; the numbers that a program
/// reads in its metadata `queue_drop` are the places here, from 1 on (docs/switch.md lists them).
pub const QUEUE_DROPS: [DropReason; 8] = [
    DropReason::NoSuchPort,
    DropReason::PortDown,
    DropReason::NoSuchQueue,
    DropReason::QueueFull,
    DropReason::PortFull,
    DropReason::BufferFull,
    DropReason::NoMulticastGroup,
    DropReason::Flushed,
];

impl DropReason {
    /// The number in `queue_drop`; 0 for a reason that is not among [`QUEUE_DROPS`].
    pub fn queue_drop(self) -> u64 {
        let found = QUEUE_DROPS.iter().position(|each| *each == self);
        found.map_or(0, |i| i as u64 + 1)
    }
}

/// Counts of the device since it was made. Always:
/// `received + copied = transmitted + dropped_total() +` what waits `+` what is on the lines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceStats {
    /// Packets that came in at a port, packet-out too, and those that were lost at reception.
    pub received: u64,
    /// Packets that left at a port, packet-in too.
    pub transmitted: u64,
    /// Those of them that left at the CPU port.
    pub packet_ins: u64,
    /// Copies asked for: clones, each replica of its session, and all replicas of a group but the first.
    pub copied: u64,
    /// Rounds by resubmit or recirculate.
    pub again: u64,
    /// Runs of a parser or control that went round a loop too often: of a parser it is the error ParserTimeout, else
    /// [`DropReason::StepLimit`].
    pub timeouts: u64,
    dropped: [u64; DropReason::ALL.len()],
}

impl DeviceStats {
    /// Packets dropped for this reason.
    pub fn dropped(&self, reason: DropReason) -> u64 {
        self.dropped[reason as usize]
    }

    /// Packets and copies dropped, for whatever reason.
    pub fn dropped_total(&self) -> u64 {
        self.dropped.iter().sum()
    }

    /// Packets that took more than their share of the switch's time, by loops or rounds without end.
    pub fn overruns(&self) -> u64 {
        self.timeouts + self.dropped(DropReason::LoopLimit)
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

/// Counts of a port since it was made; those that the control socket reports are serialized.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[repr(C)] // counts of each frame that comes, then of each that leaves, then the rest
pub struct PortStats {
    /// Packets received, without those lost at reception.
    pub rx_packets: u64,
    /// Bytes received.
    pub rx_bytes: u64,
    /// Frames that the program got, by address.
    #[serde(skip)]
    pub rx_frames: Addressed,
    /// Packets sent.
    pub tx_packets: u64,
    /// Bytes sent.
    pub tx_bytes: u64,
    /// Frames that the interface got to send, by address; also those that it did not take.
    #[serde(skip)]
    pub tx_frames: Addressed,
    /// Packets that were to leave here and were refused by queue, port or shared buffer, or by a port that is down.
    pub refused_packets: u64,
    /// Packets that the interface did not take; none of those sent.
    pub tx_errors: u64,
    /// Frames that came in and were lost at reception; none of those received.
    pub rx_lost: u64,
    /// Of the packets received, those that went no further: empty, or too long.
    #[serde(skip)]
    pub rx_errors: u64,
    /// Of the packets received, those that no program was there for.
    #[serde(skip)]
    pub rx_unprocessed: u64,
    #[serde(skip)]
    refused: [u64; PORT_REFUSALS.len()],
}

/// Ethernet frames by the first bytes, their destination.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Addressed {
    /// To one station.
    pub unicast: u64,
    /// To a group of stations, but not to all.
    pub multicast: u64,
    /// To all stations.
    pub broadcast: u64,
}

impl Addressed {
    #[inline]
    pub(crate) fn count(&mut self, frame: &[u8]) {
        let group = frame.first().is_some_and(|first| first & 1 == 1);
        let all = frame.starts_with(&[0xff; 6]);
        self.broadcast += u64::from(all);
        self.multicast += u64::from(group && !all);
        self.unicast += u64::from(!group);
    }
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

/// Where every packet is, at one moment: `received + copied = transmitted + dropped + waiting + on_line`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Accounts {
    /// Came in, with packet-outs and what was lost at reception.
    pub received: u64,
    /// Copies asked for.
    pub copied: u64,
    /// Left, with packet-ins.
    pub transmitted: u64,
    /// Packet-ins.
    pub packet_ins: u64,
    /// Dropped, for whatever reason.
    pub dropped: u64,
    /// Wait in a queue.
    pub waiting: u64,
    /// Are being sent.
    pub on_line: u64,
}
