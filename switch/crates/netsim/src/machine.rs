// SPDX-License-Identifier: Apache-2.0
//! Real hosts: namespaces of a User-mode Linux (`uml`) that acts in the calendar as every other entity.
//!
//! The machine boots before the experiment: its clock shows `BOOT_NS` at instant 0.
//!
//! In its turn it runs ahead of the network. How far, follows from the links that end at its hosts (`RealHosts::turn`; the promises
//! are those of [`uml::Machine::run`]):
//!
//! - a frame that is on the medium of such a link has its instant already: the machine gets it before its turn;
//! - any other frame enters such a link at the network's next event at the earliest, and arrives the link's least delay later: so
//!   far `until` reaches. It ends before a change of the links, a sample (what the guest has written is read then), and the end;
//! - a frame of the machine's own passes the link of its host, and one to a host: the sum of their least delays is the `lookahead`.
//!
//! A port's queue can be the kernel's: the port passes its frames at once to an interface that is the line, by a wire without delay.
//!
//! What the machine sends enters the network at its instants, as one of its events (`sent`). A link without delay leaves no lookahead:
//! the machine runs up to the next event of the network, and its turn ends with the instant of its first frame.

use crate::build;
use crate::calendar::EntityId;
use crate::config::{
    App, Config, End, FlowConfig, HostConfig, MachineConfig, PortSettings, SwitchConfig,
    DEFAULT_MTU,
};
use crate::error::ConfigError;
use crate::host::Host;
use crate::results::Transfer;
use crate::samples::{self, RealFlow, Samples};
use device::{Nanos, Rate};
use fabric::{Actor, Fabric, FrameId, Sink};
use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use traffic::link::Playing;
use uml::plan::{self, Line, Plan};
use uml::{LineCounts, Machine, MachineError, Options};

/// So long, by its own clock, the machine has to boot and set its hosts up.
const BOOT_NS: Nanos = 5_000_000_000;
/// Nobody sends to a line.
const LINE_MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];
/// Files in the machine's folder.
const PLAN: &str = "plan.json";
const FIRST_PROGRAM: &str = "init";
const FAILURE: &str = "failure";

/// The hosts that are real, in the order of the machine's interfaces.
pub(crate) fn real_hosts(config: &Config) -> Vec<usize> {
    let hosts = config.hosts.iter().enumerate();
    let real = hosts.filter(|(_, host)| host.linux.is_some());
    real.map(|(index, _)| index).collect()
}

/// The ports whose queue is the kernel's, in the order of the machine's interfaces, behind those of the hosts.
pub(crate) fn lines(config: &Config) -> Vec<Line> {
    let switches = config.switches.iter();
    let ports = switches.flat_map(|switch| switch.ports.iter().map(move |port| (switch, port)));
    let line = |(switch, port): (&SwitchConfig, &PortSettings)| {
        Some(Line {
            switch: switch.name.clone(),
            port: port.port,
            rate_bps: port.options.rate_bps.as_ref().map_or(0, Rate::bps),
            mtu: mtu_at(config, &switch.name, Some(port.port)),
            qdisc: port.qdisc.clone()?,
        })
    };
    ports.filter_map(line).collect()
}

/// The MTU of what is plugged in there.
fn mtu_at(config: &Config, node: &str, port: Option<u32>) -> u32 {
    let is_here = |end: &End| end.node == node && end.port == port;
    let mut links = config.links.iter();
    let found = links.find(|link| is_here(&link.a) || is_here(&link.b));
    found.map_or(DEFAULT_MTU, |link| link.mtu)
}

/// What the rates of `lines` follow, as a port with queues of its own would.
fn series(config: &Config) -> Vec<Option<Playing>> {
    let of_switch = |switch: &SwitchConfig| {
        let device = build::device_config(config, switch);
        let ports = switch.ports.iter().filter(|port| port.qdisc.is_some());
        let playing = |port: &PortSettings| {
            let seeds = device.rate_seeds(port.port);
            Some(Playing::new(Arc::clone(port.series()?), seeds, 0, 0))
        };
        ports.map(playing).collect::<Vec<_>>()
    };
    config.switches.iter().flat_map(of_switch).collect()
}

/// Whether a flow, by its place in the configuration, is between real hosts.
fn is_real(config: &Config, place: usize) -> bool {
    let from = &config.flows[place].from;
    let host = config.hosts.iter().find(|host| host.name == *from);
    host.is_some_and(|host| host.linux.is_some())
}

/// An interface: its host, unless it is the line of a port, and the wires that it sends into and receives from.
struct Interface {
    host: Option<usize>,
    uplink: u32,
    downlink: u32,
}

pub(crate) struct RealHosts {
    machine: Machine,
    entity: EntityId,
    interfaces: Vec<Interface>,
    /// Those that are the last of them.
    lines: Vec<Line>,
    /// Of each of these, what its rate follows.
    series: Vec<Option<Playing>>,
    /// Entities that end a turn: changes and samples.
    limits: Vec<EntityId>,
    /// What the machine has sent at instants that the network has not reached: instant, interface.
    sent: VecDeque<(Nanos, usize, FrameId)>,
    /// The machine has run until then and got what was due; that many of these frames are still on the wires.
    given_until: Nanos,
    given: usize,
    /// For the next turn: instant, interface, frame.
    arrivals: Vec<(Nanos, usize, FrameId)>,
    folder: std::path::PathBuf,
    failure: Option<String>,
    samples: Samples,
}

impl RealHosts {
    /// Boots the machine up to instant 0 of the experiment.
    pub(crate) fn start(
        config: &Config,
        settings: &MachineConfig,
        entity: EntityId,
        fabric: &Fabric,
        uplinks: &[u32],
    ) -> Result<RealHosts, ConfigError> {
        let hosts = real_hosts(config);
        let fault = |error: &dyn std::fmt::Display| ConfigError::new("machine", error.to_string());
        let folder = settings.folder.clone();
        let mut plan = plan_of(config, settings, &hosts);
        let lines = plan.lines.clone();
        copy_programs(&mut plan, &folder)?;
        let plan = serde_json::to_vec(&plan).map_err(|e| fault(&e))?;
        std::fs::write(folder.join(PLAN), plan).map_err(|e| fault(&e))?;
        std::fs::copy(&settings.guest, folder.join(FIRST_PROGRAM)).map_err(|error| {
            let message = format!(
                "{}: {error}; `make kernel` builds it",
                settings.guest.display()
            );
            ConfigError::new("machine.guest", message)
        })?;
        let macs = hosts.iter().map(|host| config.hosts[*host].mac.0);
        let options = Options {
            kernel: settings.kernel.clone(),
            folder: folder.clone(),
            macs: macs.chain(lines.iter().map(|_| LINE_MAC)).collect(),
            memory_mb: settings.memory_mb,
            seed: traffic::derived_seed(config.seed, "machine"),
            cpu: settings.cpu,
            boot_limit: Duration::from_secs(settings.boot_limit_s),
            patience: Duration::from_secs(settings.patience_s),
        };
        let mut machine = Machine::start(&options).map_err(|e| fault(&e))?;
        for (number, line) in (hosts.len()..).zip(&lines) {
            let set = machine.set_rate(number, line.rate_bps);
            set.map_err(|e| fault(&e))?;
        }
        machine.boot(BOOT_NS).map_err(|e| fault(&e))?;
        let ends_at = |number: usize| {
            let to =
                |wire: &fabric::Wire| matches!(wire.to, Sink::Interface(i) if i as usize == number);
            fabric.wires.iter().position(to)
        };
        let interface = |(number, &uplink): (usize, &u32)| Interface {
            host: hosts.get(number).copied(),
            uplink,
            downlink: ends_at(number).unwrap_or_default() as u32,
        };
        let actors = (0..).zip(&fabric.actors);
        let limits = actors.filter(|(_, actor)| matches!(actor, Actor::Changes | Actor::Sampler));
        let real = RealHosts {
            machine,
            entity,
            interfaces: uplinks.iter().enumerate().map(interface).collect(),
            series: series(config),
            lines,
            limits: limits.map(|(entity, _)| entity).collect(),
            sent: VecDeque::new(),
            given_until: 0,
            given: 0,
            arrivals: Vec::new(),
            folder,
            failure: None,
            samples: Samples::new(config, |place| is_real(config, place)),
        };
        match real.machine.exit() {
            Some(_) => Err(fault(&real.reason("it halted before the experiment"))),
            None => Ok(real),
        }
    }

    /// When the machine is due: it wants to run, or a frame of it enters the network.
    pub(crate) fn next_event(&self) -> Option<Nanos> {
        if self.failure.is_some() {
            return None;
        }
        let wants = self.machine.next_event().ok().flatten();
        let wants = wants.map(|at| at.saturating_sub(BOOT_NS));
        let sent = self.sent.front().map(|(at, ..)| *at);
        wants.into_iter().chain(sent).min()
    }

    /// The machine is due.
    #[inline(never)]
    pub(crate) fn act(
        &mut self,
        now: Nanos,
        until: Nanos,
        fabric: &mut Fabric,
        nodes: &mut [Host],
    ) {
        // Not its own instant, but those of the others limit it.
        fabric.calendar.set_after_action(self.entity, None);
        if self.sent.is_empty() {
            let done = self.turn(now, until, fabric);
            self.look(done);
        }
        while let Some(&(at, interface, frame)) = self.sent.front().filter(|(at, ..)| *at <= now) {
            self.sent.pop_front();
            let interface = &self.interfaces[interface];
            if let Some(host) = interface.host {
                nodes[host].counts.tx_packets += 1;
            }
            fabric.transmit(at, interface.uplink, frame);
        }
        let next = self.next_event();
        fabric.calendar.set_after_action(self.entity, next);
    }

    /// A turn of the machine, as long as the network leaves it alone (see the module).
    fn turn(&mut self, now: Nanos, until: Nanos, fabric: &mut Fabric) -> Result<(), MachineError> {
        let next = fabric.calendar.peek().map_or(Nanos::MAX, |(at, _)| at);
        let link = |wire: u32| &fabric.wires[wire as usize].link;
        let downlinks = self.interfaces.iter().map(|each| link(each.downlink));
        let known = downlinks.clone().map(|link| link.known_until(next));
        let limits = self.limits.iter();
        let limits = limits.filter_map(|entity| fabric.calendar.due(*entity));
        let end = until.saturating_add(1);
        let until = known.chain(limits).min().map_or(end, |at| at.min(end));

        let to_host = downlinks.map(|link| link.least_delay()).min();
        let round_trip = self.interfaces.iter().map(|each| {
            let first = link(each.uplink).least_delay();
            match fabric.wires[each.uplink as usize].to {
                Sink::Interface(_) => first,
                _ => first + to_host.unwrap_or_default(),
            }
        });
        let lookahead = round_trip.min().unwrap_or_default();

        self.arrivals.clear();
        for (number, interface) in self.interfaces.iter().enumerate() {
            let due = link(interface.downlink).arrivals_before(until);
            let due = due.filter(|(at, _)| *at >= self.given_until);
            let due = due.map(|(at, frame)| (at, number, *frame));
            self.arrivals.extend(due);
        }
        // By interface among equals, and as they are on the wire.
        self.arrivals.sort_by_key(|(at, ..)| *at);
        let mut until = until;
        for &(at, number, frame) in &self.arrivals {
            if !self.machine.has_room()? {
                until = at;
                break;
            }
            let frame = fabric.frames.get(frame).as_ref();
            self.machine.deliver(at + BOOT_NS, number, frame)?;
        }
        let (from, limit) = (now + BOOT_NS, until.saturating_add(BOOT_NS));
        let end = self
            .machine
            .run(from, limit, lookahead, |at, interface, frame| {
                let frame = fabric.frames.copy_of(frame);
                let at = at.saturating_sub(BOOT_NS);
                self.sent.push_back((at, interface, frame));
            })?;
        let end = end.saturating_sub(BOOT_NS);
        self.given += self.arrivals.partition_point(|(at, ..)| *at < end);
        self.given_until = self.given_until.max(end);
        Ok(())
    }

    /// A frame has left the wire to an interface; `reschedule` follows.
    pub(crate) fn deliver(&mut self, now: Nanos, interface: u32, frame: &[u8], nodes: &mut [Host]) {
        if let Some(host) = self.interfaces[interface as usize].host {
            let counts = &mut nodes[host].counts;
            counts.rx_packets += 1;
            counts.accepted_packets += 1;
        }
        if now < self.given_until && self.given > 0 {
            self.given -= 1;
            return;
        }
        if self.failure.is_some() {
            return;
        }
        let now = now + BOOT_NS;
        let done = self.machine.deliver(now, interface as usize, frame);
        self.look(done);
    }

    /// The interface of a port whose queue is the kernel's.
    fn interface_of(&self, switch: &str, port: u32) -> Option<usize> {
        let mut lines = self.lines.iter();
        let line = lines.position(|line| line.is_of(switch, port))?;
        Some(self.interfaces.len() - self.lines.len() + line)
    }

    /// What the queue of a port has counted; None: it is not the kernel's.
    pub(crate) fn line(&self, switch: &str, port: u32) -> Option<LineCounts> {
        let interface = self.interface_of(switch, port)?;
        self.machine.line(interface).ok()
    }

    /// Whether the queue of a port is the kernel's.
    pub(crate) fn has_line(&self, switch: &str, port: u32) -> bool {
        self.interface_of(switch, port).is_some()
    }

    /// The line of a port has this rate from the next frame on; false: its queue is not the kernel's.
    pub(crate) fn set_rate(&mut self, switch: &str, port: u32, rate_bps: u64) -> bool {
        let Some(interface) = self.interface_of(switch, port) else {
            return false;
        };
        self.series[interface + self.lines.len() - self.interfaces.len()] = None;
        let done = self.machine.set_rate(interface, rate_bps.max(1));
        self.look(done);
        true
    }

    /// Whether the rate of a line is a series.
    pub(crate) fn has_series(&self) -> bool {
        self.series.iter().any(Option::is_some)
    }

    /// Lines whose rate is a series have its value at `now`. Returns when one of them changes.
    pub(crate) fn follow(&mut self, now: Nanos) -> Option<Nanos> {
        let first = self.interfaces.len() - self.lines.len();
        let mut next = None;
        for line in 0..self.lines.len() {
            let Some(playing) = &mut self.series[line] else {
                continue;
            };
            let (rate_bps, until) = playing.step(now);
            let done = self
                .machine
                .set_rate(first + line, (rate_bps as u64).max(1));
            self.look(done);
            next = next.into_iter().chain([until]).min();
        }
        next
    }

    /// From when to `until` the rate of a line is what, bit/s; None: it is a number.
    pub(crate) fn rates(&self, switch: &str, port: u32, until: Nanos) -> Option<Vec<(Nanos, f64)>> {
        let line = self
            .lines
            .iter()
            .position(|line| line.is_of(switch, port))?;
        Some(self.series[line].as_ref()?.values(until))
    }

    /// So far the machine has run.
    pub(crate) fn given_until(&self) -> Nanos {
        self.given_until
    }

    /// Frames have arrived: the machine is due now.
    pub(crate) fn reschedule(&self, fabric: &mut Fabric) {
        let next = self.next_event();
        fabric.calendar.set(self.entity, next);
    }

    /// Takes in what the guest has sampled since.
    pub(crate) fn read_samples(&mut self) {
        let read = self.samples.read(&self.folder);
        if let (Err(error), None) = (read, &self.failure) {
            self.failure = Some(format!("{}: {error}", samples::FILE));
        }
    }

    /// The last sample of a flow, by its place in the configuration; None: it is simulated.
    pub(crate) fn flow(&self, place: usize) -> Option<&RealFlow> {
        self.samples.flow(place)
    }

    /// Transfers that have ended since the last call.
    pub(crate) fn take_finished(&mut self) -> Vec<Transfer> {
        self.samples.take_finished()
    }

    /// What was under way at the end.
    pub(crate) fn unfinished_transfers(&self) -> &[Transfer] {
        self.samples.unfinished()
    }

    pub(crate) fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }

    /// Keeps the first thing that went wrong.
    fn look(&mut self, done: Result<(), MachineError>) {
        let reported = self.machine.exit().is_some() && self.folder.join(FAILURE).exists();
        if self.failure.is_none() {
            self.failure = match done {
                Err(error) => Some(self.reason(&error.to_string())),
                Ok(()) if reported => Some(self.reason("it halted")),
                Ok(()) => None,
            };
        }
    }

    /// What the first program says, or else `otherwise`.
    fn reason(&self, otherwise: &str) -> String {
        std::fs::read_to_string(self.folder.join(FAILURE)).unwrap_or_else(|_| otherwise.to_owned())
    }
}

/// The programs of `command` applications into the machine's folder, and that into the plan.
fn copy_programs(plan: &mut Plan, folder: &Path) -> Result<(), ConfigError> {
    for flow in &mut plan.flows {
        let App::Command(app) = &mut flow.app else {
            continue;
        };
        for (role, words) in [("sender", &mut app.sender), ("receiver", &mut app.receiver)] {
            let Some(program) = words.first_mut() else {
                continue;
            };
            let copy = format!("{}-{role}", flow.name);
            std::fs::copy(&*program, folder.join(&copy)).map_err(|error| {
                let path = format!("flows[{}].app.{role}", flow.place);
                ConfigError::new(path, format!("{program}: {error}"))
            })?;
            *program = format!("/{copy}");
        }
    }
    Ok(())
}

fn plan_of(config: &Config, settings: &MachineConfig, hosts: &[usize]) -> Plan {
    let host = |index: &usize| {
        let host = &config.hosts[*index];
        let others = config.hosts.iter().filter(|other| other.name != host.name);
        let linux = host.linux.clone().unwrap_or_default();
        plan::Host {
            name: host.name.clone(),
            mtu: mtu_at(config, &host.name, None),
            addresses: host.addresses().collect(),
            neighbours: others
                .flat_map(HostConfig::addresses)
                .map(|ip| (ip, host.gateway_mac.to_string()))
                .collect(),
            sysctls: linux.sysctls,
            routes: linux.routes,
        }
    };
    let find = |name: &str| {
        let found = hosts
            .iter()
            .position(|host| config.hosts[*host].name == name);
        found.unwrap_or_default()
    };
    let flows = config.flows.iter().enumerate();
    let flow = |(index, flow): (usize, &FlowConfig)| {
        let [from, to] = [&flow.from, &flow.to].map(|name| find(name));
        plan::Flow {
            name: flow.name.clone(),
            from,
            to,
            ends: config.ends(index, [hosts[from], hosts[to]]),
            congestion_control: flow.linux.congestion_control.clone(),
            mss_bytes: flow.linux.mss_bytes,
            receive_window_bytes: flow.linux.receive_window_bytes,
            start_ns: flow.start_ns,
            stop_ns: flow.stop_ns,
            app: flow.app.clone(),
            place: index,
            read_interval_ns: flow.read_interval_ns,
        }
    };
    Plan {
        start_ns: BOOT_NS,
        end_ns: settings.end_ns,
        sample_ns: settings.sample_ns,
        marks_ns: settings.marks_ns.clone(),
        seed: config.seed,
        hosts: hosts.iter().map(host).collect(),
        lines: lines(config),
        flows: flows
            .filter(|(place, _)| is_real(config, *place))
            .map(flow)
            .collect(),
    }
}
