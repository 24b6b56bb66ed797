// SPDX-License-Identifier: Apache-2.0
//! From a checked configuration to the network.

use crate::capture::Capture;
use crate::config::{CaptureConfig, Config, End, FlowConfig, LinkSettings, SwitchConfig};
use crate::error::ConfigError;
use crate::flow::{Flow, FlowOptions};
use crate::host::Host;
use crate::machine::{self, RealHosts};
use crate::partition::Partition;
use crate::region::{Member, Post, Region};
use crate::series::Sampler;
use crate::simulation::{Changes, LinkEnds, Simulation};
use apps::AppState;
use device::{Device, DeviceConfig, QueueLimits, Rate};
use fabric::{Actor, Fabric, Outlet, Passage, Sink, Switch};
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::collections::BTreeMap;
use std::sync::Arc;
use traffic::derived_seed;
use traffic::link::{Link, LinkOptionError, LinkOptions, LinkStreams};
use v1model::Pipeline;

/// Frames on a wire for which there is room at first.
const WIRE_FRAMES: usize = 64;

/// Builds it; `config` was checked.
pub(crate) fn simulation(config: &Config) -> Result<Simulation, ConfigError> {
    let partition = Partition::of(config);
    let mut regions: Vec<Region> = Vec::new();
    regions.resize_with(partition.regions, Region::default);
    for region in &mut regions {
        region.inbox = Post::new(partition.regions);
        region.outbox = Post::new(partition.regions);
    }
    add_switches(config, &partition.switches, &mut regions)?;
    for (host, at) in config.hosts.iter().zip(&partition.hosts) {
        regions[at.region].hosts.hosts.push(Host::new(host));
    }
    let real = machine::real_hosts(config);
    let lines = machine::lines(config);
    let mut line_uplinks = vec![0; lines.len()];
    let (mut links, mut borders) = (Vec::new(), Vec::new());
    for link in &config.links {
        let ends = [&link.a, &link.b].map(|end| sink(config, &partition, &real, end));
        let mut add = |direction: &str, settings: &LinkSettings, [from, to]: [usize; 2]| {
            let fault = |error: LinkOptionError| {
                ConfigError::new(format!("link \"{}\"", link.name), error.to_string())
            };
            let make = |options| {
                let name = format!("{}/{direction}", link.name);
                let streams = LinkStreams::new(config.seed, &name).in_virtual_time();
                Link::new(options, streams, WIRE_FRAMES).map_err(fault)
            };
            let perfect = LinkOptions::default();
            let wire = make(settings.applied_to(&perfect).map_err(fault)?)?;
            let ((from, outlet), (region, to)) = (ends[from], ends[to]);
            let fabric = &mut regions[region].fabric;
            let number = fabric.add_wire(wire, to);
            let (index, is_fed) = (number as usize, from != region);
            fabric.wires[index].is_fed = is_fed;
            let wire = Member { region, index };
            let from = &mut regions[from];
            match outlet {
                Sink::Switch { index, port } if is_fed => {
                    let exit = Outlet::Interface(from.exits.len() as u32);
                    from.switches[index as usize].plug(port, exit);
                    from.exits.push(wire);
                    borders.push(wire);
                }
                Sink::Switch { index, port } => {
                    let switch = &config.switches[index as usize].name;
                    let to = match lines.iter().position(|line| line.is_of(switch, port)) {
                        Some(line) => {
                            line_uplinks[line] = number;
                            let to = Sink::Interface((real.len() + line) as u32);
                            from.fabric.add_wire(make(perfect)?, to)
                        }
                        None => number,
                    };
                    from.switches[index as usize].plug(port, Outlet::Wire(to));
                }
                Sink::Host(host) => from.hosts.hosts[host as usize].uplink = number,
                Sink::Interface(interface) => {
                    from.hosts.hosts[real[interface as usize]].uplink = number;
                }
            }
            Ok(wire)
        };
        let wires = [
            add("a_to_b", &link.a_to_b, [0, 1])?,
            add("b_to_a", &link.b_to_a, [1, 0])?,
        ];
        let name = link.name.clone();
        links.push(LinkEnds { name, wires });
    }
    let captures = captures(config, &links, &mut regions)?;
    let flows = add_flows(config, &partition.hosts, &mut regions);
    // What concerns the whole network stands in the first region's calendar.
    let fabric = &mut regions[0].fabric;
    let changes = changes(config, fabric);
    let sampler = match &config.sample {
        Some(sample) => {
            let entity = fabric.add_actor(Actor::Sampler);
            fabric.calendar.set(entity, Some(0));
            let seen = (&partition.switches[..], &flows[..]);
            Some(Sampler::new(sample, entity, &regions, seen)?)
        }
        None => None,
    };
    if let Some(settings) = config
        .machine
        .as_ref()
        .filter(|_| !real.is_empty() || !lines.is_empty())
    {
        let Region { fabric, hosts, .. } = &mut regions[0];
        let entity = fabric.add_actor(Actor::Machine);
        let of_hosts = real.iter().map(|host| hosts.hosts[*host].uplink);
        let uplinks: Vec<u32> = of_hosts.chain(line_uplinks).collect();
        let machine = RealHosts::start(config, settings, entity, fabric, &uplinks)?;
        fabric.calendar.set(entity, machine.next_event());
        if machine.has_series() {
            fabric.calendar.set(changes.entity, Some(0));
        }
        regions[0].machine = Some(Box::new(machine));
    }
    let threads = config.threads.unwrap_or(1).min(regions.len());
    Ok(Simulation {
        now: 0,
        pool: (threads > 1).then(|| pool(threads)).transpose()?,
        regions,
        switches: partition.switches,
        hosts: partition.hosts,
        flows,
        links,
        borders,
        captures,
        changes,
        sampler,
        transfers: Vec::new(),
    })
}

/// Files for captures, and what sees the frames of their links.
fn captures(
    config: &Config,
    links: &[LinkEnds],
    regions: &mut [Region],
) -> Result<Vec<Capture>, ConfigError> {
    let apart = regions.len();
    let each = |wanted: &CaptureConfig| {
        let capture = Capture::create(wanted, apart)?;
        let wires = links.iter().filter(|link| link.name == wanted.link);
        for LinkEnds { wires, .. } in wires {
            for (interface, direction) in (0..).zip(wanted.direction.indices()) {
                let passage = Passage::at_end(wanted.at as usize, direction);
                let Member { region, index } = wires[direction];
                let taps = &mut regions[region].fabric.wires[index].taps;
                taps.push(capture.tap(interface, passage));
            }
        }
        Ok(capture)
    };
    config.captures.iter().map(each).collect()
}

fn pool(threads: usize) -> Result<Arc<ThreadPool>, ConfigError> {
    let pool = ThreadPoolBuilder::new().num_threads(threads).build();
    let pool = pool.map_err(|error| ConfigError::new("threads", error.to_string()))?;
    Ok(Arc::new(pool))
}

fn add_switches(
    config: &Config,
    members: &[Member],
    regions: &mut [Region],
) -> Result<(), ConfigError> {
    let mut files: BTreeMap<&str, Vec<u8>> = BTreeMap::new();
    for (i, (switch, at)) in config.switches.iter().zip(members).enumerate() {
        let mut device = Device::new(device_config(config, switch));
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
        let Region {
            fabric, switches, ..
        } = &mut regions[at.region];
        let entity = fabric.add_actor(Actor::Switch(at.index as u32));
        switches.push(Switch::new(&switch.name, device, entity));
    }
    Ok(())
}

/// Of a switch.
pub(crate) fn device_config(config: &Config, switch: &SwitchConfig) -> DeviceConfig {
    DeviceConfig {
        cpu_port: switch.cpu_port,
        seed: derived_seed(config.seed, &format!("switch/{}", switch.name)),
        run_seed: config.seed,
        buffer: buffer(switch),
        ..DeviceConfig::default()
    }
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
        let added = device.add_port(port.port, port.to_device());
        // The rate of a line of the machine is the machine's.
        let rated = added.and_then(|()| match (&port.options.rate_bps, &port.qdisc) {
            (Some(Rate::Follows(_)), None) => device.change_port(0, port.port, &port.options),
            _ => Ok(()),
        });
        rated.map_err(|error| error.message)
    })
}

/// The region of the node at an end, which exists, and the node there.
fn sink(config: &Config, partition: &Partition, real: &[usize], end: &End) -> (usize, Sink) {
    let host = config.hosts.iter().position(|host| host.name == end.node);
    let switch = config.switches.iter().position(|s| s.name == end.node);
    match (host, switch, end.port) {
        (None, Some(index), Some(port)) => {
            let Member { region, index } = partition.switches[index];
            let index = index as u32;
            (region, Sink::Switch { index, port })
        }
        (host, ..) => {
            let host = host.unwrap_or_default();
            let interface = real.iter().position(|real| *real == host);
            let Member { region, index } = partition.hosts[host];
            let host = Sink::Host(index as u32);
            (
                region,
                interface.map_or(host, |interface| Sink::Interface(interface as u32)),
            )
        }
    }
}

/// Adds each flow to the region of its sender and, where its receiver is in another, once more there; where the senders' are.
fn add_flows(config: &Config, places: &[Member], regions: &mut [Region]) -> Vec<Member> {
    let find = |name: &String| {
        let found = config.hosts.iter().position(|host| host.name == *name);
        found.unwrap_or_default()
    };
    let flow = |(i, flow): (usize, &FlowConfig)| {
        let ends = [&flow.from, &flow.to].map(find);
        let [from, to] = ends.map(|host| places[host]);
        let [sender, receiver] = config.ends(i, ends);
        let mut add = |region: usize, name: &str, receiver_in: Option<Member>| {
            let Region { fabric, hosts, .. } = &mut regions[region];
            let index = hosts.flows.len();
            let entity = fabric.add_actor(Actor::App(index as u32));
            // The machine starts those of its hosts.
            let is_ours = region == from.region && config.hosts[ends[0]].linux.is_none();
            let start = is_ours.then_some(flow.start_ns);
            fabric.calendar.set(entity, start);
            let options = FlowOptions {
                name,
                index: i,
                from: from.index as u32,
                sender,
                receiver,
                receiver_in,
                stop: flow.stop_ns,
                tcp: flow.tcp.clone(),
                read_interval: flow.read_interval_ns,
            };
            let app = AppState::new(flow.app.clone(), flow.start_ns);
            hosts.add_flow(Flow::new(options, app, config.seed, entity));
            Member { region, index }
        };
        let is_apart = to.region != from.region;
        // With sequence numbers of its own.
        let there = is_apart.then(|| add(to.region, &format!("{}/receiver", flow.name), None));
        add(from.region, &flow.name, there)
    };
    config.flows.iter().enumerate().map(flow).collect()
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
