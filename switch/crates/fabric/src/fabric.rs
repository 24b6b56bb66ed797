// SPDX-License-Identifier: Apache-2.0
//! What every node sends into: the links' directions with the frames on them, the frames' buffers, and the calendar of all that acts.

use device::{FrameBuffer, Nanos};
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

/// Where a tap sees the frames of a direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passage {
    /// As they come to the link, before bit errors; those that its queue refuses are not seen.
    Entry,
    /// As they are delivered.
    Exit,
}

impl Passage {
    /// What somebody at an end of a link sees of a direction; 0: of a_to_b, at end a.
    pub fn at_end(end: usize, direction: usize) -> Passage {
        match end == direction {
            true => Passage::Entry,
            false => Passage::Exit,
        }
    }
}

/// Gets the instant and the bytes of a frame.
pub type See = Box<dyn FnMut(Nanos, &[u8]) + Send>;

/// Sees the frames of a direction; changes nothing.
pub struct Tap {
    pub passage: Passage,
    /// By which it is taken away again.
    pub id: u64,
    pub see: See,
}

/// A direction of a link.
#[repr(C, align(64))]
pub struct Wire {
    pub taps: Vec<Tap>,
    pub to: Sink,
    pub entity: EntityId,
    /// What it carries comes from another fabric, in portions.
    pub is_fed: bool,
    pub link: Link<FrameId>,
    /// Frames that found as many under way as may be.
    pub dropped_no_memory: u64,
}

impl Wire {
    fn show(&mut self, passage: Passage, at: Nanos, frame: &[u8]) {
        let taps = self.taps.iter_mut();
        for tap in taps.filter(|tap| tap.passage == passage) {
            (tap.see)(at, frame);
        }
    }
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
    /// A frame for taps, as it was before bit errors.
    untouched: Vec<u8>,
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
            taps: Vec::new(),
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
        let index = wire as usize;
        let wire = &mut self.wires[index];
        if self.frames.in_use() > self.frames.max {
            wire.dropped_no_memory += 1;
            self.frames.release(frame);
            return;
        }
        if wire.link.is_plain(now) && wire.taps.is_empty() {
            let len_bytes = self.frames.get(frame).as_ref().len();
            if !wire.link.pass(now, len_bytes, frame) {
                return;
            }
        } else {
            self.put_all(now, index, frame);
        }
        let wire = &self.wires[index];
        let next = wire.link.next_event();
        if next == Some(now) && matches!(wire.to, Sink::Host(_)) {
            self.at_host = Some(frame);
        }
        self.calendar.set(wire.entity, next);
    }

    /// Puts a frame on a wire, and its copy if chance makes one.
    #[inline(never)]
    fn put_all(&mut self, now: Nanos, wire: usize, frame: FrameId) {
        let copy = self.wires[wire].link.draw_duplicate();
        let copy = copy.then(|| self.frames.duplicate(frame));
        self.put(now, wire, frame);
        if let Some(copy) = copy {
            self.put(now, wire, copy);
        }
    }

    #[inline]
    fn put(&mut self, now: Nanos, wire: usize, frame: FrameId) {
        let wire = &mut self.wires[wire];
        let buffer = self.frames.get_mut(frame);
        if !wire.taps.is_empty() {
            self.untouched.clear();
            self.untouched.extend_from_slice(buffer.as_ref());
        }
        if wire.link.transmit(now, buffer, frame).is_err() {
            self.frames.release(frame);
        } else if !wire.taps.is_empty() {
            wire.show(Passage::Entry, now, &self.untouched);
        }
    }

    /// A frame that has left a wire is to be delivered: its taps see it.
    #[inline]
    pub fn show_exit(&mut self, wire: u32, at: Nanos, frame: FrameId) {
        let wire = &mut self.wires[wire as usize];
        if !wire.taps.is_empty() {
            wire.show(Passage::Exit, at, self.frames.get(frame).as_ref());
        }
    }

    /// The link's settings changed: when it is due may have as well.
    pub fn refresh_wire(&mut self, wire: u32) {
        let wire = &self.wires[wire as usize];
        self.calendar.set(wire.entity, wire.link.next_event());
    }
}

/// A frame that is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameId(u32);

/// Buffers of the frames that are under way, for reuse: links and events carry a number, never bytes.
pub struct Frames {
    buffers: Vec<FrameBuffer>,
    free: Vec<u32>,
    /// A frame beyond so many is lost where it would enter a link.
    pub max: usize,
}

impl Default for Frames {
    fn default() -> Frames {
        Frames {
            buffers: Vec::new(),
            free: Vec::new(),
            max: usize::MAX,
        }
    }
}

impl Frames {
    /// A buffer, whatever frame was in it.
    #[inline]
    pub fn take(&mut self) -> FrameId {
        match self.free.pop() {
            Some(number) => FrameId(number),
            None => self.grow(),
        }
    }

    /// Makes buffers for so many frames, so that nothing is allocated as long as no more are under way.
    pub fn reserve(&mut self, frames: usize) {
        let missing = frames.saturating_sub(self.free.len());
        for _ in 0..missing {
            let frame = self.grow();
            self.release(frame);
        }
    }

    /// Buffers that hold a frame.
    #[inline]
    pub fn in_use(&self) -> usize {
        self.buffers.len() - self.free.len()
    }

    #[cold]
    fn grow(&mut self) -> FrameId {
        self.buffers.push(FrameBuffer::default());
        self.free.reserve(self.buffers.len());
        FrameId(self.buffers.len() as u32 - 1)
    }

    #[inline]
    pub fn get(&self, id: FrameId) -> &FrameBuffer {
        &self.buffers[id.0 as usize]
    }

    #[inline]
    pub fn get_mut(&mut self, id: FrameId) -> &mut FrameBuffer {
        &mut self.buffers[id.0 as usize]
    }

    /// Has the headers of a frame come into the cache.
    #[inline]
    pub fn prefetch(&self, id: FrameId) {
        let frame = self.get(id).as_ref().as_ptr();
        device::prefetch_all(frame.addr(), 64);
    }

    /// A frame with these bytes.
    #[inline]
    pub fn copy_of(&mut self, bytes: &[u8]) -> FrameId {
        let id = self.take();
        self.get_mut(id).load(bytes);
        id
    }

    /// Another frame with the same bytes.
    #[cold]
    pub fn duplicate(&mut self, id: FrameId) -> FrameId {
        let copy = self.take();
        let mut buffer = std::mem::take(self.get_mut(copy));
        buffer.load(self.get(id).as_ref());
        *self.get_mut(copy) = buffer;
        copy
    }

    /// The frame is no more.
    #[inline]
    pub fn release(&mut self, id: FrameId) {
        self.free.push(id.0);
    }
}
