// SPDX-License-Identifier: Apache-2.0
//! A switch of the network: a device, and which wire each of its ports sends into.

use crate::fabric::Fabric;
use crate::frames::FrameId;
use device::{Device, Nanos, Packet, Transmit};
use traffic::calendar::EntityId;

/// No wire is plugged in.
const UNPLUGGED: u32 = u32::MAX;

/// A device, its entity in the calendar, and where its ports lead.
pub struct Switch {
    pub name: String,
    pub device: Device,
    pub entity: EntityId,
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
    /// A switch of which no port leads anywhere yet; `entity` is its own in the fabric's calendar.
    pub fn new(name: &str, device: Device, entity: EntityId) -> Switch {
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

    /// What leaves at `port` goes into `wire` from now on.
    pub fn plug(&mut self, port: u32, wire: u32) {
        self.outlets.wires[port as usize] = wire;
    }

    /// Frames that left at `port` where no wire is plugged in.
    pub fn unplugged(&self, port: u32) -> u64 {
        self.outlets.unplugged[port as usize]
    }

    /// A frame's last bit arrived at `port`. What left before has left; an idle line starts with it at once.
    #[inline]
    pub fn receive(&mut self, now: Nanos, port: u32, frame: FrameId, fabric: &mut Fabric) {
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
    pub fn act(&mut self, now: Nanos, fabric: &mut Fabric) {
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
}
