// SPDX-License-Identifier: Apache-2.0
//! Options of a device and of a port, and what is allowed in them.

use serde::{Deserialize, Serialize};
use traffic::line::RATE_BPS_MAX;
pub use traffic::link::Rate;
use traffic::link::Seeds;
use traffic::{LinkLayer, QueueLimits, SchedulerKind, UNLIMITED};
use v1model::{ControlError, ErrorKind};

pub use traffic::QUEUES_MAX;
/// Highest port number: v1model's ports have 9 bits, and the last one means drop.
pub const PORT_MAX: u32 = 510;
/// The number that means drop. BMv2 takes a frame that comes in by a port of this number, and so does a device that is
/// given one (packet tests do); none leaves by it.
pub const DROP_PORT: u32 = PORT_MAX + 1;

/// Options of a device.
#[derive(Clone, Copy, Debug)]
pub struct DeviceConfig {
    /// Port of packet-in and packet-out; None when there is none.
    pub cpu_port: Option<u32>,
    /// Longest frame taken, bytes (without FCS).
    pub frame_bytes_max: u32,
    /// The buffer that all ports share.
    pub buffer: QueueLimits,
    /// Of the programs' `random` and random selectors.
    pub seed: u64,
    /// Of the run: by it rates that change again and again do so together with the links'.
    pub run_seed: u64,
    /// Events waiting for the control plane: most of each kind.
    pub events_max: usize,
    /// Bytes of frames and digest samples waiting for the control plane.
    pub event_bytes_max: usize,
}

impl DeviceConfig {
    /// Of what the rate of a port draws.
    pub fn rate_seeds(&self, port: u32) -> Seeds {
        Seeds::new(self.run_seed, &format!("{}/port/{port}", self.seed))
    }
}

impl Default for DeviceConfig {
    fn default() -> DeviceConfig {
        DeviceConfig {
            cpu_port: Some(510),
            frame_bytes_max: 65_535,
            buffer: QueueLimits {
                packets: 16_384,
                bytes: 64 << 20,
                cells: UNLIMITED,
            },
            seed: 1,
            run_seed: 1,
            events_max: 8_192,
            event_bytes_max: 4 << 20,
        }
    }
}

/// Options of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortConfig {
    /// Rate in bit/s on the line, 0 for unlimited; of one that follows a series its mean.
    pub rate_bps: u64,
    /// What a frame takes on the line.
    pub link_layer: LinkLayer,
    /// Which queue is served next.
    pub scheduler: SchedulerKind,
    /// Number of queues.
    pub queues: usize,
    /// Limits of each queue.
    pub queue_limits: QueueLimits,
    /// Limits of all queues of the port together.
    pub port_limits: QueueLimits,
}

impl Default for PortConfig {
    fn default() -> PortConfig {
        PortConfig {
            rate_bps: 0,
            link_layer: LinkLayer::None,
            scheduler: SchedulerKind::Strict,
            queues: 8,
            queue_limits: QueueLimits::packets(1_000),
            port_limits: QueueLimits::NONE,
        }
    }
}

impl PortConfig {
    /// Checks the options of port `port`.
    ///
    /// # Errors
    /// InvalidArgument naming the option, its value and what is allowed.
    pub fn check(&self, port: u32) -> Result<(), ControlError> {
        let invalid = |message: String| Err(ControlError::new(ErrorKind::InvalidArgument, message));
        if self.rate_bps > RATE_BPS_MAX {
            return invalid(format!(
                "port {port}: rate {} bit/s is above {RATE_BPS_MAX} bit/s",
                self.rate_bps
            ));
        }
        if self.queues == 0 || self.queues > QUEUES_MAX {
            return invalid(format!(
                "port {port}: {} queues; 1 to {QUEUES_MAX} are allowed",
                self.queues
            ));
        }
        for (of, limits) in [("queue", &self.queue_limits), ("port", &self.port_limits)] {
            for (unit, value) in [
                ("packets", limits.packets),
                ("bytes", limits.bytes),
                ("cells", limits.cells),
            ] {
                if value == 0 {
                    return invalid(format!(
                        "port {port}: a {of} capacity of 0 {unit} would drop everything; at least 1 is allowed"
                    ));
                }
            }
        }
        Ok(())
    }
}

/// New options of a port; those that are None stay as they are. The keys are those of the control socket.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PortChange {
    /// Rate on the line.
    pub rate_bps: Option<Rate>,
    /// What a frame takes on the line.
    pub link_layer: Option<LinkLayer>,
    /// Which queue is served next.
    pub scheduler: Option<SchedulerKind>,
    /// Number of queues.
    pub queues: Option<usize>,
    /// Packets that may wait in each queue.
    pub queue_packets: Option<u64>,
    /// Bytes that may wait in each queue.
    pub queue_bytes: Option<u64>,
    /// Cells that may wait in each queue.
    pub queue_cells: Option<u64>,
    /// Packets that may wait at the port.
    pub port_packets: Option<u64>,
    /// Bytes that may wait at the port.
    pub port_bytes: Option<u64>,
    /// Cells that may wait at the port.
    pub port_cells: Option<u64>,
}

/// All options; None is no limit.
impl From<&PortConfig> for PortChange {
    fn from(config: &PortConfig) -> PortChange {
        let limit = |value: u64| (value != UNLIMITED).then_some(value);
        let (queue, port) = (&config.queue_limits, &config.port_limits);
        PortChange {
            rate_bps: Some(Rate::Constant(config.rate_bps)),
            link_layer: Some(config.link_layer),
            scheduler: Some(config.scheduler),
            queues: Some(config.queues),
            queue_packets: limit(queue.packets),
            queue_bytes: limit(queue.bytes),
            queue_cells: limit(queue.cells),
            port_packets: limit(port.packets),
            port_bytes: limit(port.bytes),
            port_cells: limit(port.cells),
        }
    }
}

impl PortChange {
    /// `config` with these changes, not checked.
    pub fn applied_to(&self, config: &PortConfig) -> PortConfig {
        let (queue, port) = (&config.queue_limits, &config.port_limits);
        PortConfig {
            rate_bps: self.rate_bps.as_ref().map_or(config.rate_bps, Rate::bps),
            link_layer: self.link_layer.unwrap_or(config.link_layer),
            scheduler: self.scheduler.unwrap_or(config.scheduler),
            queues: self.queues.unwrap_or(config.queues),
            queue_limits: QueueLimits {
                packets: self.queue_packets.unwrap_or(queue.packets),
                bytes: self.queue_bytes.unwrap_or(queue.bytes),
                cells: self.queue_cells.unwrap_or(queue.cells),
            },
            port_limits: QueueLimits {
                packets: self.port_packets.unwrap_or(port.packets),
                bytes: self.port_bytes.unwrap_or(port.bytes),
                cells: self.port_cells.unwrap_or(port.cells),
            },
        }
    }
}
