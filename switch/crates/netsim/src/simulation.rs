// SPDX-License-Identifier: Apache-2.0
//! `Simulation`: what the outside calls — time, switches, changes while it runs, and results.

use crate::build;
use crate::calendar::EntityId;
use crate::config::{Change, Config, Direction, LinkSettings};
use crate::error::{listed, ConfigError, RequestError};
use crate::hosts::Hosts;
use crate::machine::RealHosts;
use crate::results::{FlowReport, HostReport, LinkReport, PortReport, SwitchReport, Transfer};
use crate::series::Sampler;
use device::{Device, Nanos, PortChange};
use fabric::{Actor, Fabric, FrameId, Sink, Switch, Wire};
use traffic::link::{Link, LinkOptionError, SpikeBlocks};

/// A network in virtual time.
pub struct Simulation {
    pub(crate) now: Nanos,
    pub(crate) fabric: Fabric,
    pub(crate) switches: Vec<Switch>,
    pub(crate) hosts: Hosts,
    pub(crate) links: Vec<LinkEnds>,
    pub(crate) changes: Changes,
    pub(crate) sampler: Option<Sampler>,
    pub(crate) machine: Option<Box<RealHosts>>,
}

/// A link: its wires a_to_b and b_to_a.
pub(crate) struct LinkEnds {
    pub(crate) name: String,
    pub(crate) wires: [u32; 2],
}

/// What is still to change, in order of time.
pub(crate) struct Changes {
    pub(crate) entity: EntityId,
    pub(crate) list: Vec<Change>,
    pub(crate) done: usize,
    /// The first that could not be made.
    pub(crate) refused: Option<RequestError>,
}

impl Simulation {
    /// Builds the network; reads the programs' files.
    ///
    /// # Errors
    /// [`ConfigError`] with the path of the first fault; files and registers are checked as well.
    pub fn new(config: &Config) -> Result<Simulation, ConfigError> {
        config.check()?;
        build::simulation(config)
    }

    /// As `new`, from JSON (module `config`).
    ///
    /// # Errors
    /// As `new`.
    pub fn from_json(text: &str) -> Result<Simulation, ConfigError> {
        build::simulation(&Config::from_json(text)?)
    }

    // ---- time ---------------------------------------------------------------------------------------------

    /// The present.
    pub fn now(&self) -> Nanos {
        self.now
    }

    /// No event comes before this instant; None: none will come.
    pub fn next_event(&mut self) -> Option<Nanos> {
        self.refresh();
        self.fabric.calendar.peek().map(|(at, _)| at.max(self.now))
    }

    /// Lets everything happen that is due until `t`, that instant included; it is `t` then. Returns the present.
    pub fn run_until(&mut self, t: Nanos) -> Nanos {
        self.run(t, false)
    }

    /// As `run_until`, but stops after the event by which a switch has a message for its controller.
    /// Returns the present: earlier than `t` when there is a message.
    pub fn run_until_message(&mut self, t: Nanos) -> Nanos {
        self.run(t, true)
    }

    /// True when a switch has messages (digests, packet-ins, idle time-outs) that were not taken.
    pub fn has_messages(&self) -> bool {
        self.switches.iter().any(|s| s.device.has_events())
    }

    fn run(&mut self, t: Nanos, stop_on_messages: bool) -> Nanos {
        self.refresh();
        if stop_on_messages && self.has_messages() {
            return self.now;
        }
        while let Some((at, entity)) = self.fabric.calendar.peek() {
            if at > t {
                break;
            }
            self.now = self.now.max(at);
            let touched = self.act(entity, t);
            if let Some(frame) = self.fabric.at_host.take() {
                self.hosts.prefetch(self.fabric.frames.get(frame).as_ref());
            }
            if stop_on_messages && touched.is_some_and(|s| self.switches[s].device.has_events()) {
                return self.now;
            }
        }
        self.now = self.now.max(t);
        self.read_machine();
        self.now
    }

    /// Takes in what the real hosts have reported.
    fn read_machine(&mut self) {
        if let Some(machine) = &mut self.machine {
            machine.read_samples();
            self.hosts.transfers.extend(machine.take_finished());
        }
    }

    /// One event; the switch that it touched.
    #[inline]
    fn act(&mut self, entity: EntityId, until: Nanos) -> Option<usize> {
        match self.fabric.actors[entity as usize] {
            Actor::Wire(wire) => return self.deliver(wire),
            Actor::Switch(index) => {
                let index = index as usize;
                self.switches[index].act(self.now, &mut self.fabric);
                return Some(index);
            }
            Actor::App(flow) => self.hosts.act(self.now, flow, &mut self.fabric),
            Actor::Timer(slot) => self.hosts.on_timer(self.now, slot, &mut self.fabric),
            Actor::Machine => {
                if let Some(machine) = &mut self.machine {
                    machine.act(self.now, until, &mut self.fabric, &mut self.hosts.hosts);
                }
            }
            Actor::Changes => self.change(),
            Actor::Sampler => {
                self.read_machine();
                if let Some(sampler) = &mut self.sampler {
                    let machine = self.machine.as_deref();
                    sampler.sample(self.now, &self.switches, &self.hosts, machine);
                    let next = sampler.next(self.now);
                    self.fabric.calendar.set_after_action(entity, next);
                }
            }
        }
        None
    }

    /// Hands over what has left a wire.
    #[inline]
    fn deliver(&mut self, wire: u32) -> Option<usize> {
        let (now, index) = (self.now, wire as usize);
        let Wire { entity, to, .. } = self.fabric.wires[index];
        let mut exit = self.fabric.wires[index].link.poll(now);
        let next = loop {
            if let Some(exit) = exit {
                if exit.dropped.is_none() {
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
            exit = link.poll(now);
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
    fn refresh(&mut self) {
        for switch in &self.switches {
            self.fabric
                .calendar
                .set(switch.entity, switch.device.next_due());
        }
    }

    /// What went wrong with the machine of the real hosts; it takes no part from then on.
    pub fn machine_failure(&self) -> Option<&str> {
        self.machine.as_ref()?.failure()
    }

    /// The first of the configuration's changes that could not be made since the last call.
    pub fn take_refused_change(&mut self) -> Option<RequestError> {
        self.changes.refused.take()
    }

    /// Ends the machine of the real hosts, if there is one; nothing is asked of the simulation afterwards.
    pub fn end_machine(&mut self) {
        self.machine = None;
    }

    // ---- switches -----------------------------------------------------------------------------------------

    /// Names of the switches, in the order of the configuration.
    pub fn switch_names(&self) -> impl Iterator<Item = &str> {
        self.switches.iter().map(|switch| switch.name.as_str())
    }

    /// A switch by name.
    pub fn switch(&self, name: &str) -> Option<&Device> {
        let switch = self.switches.iter().find(|s| s.name == name)?;
        Some(&switch.device)
    }

    /// A switch by name, for its control plane: tables, program, packet-out at `now()`.
    pub fn switch_mut(&mut self, name: &str) -> Option<&mut Device> {
        let switch = self.switches.iter_mut().find(|s| s.name == name)?;
        Some(&mut switch.device)
    }

    // ---- changes while it runs ----------------------------------------------------------------------------

    /// Changes settings of a link from now on.
    ///
    /// # Errors
    /// [`RequestError`]: unknown link, or a setting out of its range; nothing has changed then.
    pub fn set_link(
        &mut self,
        link: &str,
        direction: Direction,
        settings: &LinkSettings,
    ) -> Result<(), RequestError> {
        let wires = self.changeable_wires(link, direction)?;
        let invalid = |e| RequestError::Invalid(format!("link \"{link}\": {e}"));
        let changed = wires.into_iter().map(|wire| {
            let before = self.fabric.wires[wire as usize].link.options();
            Ok((wire, settings.applied_to(before)?))
        });
        // All directions are checked before one is changed.
        let changed: Result<Vec<_>, LinkOptionError> = changed.collect();
        for (wire, options) in changed.map_err(invalid)? {
            let link = &mut self.fabric.wires[wire as usize].link;
            link.set(self.now, options).map_err(invalid)?;
            self.fabric.refresh_wire(wire);
        }
        Ok(())
    }

    /// A delay spike of a link: nothing is delivered for `duration`, then all that is due at once; or its line is blocked.
    ///
    /// # Errors
    /// [`RequestError`]: unknown link.
    pub fn spike(
        &mut self,
        link: &str,
        direction: Direction,
        duration: Nanos,
        blocks: SpikeBlocks,
    ) -> Result<(), RequestError> {
        self.each_wire(link, direction, |wire, now| {
            wire.spike(now, duration, blocks);
        })
    }

    /// A delay spike of a switch port: its line is blocked for `duration`, packets wait in its queues.
    ///
    /// # Errors
    /// [`RequestError`]: unknown switch or port.
    pub fn spike_port(
        &mut self,
        switch: &str,
        port: u32,
        duration: Nanos,
    ) -> Result<(), RequestError> {
        let now = self.now;
        self.port_of(switch, port)?
            .spike(now, port, duration)
            .map_err(|e| RequestError::Invalid(format!("switch \"{switch}\": {}", e.message)))?;
        self.refresh();
        Ok(())
    }

    /// An outage: what enters the medium for `duration` is lost.
    ///
    /// # Errors
    /// [`RequestError`]: unknown link.
    pub fn outage(
        &mut self,
        link: &str,
        direction: Direction,
        duration: Nanos,
    ) -> Result<(), RequestError> {
        self.each_wire(link, direction, |wire, now| wire.outage(now, duration))
    }

    /// Changes options of a switch port from now on; those that are None stay.
    ///
    /// # Errors
    /// [`RequestError`]: unknown switch or port, or a setting out of its range; nothing has changed then.
    pub fn set_port(
        &mut self,
        switch: &str,
        port: u32,
        change: &PortChange,
    ) -> Result<(), RequestError> {
        let now = self.now;
        let device = self.port_of(switch, port)?;
        let config = device.port(port).copied().unwrap_or_default();
        device
            .set_port(now, port, change.applied_to(&config))
            .map_err(|e| RequestError::Invalid(format!("switch \"{switch}\": {}", e.message)))?;
        self.refresh();
        Ok(())
    }

    /// The switch that has this port.
    fn port_of(&mut self, switch: &str, port: u32) -> Result<&mut Device, RequestError> {
        let known = listed(self.switches.iter().map(|s| s.name.as_str()));
        let device = self
            .switch_mut(switch)
            .ok_or_else(|| RequestError::Unknown {
                what: "switch",
                name: switch.to_owned(),
                known,
            })?;
        if device.port(port).is_none() {
            let known = device.ports().map(|p| p.to_string()).collect::<Vec<_>>();
            return Err(RequestError::Unknown {
                what: "port",
                name: port.to_string(),
                known: known.join(", "),
            });
        }
        Ok(device)
    }

    fn each_wire(
        &mut self,
        link: &str,
        direction: Direction,
        change: impl Fn(&mut Link<FrameId>, Nanos),
    ) -> Result<(), RequestError> {
        for wire in self.changeable_wires(link, direction)? {
            change(&mut self.fabric.wires[wire as usize].link, self.now);
            self.fabric.refresh_wire(wire);
        }
        Ok(())
    }

    /// The wires of a link, unless the real hosts run ahead: they have received already what is due on their links, so no link may change.
    fn changeable_wires(&self, link: &str, direction: Direction) -> Result<Vec<u32>, RequestError> {
        let given_until = self.machine.as_ref().map_or(0, |real| real.given_until());
        if given_until > self.now + 1 {
            let (now, first) = (self.now, given_until - 1);
            return Err(RequestError::Invalid(format!(
                "link \"{link}\" cannot change at {now} ns: the real hosts run ahead; run the simulation until {first} ns first"
            )));
        }
        self.wires(link, direction)
    }

    fn wires(&self, link: &str, direction: Direction) -> Result<Vec<u32>, RequestError> {
        match self.links.iter().find(|ends| ends.name == link) {
            Some(ends) => Ok(ends.wires[direction.indices()].to_vec()),
            None => Err(RequestError::Unknown {
                what: "link",
                name: link.to_owned(),
                known: listed(self.links.iter().map(|ends| ends.name.as_str())),
            }),
        }
    }

    /// Does the changes that are due.
    fn change(&mut self) {
        while let Some(change) = self.changes.list.get(self.changes.done).cloned() {
            if change.at_ns > self.now {
                break;
            }
            self.changes.done += 1;
            // Names and ranges were checked when the network was built; but a caller may have changed what they go with.
            if let Err(error) = self.apply(&change) {
                let text = format!("the change at {} ns was not made: {error}", change.at_ns);
                let refused = &mut self.changes.refused;
                refused.get_or_insert(RequestError::Invalid(text));
            }
        }
        let next = self.changes.list.get(self.changes.done);
        self.fabric
            .calendar
            .set_after_action(self.changes.entity, next.map(|change| change.at_ns));
    }

    fn apply(&mut self, change: &Change) -> Result<(), RequestError> {
        if let Some(link) = &change.link {
            let direction = change.direction.unwrap_or_default();
            if let Some(settings) = &change.set {
                self.set_link(link, direction, settings)?;
            }
            if let Some(duration) = change.spike_ns {
                let blocks = change.spike_blocks.unwrap_or_default();
                self.spike(link, direction, duration, blocks)?;
            }
            if let Some(duration) = change.outage_ns {
                self.outage(link, direction, duration)?;
            }
        }
        match (&change.switch, change.port) {
            (Some(switch), Some(port)) => {
                let settings = PortChange {
                    rate_bps: change.rate_bps,
                    queue_packets: change.queue_packets,
                    ..PortChange::default()
                };
                self.set_port(switch, port, &settings)?;
                match change.spike_ns {
                    Some(duration) => self.spike_port(switch, port, duration),
                    None => Ok(()),
                }
            }
            _ => Ok(()),
        }
    }

    // ---- results ------------------------------------------------------------------------------------------

    /// Counts of all flows, in the order of the configuration.
    pub fn flows(&self) -> Vec<FlowReport> {
        let mut reports = self.hosts.flow_reports();
        for (place, report) in reports.iter_mut().enumerate() {
            if let Some(real) = self.machine.as_ref().and_then(|m| m.flow(place)) {
                real.show_in(report);
            }
        }
        reports
    }

    /// Counts of all switch ports but the CPU port.
    pub fn ports(&self) -> Vec<PortReport> {
        self.switches.iter().flat_map(PortReport::all_of).collect()
    }

    /// Counts of all switches.
    pub fn switches(&self) -> Vec<SwitchReport> {
        self.switches.iter().map(SwitchReport::of).collect()
    }

    /// Counts of both directions of all links.
    pub fn links(&self) -> Vec<LinkReport> {
        let of = |ends: &LinkEnds, i: usize| {
            let link = &self.fabric.wires[ends.wires[i] as usize].link;
            LinkReport::new(&ends.name, ["a_to_b", "b_to_a"][i], link)
        };
        self.links
            .iter()
            .flat_map(|ends| [of(ends, 0), of(ends, 1)])
            .collect()
    }

    /// Counts of all hosts.
    pub fn hosts(&self) -> Vec<HostReport> {
        self.hosts.host_reports()
    }

    /// Finished transfers, in the order in which they finished.
    pub fn transfers(&self) -> &[Transfer] {
        &self.hosts.transfers
    }

    /// Files (`bytes` applications) that are under way now.
    pub fn unfinished_transfers(&self) -> Vec<Transfer> {
        let mut found = self.hosts.unfinished_transfers(self.now());
        if let Some(machine) = &self.machine {
            found.extend_from_slice(machine.unfinished_transfers());
        }
        found
    }

    /// Columns of samples by name, all of the same length; the first is `t_ns`. None without `sample`.
    pub fn series(&self) -> impl Iterator<Item = (&str, &[u64])> {
        self.sampler.iter().flat_map(Sampler::columns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The binding lets other threads of Python run meanwhile.
    #[test]
    fn a_simulation_may_move_to_another_thread() {
        fn is_send<T: Send>() {}
        is_send::<Simulation>();
    }
}
