// SPDX-License-Identifier: Apache-2.0
//! One port of the device: its queues, the frame on its line, its counts.

use crate::config::PortConfig;
use crate::stats::PortStats;
use traffic::PortQueues;
use v1model::{Nanos, Packet, PacketAddresses};

/// A packet in a queue.
pub(crate) struct Item {
    pub(crate) packet: Box<Packet>,
    pub(crate) addresses: PacketAddresses,
    /// How often it went round already (resubmit, recirculate, clone).
    pub(crate) rounds: u8,
}

pub(crate) struct Port {
    pub(crate) config: PortConfig,
    pub(crate) queues: PortQueues<Item>,
    /// Deparsed, being serialised: leaves when the line is free.
    pub(crate) on_line: Option<Box<Packet>>,
    pub(crate) up: bool,
    pub(crate) stats: PortStats,
}

impl Port {
    pub(crate) fn new(config: PortConfig) -> Port {
        let mut queues = PortQueues::new(config.queues, config.queue_limits, config.rate_bps);
        queues.set_port_limits(config.port_limits);
        queues.set_link_layer(config.link_layer);
        queues.set_scheduler(config.scheduler);
        Port {
            config,
            queues,
            on_line: None,
            up: true,
            stats: PortStats::default(),
        }
    }

    /// When something is next to be done here.
    #[inline]
    pub(crate) fn due(&self) -> Option<Nanos> {
        if self.on_line.is_some() {
            Some(self.queues.free_at())
        } else {
            self.queues.next_departure()
        }
    }
}
