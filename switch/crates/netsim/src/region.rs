// SPDX-License-Identifier: Apache-2.0
//! A region: switches with their hosts and links, and a calendar. It acts alone until it is told to stand; what it sends to
//! other regions waits in its mail until then.
//!
//! The code that each frame goes through is twice as long as a processor's cache of instructions. So what few frames need is
//! in functions of its own, marked `cold` or `inline(never)`, here and in `device`, `fabric` and `traffic`.

use crate::calendar::EntityId;
use crate::hosts::{Hosts, Notice};
use crate::machine::RealHosts;
use device::{FrameBuffer, Nanos};
use fabric::{Actor, Fabric, FrameId, Sink, Switch, Wire};
use std::mem;

/// Events after which a region looks whether its time goes on: millions at one instant are those of frames that go round.
const EVENTS_A_LOOK: u64 = 1 << 22;

/// A thing of a region, by its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Member {
    pub(crate) region: usize,
    pub(crate) index: usize,
}

/// Why a region stands.
pub(crate) enum Stop {
    /// Nothing more is due.
    Time,
    /// A switch has a message for its controller.
    Message,
    /// It is the turn of what concerns the whole network: changes or samples.
    Global(EntityId),
    /// Its time does not go on.
    Endless,
}

/// What one region sends to another in a window. The frames' buffers are used again.
#[derive(Default)]
pub(crate) struct Mail {
    parcels: Vec<Parcel>,
    count: usize,
    notices: Vec<Notice>,
}

/// A frame for a wire of the region that it goes to.
struct Parcel {
    at: Nanos,
    wire: usize,
    frame: FrameBuffer,
}

/// Mail by the region that it goes to or comes from.
#[derive(Default)]
pub(crate) struct Post {
    mails: Vec<Mail>,
    /// Those that are not empty.
    used: Vec<usize>,
}

impl Post {
    /// Of so many regions.
    pub(crate) fn new(regions: usize) -> Post {
        let mut post = Post::default();
        post.mails.resize_with(regions, Mail::default);
        post
    }

    fn to(&mut self, region: usize) -> &mut Mail {
        let mail = &mut self.mails[region];
        if mail.count == 0 && mail.notices.is_empty() {
            self.used.push(region);
        }
        mail
    }

    /// The instant of its first frame.
    pub(crate) fn first(&self) -> Option<Nanos> {
        let mails = self.used.iter().map(|region| &self.mails[*region]);
        let firsts = mails.filter_map(|mail| mail.parcels[..mail.count].first());
        firsts.map(|parcel| parcel.at).min()
    }
}

/// Every region gets what the others have for it.
pub(crate) fn exchange(regions: &mut [Region]) {
    for from in 0..regions.len() {
        while let Some(to) = regions[from].outbox.used.pop() {
            let mail = mem::take(&mut regions[from].outbox.mails[to]);
            let inbox = &mut regions[to].inbox;
            inbox.used.push(from);
            let empty = mem::replace(&mut inbox.mails[from], mail);
            regions[from].outbox.mails[to] = empty;
        }
    }
}

impl Mail {
    /// Exchanges the frame for a buffer.
    fn put(&mut self, at: Nanos, wire: usize, frame: &mut FrameBuffer) {
        if self.count == self.parcels.len() {
            let frame = FrameBuffer::default();
            self.parcels.push(Parcel { at, wire, frame });
        }
        let parcel = &mut self.parcels[self.count];
        (parcel.at, parcel.wire) = (at, wire);
        mem::swap(&mut parcel.frame, frame);
        self.count += 1;
    }
}

#[derive(Default)]
pub(crate) struct Region {
    pub(crate) now: Nanos,
    pub(crate) fabric: Fabric,
    pub(crate) switches: Vec<Switch>,
    pub(crate) hosts: Hosts,
    pub(crate) machine: Option<Box<RealHosts>>,
    /// Wires of other regions, by the number of the interface that a switch of this one sends to.
    pub(crate) exits: Vec<Member>,
    pub(crate) inbox: Post,
    pub(crate) outbox: Post,
    /// What other regions send from this instant on may not have come yet.
    since: Nanos,
    events: u64,
    /// How many there were in the last window.
    pub(crate) busy: u64,
    /// The number of events at which it looks whether time goes on, and the present of the last look.
    look_at: u64,
    looked: Option<Nanos>,
    /// Who was to act when time did not go on any more.
    pub(crate) endless: Option<Actor>,
}

impl Region {
    /// A window: takes in what has come, lets happen what is due from `since` until `last`, and puts what leaves into the outbox.
    pub(crate) fn window(&mut self, since: Nanos, last: Nanos) {
        self.take_in();
        self.since = since;
        let before = self.events;
        self.run(last, false);
        self.busy = self.events - before;
        while let Some((at, exit, frame)) = self.fabric.leaving.pop_front() {
            let to = self.exits[exit as usize];
            let buffer = self.fabric.frames.get_mut(frame);
            self.outbox.to(to.region).put(at, to.index, buffer);
            self.fabric.frames.release(frame);
        }
        for (region, notice) in self.hosts.notices.drain(..) {
            self.outbox.to(region).notices.push(notice);
        }
    }

    /// Puts frames from other regions on their wires.
    pub(crate) fn take_in(&mut self) {
        for from in self.inbox.used.drain(..) {
            let mail = &mut self.inbox.mails[from];
            for parcel in &mut mail.parcels[..mem::take(&mut mail.count)] {
                let frame = self.fabric.frames.take();
                mem::swap(self.fabric.frames.get_mut(frame), &mut parcel.frame);
                self.fabric.transmit(parcel.at, parcel.wire as u32, frame);
            }
            for notice in mail.notices.drain(..) {
                self.hosts.expect(&notice);
            }
        }
    }

    /// Lets happen what is due until `last`, that instant included.
    pub(crate) fn run(&mut self, last: Nanos, stop_on_messages: bool) -> Stop {
        while let Some((at, entity)) = self.fabric.calendar.peek() {
            if at > last {
                break;
            }
            self.events += 1;
            self.now = self.now.max(at);
            let actor = self.fabric.actors[entity as usize];
            if let Actor::Changes | Actor::Sampler = actor {
                return Stop::Global(entity);
            }
            if self.events >= self.look_at && !self.goes_on() {
                self.endless = Some(actor);
                return Stop::Endless;
            }
            // The machine asks the calendar itself.
            if !matches!(actor, Actor::Machine) {
                self.fabric.calendar.begin(entity);
            }
            let touched = match actor {
                Actor::Wire(wire) => self.deliver(wire),
                Actor::Switch(index) => {
                    let index = index as usize;
                    self.switches[index].act(self.now, &mut self.fabric);
                    Some(index)
                }
                Actor::App(flow) => {
                    self.hosts.act(self.now, flow, &mut self.fabric);
                    None
                }
                Actor::Timer(slot) => {
                    self.hosts.on_timer(self.now, slot, &mut self.fabric);
                    None
                }
                Actor::Machine => {
                    if let Some(machine) = &mut self.machine {
                        machine.act(self.now, last, &mut self.fabric, &mut self.hosts.hosts);
                    }
                    None
                }
                Actor::Changes | Actor::Sampler => None,
            };
            self.fabric.calendar.end();
            if let Some(frame) = self.fabric.at_host.take() {
                self.hosts.prefetch(self.fabric.frames.get(frame).as_ref());
            }
            if stop_on_messages && touched.is_some_and(|s| self.switches[s].device.has_events()) {
                return Stop::Message;
            }
        }
        Stop::Time
    }

    /// The present is later than at the last look.
    #[cold]
    fn goes_on(&mut self) -> bool {
        self.look_at = self.events + EVENTS_A_LOOK;
        self.looked.replace(self.now) != Some(self.now)
    }

    /// Hands over what has left a wire; the switch that it touched.
    #[inline]
    fn deliver(&mut self, wire: u32) -> Option<usize> {
        let (now, index) = (self.now, wire as usize);
        let Wire {
            entity, to, is_fed, ..
        } = self.fabric.wires[index];
        let offered = if is_fed { self.since } else { now };
        let mut exit = self.fabric.wires[index].link.poll_offered(offered, now);
        let next = loop {
            if let Some(exit) = exit {
                if exit.dropped.is_none() {
                    self.fabric.show_exit(wire, exit.at, exit.item);
                    self.hand_over(to, exit.item);
                }
                self.fabric.frames.release(exit.item);
            }
            self.prefetch(index, to);
            let link = &mut self.fabric.wires[index].link;
            let next = link.next_event();
            if next.is_none_or(|at| at > now) {
                break next;
            }
            exit = link.poll_offered(offered, now);
        };
        if let (Sink::Interface(_), Some(machine)) = (to, &self.machine) {
            machine.reschedule(&mut self.fabric);
        }
        self.fabric.calendar.set_after_action(entity, next);
        match to {
            Sink::Switch { index, .. } => Some(index as usize),
            Sink::Host(_) | Sink::Interface(_) => None,
        }
    }

    /// Has what the wire's next frames will meet come into the cache: their headers and, where a host is next, its
    /// connection.
    #[inline]
    fn prefetch(&self, wire: usize, to: Sink) {
        let mut next = self.fabric.wires[wire].link.next_items();
        let (first, second) = (next.next(), next.next());
        if let (Some(&frame), Sink::Host(_)) = (first, to) {
            self.hosts.prefetch(self.fabric.frames.get(frame).as_ref());
        }
        if let Some(&frame) = second.or(first) {
            self.fabric.frames.prefetch(frame);
        }
    }

    /// A frame has come to the end of its wire.
    #[inline]
    fn hand_over(&mut self, to: Sink, frame: FrameId) {
        let now = self.now;
        match to {
            Sink::Switch { index, port } => {
                let switch = &mut self.switches[index as usize];
                switch.receive(now, port, frame, &mut self.fabric);
            }
            Sink::Host(host) => self.hosts.receive(now, host, frame, &mut self.fabric),
            Sink::Interface(interface) => {
                if let Some(machine) = &mut self.machine {
                    let frame = self.fabric.frames.get(frame);
                    machine.deliver(now, interface, frame.as_ref(), &mut self.hosts.hosts);
                }
            }
        }
    }

    /// The caller may have changed the devices: when they are due.
    pub(crate) fn refresh(&mut self) {
        for switch in &self.switches {
            let due = switch.device.next_due();
            self.fabric.calendar.set(switch.entity, due);
        }
    }

    /// A switch has messages (digests, packet-ins, idle time-outs) that were not taken.
    pub(crate) fn has_messages(&self) -> bool {
        self.switches.iter().any(|s| s.device.has_events())
    }
}
