// SPDX-License-Identifier: Apache-2.0
//! What there is and what happens: from JSON, read and checked as a whole before anything is built.

mod change;
mod check;
mod link;
mod node;

pub use apps::{App, Bytes, CbrUdp, Command, Distribution, Interactive, OnOff, Video, Web};
pub use change::{Change, PortSample, RegisterSample, Sample};
pub(crate) use link::DEFAULT_MTU;
pub use link::{CaptureConfig, Direction, End, LinkConfig, LinkSettings, Side};
pub use node::{
    HostConfig, LinuxFlow, LinuxHost, Mac, MachineConfig, PortSettings, Program, SwitchConfig,
};

use crate::error::ConfigError;
use device::Nanos;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use tcp::TcpConfig;

/// The whole configuration. Times in ns, rates in bit/s.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Of all chance.
    #[serde(default)]
    pub seed: u64,
    /// P4 programs by name.
    #[serde(default)]
    pub programs: BTreeMap<String, Program>,
    #[serde(default)]
    pub switches: Vec<SwitchConfig>,
    #[serde(default)]
    pub hosts: Vec<HostConfig>,
    #[serde(default)]
    pub links: Vec<LinkConfig>,
    #[serde(default)]
    pub flows: Vec<FlowConfig>,
    /// What changes while it runs, at given instants.
    #[serde(default)]
    pub changes: Vec<Change>,
    /// Links whose frames go into files.
    #[serde(default)]
    pub captures: Vec<CaptureConfig>,
    /// What is sampled; nothing without it.
    pub sample: Option<Sample>,
    /// Needed where a host is real.
    pub machine: Option<MachineConfig>,
    /// On so many at most a network of many switches or flows runs; null: on one. The results are the same.
    pub threads: Option<usize>,
    /// At most so many regions, which run side by side; None: by the numbers of switches and flows.
    #[serde(skip)]
    pub regions: Option<usize>,
}

/// One sender and what its application does.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlowConfig {
    /// Unique.
    pub name: String,
    /// The sending host.
    pub from: String,
    /// The receiving host.
    pub to: String,
    #[serde(default)]
    pub start_ns: Nanos,
    /// When the application stops; null: never.
    pub stop_ns: Option<Nanos>,
    /// Over IPv6: both hosts have an address of it.
    #[serde(default)]
    pub ipv6: bool,
    /// Source port of the first connection; default: 10000 + the flow's index.
    pub from_port: Option<u16>,
    #[serde(default = "default_to_port")]
    pub to_port: u16,
    pub app: App,
    /// Options of both ends of its connections.
    #[serde(default)]
    pub tcp: TcpConfig,
    /// Of a flow between real hosts, instead of `tcp`.
    #[serde(default)]
    pub linux: LinuxFlow,
    /// The receiving application reads so long after the first byte that it has not read yet; 0: at once.
    #[serde(default)]
    pub read_interval_ns: Nanos,
}

/// Source port of the first connection of flow 0.
const FROM_PORT: usize = 10_000;

impl FlowConfig {
    /// Source port of its first connection; `index` is its place in the configuration. 0: there is no such port.
    pub fn first_port(&self, index: usize) -> u16 {
        self.from_port
            .unwrap_or_else(|| u16::try_from(FROM_PORT + index).unwrap_or(0))
    }
}

fn default_to_port() -> u16 {
    5001
}

impl Config {
    /// Where the first connection of a flow, by its place, begins and ends, on these hosts; it was checked.
    pub(crate) fn ends(&self, place: usize, hosts: [usize; 2]) -> [SocketAddr; 2] {
        let flow = &self.flows[place];
        let [from, to] = hosts.map(|host| {
            let ip = self.hosts[host].address(flow.ipv6);
            ip.unwrap_or(IpAddr::V4(self.hosts[host].ip))
        });
        [
            SocketAddr::new(from, flow.first_port(place)),
            SocketAddr::new(to, flow.to_port),
        ]
    }

    /// Reads and checks a configuration.
    ///
    /// # Errors
    /// [`ConfigError`] with the path of the first fault.
    pub fn from_json(text: &str) -> Result<Config, ConfigError> {
        let mut reader = serde_json::Deserializer::from_str(text);
        let config: Config =
            serde_path_to_error::deserialize(&mut reader).map_err(|error| at_its_path(&error))?;
        reader
            .end()
            .map_err(|error| ConfigError::new(".", error.to_string()))?;
        config.check()?;
        Ok(config)
    }
}

fn at_its_path(error: &serde_path_to_error::Error<serde_json::Error>) -> ConfigError {
    let (path, message) = (error.path().to_string(), error.inner().to_string());
    let inner = message.strip_prefix(apps::PATH_GOES_ON);
    match inner.and_then(|inner| inner.split_once(": ")) {
        Some((key, message)) => ConfigError::new(format!("{path}.{key}"), message),
        None => ConfigError::new(path, message),
    }
}
