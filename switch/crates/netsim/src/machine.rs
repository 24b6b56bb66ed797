// SPDX-License-Identifier: Apache-2.0
//! Real hosts: namespaces of a User-mode Linux (`uml`) that acts in the calendar as every other entity.
//!
//! The machine boots before the experiment: its clock shows `BOOT_NS` at instant 0.

use crate::calendar::EntityId;
use crate::config::{App, Config, FlowConfig, MachineConfig};
use crate::error::ConfigError;
use crate::host::Host;
use crate::results::Transfer;
use crate::samples::{self, RealFlow, Samples};
use device::Nanos;
use fabric::Fabric;
use std::path::Path;
use std::time::Duration;
use uml::plan::{self, Plan};
use uml::{Machine, MachineError, Network, Options};

/// So long, by its own clock, the machine has to boot and set its hosts up.
const BOOT_NS: Nanos = 5_000_000_000;
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

/// Whether a flow, by its place in the configuration, is between real hosts.
fn is_real(config: &Config, place: usize) -> bool {
    let from = &config.flows[place].from;
    let host = config.hosts.iter().find(|host| host.name == *from);
    host.is_some_and(|host| host.linux.is_some())
}

pub(crate) struct RealHosts {
    machine: Machine,
    entity: EntityId,
    /// By interface: the host, and the wire that it sends into.
    hosts: Vec<usize>,
    uplinks: Vec<u32>,
    folder: std::path::PathBuf,
    failure: Option<String>,
    samples: Samples,
}

/// While it boots there is no network.
struct Unplugged;

impl Network for Unplugged {
    fn transmit(&mut self, _: Nanos, _: usize, _: &[u8]) {}

    fn next_event(&mut self) -> Option<Nanos> {
        None
    }
}

/// The simulated network, as the machine's interfaces see it.
struct Plugged<'a> {
    fabric: &'a mut Fabric,
    nodes: &'a mut [Host],
    hosts: &'a [usize],
    uplinks: &'a [u32],
}

impl Network for Plugged<'_> {
    fn transmit(&mut self, now: Nanos, interface: usize, frame: &[u8]) {
        self.nodes[self.hosts[interface]].counts.tx_packets += 1;
        let id = self.fabric.frames.copy_of(frame);
        let now = now.saturating_sub(BOOT_NS);
        self.fabric.transmit(now, self.uplinks[interface], id);
    }

    fn next_event(&mut self) -> Option<Nanos> {
        let next = self.fabric.calendar.peek();
        next.map(|(at, _)| at.saturating_add(BOOT_NS))
    }
}

impl RealHosts {
    /// Boots the machine up to instant 0 of the experiment.
    pub(crate) fn start(
        config: &Config,
        settings: &MachineConfig,
        entity: EntityId,
        uplinks: Vec<u32>,
    ) -> Result<RealHosts, ConfigError> {
        let hosts = real_hosts(config);
        let fault = |error: &dyn std::fmt::Display| ConfigError::new("machine", error.to_string());
        let folder = settings.folder.clone();
        let mut plan = plan_of(config, settings, &hosts);
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
        let options = Options {
            kernel: settings.kernel.clone(),
            folder: folder.clone(),
            macs: hosts.iter().map(|host| config.hosts[*host].mac.0).collect(),
            memory_mb: settings.memory_mb,
            seed: traffic::derived_seed(config.seed, "machine"),
            cpu: settings.cpu,
            boot_limit: Duration::from_secs(settings.boot_limit_s),
            patience: Duration::from_secs(settings.patience_s),
        };
        let mut machine = Machine::start(&options).map_err(|e| fault(&e))?;
        machine
            .boot(BOOT_NS, &mut Unplugged)
            .map_err(|e| fault(&e))?;
        let real = RealHosts {
            machine,
            entity,
            hosts,
            uplinks,
            folder,
            failure: None,
            samples: Samples::new(config, |place| is_real(config, place)),
        };
        match real.machine.exit() {
            Some(_) => Err(fault(&real.reason("it halted before the experiment"))),
            None => Ok(real),
        }
    }

    /// When the machine wants to run, as an instant of the experiment.
    pub(crate) fn next_event(&self) -> Option<Nanos> {
        if self.failure.is_some() {
            return None;
        }
        let next = self.machine.next_event().ok().flatten()?;
        Some(next.saturating_sub(BOOT_NS))
    }

    /// The machine is due.
    pub(crate) fn run(
        &mut self,
        now: Nanos,
        until: Nanos,
        fabric: &mut Fabric,
        nodes: &mut [Host],
    ) {
        // Not its own instant, but those of the others limit it.
        fabric.calendar.set_after_action(self.entity, None);
        let last = until.saturating_add(BOOT_NS).saturating_add(1);
        let mut network = Plugged {
            fabric,
            nodes,
            hosts: &self.hosts,
            uplinks: &self.uplinks,
        };
        let done = self.machine.run(now + BOOT_NS, last, &mut network);
        self.look(done);
        let next = self.next_event();
        fabric.calendar.set_after_action(self.entity, next);
    }

    /// A frame arrives at `now`; `reschedule` follows.
    pub(crate) fn deliver(&mut self, now: Nanos, interface: u32, frame: &[u8], nodes: &mut [Host]) {
        let counts = &mut nodes[self.hosts[interface as usize]].counts;
        counts.rx_packets += 1;
        counts.accepted_packets += 1;
        if self.failure.is_some() {
            return;
        }
        let now = now + BOOT_NS;
        let done = self.machine.deliver(now, interface as usize, frame);
        self.look(done);
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
            ip: host.ip,
            neighbours: others
                .map(|o| (o.ip, host.gateway_mac.to_string()))
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
    let flow = |(index, flow): (usize, &FlowConfig)| plan::Flow {
        name: flow.name.clone(),
        from: find(&flow.from),
        to: find(&flow.to),
        from_port: flow.first_port(index),
        to_port: flow.to_port,
        congestion_control: flow.linux.congestion_control.clone(),
        mss_bytes: flow.linux.mss_bytes,
        receive_window_bytes: flow.linux.receive_window_bytes,
        start_ns: flow.start_ns,
        stop_ns: flow.stop_ns,
        app: flow.app.clone(),
        place: index,
        read_interval_ns: flow.read_interval_ns,
    };
    Plan {
        start_ns: BOOT_NS,
        end_ns: settings.end_ns,
        sample_ns: settings.sample_ns,
        seed: config.seed,
        hosts: hosts.iter().map(host).collect(),
        flows: flows
            .filter(|(place, _)| is_real(config, *place))
            .map(flow)
            .collect(),
    }
}
