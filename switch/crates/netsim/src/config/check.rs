// SPDX-License-Identifier: Apache-2.0
//! The checks that need more than one key: names that refer to each other, ranges, ends that are used once.

use super::{
    App, Change, Config, End, FlowConfig, HostConfig, LinkConfig, LinuxFlow, Sample, SwitchConfig,
};
use crate::error::{Checked, ConfigError, KeyPath};
use crate::machine;
use capture::SNAP_BYTES_ALLOWED;
use device::config::PORT_MAX;
use device::{PortChange, PortConfig, Rate};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use traffic::link::{LinkOptionError, LinkOptions};
use uml::plan::Line;

/// The shortest period of sampling.
const SAMPLE_PERIOD_NS_MIN: u64 = 1_000;
const THREADS_MAX: usize = 1_024;
/// As in a topology; `hosts/kernel/frames.c` takes no more.
const MTU_MIN: u32 = 576;
const MTU_MAX: u32 = 9_000;

/// What links may be plugged into, by node: the ports of a switch; of a host one interface, which has no number.
type Sockets<'a> = BTreeMap<Option<u32>, Option<&'a str>>;
type Nodes<'a> = BTreeMap<&'a str, Sockets<'a>>;

fn is_host(sockets: &Sockets<'_>) -> bool {
    sockets.contains_key(&None)
}

impl Config {
    /// Checks everything that can be checked without building it.
    ///
    /// # Errors
    /// [`ConfigError`] with the path of the first fault.
    pub fn check(&self) -> Result<(), ConfigError> {
        let mut nodes = self.check_nodes()?;
        self.check_links(&mut nodes)?;
        self.check_flows()?;
        self.check_changes(&nodes)?;
        self.check_captures()?;
        if let Some(threads) = self.threads {
            let is_allowed = (1..=THREADS_MAX).contains(&threads);
            let allowed = format_args!("1 to {THREADS_MAX}, or null");
            KeyPath::new("threads").allow(is_allowed, threads, allowed)?;
        }
        match &self.sample {
            Some(sample) => check_sample(sample, &nodes),
            None => Ok(()),
        }
    }

    fn host_names(&self) -> impl Iterator<Item = &str> + Clone {
        self.hosts.iter().map(|host| host.name.as_str())
    }

    fn link_names(&self) -> impl Iterator<Item = &str> + Clone {
        self.links.iter().map(|link| link.name.as_str())
    }

    fn check_nodes(&self) -> Result<Nodes<'_>, ConfigError> {
        let (mut nodes, mut names) = (Nodes::new(), BTreeSet::new());
        for (i, switch) in self.switches.iter().enumerate() {
            let here = KeyPath::of("switches", i);
            let sockets = self.check_switch(&here, switch)?;
            here.at("name").once(switch.name.as_str(), &mut names)?;
            nodes.insert(&switch.name, sockets);
        }
        let mut addresses: BTreeMap<IpAddr, &str> = BTreeMap::new();
        for (i, host) in self.hosts.iter().enumerate() {
            let here = KeyPath::of("hosts", i);
            here.at("name").once(host.name.as_str(), &mut names)?;
            nodes.insert(&host.name, Sockets::from([(None, None)]));
            for ip in host.addresses() {
                if let Some(other) = addresses.insert(ip, &host.name) {
                    let key = if ip.is_ipv6() { "ipv6" } else { "ip" };
                    let message = format_args!("{ip} is the address of \"{other}\" already");
                    return Err(here.at(key).error(message));
                }
            }
        }
        Ok(nodes)
    }

    fn check_switch(
        &self,
        here: &KeyPath,
        switch: &SwitchConfig,
    ) -> Result<Sockets<'_>, ConfigError> {
        if let Some(program) = &switch.program {
            let known = self.programs.keys().map(String::as_str);
            here.at("program").one_of(program, known)?;
        }
        if let Some(port) = switch.cpu_port {
            let allowed = format_args!("0 to {PORT_MAX}, or null");
            here.at("cpu_port").allow(port <= PORT_MAX, port, allowed)?;
        }
        let mut ports = BTreeSet::new();
        for (i, settings) in switch.ports.iter().enumerate() {
            let here = here.at(format_args!("ports[{i}]"));
            let port = settings.port;
            let is_allowed = port <= PORT_MAX && Some(port) != switch.cpu_port;
            let allowed = format_args!("0 to {PORT_MAX}, not the CPU port");
            here.at("port").allow(is_allowed, port, allowed)?;
            let device = settings.to_device();
            device.check(port).map_err(|e| here.error(e.message))?;
            let rate_bps = settings.options.rate_bps.as_ref().map_or(0, Rate::bps);
            let is_trace = settings.series().is_some_and(|series| series.is_trace());
            let has_line = self.machine.is_some() && rate_bps > 0 && !is_trace;
            here.at("qdisc").refuse_if(
                settings.qdisc.is_some() && !has_line,
                "needs a machine (`machine`) and the port's rate_bps, which is no delivery trace",
            )?;
            here.at("port").once(port, &mut ports)?;
        }
        Ok(ports.into_iter().map(|port| (Some(port), None)).collect())
    }

    fn check_links<'a>(&'a self, nodes: &mut Nodes<'a>) -> Checked {
        let mut names = BTreeSet::new();
        for (i, link) in self.links.iter().enumerate() {
            let here = KeyPath::of("links", i);
            here.at("name").once(&link.name, &mut names)?;
            let is_allowed = (MTU_MIN..=MTU_MAX).contains(&link.mtu);
            let allowed = format_args!("{MTU_MIN} to {MTU_MAX}");
            here.at("mtu").allow(is_allowed, link.mtu, allowed)?;
            for (name, end) in [("a", &link.a), ("b", &link.b)] {
                plug(&here.at(name), end, &link.name, nodes)?;
            }
            for (name, settings) in [("a_to_b", &link.a_to_b), ("b_to_a", &link.b_to_a)] {
                let options = settings.applied_to(&LinkOptions::default());
                options.map_err(|error| option_error(&here.at(name), &error))?;
            }
        }
        for (i, host) in self.host_names().enumerate() {
            let is_alone = nodes[host][&None].is_none();
            let message = format_args!("\"{host}\" is at no link; a host needs one");
            KeyPath::of("hosts", i).refuse_if(is_alone, message)?;
        }
        Ok(())
    }

    fn check_captures(&self) -> Checked {
        let mut files = BTreeSet::new();
        for (i, capture) in self.captures.iter().enumerate() {
            let here = KeyPath::of("captures", i);
            here.at("link").one_of(&capture.link, self.link_names())?;
            let file = capture.file.display().to_string();
            here.at("file").once(file, &mut files)?;
            if let Some(bytes) = capture.snap_bytes {
                let range = SNAP_BYTES_ALLOWED;
                let allowed = format_args!("{} to {}, or null", range.start(), range.end());
                let at = here.at("snap_bytes");
                at.allow(range.contains(&bytes), bytes, allowed)?;
            }
        }
        Ok(())
    }

    fn check_flows(&self) -> Checked {
        for (i, host) in self.hosts.iter().enumerate() {
            let here = KeyPath::of("hosts", i).at("linux");
            let is_homeless = host.linux.is_some() && self.machine.is_none();
            here.refuse_if(
                is_homeless,
                "is real, and there is no machine: give `machine`",
            )?;
        }
        let hosts = self.hosts.iter().map(|host| (host.name.as_str(), host));
        let hosts: BTreeMap<_, _> = hosts.collect();
        let (mut names, mut used) = (BTreeSet::new(), BTreeMap::new());
        for (i, flow) in self.flows.iter().enumerate() {
            let here = KeyPath::of("flows", i);
            here.at("name").once(&flow.name, &mut names)?;
            self.check_ends(&here, flow, &hosts)?;
            if let Some(stop) = flow.stop_ns {
                let allowed = format_args!("after start_ns ({}), or null", flow.start_ns);
                here.at("stop_ns")
                    .allow(stop > flow.start_ns, stop, allowed)?;
            }
            let from_port = flow.first_port(i);
            for (key, port) in [("to_port", flow.to_port), ("from_port", from_port)] {
                here.at(key).allow(port > 0, 0, "1 to 65535")?;
            }
            let pair = (&flow.from, &flow.to, from_port, flow.to_port);
            if let Some(other) = used.insert(pair, &flow.name) {
                return Err(here.at("from_port").error(format_args!(
                    "{from_port} is used by flow \"{other}\" between the same hosts"
                )));
            }
            let app = here.at("app");
            let checked = flow.app.check();
            checked.map_err(|e| app.at(e.key).not_allowed(e.value, e.allowed))?;
            let tcp = here.at("tcp");
            let checked = flow.tcp.validate();
            checked.map_err(|e| tcp.at(e.key).not_allowed(e.value, e.allowed))?;
        }
        Ok(())
    }

    /// Both hosts of a flow are there, have its version of IP, and are of one kind, which the flow's settings suit.
    fn check_ends(
        &self,
        here: &KeyPath,
        flow: &FlowConfig,
        hosts: &BTreeMap<&str, &HostConfig>,
    ) -> Checked {
        let (from, to) = (&flow.from, &flow.to);
        let host = |key: &str, name: &str| {
            let found = hosts.get(name);
            found.ok_or_else(|| here.at(key).unknown(name, self.host_names()))
        };
        let ends = [host("from", from)?, host("to", to)?];
        if let Some(host) = ends.iter().find(|host| host.address(flow.ipv6).is_none()) {
            let message = format_args!("\"{}\" has no IPv6 address: give it `ipv6`", host.name);
            return Err(here.at("ipv6").error(message));
        }
        let message = format_args!("\"{to}\" is the sender too");
        here.at("to").refuse_if(from == to, message)?;
        let real = ends.iter().filter(|host| host.linux.is_some()).count();
        let message = format_args!(
            "\"{from}\" and \"{to}\": one is real, one simulated; a flow needs two of a kind"
        );
        here.at("to").refuse_if(real == 1, message)?;
        let is_program = matches!(flow.app, App::Command(_));
        let message = "is a program, and the hosts are simulated: give them `linux`";
        here.at("app").refuse_if(real == 0 && is_program, message)?;
        let is_linux = flow.linux != LinuxFlow::default();
        let message = "is of real hosts; simulated ones have `tcp`";
        here.at("linux").refuse_if(real == 0 && is_linux, message)
    }

    /// In the order in which they happen: a setting must fit those that are in force by then.
    fn check_changes(&self, nodes: &Nodes<'_>) -> Checked {
        let at_first = |link: &LinkConfig| {
            let settings = [&link.a_to_b, &link.b_to_a];
            let options = settings.map(|s| s.applied_to(&LinkOptions::default()));
            (link.name.clone(), options.map(Result::unwrap_or_default))
        };
        let mut in_force: BTreeMap<String, _> = self.links.iter().map(at_first).collect();
        let mut order: Vec<_> = self.changes.iter().enumerate().collect();
        order.sort_by_key(|(_, change)| change.at_ns);
        let lines = machine::lines(self);
        for (i, change) in order {
            let here = KeyPath::of("changes", i);
            self.check_change(&here, change, nodes, &lines)?;
            let options = change.link.as_ref().and_then(|link| in_force.get_mut(link));
            if let (Some(options), Some(settings)) = (options, &change.set) {
                for options in &mut options[change.direction.unwrap_or_default().indices()] {
                    let changed = settings.applied_to(options);
                    *options = changed.map_err(|e| option_error(&here.at("set"), &e))?;
                }
            }
        }
        Ok(())
    }

    fn check_change(
        &self,
        here: &KeyPath,
        change: &Change,
        nodes: &Nodes<'_>,
        lines: &[Line],
    ) -> Checked {
        let not_of = |with: &str, keys: &str, is_given: bool| {
            let message = format_args!("is not a setting of a {with}");
            here.at(keys).refuse_if(is_given, message)
        };
        let (rate, packets) = (change.rate_bps.is_some(), change.queue_packets.is_some());
        let (set, spike) = (change.set.is_some(), change.spike_ns.is_some());
        let (blocks, outage) = (change.spike_blocks.is_some(), change.outage_ns.is_some());
        match (&change.link, &change.switch) {
            (Some(link), None) => {
                here.at("link").one_of(link, self.link_names())?;
                not_of("link", "port", change.port.is_some())?;
                let with = "link itself: write it into \"set\"";
                not_of(with, "rate_bps or queue_packets", rate || packets)?;
                let message = "says what a spike blocks; spike_ns is missing";
                here.at("spike_blocks")
                    .refuse_if(blocks && !spike, message)?;
                let message = "changes nothing; allowed: set, spike_ns, outage_ns";
                here.refuse_if(!(set || spike || outage), message)
            }
            (None, Some(switch)) => {
                not_of("switch port", "direction", change.direction.is_some())?;
                let keys = "set, spike_blocks or outage_ns";
                not_of("switch port", keys, set || blocks || outage)?;
                check_port(here, switch, change.port, nodes)?;
                let port = change.port.unwrap_or_default();
                let is_line = lines.iter().any(|line| line.is_of(switch, port));
                let with = "port whose queue is the kernel's; it has: rate_bps";
                let keys = "queue_packets or spike_ns";
                not_of(with, keys, is_line && (packets || spike))?;
                let message = "changes nothing; allowed: rate_bps, queue_packets, spike_ns";
                here.refuse_if(!(rate || packets || spike), message)?;
                let options = PortChange {
                    rate_bps: change.rate_bps.clone(),
                    queue_packets: change.queue_packets,
                    ..PortChange::default()
                };
                let config = options.applied_to(&PortConfig::default());
                config
                    .check(port)
                    .map_err(|error| here.error(error.message))
            }
            _ => Err(here.error("needs either \"link\" or \"switch\" with \"port\"")),
        }
    }
}

fn plug<'a>(here: &KeyPath, end: &End, link: &'a str, nodes: &mut Nodes<'a>) -> Checked {
    let (node, at) = (&*end.node, here.at("port"));
    here.at("node").one_of(node, nodes.keys().copied())?;
    match end.port {
        Some(port) if is_host(&nodes[node]) => {
            let message =
                format_args!("{port} is given, but \"{node}\" is a host: it has one interface");
            return Err(at.error(message));
        }
        None if !is_host(&nodes[node]) => {
            return Err(at.error(format_args!("is missing: which port of switch \"{node}\"")))
        }
        None => {}
        port => check_port(here, node, port, nodes)?,
    }
    let socket = nodes
        .get_mut(node)
        .and_then(|sockets| sockets.get_mut(&end.port));
    match socket.and_then(|socket| socket.replace(link)) {
        None => Ok(()),
        Some(other) => {
            let message = format_args!("link \"{other}\" is plugged in there already");
            Err(here.error(message))
        }
    }
}

fn option_error(here: &KeyPath, error: &LinkOptionError) -> ConfigError {
    here.at(&error.key).error(&error.message)
}

fn check_sample(sample: &Sample, nodes: &Nodes<'_>) -> Checked {
    let (period, here) = (sample.period_ns, KeyPath::new("sample"));
    let allowed = format_args!("{SAMPLE_PERIOD_NS_MIN} or more");
    here.at("period_ns")
        .allow(period >= SAMPLE_PERIOD_NS_MIN, period, allowed)?;
    for (i, port) in sample.ports.iter().enumerate() {
        let here = here.at(format_args!("ports[{i}]"));
        check_port(&here, &port.switch, Some(port.port), nodes)?;
    }
    for (i, register) in sample.registers.iter().enumerate() {
        let here = here.at(format_args!("registers[{i}]"));
        check_switch_name(&here, &register.switch, nodes)?;
    }
    Ok(())
}

fn check_switch_name(here: &KeyPath, switch: &str, nodes: &Nodes<'_>) -> Checked {
    let switches = nodes.iter().filter(|(_, sockets)| !is_host(sockets));
    here.at("switch")
        .one_of(switch, switches.map(|(name, _)| *name))
}

fn check_port(here: &KeyPath, switch: &str, port: Option<u32>, nodes: &Nodes<'_>) -> Checked {
    check_switch_name(here, switch, nodes)?;
    let ports = &nodes[switch];
    let known: Vec<_> = ports.keys().flatten().map(u32::to_string).collect();
    let (known, at) = (known.join(", "), here.at("port"));
    match port {
        None => Err(at.error(format_args!("is missing; allowed: {known}"))),
        Some(number) => {
            let allowed = format_args!("a port of \"{switch}\": {known}");
            at.allow(ports.contains_key(&port), number, allowed)
        }
    }
}
