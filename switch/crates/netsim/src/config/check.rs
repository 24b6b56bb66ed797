// SPDX-License-Identifier: Apache-2.0
//! The checks that need more than one key: names that refer to each other, ranges, ends that are used once.

use super::{App, Change, Config, Distribution, End, LinkConfig, LinkSettings, LinuxFlow, Sample};
use crate::error::{listed, ConfigError};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use traffic::link::LinkOptions;

type Checked = Result<(), ConfigError>;

/// The shortest period of sampling.
const SAMPLE_PERIOD_NS_MIN: u64 = 1_000;
/// Largest payload of UDP in IPv4.
const UDP_PAYLOAD_MAX: u64 = 65_535 - 28;
/// Arrivals of one web source: its 45,000 ports are not used again within 60 s.
const ARRIVALS_PER_S_MAX: f64 = 700.0;

/// What a node is and what is plugged in where.
enum Node<'a> {
    Switch(BTreeMap<u32, Option<&'a str>>),
    Host(Option<&'a str>),
}

impl Config {
    /// Checks everything that can be checked without building it.
    ///
    /// # Errors
    /// [`ConfigError`] with the path of the first fault.
    pub fn check(&self) -> Result<(), ConfigError> {
        let mut nodes = self.check_nodes()?;
        self.check_links(&mut nodes)?;
        self.check_flows(&nodes)?;
        self.check_machine()?;
        self.check_changes(&nodes)?;
        match &self.sample {
            Some(sample) => check_sample(sample, &nodes),
            None => Ok(()),
        }
    }

    fn check_nodes(&self) -> Result<BTreeMap<&str, Node<'_>>, ConfigError> {
        let mut nodes = BTreeMap::new();
        for (i, switch) in self.switches.iter().enumerate() {
            let here = format!("switches[{i}]");
            if let Some(program) = &switch.program {
                if !self.programs.contains_key(program) {
                    let known = listed(self.programs.keys().map(String::as_str));
                    return Err(unknown(format!("{here}.program"), program, known));
                }
            }
            if let Some(port) = switch.cpu_port.filter(|port| *port > PORT_MAX) {
                return Err(ConfigError::value(
                    format!("{here}.cpu_port"),
                    port,
                    format!("0 to {PORT_MAX}, or null"),
                ));
            }
            let mut ports = BTreeMap::new();
            for (j, settings) in switch.ports.iter().enumerate() {
                let here = format!("{here}.ports[{j}]");
                let port = settings.port;
                if port > PORT_MAX || Some(port) == switch.cpu_port {
                    return Err(ConfigError::value(
                        format!("{here}.port"),
                        port,
                        format!("0 to {PORT_MAX}, not the CPU port"),
                    ));
                }
                settings
                    .to_device()
                    .check(port)
                    .map_err(|error| ConfigError::new(&here, error.message))?;
                if ports.insert(port, None).is_some() {
                    return Err(twice(format!("{here}.port"), &port.to_string()));
                }
            }
            if nodes
                .insert(switch.name.as_str(), Node::Switch(ports))
                .is_some()
            {
                return Err(twice(format!("{here}.name"), &switch.name));
            }
        }
        let mut addresses: BTreeMap<Ipv4Addr, &str> = BTreeMap::new();
        for (i, host) in self.hosts.iter().enumerate() {
            if nodes.insert(host.name.as_str(), Node::Host(None)).is_some() {
                return Err(twice(format!("hosts[{i}].name"), &host.name));
            }
            if let Some(other) = addresses.insert(host.ip, &host.name) {
                return Err(ConfigError::new(
                    format!("hosts[{i}].ip"),
                    format!("{} is the address of \"{other}\" already", host.ip),
                ));
            }
        }
        Ok(nodes)
    }

    fn check_links<'a>(&'a self, nodes: &mut BTreeMap<&str, Node<'a>>) -> Checked {
        for (i, link) in self.links.iter().enumerate() {
            let here = format!("links[{i}]");
            if self.links[..i].iter().any(|other| other.name == link.name) {
                return Err(twice(format!("{here}.name"), &link.name));
            }
            for (name, end) in [("a", &link.a), ("b", &link.b)] {
                plug(&format!("{here}.{name}"), end, &link.name, nodes)?;
            }
            for (name, settings) in [("a_to_b", &link.a_to_b), ("b_to_a", &link.b_to_a)] {
                check_settings(&format!("{here}.{name}"), settings)?;
            }
        }
        for (i, host) in self.hosts.iter().enumerate() {
            if let Some(Node::Host(None)) = nodes.get(host.name.as_str()) {
                let message = format!("\"{}\" is at no link; a host needs one", host.name);
                return Err(ConfigError::new(format!("hosts[{i}]"), message));
            }
        }
        Ok(())
    }

    fn check_flows(&self, nodes: &BTreeMap<&str, Node<'_>>) -> Checked {
        let mut used = BTreeMap::new();
        for (i, flow) in self.flows.iter().enumerate() {
            let here = format!("flows[{i}]");
            if self.flows[..i].iter().any(|other| other.name == flow.name) {
                return Err(twice(format!("{here}.name"), &flow.name));
            }
            for (key, host) in [("from", &flow.from), ("to", &flow.to)] {
                if !matches!(nodes.get(host.as_str()), Some(Node::Host(_))) {
                    let known = listed(self.hosts.iter().map(|host| host.name.as_str()));
                    return Err(unknown(format!("{here}.{key}"), host, known));
                }
            }
            if flow.from == flow.to {
                let message = format!("\"{}\" is the sender too", flow.to);
                return Err(ConfigError::new(format!("{here}.to"), message));
            }
            if let Some(stop) = flow.stop_ns.filter(|stop| *stop <= flow.start_ns) {
                let allowed = format!("after start_ns ({}), or null", flow.start_ns);
                return Err(ConfigError::value(format!("{here}.stop_ns"), stop, allowed));
            }
            let from_port = flow.first_port(i);
            if from_port == 0 || flow.to_port == 0 {
                let key = if flow.to_port == 0 {
                    "to_port"
                } else {
                    "from_port"
                };
                return Err(ConfigError::value(format!("{here}.{key}"), 0, "1 to 65535"));
            }
            let pair = (&flow.from, &flow.to, from_port, flow.to_port);
            if let Some(other) = used.insert(pair, &flow.name) {
                let message =
                    format!("{from_port} is used by flow \"{other}\" between the same hosts");
                return Err(ConfigError::new(format!("{here}.from_port"), message));
            }
            check_app(&format!("{here}.app"), &flow.app)?;
            flow.tcp.validate().map_err(|error| {
                let path = format!("{here}.tcp.{}", error.key);
                ConfigError::new(
                    path,
                    format!("{} is not allowed; {}", error.value, error.allowed),
                )
            })?;
        }
        Ok(())
    }

    /// Real hosts need a machine, and each of their flows another real host.
    fn check_machine(&self) -> Checked {
        let is_linux = |name: &str| {
            let mut hosts = self.hosts.iter();
            hosts.any(|host| host.name == name && host.linux.is_some())
        };
        let real = self.hosts.iter().position(|host| host.linux.is_some());
        if let (Some(i), None) = (real, &self.machine) {
            let message = "is real, and there is no machine: give `machine`".to_owned();
            return Err(ConfigError::new(format!("hosts[{i}].linux"), message));
        }
        for (i, flow) in self.flows.iter().enumerate() {
            let here = format!("flows[{i}]");
            let ends = [is_linux(&flow.from), is_linux(&flow.to)];
            if ends[0] != ends[1] {
                let message = format!(
                    "\"{}\" and \"{}\": one is real, one simulated; a flow needs two of a kind",
                    flow.from, flow.to
                );
                return Err(ConfigError::new(format!("{here}.to"), message));
            }
            if !ends[0] && matches!(flow.app, App::Command(_)) {
                let message =
                    "is a program, and the hosts are simulated: give them `linux`".to_owned();
                return Err(ConfigError::new(format!("{here}.app"), message));
            }
            if !ends[0] && flow.linux != LinuxFlow::default() {
                let message = "is of real hosts; simulated ones have `tcp`".to_owned();
                return Err(ConfigError::new(format!("{here}.linux"), message));
            }
        }
        Ok(())
    }

    /// In the order in which they happen: a setting must fit those that are in force by then.
    fn check_changes(&self, nodes: &BTreeMap<&str, Node<'_>>) -> Checked {
        let perfect = LinkOptions::default();
        let at_first = |link: &LinkConfig| {
            let options = [&link.a_to_b, &link.b_to_a].map(|s| s.applied_to(&perfect));
            (link.name.clone(), options)
        };
        let mut in_force: BTreeMap<String, _> = self.links.iter().map(at_first).collect();
        let mut order: Vec<_> = self.changes.iter().enumerate().collect();
        order.sort_by_key(|(_, change)| change.at_ns);
        for (i, change) in order {
            let here = format!("changes[{i}]");
            self.check_change(&here, change, nodes)?;
            let options = change.link.as_ref().and_then(|link| in_force.get_mut(link));
            if let (Some(options), Some(settings)) = (options, &change.set) {
                for options in &mut options[change.direction.unwrap_or_default().indices()] {
                    *options = settings.applied_to(options);
                    options
                        .check()
                        .map_err(|error| option_error(&format!("{here}.set"), &error))?;
                }
            }
        }
        Ok(())
    }

    fn check_change(
        &self,
        here: &str,
        change: &Change,
        nodes: &BTreeMap<&str, Node<'_>>,
    ) -> Checked {
        let refused = |key: &str, with: &str| {
            Err(ConfigError::new(
                format!("{here}.{key}"),
                format!("is not a setting of a {with}"),
            ))
        };
        match (&change.link, &change.switch) {
            (Some(link), None) => {
                if !self.links.iter().any(|other| other.name == *link) {
                    let known = listed(self.links.iter().map(|link| link.name.as_str()));
                    return Err(unknown(format!("{here}.link"), link, known));
                }
                if change.port.is_some() {
                    return refused("port", "link");
                }
                if change.rate_bps.is_some() || change.queue_packets.is_some() {
                    return refused(
                        "rate_bps or queue_packets",
                        "link itself: write it into \"set\"",
                    );
                }
                if change.spike_blocks.is_some() && change.spike_ns.is_none() {
                    let message = "says what a spike blocks; spike_ns is missing";
                    return Err(ConfigError::new(format!("{here}.spike_blocks"), message));
                }
                if change.set.is_none() && change.spike_ns.is_none() && change.outage_ns.is_none() {
                    let message = "changes nothing; allowed: set, spike_ns, outage_ns";
                    return Err(ConfigError::new(here, message));
                }
                Ok(())
            }
            (None, Some(switch)) => {
                if change.direction.is_some() {
                    return refused("direction", "switch port");
                }
                if change.set.is_some()
                    || change.spike_blocks.is_some()
                    || change.outage_ns.is_some()
                {
                    return refused("set, spike_blocks or outage_ns", "switch port");
                }
                check_port(here, switch, change.port, nodes)?;
                let port = change.port.unwrap_or_default();
                let mut settings = super::PortSettings::plain(port);
                settings.rate_bps = change.rate_bps.unwrap_or(settings.rate_bps);
                settings.queue_packets = change.queue_packets.unwrap_or(settings.queue_packets);
                if change.rate_bps.is_none()
                    && change.queue_packets.is_none()
                    && change.spike_ns.is_none()
                {
                    let message = "changes nothing; allowed: rate_bps, queue_packets, spike_ns";
                    return Err(ConfigError::new(here, message));
                }
                settings
                    .to_device()
                    .check(port)
                    .map_err(|error| ConfigError::new(here, error.message))
            }
            _ => Err(ConfigError::new(
                here,
                "needs either \"link\" or \"switch\" with \"port\"",
            )),
        }
    }
}

const PORT_MAX: u32 = device::config::PORT_MAX;

fn unknown(path: String, given: &str, known: String) -> ConfigError {
    ConfigError::new(path, format!("there is no \"{given}\"; there are: {known}"))
}

fn twice(path: String, given: &str) -> ConfigError {
    ConfigError::new(path, format!("\"{given}\" is there twice"))
}

fn plug<'a>(here: &str, end: &End, link: &'a str, nodes: &mut BTreeMap<&str, Node<'a>>) -> Checked {
    let names = listed(nodes.keys().copied());
    let socket = match (nodes.get_mut(end.node.as_str()), end.port) {
        (None, _) => return Err(unknown(format!("{here}.node"), &end.node, names)),
        (Some(Node::Host(socket)), None) => socket,
        (Some(Node::Host(_)), Some(port)) => {
            let message = format!(
                "{port} is given, but \"{}\" is a host: it has one interface",
                end.node
            );
            return Err(ConfigError::new(format!("{here}.port"), message));
        }
        (Some(Node::Switch(_)), None) => {
            let message = format!("is missing: which port of switch \"{}\"", end.node);
            return Err(ConfigError::new(format!("{here}.port"), message));
        }
        (Some(Node::Switch(ports)), Some(port)) => {
            let known: Vec<String> = ports.keys().map(u32::to_string).collect();
            match ports.get_mut(&port) {
                Some(socket) => socket,
                None => {
                    let allowed = format!("a port of \"{}\": {}", end.node, known.join(", "));
                    return Err(ConfigError::value(format!("{here}.port"), port, allowed));
                }
            }
        }
    };
    match socket.replace(link) {
        None => Ok(()),
        Some(other) => Err(ConfigError::new(
            here,
            format!("link \"{other}\" is plugged in there already"),
        )),
    }
}

fn check_settings(here: &str, settings: &LinkSettings) -> Checked {
    let options = settings.applied_to(&LinkOptions::default());
    options.check().map_err(|error| option_error(here, &error))
}

fn option_error(here: &str, error: &traffic::link::LinkOptionError) -> ConfigError {
    ConfigError::value(
        format!("{here}.{}", error.key),
        &error.value,
        &error.allowed,
    )
}

fn check_app(here: &str, app: &App) -> Checked {
    let positive = |key: &str, value: u64| match value {
        0 => Err(ConfigError::value(format!("{here}.{key}"), 0, "1 or more")),
        _ => Ok(()),
    };
    let shape = |distribution: Distribution, shape: f64| {
        if distribution == Distribution::Pareto && !(shape > 1.0 && shape <= 100.0) {
            let allowed = "above 1 (below, a Pareto distribution has no mean), at most 100";
            return Err(ConfigError::value(format!("{here}.shape"), shape, allowed));
        }
        Ok(())
    };
    match app {
        App::Greedy => Ok(()),
        App::Command(app) => match app.sender.first() {
            Some(_) => Ok(()),
            None => {
                let allowed = "the file of a static program, then its arguments";
                Err(ConfigError::value(format!("{here}.sender"), "[]", allowed))
            }
        },
        App::Bytes(app) => {
            positive("bytes", app.bytes)?;
            positive("times", app.times)?;
            match app.times {
                1 => Ok(()),
                _ => positive("interval_ns", app.interval_ns),
            }
        }
        App::OnOff(app) => {
            positive("on_mean_ns", app.on_mean_ns)?;
            positive("off_mean_ns", app.off_mean_ns)?;
            shape(app.distribution, app.shape)
        }
        App::Web(app) => {
            if !(app.arrivals_per_s > 0.0 && app.arrivals_per_s <= ARRIVALS_PER_S_MAX) {
                return Err(ConfigError::value(
                    format!("{here}.arrivals_per_s"),
                    app.arrivals_per_s,
                    format!("above 0, at most {ARRIVALS_PER_S_MAX} (a flow's ports rest for 60 s)"),
                ));
            }
            positive("mean_bytes", app.mean_bytes)?;
            shape(app.distribution, app.shape)
        }
        App::Interactive(app) => {
            positive("bytes", app.bytes)?;
            positive("interval_ns", app.interval_ns)
        }
        App::Video(app) => {
            let rates = &app.bitrates_bps;
            let rises = rates.windows(2).all(|pair| pair[0] < pair[1]);
            let is_in_range = |rate: &u64| (1..=400_000_000_000).contains(rate);
            if rates.len() < 2 || !rises || !rates.iter().all(is_in_range) {
                return Err(ConfigError::value(
                    format!("{here}.bitrates_bps"),
                    format_args!("{rates:?}"),
                    "two or more rates of 1 to 400000000000 bit/s, each above the one before",
                ));
            }
            positive("segment_ns", app.segment_ns)?;
            positive("cushion_ns", app.cushion_ns)?;
            if u128::from(rates[0]) * u128::from(app.segment_ns) < 8_000_000_000 {
                let allowed = "at least a byte at the lowest rate";
                return Err(ConfigError::value(
                    format!("{here}.segment_ns"),
                    app.segment_ns,
                    allowed,
                ));
            }
            let needs = app
                .reservoir_ns
                .checked_add(app.cushion_ns)
                .and_then(|full| full.checked_add(app.segment_ns));
            match needs {
                Some(needs) if needs <= app.buffer_ns => Ok(()),
                _ => Err(ConfigError::value(
                    format!("{here}.buffer_ns"),
                    app.buffer_ns,
                    "at least reservoir_ns + cushion_ns + segment_ns: it asks when a segment has room",
                )),
            }
        }
        App::CbrUdp(app) => {
            if app.rate_bps == 0 || app.rate_bps > 400_000_000_000 {
                let allowed = "1 to 400000000000 bit/s";
                return Err(ConfigError::value(
                    format!("{here}.rate_bps"),
                    app.rate_bps,
                    allowed,
                ));
            }
            if app.payload_bytes == 0 || app.payload_bytes > UDP_PAYLOAD_MAX {
                return Err(ConfigError::value(
                    format!("{here}.payload_bytes"),
                    app.payload_bytes,
                    format!("1 to {UDP_PAYLOAD_MAX}"),
                ));
            }
            Ok(())
        }
    }
}

fn check_sample(sample: &Sample, nodes: &BTreeMap<&str, Node<'_>>) -> Checked {
    if sample.period_ns < SAMPLE_PERIOD_NS_MIN {
        return Err(ConfigError::value(
            "sample.period_ns",
            sample.period_ns,
            format!("{SAMPLE_PERIOD_NS_MIN} or more"),
        ));
    }
    for (i, port) in sample.ports.iter().enumerate() {
        let here = format!("sample.ports[{i}]");
        check_port(&here, &port.switch, Some(port.port), nodes)?;
    }
    for (i, register) in sample.registers.iter().enumerate() {
        let here = format!("sample.registers[{i}].switch");
        switch_ports(&here, &register.switch, nodes)?;
    }
    Ok(())
}

fn switch_ports<'a, 'b>(
    here: &str,
    switch: &str,
    nodes: &'b BTreeMap<&str, Node<'a>>,
) -> Result<&'b BTreeMap<u32, Option<&'a str>>, ConfigError> {
    match nodes.get(switch) {
        Some(Node::Switch(ports)) => Ok(ports),
        _ => {
            let switches = nodes.iter().filter(|(_, n)| matches!(n, Node::Switch(_)));
            let known = listed(switches.map(|(name, _)| *name));
            Err(unknown(here.to_owned(), switch, known))
        }
    }
}

fn check_port(
    here: &str,
    switch: &str,
    port: Option<u32>,
    nodes: &BTreeMap<&str, Node<'_>>,
) -> Checked {
    let ports = switch_ports(&format!("{here}.switch"), switch, nodes)?;
    let known: Vec<String> = ports.keys().map(u32::to_string).collect();
    match port {
        Some(port) if ports.contains_key(&port) => Ok(()),
        Some(port) => Err(ConfigError::value(
            format!("{here}.port"),
            port,
            format!("a port of \"{switch}\": {}", known.join(", ")),
        )),
        None => Err(ConfigError::new(
            format!("{here}.port"),
            format!("is missing; allowed: {}", known.join(", ")),
        )),
    }
}
