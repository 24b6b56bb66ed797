// SPDX-License-Identifier: Apache-2.0
//! The checks that need more than one key: names that refer to each other, ranges, ends that are used once.

use super::{App, Change, Config, Distribution, End, LinkConfig, LinuxFlow, Sample};
use crate::error::{listed, ConfigError};
use crate::machine;
use capture::SNAP_BYTES_ALLOWED;
use device::{PortChange, PortConfig, Rate};
use std::collections::BTreeMap;
use std::fmt::Display;
use std::net::IpAddr;
use std::ops::RangeInclusive;
use traffic::link::{LinkOptionError, LinkOptions};
use uml::plan::Line;

type Checked = Result<(), ConfigError>;

/// The shortest period of sampling.
const SAMPLE_PERIOD_NS_MIN: u64 = 1_000;
/// Largest payload of UDP in IPv4.
const UDP_PAYLOAD_MAX: u64 = 65_535 - 28;
const RATES_BPS: RangeInclusive<u64> = 1..=400_000_000_000;
const THREADS_MAX: usize = 1_024;
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
        self.check_captures()?;
        if let Some(threads) = self.threads {
            let is_allowed = (1..=THREADS_MAX).contains(&threads);
            let allowed = format!("1 to {THREADS_MAX}, or null");
            allow(is_allowed, "threads".to_owned(), threads, allowed)?;
        }
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
            if let Some(port) = switch.cpu_port {
                let allowed = format!("0 to {PORT_MAX}, or null");
                allow(port <= PORT_MAX, format!("{here}.cpu_port"), port, allowed)?;
            }
            let mut ports = BTreeMap::new();
            for (j, settings) in switch.ports.iter().enumerate() {
                let here = format!("{here}.ports[{j}]");
                let port = settings.port;
                let is_allowed = port <= PORT_MAX && Some(port) != switch.cpu_port;
                let allowed = format!("0 to {PORT_MAX}, not the CPU port");
                allow(is_allowed, format!("{here}.port"), port, allowed)?;
                settings
                    .to_device()
                    .check(port)
                    .map_err(|error| ConfigError::new(&here, error.message))?;
                let rate_bps = settings.options.rate_bps.as_ref().map_or(0, Rate::bps);
                let is_trace = settings.series().is_some_and(|series| series.is_trace());
                let has_rate = rate_bps > 0 && !is_trace;
                if settings.qdisc.is_some() && (self.machine.is_none() || !has_rate) {
                    let message = "needs a machine (`machine`) and the port's rate_bps, which is no delivery trace";
                    return Err(ConfigError::new(format!("{here}.qdisc"), message));
                }
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
        let mut addresses: BTreeMap<IpAddr, &str> = BTreeMap::new();
        for (i, host) in self.hosts.iter().enumerate() {
            if nodes.insert(host.name.as_str(), Node::Host(None)).is_some() {
                return Err(twice(format!("hosts[{i}].name"), &host.name));
            }
            for ip in host.addresses() {
                if let Some(other) = addresses.insert(ip, &host.name) {
                    let key = if ip.is_ipv6() { "ipv6" } else { "ip" };
                    return Err(ConfigError::new(
                        format!("hosts[{i}].{key}"),
                        format!("{ip} is the address of \"{other}\" already"),
                    ));
                }
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
                let options = settings.applied_to(&LinkOptions::default());
                options.map_err(|error| option_error(&format!("{here}.{name}"), error))?;
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

    fn check_captures(&self) -> Checked {
        let named = |name: &str| self.links.iter().any(|link| link.name == name);
        for (i, capture) in self.captures.iter().enumerate() {
            let here = format!("captures[{i}]");
            if !named(&capture.link) {
                let known = listed(self.links.iter().map(|link| link.name.as_str()));
                return Err(unknown(format!("{here}.link"), &capture.link, known));
            }
            let mut others = self.captures[..i].iter();
            if others.any(|other| other.file == capture.file) {
                let file = capture.file.display().to_string();
                return Err(twice(format!("{here}.file"), &file));
            }
            if let Some(bytes) = capture.snap_bytes {
                let range = SNAP_BYTES_ALLOWED;
                let allowed = format!("{} to {}, or null", range.start(), range.end());
                let is_allowed = range.contains(&bytes);
                allow(is_allowed, format!("{here}.snap_bytes"), bytes, allowed)?;
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
            if flow.ipv6 {
                let mut ends = self.hosts.iter();
                let without = ends.find(|host| {
                    host.ipv6.is_none() && (host.name == flow.from || host.name == flow.to)
                });
                if let Some(host) = without {
                    let message = format!("\"{}\" has no IPv6 address: give it `ipv6`", host.name);
                    return Err(ConfigError::new(format!("{here}.ipv6"), message));
                }
            }
            if flow.from == flow.to {
                let message = format!("\"{}\" is the sender too", flow.to);
                return Err(ConfigError::new(format!("{here}.to"), message));
            }
            if let Some(stop) = flow.stop_ns {
                let allowed = format!("after start_ns ({}), or null", flow.start_ns);
                allow(
                    stop > flow.start_ns,
                    format!("{here}.stop_ns"),
                    stop,
                    allowed,
                )?;
            }
            let from_port = flow.first_port(i);
            for (key, port) in [("to_port", flow.to_port), ("from_port", from_port)] {
                allow(port > 0, format!("{here}.{key}"), 0, "1 to 65535")?;
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
            let here = format!("changes[{i}]");
            self.check_change(&here, change, nodes, &lines)?;
            let options = change.link.as_ref().and_then(|link| in_force.get_mut(link));
            if let (Some(options), Some(settings)) = (options, &change.set) {
                for options in &mut options[change.direction.unwrap_or_default().indices()] {
                    let changed = settings.applied_to(options);
                    *options = changed.map_err(|e| option_error(&format!("{here}.set"), e))?;
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
        lines: &[Line],
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
                let options = PortChange {
                    rate_bps: change.rate_bps.clone(),
                    queue_packets: change.queue_packets,
                    ..PortChange::default()
                };
                if lines.iter().any(|line| line.is_of(switch, port))
                    && (change.queue_packets.is_some() || change.spike_ns.is_some())
                {
                    let with = "port whose queue is the kernel's; it has: rate_bps";
                    return refused("queue_packets or spike_ns", with);
                }
                if change.rate_bps.is_none()
                    && change.queue_packets.is_none()
                    && change.spike_ns.is_none()
                {
                    let message = "changes nothing; allowed: rate_bps, queue_packets, spike_ns";
                    return Err(ConfigError::new(here, message));
                }
                options
                    .applied_to(&PortConfig::default())
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
    let (node, key) = (&*end.node, format!("{here}.port"));
    let socket = match (nodes.get(node), end.port) {
        (Some(Node::Host(_)), Some(port)) => {
            let message =
                format!("{port} is given, but \"{node}\" is a host: it has one interface");
            return Err(ConfigError::new(key, message));
        }
        (Some(Node::Switch(_)), None) => {
            let message = format!("is missing: which port of switch \"{node}\"");
            return Err(ConfigError::new(key, message));
        }
        (Some(Node::Switch(_)), port) => {
            check_port(here, node, port, nodes)?;
            port
        }
        (Some(Node::Host(_)), None) => None,
        (None, _) => {
            let names = listed(nodes.keys().copied());
            return Err(unknown(format!("{here}.node"), node, names));
        }
    };
    let socket = match (nodes.get_mut(node), socket) {
        (Some(Node::Switch(ports)), Some(port)) => ports.entry(port).or_default(),
        (Some(Node::Host(socket)), _) => socket,
        _ => return Ok(()),
    };
    match socket.replace(link) {
        None => Ok(()),
        Some(other) => Err(ConfigError::new(
            here,
            format!("link \"{other}\" is plugged in there already"),
        )),
    }
}

fn option_error(here: &str, error: LinkOptionError) -> ConfigError {
    ConfigError::new(format!("{here}.{}", error.key), error.message)
}

/// # Errors
/// The value is not allowed, unless `is_allowed`.
fn allow(is_allowed: bool, path: String, given: impl Display, allowed: impl Display) -> Checked {
    match is_allowed {
        true => Ok(()),
        false => Err(ConfigError::value(path, given, allowed)),
    }
}

fn check_app(here: &str, app: &App) -> Checked {
    let key = |key: &str| format!("{here}.{key}");
    let positive = |name: &str, value: u64| allow(value > 0, key(name), 0, "1 or more");
    let shape = |distribution: Distribution, shape: f64| {
        let has_mean = shape > 1.0 && shape <= 100.0;
        let allowed = "above 1 (below, a Pareto distribution has no mean), at most 100";
        let is_allowed = distribution != Distribution::Pareto || has_mean;
        allow(is_allowed, key("shape"), shape, allowed)
    };
    match app {
        App::Greedy => Ok(()),
        App::Command(app) => {
            let allowed = "the file of a static program, then its arguments";
            allow(!app.sender.is_empty(), key("sender"), "[]", allowed)
        }
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
            let rate = app.arrivals_per_s;
            let allowed =
                format!("above 0, at most {ARRIVALS_PER_S_MAX} (a flow's ports rest for 60 s)");
            let is_allowed = rate > 0.0 && rate <= ARRIVALS_PER_S_MAX;
            allow(is_allowed, key("arrivals_per_s"), rate, allowed)?;
            positive("mean_bytes", app.mean_bytes)?;
            shape(app.distribution, app.shape)
        }
        App::Interactive(app) => {
            positive("bytes", app.bytes)?;
            positive("interval_ns", app.interval_ns)
        }
        App::Video(app) => {
            let rates = &app.bitrates_bps;
            let rise = rates.len() >= 2 && rates.windows(2).all(|pair| pair[0] < pair[1]);
            allow(
                rise && rates.iter().all(|rate| RATES_BPS.contains(rate)),
                key("bitrates_bps"),
                format_args!("{rates:?}"),
                "two or more rates of 1 to 400000000000 bit/s, each above the one before",
            )?;
            positive("segment_ns", app.segment_ns)?;
            positive("cushion_ns", app.cushion_ns)?;
            allow(
                u128::from(rates[0]) * u128::from(app.segment_ns) >= 8_000_000_000,
                key("segment_ns"),
                app.segment_ns,
                "at least a byte at the lowest rate",
            )?;
            let times = [app.reservoir_ns, app.cushion_ns, app.segment_ns];
            allow(
                times.map(u128::from).iter().sum::<u128>() <= app.buffer_ns.into(),
                key("buffer_ns"),
                app.buffer_ns,
                "at least reservoir_ns + cushion_ns + segment_ns: it asks when a segment has room",
            )
        }
        App::CbrUdp(app) => {
            let (rate, bytes) = (app.rate_bps, app.payload_bytes);
            let is_rate = RATES_BPS.contains(&rate);
            allow(is_rate, key("rate_bps"), rate, "1 to 400000000000 bit/s")?;
            let is_payload = (1..=UDP_PAYLOAD_MAX).contains(&bytes);
            let allowed = format!("1 to {UDP_PAYLOAD_MAX}");
            allow(is_payload, key("payload_bytes"), bytes, allowed)
        }
    }
}

fn check_sample(sample: &Sample, nodes: &BTreeMap<&str, Node<'_>>) -> Checked {
    let (period, allowed) = (sample.period_ns, format!("{SAMPLE_PERIOD_NS_MIN} or more"));
    let is_allowed = period >= SAMPLE_PERIOD_NS_MIN;
    allow(is_allowed, "sample.period_ns".to_owned(), period, allowed)?;
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
    let (known, key) = (known.join(", "), format!("{here}.port"));
    let Some(port) = port else {
        return Err(ConfigError::new(
            key,
            format!("is missing; allowed: {known}"),
        ));
    };
    let allowed = format!("a port of \"{switch}\": {known}");
    allow(ports.contains_key(&port), key, port, allowed)
}
