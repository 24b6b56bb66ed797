// SPDX-License-Identifier: Apache-2.0
//! From a configuration to the loop: interfaces opened, links made, ports bound.

use crate::config::{End, LinkConfig};
use crate::control::Control;
use crate::network::{LinkPlan, Network};
use crate::run::{Attached, NetworkHandle, Parts, Wire, CONTROL_TOKEN};
use crate::wakeup::WakeupLatency;
use fabric::Sink;
use netio::poll::Poller;
use netio::socket::{Interface, RingOptions, TxSocket};
use netio::{PortBinding, PortIo};
use serde_json::Value;
use std::path::Path;

/// Ethernet header and two VLAN tags.
const LINK_HEADER_MAX: usize = 14 + 8;
/// Kernel memory that all receive rings share out among them.
const RING_BYTES_TOTAL: usize = 64 << 20;
const RING_FRAMES_MIN: usize = 128;
const RING_FRAMES_MAX: usize = 4096;
/// Memory of all frames.
const FRAME_BYTES_MAX: usize = 512 << 20;

/// A switch of the network: its name and its ports' interfaces.
pub struct SwitchPlan {
    pub name: String,
    pub ports: Vec<PortBinding>,
}

/// How the loop is to be.
pub struct Setup<'a> {
    pub seed: u64,
    pub spin_us: u64,
    pub frames: usize,
    pub control: &'a Path,
}

impl Setup<'_> {
    /// Opens everything. The switches are not there until they are started.
    ///
    /// # Arguments
    /// * `intercept` - answers requests of the control socket that are not about links; None: it is about links.
    ///
    /// # Errors
    /// One sentence that says what is wrong.
    pub fn wire(
        &self,
        links: &[LinkConfig],
        switches: &[SwitchPlan],
        intercept: impl Fn(&str) -> Option<Value> + Send + Sync + 'static,
    ) -> Result<(Wire, NetworkHandle), String> {
        let mut found = Found {
            switches,
            interfaces: Vec::new(),
        };
        let mut ends = Vec::with_capacity(2 * links.len());
        let mut plans = Vec::with_capacity(links.len());
        for link in links {
            let of = |e: String| format!("link \"{}\": {e}", link.name);
            let [a, b] = &link.ends;
            let sinks = [found.end(a).map_err(of)?, found.end(b).map_err(of)?];
            ends.extend(sinks.map(|(_, interface)| interface));
            plans.push(LinkPlan {
                name: &link.name,
                ends: sinks.map(|(sink, _)| sink),
                options: &link.options,
            });
        }
        let mtu = found.interfaces.iter().map(|one| one.interface.mtu).max();
        let slot_len = mtu.unwrap_or(0) as usize + LINK_HEADER_MAX;
        let frames = self.frames.min(FRAME_BYTES_MAX / slot_len);
        let mut network =
            Network::new(&plans, switches.len(), self.seed, frames).map_err(|e| e.to_string())?;
        // Ports that are at no link lead to their interfaces.
        for (index, switch) in (0..).zip(switches) {
            for binding in &switch.ports {
                let port = binding.port;
                if !network.is_plugged(index, port) {
                    let number = found.interface(&binding.interface)?;
                    found.interfaces[number].has_frames = true;
                    found.interfaces[number].port = Some((index as usize, port));
                    network.bind(number as u32, index, port);
                }
            }
        }
        let rings = found.interfaces.iter().filter(|one| one.has_frames).count();
        let ring_frames = RING_BYTES_TOTAL / slot_len.next_power_of_two() / rings.max(1);
        let ring = RingOptions {
            frames: ring_frames.clamp(RING_FRAMES_MIN, RING_FRAMES_MAX),
        };
        let poller = Poller::new().map_err(|e| format!("epoll: {e}"))?;
        let mut interfaces = Vec::with_capacity(found.interfaces.len());
        for (port, one) in (0..).zip(found.interfaces) {
            let binding = PortBinding {
                port,
                interface: one.interface.name,
            };
            let io = PortIo::open(&binding, one.has_frames.then_some(ring));
            interfaces.push(Attached {
                io: io.map_err(|e| e.to_string())?,
                port: one.port,
            });
        }
        let tx = TxSocket::open().map_err(|e| format!("opening a packet socket failed: {e}"))?;
        let control = Control::bind(self.control, CONTROL_TOKEN, &poller, intercept)
            .map_err(|e| format!("control socket {}: {e}", self.control.display()))?;
        let parts = Parts {
            network,
            interfaces,
            ends,
            tx,
            control,
            poller,
            wakeup: WakeupLatency::new(self.spin_us * 1000),
        };
        Wire::new(parts, switches.len()).map_err(|e| format!("epoll: {e}"))
    }
}

/// The interfaces that were found, by their numbers.
struct Found<'a> {
    switches: &'a [SwitchPlan],
    interfaces: Vec<FoundInterface>,
}

struct FoundInterface {
    interface: Interface,
    has_frames: bool,
    port: Option<(usize, u32)>,
}

impl Found<'_> {
    /// The number of an interface.
    fn interface(&mut self, name: &str) -> Result<usize, String> {
        let known = self
            .interfaces
            .iter()
            .position(|one| one.interface.name == name);
        if let Some(number) = known {
            return Ok(number);
        }
        self.interfaces.push(FoundInterface {
            interface: Interface::find(name).map_err(|e| e.to_string())?,
            has_frames: false,
            port: None,
        });
        Ok(self.interfaces.len() - 1)
    }

    /// Where an end is, and which interface stands for it.
    fn end(&mut self, end: &End) -> Result<(Sink, usize), String> {
        match end {
            End::Interface(name) => {
                let number = self.interface(name)?;
                self.interfaces[number].has_frames = true;
                Ok((Sink::Interface(number as u32), number))
            }
            End::Port { switch, port } => {
                let index = self.switches.iter().position(|one| one.name == *switch);
                let index = index.ok_or_else(|| format!("there is no switch \"{switch}\""))?;
                let ports = &self.switches[index].ports;
                let binding = ports.iter().find(|one| one.port == *port);
                let binding = binding.ok_or_else(|| {
                    format!("switch \"{switch}\" has no port {port} with an interface")
                })?;
                let number = self.interface(&binding.interface.clone())?;
                self.interfaces[number].port = Some((index, *port));
                let index = index as u32;
                Ok((Sink::Switch { index, port: *port }, number))
            }
        }
    }
}
