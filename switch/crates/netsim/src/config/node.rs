// SPDX-License-Identifier: Apache-2.0
//! Programs, switches with their ports, and hosts.

use device::{LinkLayer, Nanos, PortConfig, QueueLimits, SchedulerKind, UNLIMITED};
use serde::de::Error;
use serde::{Deserialize, Deserializer};
use std::net::Ipv4Addr;
use std::path::PathBuf;

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

/// A switch port.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PortSettings {
    pub port: u32,
    /// Bit/s on the line, see `link_layer`; 0: unlimited.
    #[serde(default)]
    pub rate_bps: u64,
    /// `none`: a frame takes its bytes (no preamble, no FCS); `ethernet`, `atm`.
    #[serde(default)]
    pub link_layer: LinkLayer,
    /// `strict` (larger queue first), `wrr`, `drr`, `calendar`.
    #[serde(default)]
    pub scheduler: SchedulerKind,
    /// Packets that may wait in each queue, the one on the line not counted.
    #[serde(default = "default_queue_packets")]
    pub queue_packets: u64,
    /// Bytes that may wait in each queue; null: no limit.
    pub queue_bytes: Option<u64>,
    /// Cells that may wait in each queue; null: no limit.
    pub queue_cells: Option<u64>,
    /// Packets, bytes and cells that may wait in all queues together; null: no limit.
    pub port_packets: Option<u64>,
    pub port_bytes: Option<u64>,
    pub port_cells: Option<u64>,
    #[serde(default = "default_queues")]
    pub queues: usize,
}

fn default_queue_packets() -> u64 {
    PortConfig::default().queue_limits.packets
}

fn default_queues() -> usize {
    PortConfig::default().queues
}

impl PortSettings {
    /// A port with the default settings.
    pub(super) fn plain(port: u32) -> PortSettings {
        PortSettings {
            port,
            rate_bps: 0,
            link_layer: LinkLayer::default(),
            scheduler: SchedulerKind::default(),
            queue_packets: default_queue_packets(),
            queue_bytes: None,
            queue_cells: None,
            port_packets: None,
            port_bytes: None,
            port_cells: None,
            queues: default_queues(),
        }
    }

    /// The same in the device's terms.
    pub fn to_device(&self) -> PortConfig {
        let or_none = |limit: Option<u64>| limit.unwrap_or(UNLIMITED);
        PortConfig {
            rate_bps: self.rate_bps,
            link_layer: self.link_layer,
            scheduler: self.scheduler,
            queues: self.queues,
            queue_limits: QueueLimits {
                packets: self.queue_packets,
                bytes: or_none(self.queue_bytes),
                cells: or_none(self.queue_cells),
            },
            port_limits: QueueLimits {
                packets: or_none(self.port_packets),
                bytes: or_none(self.port_bytes),
                cells: or_none(self.port_cells),
            },
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
    pub mac: Mac,
    /// Where every frame is sent to.
    pub gateway_mac: Mac,
    /// Real: a network namespace of the machine (`Config.machine`); null: simulated.
    pub linux: Option<LinuxHost>,
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
