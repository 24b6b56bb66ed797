// SPDX-License-Identifier: Apache-2.0
//! All links and switches of a topology, and the frames on their way: no I/O, the clock is an argument.
//!
//! Interfaces have numbers. A frame that comes in at one goes into the link or the switch's port that begins there; what
//! comes out at one is a [`Departure`]. Between two switches a frame never leaves the process.

use crate::capture::Captures;
use crate::lateness::Lateness;
use device::{Device, Nanos};
use fabric::{Actor, Fabric, FrameId, Outlet, Sink, Switch, Tap, Wire};
use netio::tx_batch::Departure;
use std::collections::VecDeque;
use traffic::calendar::EntityId;
use traffic::link::{Link, LinkOptionError, LinkOptions, LinkStreams};

/// Names of the directions, as in `links.json` and on the control socket.
pub const DIRECTIONS: [&str; 2] = ["a_to_b", "b_to_a"];

/// Frames that a direction can hold before its lists grow.
const FRAMES_AT_START: usize = 1024;
/// Frames for which memory is there from the start.
const FRAMES_READY: usize = 4096;
/// Events that one frame may bring about before all else gets its turn: frames may go round for ever.
const EVENTS_A_TURN: usize = 4096;
/// Frames that leave a direction at one instant before the other directions of that instant have their turn.
const EXITS_A_TURN: usize = 64;
/// Of a frame that no link carries.
const NO_WIRE: u32 = u32::MAX;

/// Where a frame goes that comes in at an interface.
#[derive(Clone, Copy, Debug, Default)]
enum Entrance {
    /// A checked configuration has none of these.
    #[default]
    Nowhere,
    Wire(u32),
    /// A switch's port, without a link between.
    Port {
        index: u32,
        port: u32,
    },
}

/// Where frames go that leave the network, and the clock by which they are late.
pub trait Outbox {
    /// Now.
    fn now(&self) -> Nanos;

    /// A frame leaves; who keeps it copies it.
    fn push(&mut self, departure: Departure, frame: &[u8]);
}

/// What is counted at a direction beside its link.
#[derive(Debug, Default)]
pub struct Counts {
    /// Frames that were due and could not be sent.
    pub dropped_unsent: u64,
    pub lateness: Lateness,
}

/// The links and switches of a topology.
pub struct Network {
    fabric: Fabric,
    /// None: it is not there now, and what reaches it is lost.
    switches: Vec<Option<Switch>>,
    /// Of the switches.
    entities: Vec<EntityId>,
    /// Of the links; `wires[2 * i]` of the fabric is a_to_b of link `i`, the next one b_to_a.
    names: Vec<String>,
    /// By wire.
    counts: Vec<Counts>,
    /// By interface.
    entrances: Vec<Entrance>,
    /// Where the ports of the switches lead: index of the switch, the port, where.
    plugs: Vec<(u32, u32, Outlet)>,
    /// The switches whose frames are parsed and not handled yet, a place for each frame, in order of arrival.
    ahead: VecDeque<u32>,
    pub(crate) captures: Captures,
    seed: u64,
    /// When the links began.
    begun: Nanos,
    now: Nanos,
}

impl Network {
    /// Room for switches that come later, and for so many frames on all links together; all chance comes from `seed` and the
    /// links' names.
    pub fn new(switches: usize, seed: u64, frames_max: usize) -> Network {
        let mut fabric = Fabric::default();
        fabric.frames.max = frames_max;
        fabric.frames.reserve(EXITS_A_TURN);
        let entity = |index| fabric.add_actor(Actor::Switch(index as u32));
        Network {
            entities: (0..switches).map(entity).collect(),
            fabric,
            switches: (0..switches).map(|_| None).collect(),
            names: Vec::new(),
            counts: Vec::new(),
            entrances: Vec::new(),
            plugs: Vec::new(),
            ahead: VecDeque::new(),
            captures: Captures::default(),
            seed,
            begun: 0,
            now: 0,
        }
    }

    /// Adds a link between the ends a and b.
    ///
    /// # Arguments
    /// * `options` - settings of a_to_b and of b_to_a.
    ///
    /// # Errors
    /// An option out of range, which a checked configuration does not have.
    pub fn add_link(
        &mut self,
        name: &str,
        ends: [Sink; 2],
        options: [&LinkOptions; 2],
    ) -> Result<(), LinkOptionError> {
        if self.names.is_empty() {
            let frames = &mut self.fabric.frames;
            frames.reserve(frames.max.min(FRAMES_READY));
        }
        self.names.push(name.to_owned());
        for (direction, of) in DIRECTIONS.into_iter().enumerate() {
            let streams = LinkStreams::new(self.seed, &format!("{name}/{of}"));
            let link = Link::new(options[direction].clone(), streams, FRAMES_AT_START)?;
            let wire = self.fabric.add_wire(link, ends[1 - direction]);
            self.counts.push(Counts::default());
            match ends[direction] {
                Sink::Interface(number) => self.enter(number, Entrance::Wire(wire)),
                Sink::Switch { index, port } => self.plugs.push((index, port, Outlet::Wire(wire))),
                Sink::Host(_) => {}
            }
        }
        Ok(())
    }

    /// Binds an interface to a switch's port, without a link between.
    pub fn bind(&mut self, interface: u32, index: u32, port: u32) {
        self.enter(interface, Entrance::Port { index, port });
        self.plugs.push((index, port, Outlet::Interface(interface)));
    }

    fn enter(&mut self, interface: u32, entrance: Entrance) {
        let number = interface as usize;
        let len = self.entrances.len().max(number + 1);
        self.entrances.resize(len, Entrance::Nowhere);
        self.entrances[number] = entrance;
    }

    /// The links begin at `now`: so do their series.
    pub fn begin(&mut self, now: Nanos) {
        self.begun = now;
        for wire in &mut self.fabric.wires {
            wire.link.begin(now);
        }
    }

    // ---- frames -------------------------------------------------------------------------------------------

    /// A frame has come in at an interface at the instant `arrival`: does all that is due until then, and then what the frame
    /// brings about. Where it pays, frames are parsed before those that came before them are handled, so call `catch_up`
    /// behind the last one.
    ///
    /// # Returns
    /// False: more is due than one turn may do, and all else is to have its turn.
    #[inline]
    pub fn offer(
        &mut self,
        interface: usize,
        arrival: Nanos,
        bytes: &[u8],
        out: &mut impl Outbox,
    ) -> bool {
        let entrance = self.entrances.get(interface).copied().unwrap_or_default();
        let mut in_time = true;
        if let Entrance::Port { index, port } = entrance {
            while let Some(switch) = &mut self.switches[index as usize] {
                if !switch.device.ahead_pays() {
                    break;
                }
                if switch.device.parse_ahead(arrival, port, bytes) {
                    self.ahead.push_back(index);
                    return in_time;
                }
                in_time &= self.handle_first(out);
            }
        }
        in_time &= self.catch_up(out) & self.advance(arrival, out);
        match entrance {
            Entrance::Wire(wire) => {
                let frame = self.fabric.frames.copy_of(bytes);
                self.fabric.transmit(arrival, wire, frame);
            }
            Entrance::Port { index, port } => {
                if let Some(switch) = &mut self.switches[index as usize] {
                    let receive =
                        |device: &mut Device, _: &mut _| device.receive(arrival, port, bytes);
                    switch.receive_with(arrival, &mut self.fabric, receive);
                }
            }
            Entrance::Nowhere => {}
        }
        in_time
    }

    /// Handles the frames that are parsed and not handled yet; as `offer`.
    pub fn catch_up(&mut self, out: &mut impl Outbox) -> bool {
        for &index in &self.ahead {
            if let Some(switch) = &mut self.switches[index as usize] {
                switch.device.warm_ahead();
            }
        }
        let mut in_time = true;
        while !self.ahead.is_empty() {
            in_time &= self.handle_first(out);
        }
        in_time
    }

    /// Handles the first of them, and what is due before it.
    fn handle_first(&mut self, out: &mut impl Outbox) -> bool {
        let index = self.ahead.pop_front().unwrap_or_default() as usize;
        let first = self.switches[index].as_ref();
        let Some(arrival) = first.and_then(|switch| switch.device.next_ahead()) else {
            return true;
        };
        let in_time = self.advance(arrival, out);
        if let Some(switch) = &mut self.switches[index] {
            let receive = |device: &mut Device, _: &mut _| device.receive_next();
            switch.receive_with(arrival, &mut self.fabric, receive);
        }
        in_time
    }

    /// Does all that is due until `until`, each at its instant; as `offer`.
    #[inline]
    pub fn advance(&mut self, until: Nanos, out: &mut impl Outbox) -> bool {
        let (mut left, before) = (EVENTS_A_TURN, self.now);
        loop {
            while let Some((_, interface, frame)) = self.fabric.leaving.pop_front() {
                let wire = NO_WIRE;
                out.push(
                    Departure { interface, wire },
                    self.fabric.frames.get(frame).as_ref(),
                );
                self.fabric.frames.release(frame);
            }
            let due = self.fabric.calendar.peek();
            let Some((at, entity)) = due.filter(|due| due.0 <= until) else {
                self.now = self.now.max(until);
                return true;
            };
            if left == 0 {
                // What goes round without any delay must not stop the clock: it goes on in the present, behind all else.
                if self.now == before {
                    self.now = until;
                }
                return false;
            }
            left -= 1;
            self.now = self.now.max(at);
            match self.fabric.actors[entity as usize] {
                Actor::Wire(wire) => self.deliver(wire, out),
                Actor::Switch(index) => {
                    if let Some(switch) = &mut self.switches[index as usize] {
                        switch.act(self.now, &mut self.fabric);
                    }
                }
                _ => self.fabric.calendar.set(entity, None),
            }
        }
    }

    /// Hands over what has left a wire.
    #[inline]
    fn deliver(&mut self, wire: u32, out: &mut impl Outbox) {
        let Wire { to, entity, .. } = self.fabric.wires[wire as usize];
        for _ in 0..EXITS_A_TURN {
            let link = &mut self.fabric.wires[wire as usize].link;
            let Some(exit) = link.poll(self.now) else {
                break;
            };
            if exit.dropped.is_none() {
                self.fabric.show_exit(wire, exit.at, exit.item);
                let counts = &mut self.counts[wire as usize];
                counts.lateness.add(out.now().saturating_sub(exit.at));
                if let Sink::Interface(interface) = to {
                    let frame = self.fabric.frames.get(exit.item);
                    out.push(Departure { interface, wire }, frame.as_ref());
                } else if !self.hand_over(to, exit.item) {
                    self.counts[wire as usize].dropped_unsent += 1;
                }
            }
            self.fabric.frames.release(exit.item);
        }
        // What is still due comes behind the others of that instant: no direction can keep them waiting.
        let next = self.fabric.wires[wire as usize].link.next_event();
        self.fabric.calendar.set_after_action(entity, next);
    }

    /// False: the switch is not there, or its port is down.
    #[inline]
    fn hand_over(&mut self, to: Sink, frame: FrameId) -> bool {
        let Sink::Switch { index, port } = to else {
            return false;
        };
        match &mut self.switches[index as usize] {
            Some(switch) if switch.device.port_is_up(port) == Some(true) => {
                switch.receive(self.now, port, frame, &mut self.fabric);
                true
            }
            _ => false,
        }
    }

    /// A frame of so many bytes that left could not be sent.
    #[cold]
    pub fn count_failure(&mut self, departure: Departure, bytes: u64) {
        if let Some(counts) = self.counts.get_mut(departure.wire as usize) {
            counts.dropped_unsent += 1;
            return;
        }
        // No link is behind the port: the frame did not leave the switch.
        let entrance = self.entrances.get(departure.interface as usize);
        if let Some(&Entrance::Port { index, port }) = entrance {
            if let Some(device) = self.device(index as usize) {
                device.count_transmit_failures(port, 1, bytes);
            }
        }
    }

    /// The next instant at which something is due.
    #[inline]
    pub fn next_event(&self) -> Option<Nanos> {
        self.fabric.calendar.peek().map(|(at, _)| at)
    }

    /// Never more frames under way than so many.
    pub fn limit_frames(&mut self, most: usize) {
        let frames = &mut self.fabric.frames;
        frames.max = frames.max.min(most);
    }

    /// Frames under way, and the most that may be.
    pub fn frames(&self) -> (usize, usize) {
        (self.fabric.frames.in_use(), self.fabric.frames.max)
    }

    // ---- links --------------------------------------------------------------------------------------------

    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// A direction: `2 * link`, plus 1 for b_to_a.
    pub fn direction(&self, direction: usize) -> (&Wire, &Counts) {
        (&self.fabric.wires[direction], &self.counts[direction])
    }

    /// What sees the frames of a direction.
    pub(crate) fn taps(&mut self, direction: usize) -> &mut Vec<Tap> {
        &mut self.fabric.wires[direction].taps
    }

    /// Changes a direction.
    pub fn change<R>(
        &mut self,
        direction: usize,
        change: impl FnOnce(&mut Link<FrameId>) -> R,
    ) -> R {
        let result = change(&mut self.fabric.wires[direction].link);
        self.fabric.refresh_wire(direction as u32);
        result
    }

    // ---- switches -----------------------------------------------------------------------------------------

    /// A switch is there from now on; the wires of its ports begin and end at it.
    pub fn start(&mut self, index: usize, name: &str, mut device: Device) {
        device.begin(self.begun);
        let mut switch = Switch::new(name, device, self.entities[index]);
        for &(of, port, outlet) in &self.plugs {
            if of as usize == index {
                switch.plug(port, outlet);
            }
        }
        self.switches[index] = Some(switch);
        self.refresh(index);
    }

    /// A switch is gone, with all that waits in it; None: it was not there.
    pub fn stop(&mut self, index: usize) -> Option<Device> {
        let switch = self.switches[index].take()?;
        self.fabric.calendar.set(switch.entity, None);
        Some(switch.device)
    }

    /// The switches that are there.
    pub fn devices(&self) -> impl Iterator<Item = &Device> {
        self.switches.iter().flatten().map(|one| &one.device)
    }

    /// A link begins at the interface; else it is a switch's port.
    pub fn is_link(&self, interface: usize) -> bool {
        matches!(self.entrances.get(interface), Some(Entrance::Wire(_)))
    }

    /// A switch, for its control plane; call `refresh` after.
    pub fn device(&mut self, index: usize) -> Option<&mut Device> {
        self.switches[index].as_mut().map(|one| &mut one.device)
    }

    /// A device may have been changed: when it is due.
    pub fn refresh(&mut self, index: usize) {
        if let Some(switch) = &self.switches[index] {
            let due = switch.device.next_due();
            self.fabric.calendar.set(switch.entity, due);
        }
    }
}
