// SPDX-License-Identifier: Apache-2.0
//! A switch of the network: a device, and which wire each of its ports sends into.

use crate::calendar::EntityId;
use crate::fabric::Fabric;
use crate::frames::FrameId;
use crate::results::{Drops, PortReport, SwitchReport};
use device::{Device, DropReason, Nanos, Packet, Transmit};

/// No wire is plugged in.
const UNPLUGGED: u32 = u32::MAX;

pub(crate) struct Switch {
    pub(crate) name: String,
    pub(crate) device: Device,
    pub(crate) entity: EntityId,
    outlets: Outlets,
}

/// By port number: the wire, and frames that left where none is.
#[derive(Default)]
struct Outlets {
    wires: Vec<u32>,
    unplugged: Vec<u64>,
}

/// What the device sends goes into the wires.
struct Out<'a> {
    fabric: &'a mut Fabric,
    outlets: &'a mut Outlets,
}

impl Transmit for Out<'_> {
    #[inline]
    fn transmit(&mut self, port: u32, packet: &mut Packet, at: Nanos) {
        let frame = self.fabric.frames.take();
        packet.exchange(self.fabric.frames.get_mut(frame));
        self.send(port, frame, at);
    }
}

impl Out<'_> {
    #[inline]
    fn send(&mut self, port: u32, frame: FrameId, at: Nanos) {
        match self.outlets.wires.get(port as usize) {
            Some(&wire) if wire != UNPLUGGED => self.fabric.transmit(at, wire, frame),
            _ => {
                self.fabric.frames.release(frame);
                if let Some(count) = self.outlets.unplugged.get_mut(port as usize) {
                    *count += 1;
                }
            }
        }
    }
}

impl Switch {
    pub(crate) fn new(name: &str, device: Device, entity: EntityId) -> Switch {
        let ports = device::config::PORT_MAX as usize + 1;
        Switch {
            name: name.to_owned(),
            device,
            entity,
            outlets: Outlets {
                wires: vec![UNPLUGGED; ports],
                unplugged: vec![0; ports],
            },
        }
    }

    pub(crate) fn plug(&mut self, port: u32, wire: u32) {
        self.outlets.wires[port as usize] = wire;
    }

    /// A frame's last bit arrived at `port`. What left before has left; an idle line starts with it at once.
    #[inline]
    pub(crate) fn receive(&mut self, now: Nanos, port: u32, frame: FrameId, fabric: &mut Fabric) {
        if self.device.next_due().is_some_and(|due| due <= now) {
            self.advance(now, fabric);
        }
        let buffer = fabric.frames.get_mut(frame);
        self.device.receive_buffer(now, port, buffer);
        if self.device.next_due().is_some_and(|due| due <= now) {
            self.advance(now, fabric);
        }
        fabric.calendar.set(self.entity, self.device.next_due());
    }

    /// It is due.
    #[inline]
    pub(crate) fn act(&mut self, now: Nanos, fabric: &mut Fabric) {
        self.advance(now, fabric);
        fabric
            .calendar
            .set_after_action(self.entity, self.device.next_due());
    }

    #[inline]
    fn advance(&mut self, now: Nanos, fabric: &mut Fabric) {
        let outlets = &mut self.outlets;
        self.device.advance(now, &mut Out { fabric, outlets });
    }

    pub(crate) fn report(&self) -> SwitchReport {
        let stats = self.device.stats();
        let drops = DropReason::ALL
            .iter()
            .map(|r| (r.name(), stats.dropped(*r)));
        SwitchReport {
            switch: self.name.clone(),
            received: stats.received,
            transmitted: stats.transmitted,
            copied: stats.copied,
            drops: drops.filter(|(_, packets)| *packets > 0).collect(),
        }
    }

    /// Packets and bytes that wait at a port, all queues.
    pub(crate) fn waiting(&self, port: u32) -> (u64, u64) {
        let usage = self.device.port_usage(port).unwrap_or_default();
        (usage.packets, usage.bytes)
    }

    /// Reports of all ports but the CPU port, ascending.
    pub(crate) fn port_reports(&self) -> impl Iterator<Item = PortReport> + '_ {
        let cpu = self.device.config().cpu_port;
        self.device
            .ports()
            .filter(move |port| Some(*port) != cpu)
            .filter_map(|port| self.port_report(port))
    }

    fn port_report(&self, port: u32) -> Option<PortReport> {
        let (config, stats) = (self.device.port(port)?, self.device.port_stats(port)?);
        let drops = Drops {
            queue_full: stats.refused(DropReason::QueueFull),
            port_full: stats.refused(DropReason::PortFull),
            buffer_full: stats.refused(DropReason::BufferFull),
        };
        let waiting = self.device.port_usage(port)?;
        Some(PortReport {
            switch: self.name.clone(),
            port,
            rate_bps: config.rate_bps,
            queue_packets: config.queue_limits.packets,
            tx_packets: stats.tx_packets,
            tx_bytes: stats.tx_bytes,
            rx_packets: stats.rx_packets,
            rx_bytes: stats.rx_bytes,
            refused_packets: stats.refused_packets,
            unplugged_packets: self.outlets.unplugged[port as usize],
            drops,
            waiting_packets: waiting.packets,
            waiting_bytes: waiting.bytes,
            waiting_cells: waiting.cells,
        })
    }
}
