// SPDX-License-Identifier: Apache-2.0
//! What every node sends into: the links' directions with the frames on them, and the calendar of all that acts.

use crate::frames::{FrameId, Frames};
use device::Nanos;
use std::collections::VecDeque;
use traffic::calendar::{Calendar, EntityId, Moves};
use traffic::link::Link;

/// Who acts when an entity of the calendar is due.
#[derive(Clone, Copy, Debug)]
pub enum Actor {
    Switch(u32),
    /// A direction of a link.
    Wire(u32),
    /// The application of a flow.
    App(u32),
    /// The timer of a TCP connection.
    Timer(u32),
    /// The machine with the real hosts.
    Machine,
    Changes,
    Sampler,
}

/// Where a direction of a link ends.
#[derive(Clone, Copy, Debug)]
pub enum Sink {
    Switch {
        index: u32,
        port: u32,
    },
    Host(u32),
    /// An interface outside: of the machine with the real hosts, or of this computer.
    Interface(u32),
}

/// A direction of a link.
pub struct Wire {
    pub link: Link<FrameId>,
    pub to: Sink,
    pub entity: EntityId,
    /// What it carries comes from another fabric, in portions.
    pub is_fed: bool,
    /// Frames that found as many under way as may be.
    pub dropped_no_memory: u64,
}

/// The links' directions, the frames on them, and the calendar.
#[derive(Default)]
pub struct Fabric {
    pub calendar: Calendar,
    /// By entity.
    pub actors: Vec<Actor>,
    pub frames: Frames,
    pub wires: Vec<Wire>,
    /// Frames that switches have sent to interfaces: the instant, number of the interface, and the frame.
    pub leaving: VecDeque<(Nanos, u32, FrameId)>,
    /// A frame that was just sent to a host, over a wire without delay.
    pub at_host: Option<FrameId>,
}

impl Fabric {
    /// A new entity of the calendar.
    pub fn add_actor(&mut self, actor: Actor) -> EntityId {
        self.actors.push(actor);
        // Of flows and connections there may be thousands.
        self.calendar.add_entity(match actor {
            Actor::App(_) | Actor::Timer(_) => Moves::Seldom,
            _ => Moves::Often,
        })
    }

    /// A new direction of a link, which ends at `to`; returns its number.
    pub fn add_wire(&mut self, link: Link<FrameId>, to: Sink) -> u32 {
        let index = self.wires.len() as u32;
        let entity = self.add_actor(Actor::Wire(index));
        self.wires.push(Wire {
            link,
            to,
            entity,
            is_fed: false,
            dropped_no_memory: 0,
        });
        index
    }

    /// Puts a frame on a wire; the fabric owns it from here on.
    #[inline]
    pub fn transmit(&mut self, now: Nanos, wire: u32, frame: FrameId) {
        let wire = &mut self.wires[wire as usize];
        if self.frames.in_use() > self.frames.max {
            wire.dropped_no_memory += 1;
            self.frames.release(frame);
            return;
        }
        let buffer = self.frames.get_mut(frame);
        if wire.link.transmit(now, buffer, frame).is_err() {
            self.frames.release(frame);
        }
        let next = wire.link.next_event();
        if next == Some(now) && matches!(wire.to, Sink::Host(_)) {
            self.at_host = Some(frame);
        }
        self.calendar.set(wire.entity, next);
    }

    /// The link's settings changed: when it is due may have as well.
    pub fn refresh_wire(&mut self, wire: u32) {
        let wire = &self.wires[wire as usize];
        self.calendar.set(wire.entity, wire.link.next_event());
    }
}
