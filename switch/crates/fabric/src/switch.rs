// SPDX-License-Identifier: Apache-2.0
//! A switch of the network: a device, and which wire each of its ports sends into.

use crate::fabric::Fabric;
use crate::fabric::FrameId;
use device::{Device, Nanos, Packet, Transmit};
use traffic::calendar::EntityId;

/// Where a port of a switch leads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Outlet {
    #[default]
    Nowhere,
    /// Into a direction of a link.
    Wire(u32),
    /// To an interface outside or to another fabric, without a link between.
    Interface(u32),
}

/// A device, its entity in the calendar, and where its ports lead.
pub struct Switch {
    pub name: String,
    pub device: Device,
    pub entity: EntityId,
    outlets: Outlets,
}

/// By port number: where it leads, and frames that left where it leads nowhere.
#[derive(Default)]
struct Outlets {
    ports: Vec<Outlet>,
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
        match self.outlets.ports.get(port as usize) {
            Some(&Outlet::Wire(wire)) => self.fabric.transmit(at, wire, frame),
            Some(&Outlet::Interface(interface)) => {
                self.fabric.leaving.push_back((at, interface, frame));
            }
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
                ports: vec![Outlet::Nowhere; ports],
                unplugged: vec![0; ports],
            },
        }
    }

    /// What leaves at `port` goes there from now on.
    pub fn plug(&mut self, port: u32, outlet: Outlet) {
        self.outlets.ports[port as usize] = outlet;
    }

    /// Frames that left at `port` where no wire is plugged in.
    pub fn unplugged(&self, port: u32) -> u64 {
        self.outlets.unplugged[port as usize]
    }

    /// A frame's last bit arrived at `port`. What left before has left; an idle line starts with it at once.
    #[inline]
    pub fn receive(&mut self, now: Nanos, port: u32, frame: FrameId, fabric: &mut Fabric) {
        self.receive_with(now, fabric, |device, fabric| {
            device.receive_buffer(now, port, fabric.frames.get_mut(frame));
        });
    }

    /// The same for a frame that `receive` hands to the device.
    #[inline]
    pub fn receive_with(
        &mut self,
        now: Nanos,
        fabric: &mut Fabric,
        receive: impl FnOnce(&mut Device, &mut Fabric),
    ) {
        self.catch_up(now, fabric);
        receive(&mut self.device, fabric);
        let due = self.catch_up(now, fabric);
        fabric.calendar.set(self.entity, due);
    }

    /// It is due.
    #[inline]
    pub fn act(&mut self, now: Nanos, fabric: &mut Fabric) {
        let due = self.advance(now, fabric);
        fabric.calendar.set_after_action(self.entity, due);
    }

    /// Does what is due by `now`, if anything is; when something is due next.
    #[inline]
    fn catch_up(&mut self, now: Nanos, fabric: &mut Fabric) -> Option<Nanos> {
        match self.device.next_due() {
            Some(due) if due <= now => self.advance(now, fabric),
            due => due,
        }
    }

    #[inline]
    fn advance(&mut self, now: Nanos, fabric: &mut Fabric) -> Option<Nanos> {
        let outlets = &mut self.outlets;
        self.device.advance(now, &mut Out { fabric, outlets })
    }
}
