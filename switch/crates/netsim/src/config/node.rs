// SPDX-License-Identifier: Apache-2.0
//! Programs, switches with their ports, and hosts.

use device::{PortConfig, QueueLimits};
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
    #[serde(default)]
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
    /// Bit/s of frames (no preamble, no FCS); 0: unlimited.
    #[serde(default)]
    pub rate_bps: u64,
    /// Packets that may wait in each queue, the one on the line not counted.
    #[serde(default = "default_queue_packets")]
    pub queue_packets: u64,
    /// Bytes that may wait in each queue; null: no limit.
    #[serde(default)]
    pub queue_bytes: Option<u64>,
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
            queue_packets: default_queue_packets(),
            queue_bytes: None,
            queues: default_queues(),
        }
    }

    /// The same in the device's terms.
    pub fn to_device(&self) -> PortConfig {
        PortConfig {
            rate_bps: self.rate_bps,
            queues: self.queues,
            queue_limits: QueueLimits {
                packets: self.queue_packets,
                bytes: self.queue_bytes.unwrap_or(QueueLimits::NONE.bytes),
                ..QueueLimits::NONE
            },
            ..PortConfig::default()
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
}

/// An Ethernet address, written `08:00:00:00:00:01`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mac(pub [u8; 6]);

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
