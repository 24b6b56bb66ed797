// SPDX-License-Identifier: Apache-2.0
//! From a checked configuration to the network.

use crate::config::{Config, End, HostConfig, LinkSettings, SwitchConfig};
use crate::error::ConfigError;
use crate::flow::{Flow, FlowOptions};
use crate::host::Host;
use crate::hosts::Hosts;
use crate::machine::{self, RealHosts};
use crate::series::Sampler;
use crate::simulation::{Changes, LinkEnds, Simulation};
use apps::AppState;
use device::{Device, DeviceConfig, QueueLimits};
use fabric::{Actor, Fabric, Outlet, Sink, Switch};
use std::collections::BTreeMap;
use tcp::Addr;
use traffic::derived_seed;
use traffic::link::{Link, LinkOptions, LinkStreams};
use v1model::Pipeline;

/// Frames on a wire for which there is room at first.
const WIRE_FRAMES: usize = 64;

/// Builds it; `config` was checked.
pub(crate) fn simulation(config: &Config) -> Result<Simulation, ConfigError> {
    let mut fabric = Fabric::default();
    let mut switches = switches(config, &mut fabric)?;
    let mut hosts = Hosts::new(config.hosts.iter().map(host).collect());
    let real = machine::real_hosts(config);
    let mut links = Vec::new();
    for link in &config.links {
        let mut add = |direction: &str, settings: &LinkSettings, to: &End| {
            let streams = LinkStreams::new(config.seed, &format!("{}/{direction}", link.name));
            let options = settings.applied_to(&LinkOptions::default());
            let wire = options.and_then(|options| Link::new(options, streams, WIRE_FRAMES));
            let wire = wire.map_err(|error| {
                ConfigError::new(format!("link \"{}\"", link.name), error.to_string())
            })?;
            Ok(fabric.add_wire(wire, sink(config, to)))
        };
        let wires = [
            add("a_to_b", &link.a_to_b, &link.b)?,
            add("b_to_a", &link.b_to_a, &link.a)?,
        ];
        for (end, wire) in [(&link.a, wires[0]), (&link.b, wires[1])] {
            match sink(config, end) {
                Sink::Switch { index, port } => {
                    switches[index as usize].plug(port, Outlet::Wire(wire))
                }
                Sink::Host(host) => hosts.hosts[host as usize].uplink = wire,
                Sink::Interface(interface) => {
                    hosts.hosts[real[interface as usize]].uplink = wire;
                }
            }
        }
        let name = link.name.clone();
        links.push(LinkEnds { name, wires });
    }
    add_flows(config, &mut hosts, &mut fabric);
    let changes = changes(config, &mut fabric);
    let sampler = match &config.sample {
        Some(sample) => {
            let entity = fabric.add_actor(Actor::Sampler);
            fabric.calendar.set(entity, Some(0));
            Some(Sampler::new(sample, &switches, &hosts)?)
        }
        None => None,
    };
    let machine = match &config.machine {
        Some(settings) if !real.is_empty() => {
            let entity = fabric.add_actor(Actor::Machine);
            let uplink = |host: usize| hosts.hosts[host].uplink;
            let real = RealHosts::start(config, settings, entity, &fabric, uplink)?;
            let boxed = Box::new(real);
            fabric.calendar.set(entity, boxed.next_event());
            Some(boxed)
        }
        _ => None,
    };
    Ok(Simulation {
        now: 0,
        machine,
        fabric,
        switches,
        hosts,
        links,
        changes,
        sampler,
    })
}

fn host(host: &HostConfig) -> Host {
    Host::new(&host.name, host.ip.octets(), host.mac.0, host.gateway_mac.0)
}

fn switches(config: &Config, fabric: &mut Fabric) -> Result<Vec<Switch>, ConfigError> {
    let mut files: BTreeMap<&str, Vec<u8>> = BTreeMap::new();
    let mut switches = Vec::new();
    for (i, switch) in config.switches.iter().enumerate() {
        let mut device = Device::new(DeviceConfig {
            cpu_port: switch.cpu_port,
            seed: derived_seed(config.seed, &format!("switch/{}", switch.name)),
            buffer: buffer(switch),
            ..DeviceConfig::default()
        });
        add_ports(&mut device, switch)
            .map_err(|message| ConfigError::new(format!("switches[{i}].ports"), message))?;
        if let Some(name) = &switch.program {
            if !files.contains_key(name.as_str()) {
                files.insert(name, read_program(config, name)?);
            }
            let pipeline = Pipeline::from_json(&files[name.as_str()]).map_err(|error| {
                ConfigError::new(format!("programs.{name}.json"), error.to_string())
            })?;
            device.load(0, pipeline);
        }
        let entity = fabric.add_actor(Actor::Switch(i as u32));
        switches.push(Switch::new(&switch.name, device, entity));
    }
    Ok(switches)
}

/// Room for one full queue at each port: an experiment's queue of 40,000 packets is not cut short by the device's usual memory.
fn buffer(switch: &SwitchConfig) -> QueueLimits {
    let usual = DeviceConfig::default().buffer;
    let asked = switch
        .ports
        .iter()
        .map(|port| port.to_device().queue_limits.packets)
        .fold(0, u64::saturating_add);
    let times = asked.div_ceil(usual.packets).max(1);
    QueueLimits {
        packets: usual.packets.saturating_mul(times),
        bytes: usual.bytes.saturating_mul(times),
        cells: usual.cells,
    }
}

fn read_program(config: &Config, name: &str) -> Result<Vec<u8>, ConfigError> {
    let path = &config.programs[name].json;
    std::fs::read(path).map_err(|error| {
        let message = format!("{} cannot be read: {error}", path.display());
        ConfigError::new(format!("programs.{name}.json"), message)
    })
}

fn add_ports(device: &mut Device, switch: &SwitchConfig) -> Result<(), String> {
    switch.ports.iter().try_for_each(|port| {
        device
            .add_port(port.port, port.to_device())
            .map_err(|error| error.message)
    })
}

/// The node at an end, which exists.
fn sink(config: &Config, end: &End) -> Sink {
    let host = config.hosts.iter().position(|host| host.name == end.node);
    let switch = config.switches.iter().position(|s| s.name == end.node);
    match (host, switch, end.port) {
        (None, Some(index), Some(port)) => {
            let index = index as u32;
            Sink::Switch { index, port }
        }
        (host, ..) => {
            let host = host.unwrap_or_default();
            let interface = machine::real_hosts(config)
                .iter()
                .position(|real| *real == host);
            interface.map_or(Sink::Host(host as u32), |interface| {
                Sink::Interface(interface as u32)
            })
        }
    }
}

fn add_flows(config: &Config, hosts: &mut Hosts, fabric: &mut Fabric) {
    let find = |name: &str| {
        let found = config.hosts.iter().position(|host| host.name == name);
        found.unwrap_or_default() as u32
    };
    for (i, flow) in config.flows.iter().enumerate() {
        let entity = fabric.add_actor(Actor::App(i as u32));
        // The machine starts those of its hosts.
        let is_ours = config.hosts[find(&flow.from) as usize].linux.is_none();
        fabric
            .calendar
            .set(entity, is_ours.then_some(flow.start_ns));
        let app = AppState::new(flow.app.clone(), flow.start_ns);
        let (from, to) = (find(&flow.from), find(&flow.to));
        let address = |host: u32, port| Addr {
            ip: hosts.hosts[host as usize].ip,
            port,
        };
        let options = FlowOptions {
            name: &flow.name,
            index: i,
            from,
            sender: address(from, flow.first_port(i)),
            receiver: address(to, flow.to_port),
            stop: flow.stop_ns,
            tcp: flow.tcp.clone(),
            read_interval: flow.read_interval_ns,
        };
        let state = Flow::new(options, app, config.seed, entity);
        hosts.add_flow(state);
    }
}

fn changes(config: &Config, fabric: &mut Fabric) -> Changes {
    let mut list = config.changes.clone();
    list.sort_by_key(|change| change.at_ns); // stable: as written among equals
    let entity = fabric.add_actor(Actor::Changes);
    let first = list.first().map(|change| change.at_ns);
    fabric.calendar.set(entity, first);
    Changes {
        entity,
        list,
        done: 0,
        refused: None,
    }
}
