// SPDX-License-Identifier: Apache-2.0
//! `Simulation`: what the outside calls — time, switches, changes while it runs, and results.

use crate::build;
use crate::calendar::{Calendar, EntityId};
use crate::capture::{Capture, CaptureReport};
use crate::config::{Change, Config, Direction, LinkSettings};
use crate::error::{listed, ConfigError, RequestError};
use crate::region::{Member, Region, Stop};
use crate::results::{FlowReport, HostReport, LinkReport, PortReport, SwitchReport, Transfer};
use crate::series::Sampler;
use device::{Device, Nanos, PortChange, Rate};
use fabric::{Actor, FrameId, Switch};
use rayon::ThreadPool;
use std::sync::Arc;
use traffic::link::{Link, LinkOptionError, SpikeBlocks};

/// A network in virtual time.
pub struct Simulation {
    pub(crate) now: Nanos,
    pub(crate) regions: Vec<Region>,
    /// In the order of the configuration; of flows, the senders'.
    pub(crate) switches: Vec<Member>,
    pub(crate) hosts: Vec<Member>,
    pub(crate) flows: Vec<Member>,
    pub(crate) links: Vec<LinkEnds>,
    /// Wires from one region to another.
    pub(crate) borders: Vec<Member>,
    pub(crate) captures: Vec<Capture>,
    pub(crate) changes: Changes,
    pub(crate) sampler: Option<Sampler>,
    pub(crate) transfers: Vec<Transfer>,
    /// Where regions act side by side.
    pub(crate) pool: Option<Arc<ThreadPool>>,
}

/// A link: its wires a_to_b and b_to_a.
pub(crate) struct LinkEnds {
    pub(crate) name: String,
    pub(crate) wires: [Member; 2],
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
        let calendars = self.regions.iter().map(|region| &region.fabric.calendar);
        let next = calendars.filter_map(Calendar::peek).map(|(at, _)| at);
        next.min().map(|at| at.max(self.now))
    }

    /// Lets everything happen that is due until `t`, that instant included; it is `t` then, unless something is `endless`.
    /// Returns the present.
    pub fn run_until(&mut self, t: Nanos) -> Nanos {
        self.run(t, false)
    }

    /// As `run_until`, but stops after the event by which a switch has a message for its controller; of a network of several
    /// regions, within the least delay between them after it. Returns the present: earlier than `t` when there is a message.
    pub fn run_until_message(&mut self, t: Nanos) -> Nanos {
        self.run(t, true)
    }

    /// Where frames go round without end at the present, so that no time goes by: the last run ended there.
    pub fn endless(&self) -> Option<String> {
        let is_endless = |region: &Region| region.endless.is_some();
        let region = self.regions.iter().position(is_endless)?;
        let there = match self.regions[region].endless? {
            Actor::Wire(wire) => {
                let index = wire as usize;
                let wire = Member { region, index };
                let ends = self.links.iter().find(|ends| ends.wires.contains(&wire));
                ends.map_or_else(String::new, |ends| format!(", at link \"{}\"", ends.name))
            }
            Actor::Switch(index) => {
                let name = &self.regions[region].switches[index as usize].name;
                format!(", at switch \"{name}\"")
            }
            _ => String::new(),
        };
        Some(format!(
            "at {} ns frames go round without end{there}: nothing on their way takes time; give a link of it a delay, or a port \
             or link of it a rate",
            self.now
        ))
    }

    /// True when a switch has messages (digests, packet-ins, idle time-outs) that were not taken.
    pub fn has_messages(&self) -> bool {
        self.regions.iter().any(Region::has_messages)
    }

    fn run(&mut self, t: Nanos, stop_on_messages: bool) -> Nanos {
        self.refresh();
        self.regions.iter_mut().for_each(|one| one.endless = None);
        if stop_on_messages && self.has_messages() {
            return self.now;
        }
        let has_stopped = match self.regions.len() {
            1 => self.run_region(t, stop_on_messages),
            _ => self.run_windows(t, stop_on_messages),
        };
        self.take_transfers();
        if !has_stopped {
            self.now = self.now.max(t);
            self.read_machine();
        }
        self.now
    }

    /// As `run_windows` where there is one region: as it comes.
    fn run_region(&mut self, t: Nanos, stop_on_messages: bool) -> bool {
        self.regions[0].now = self.now;
        loop {
            let stop = self.regions[0].run(t, stop_on_messages);
            self.now = self.regions[0].now;
            match stop {
                Stop::Time => return false,
                Stop::Message | Stop::Endless => return true,
                Stop::Global(entity) => self.act(entity),
            }
        }
    }

    /// Takes in the transfers that have finished, in order of time.
    fn take_transfers(&mut self) {
        let known = self.transfers.len();
        for region in &mut self.regions {
            self.transfers.append(&mut region.hosts.transfers);
        }
        self.transfers[known..].sort_by_key(|transfer| transfer.end_ns);
    }

    /// Takes in what the real hosts have reported.
    fn read_machine(&mut self) {
        if let Some(machine) = &mut self.regions[0].machine {
            machine.read_samples();
            self.transfers.extend(machine.take_finished());
        }
    }

    /// When something is due that concerns the whole network, and what.
    pub(crate) fn next_global(&self) -> Option<(Nanos, EntityId)> {
        let sampler = self.sampler.as_ref().map(|sampler| sampler.entity);
        let entities = [Some(self.changes.entity), sampler];
        let calendar = &self.regions[0].fabric.calendar;
        let due = |entity| Some((calendar.due(entity)?, entity));
        entities.into_iter().flatten().filter_map(due).min()
    }

    /// What concerns the whole network is due.
    pub(crate) fn act(&mut self, entity: EntityId) {
        if entity == self.changes.entity {
            return self.change();
        }
        self.take_transfers();
        self.read_machine();
        if let Some(sampler) = &mut self.sampler {
            sampler.sample(self.now, &self.regions, &self.flows);
            let next = sampler.next(self.now);
            let calendar = &mut self.regions[0].fabric.calendar;
            calendar.set_after_action(entity, next);
        }
    }

    /// The caller may have changed the devices: when they are due.
    fn refresh(&mut self) {
        self.regions.iter_mut().for_each(Region::refresh);
    }

    /// What went wrong with the machine of the real hosts; it takes no part from then on.
    pub fn machine_failure(&self) -> Option<&str> {
        self.regions[0].machine.as_ref()?.failure()
    }

    /// The first of the configuration's changes that could not be made since the last call.
    pub fn take_refused_change(&mut self) -> Option<RequestError> {
        self.changes.refused.take()
    }

    /// Ends the machine of the real hosts, if there is one; nothing is asked of the simulation afterwards.
    pub fn end_machine(&mut self) {
        self.regions[0].machine = None;
    }

    // ---- switches -----------------------------------------------------------------------------------------

    /// Names of the switches, in the order of the configuration.
    pub fn switch_names(&self) -> impl Iterator<Item = &str> {
        self.each_switch().map(|switch| switch.name.as_str())
    }

    fn each_switch(&self) -> impl Iterator<Item = &Switch> {
        let switches = self.switches.iter();
        switches.map(|at| &self.regions[at.region].switches[at.index])
    }

    /// A switch by name.
    pub fn switch(&self, name: &str) -> Option<&Device> {
        let switch = self.each_switch().find(|s| s.name == name)?;
        Some(&switch.device)
    }

    /// A switch by name, for its control plane: tables, program, packet-out at `now()`.
    pub fn switch_mut(&mut self, name: &str) -> Option<&mut Device> {
        let regions = self.regions.iter_mut();
        let mut switches = regions.flat_map(|region| &mut region.switches);
        let switch = switches.find(|s| s.name == name)?;
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
            let before = self.link(wire).options();
            Ok((wire, settings.applied_to(before)?))
        });
        // All directions are checked before one is changed.
        let changed: Result<Vec<_>, LinkOptionError> = changed.collect();
        for (wire, options) in changed.map_err(invalid)? {
            let now = self.now;
            self.change_link(wire, |link| link.set(now, options))
                .map_err(invalid)?;
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
        if let (Some(rate_bps), Some(machine)) = (&change.rate_bps, &mut self.regions[0].machine) {
            let is_number = matches!(rate_bps, Rate::Constant(_));
            if machine.has_line(switch, port) && !is_number {
                let message = "the rate of a queue of Linux's is a number";
                return Err(RequestError::Invalid(message.to_owned()));
            }
            if machine.set_rate(switch, port, rate_bps.bps()) {
                return Ok(());
            }
        }
        let device = self.port_of(switch, port)?;
        device
            .change_port(now, port, change)
            .map_err(|e| RequestError::Invalid(format!("switch \"{switch}\": {}", e.message)))?;
        self.refresh();
        Ok(())
    }

    /// From when to `until` a port's rate is what, bit/s; None: it is a number.
    ///
    /// # Errors
    /// [`RequestError`]: unknown switch or port.
    pub fn port_rates(
        &mut self,
        switch: &str,
        port: u32,
        until: Nanos,
    ) -> Result<Option<Vec<(Nanos, f64)>>, RequestError> {
        let machine = self.regions[0].machine.as_ref();
        let line = machine.and_then(|machine| machine.rates(switch, port, until));
        Ok(line.or(self.port_of(switch, port)?.rates(port, until)))
    }

    /// The switch that has this port.
    fn port_of(&mut self, switch: &str, port: u32) -> Result<&mut Device, RequestError> {
        let known = listed(self.switch_names());
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
            let now = self.now;
            self.change_link(wire, |link| change(link, now));
        }
        Ok(())
    }

    fn link(&self, wire: Member) -> &Link<FrameId> {
        &self.regions[wire.region].fabric.wires[wire.index].link
    }

    fn change_link<R>(&mut self, wire: Member, change: impl FnOnce(&mut Link<FrameId>) -> R) -> R {
        let fabric = &mut self.regions[wire.region].fabric;
        let changed = change(&mut fabric.wires[wire.index].link);
        fabric.refresh_wire(wire.index as u32);
        changed
    }

    /// The wires of a link, unless the real hosts run ahead: they have received already what is due on their links, so no link may change.
    fn changeable_wires(
        &self,
        link: &str,
        direction: Direction,
    ) -> Result<Vec<Member>, RequestError> {
        let given_until = self.regions[0]
            .machine
            .as_ref()
            .map_or(0, |real| real.given_until());
        if given_until > self.now + 1 {
            let (now, first) = (self.now, given_until - 1);
            return Err(RequestError::Invalid(format!(
                "link \"{link}\" cannot change at {now} ns: the real hosts run ahead; run the simulation until {first} ns first"
            )));
        }
        self.wires(link, direction)
    }

    fn wires(&self, link: &str, direction: Direction) -> Result<Vec<Member>, RequestError> {
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
        let next = next.map(|change| change.at_ns);
        let Region {
            fabric, machine, ..
        } = &mut self.regions[0];
        let rates = machine
            .as_mut()
            .and_then(|machine| machine.follow(self.now));
        let next = next.into_iter().chain(rates).min();
        fabric.calendar.set_after_action(self.changes.entity, next);
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
                    rate_bps: change.rate_bps.clone(),
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
        let regions = self.regions.iter();
        let reports: Vec<_> = regions.map(|region| region.hosts.flow_reports()).collect();
        let machine = self.regions[0].machine.as_ref();
        let report = |(place, at): (usize, &Member)| {
            let mut report = reports[at.region][at.index].clone();
            if let Some(there) = self.regions[at.region].hosts.flows[at.index].receiver_in {
                report.add_receiver(&reports[there.region][there.index]);
            }
            if let Some(real) = machine.and_then(|machine| machine.flow(place)) {
                real.show_in(&mut report);
            }
            report
        };
        self.flows.iter().enumerate().map(report).collect()
    }

    /// Counts of all switch ports but the CPU port.
    pub fn ports(&self) -> Vec<PortReport> {
        let mut ports: Vec<_> = self.each_switch().flat_map(PortReport::all_of).collect();
        for port in &mut ports {
            let machine = self.regions[0].machine.as_ref();
            if let Some(line) = machine.and_then(|m| m.line(&port.switch, port.port)) {
                port.show(line);
            }
        }
        ports
    }

    /// Counts of all switches.
    pub fn switches(&self) -> Vec<SwitchReport> {
        self.each_switch().map(SwitchReport::of).collect()
    }

    /// Counts of both directions of all links.
    pub fn links(&self) -> Vec<LinkReport> {
        let of = |ends: &LinkEnds, i: usize| {
            let link = self.link(ends.wires[i]);
            LinkReport::new(&ends.name, ["a_to_b", "b_to_a"][i], link)
        };
        self.links
            .iter()
            .flat_map(|ends| [of(ends, 0), of(ends, 1)])
            .collect()
    }

    /// Counts of all hosts.
    pub fn hosts(&self) -> Vec<HostReport> {
        let hosts = self.hosts.iter();
        let host = |at: &Member| self.regions[at.region].hosts.hosts[at.index].counts.clone();
        hosts.map(host).collect()
    }

    /// What the captures have come to, in the order of the configuration; their files have all of that.
    pub fn captures(&self) -> Vec<CaptureReport> {
        self.captures.iter().map(Capture::report).collect()
    }

    /// Finished transfers, in the order in which they finished.
    pub fn transfers(&self) -> &[Transfer] {
        &self.transfers
    }

    /// Transfers that are under way now.
    pub fn unfinished_transfers(&self) -> Vec<Transfer> {
        let regions = self.regions.iter();
        let mut found: Vec<_> = regions
            .flat_map(|region| region.hosts.unfinished_transfers(self.now))
            .collect();
        if let Some(machine) = &self.regions[0].machine {
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
