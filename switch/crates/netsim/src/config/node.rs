// SPDX-License-Identifier: Apache-2.0
//! Programs, switches with their ports, and hosts.

use device::{Nanos, PortChange, PortConfig, Rate};
use serde::de::Error;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::PathBuf;
use std::sync::Arc;
use traffic::link::Series;
use uml::plan::Qdisc;

/// A compiled P4 program.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Program {
    /// File of p4c's BMv2 JSON.
    pub json: PathBuf,
}

/// A switch.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SwitchConfig {
    /// Unique among switches and hosts.
    pub name: String,
    /// Key of `programs`; null: the switch starts without a program, P4Runtime loads it.
    pub program: Option<String>,
    /// Port of packet-in and packet-out; null: none.
    #[serde(default = "default_cpu_port")]
    pub cpu_port: Option<u32>,
    pub ports: Vec<PortSettings>,
}

fn default_cpu_port() -> Option<u32> {
    device::DeviceConfig::default().cpu_port
}

/// A switch port: its number, and what differs from the default options (a limit of null is the default's).
#[derive(Clone, Debug)]
pub struct PortSettings {
    pub port: u32,
    /// The kernel's, which takes the place of the port's queues, at the port's rate; null: the port has queues of its own.
    pub qdisc: Option<Qdisc>,
    pub options: PortChange,
}

impl<'de> Deserialize<'de> for PortSettings {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<PortSettings, D::Error> {
        let mut object = Map::<String, Value>::deserialize(reader)?;
        let port = object.shift_remove("port");
        let port = port.ok_or_else(|| D::Error::missing_field("port"))?;
        let qdisc = object.shift_remove("qdisc").unwrap_or_default();
        Ok(PortSettings {
            port: u32::deserialize(port).map_err(|e| apps::within("port", e))?,
            qdisc: Option::deserialize(qdisc).map_err(|e| apps::within("qdisc", e))?,
            options: apps::settings_of(object)?,
        })
    }
}

impl PortSettings {
    /// What its rate follows; None: it is a number.
    pub(crate) fn series(&self) -> Option<&Arc<Series>> {
        match self.options.rate_bps.as_ref()? {
            Rate::Follows(series) => Some(series),
            Rate::Constant(_) => None,
        }
    }

    /// The same in the device's terms.
    pub fn to_device(&self) -> PortConfig {
        let config = self.options.applied_to(&PortConfig::default());
        match self.qdisc {
            Some(_) => PortConfig {
                rate_bps: 0,
                ..config
            },
            None => config,
        }
    }
}

/// A host with one interface.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostConfig {
    /// Unique among switches and hosts.
    pub name: String,
    pub ip: Ipv4Addr,
    /// Of flows with `ipv6`.
    pub ipv6: Option<Ipv6Addr>,
    pub mac: Mac,
    /// Where every frame is sent to.
    pub gateway_mac: Mac,
    /// Real: a network namespace of the machine (`Config.machine`); null: simulated.
    pub linux: Option<LinuxHost>,
}

impl HostConfig {
    /// All its addresses.
    pub fn addresses(&self) -> impl Iterator<Item = IpAddr> {
        let ipv6 = self.ipv6.map(IpAddr::V6);
        std::iter::once(IpAddr::V4(self.ip)).chain(ipv6)
    }

    /// The one of a flow of this version.
    pub fn address(&self, ipv6: bool) -> Option<IpAddr> {
        self.addresses().find(|ip| ip.is_ipv6() == ipv6)
    }
}

/// Of a host that is real.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinuxHost {
    /// Name and value, in the order in which they are set.
    #[serde(default)]
    pub sysctls: Vec<(String, String)>,
    #[serde(default)]
    pub routes: Vec<uml::plan::Route>,
}

/// Of a flow between real hosts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinuxFlow {
    /// The kernel's name; null: the host's default.
    pub congestion_control: Option<String>,
    /// Payload of a segment at most, options included; null: what the interface allows.
    pub mss_bytes: Option<u32>,
    /// The receiver's window at most; null: the kernel tunes it.
    pub receive_window_bytes: Option<u32>,
}

/// The User-mode Linux whose namespaces the real hosts are (docs/kernel-time.md).
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MachineConfig {
    /// Files of `make kernel`: the kernel, and its first program.
    pub kernel: PathBuf,
    pub guest: PathBuf,
    /// A folder of its own, which is there: what it writes lies there (`console`, `events`, `samples`).
    pub folder: PathBuf,
    /// The experiment's length: the machine halts then.
    pub end_ns: Nanos,
    /// TCP_INFO of each flow of real hosts so often, into `samples`; null: never.
    pub sample_ns: Option<Nanos>,
    /// Instants that have one too.
    #[serde(default)]
    pub marks_ns: Vec<Nanos>,
    /// The core that the machine shares with the thread that runs the simulation; null: where the system puts them.
    pub cpu: Option<usize>,
    #[serde(default = "default_memory_mb")]
    pub memory_mb: u32,
    /// By the wall clock: a machine that is not ready by then does not boot.
    #[serde(default = "default_boot_limit_s")]
    pub boot_limit_s: u64,
    /// By the wall clock: a machine that is silent for so long hangs.
    #[serde(default = "default_patience_s")]
    pub patience_s: u64,
}

fn default_memory_mb() -> u32 {
    64
}

fn default_boot_limit_s() -> u64 {
    20
}

fn default_patience_s() -> u64 {
    60
}

/// An Ethernet address, written `08:00:00:00:00:01`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mac(pub [u8; 6]);

impl std::fmt::Display for Mac {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

impl<'de> Deserialize<'de> for Mac {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Mac, D::Error> {
        let text = String::deserialize(reader)?;
        let mut mac = [0u8; 6];
        let mut parts = text.split(':');
        for byte in &mut mac {
            let part = parts.next().filter(|part| part.len() == 2);
            *byte = part
                .and_then(|part| u8::from_str_radix(part, 16).ok())
                .ok_or_else(|| bad_mac(&text))?;
        }
        match parts.next() {
            None => Ok(Mac(mac)),
            Some(_) => Err(bad_mac(&text)),
        }
    }
}

fn bad_mac<E: Error>(given: &str) -> E {
    E::custom(format!(
        "\"{given}\" is not an Ethernet address; allowed: six bytes such as 08:00:00:00:00:01"
    ))
}
