// SPDX-License-Identifier: Apache-2.0
//! The leaves that are served, one row each: its path, how its value is read, and how a Set changes it. Names are
//! OpenConfig's, and those of `fairlane-port` (switch/yang) where it has none.

use std::collections::BTreeMap;

use device::{PortConfig, PortStats, SchedulerKind, PORT_REFUSALS, UNLIMITED};
use serde::de::DeserializeOwned;
use serde_json::Value as Json;

use self::Row::*;
use crate::path::Key;
use crate::select::Instance;
use crate::value::{Kind, Scalar};
use crate::view::{Interface, PortView, QueueView, View, Wants};

type Read = dyn Fn(&View, Instance) -> Json + Send + Sync;
/// Gives the queue of this number, or its port, another value, or the default (None).
type Write =
    dyn Fn(&mut Candidate, &PortView, usize, Option<Json>) -> Result<(), String> + Send + Sync;

/// How a leaf is read and changed.
pub struct Leaf {
    pub kind: Kind,
    /// What must be read for it.
    pub wants: Wants,
    read: Box<Read>,
    pub write: Option<Box<Write>>,
}

impl Leaf {
    /// None where it has no value: a limit that is not set.
    pub fn value(&self, view: &View, at: Instance) -> Option<Json> {
        Some((self.read)(view, at)).filter(|value| !value.is_null())
    }

    fn wants(self, wants: Wants) -> Leaf {
        Leaf { wants, ..self }
    }

    fn writable(
        self,
        write: impl Fn(&mut Candidate, &PortView, usize, Option<Json>) -> Result<(), String>
            + Send
            + Sync
            + 'static,
    ) -> Leaf {
        let write: Option<Box<Write>> = Some(Box::new(write));
        Leaf { write, ..self }
    }
}

/// What is read by `read`.
fn of<T: Scalar>(read: impl Fn(&View, Instance) -> Option<T> + Send + Sync + 'static) -> Leaf {
    Leaf {
        kind: T::KIND,
        wants: Wants::default(),
        read: Box::new(move |view, at| serde_json::to_value(read(view, at)).unwrap_or_default()),
        write: None,
    }
}

/// The key of a list that the leaf is in.
pub fn key(key: Key) -> Leaf {
    of(move |view, at| Some(at.key(view, key)?.into_owned()))
}

fn port<T: Scalar + 'static>(read: fn(&PortView) -> T) -> Leaf {
    of(move |view, at| view.ports.get(at.port).map(read))
}

/// What the kernel reports of the interface ([`netio::Ethernet`]).
fn kernel<T: Scalar + 'static>(read: fn(&PortView) -> T) -> Leaf {
    port(read).wants(Wants {
        ethernet: true,
        queues: false,
    })
}

/// Frames of an interface: what goes through the CPU port begins with the program's own header.
fn frames(read: fn(&PortStats) -> u64) -> Leaf {
    of(move |view, at| {
        let port = view.ports.get(at.port)?;
        (!port.interface.cpu).then(|| read(&port.stats))
    })
}

fn queue(read: fn(&QueueView) -> u64) -> Leaf {
    let leaf = of(move |view, at| view.ports.get(at.port)?.queues.get(at.member).map(read));
    leaf.wants(Wants {
        queues: true,
        ethernet: false,
    })
}

fn switch(read: fn(&View) -> u64) -> Leaf {
    of(move |view, _| Some(read(view)))
}

/// A writable option of a port.
fn option<F: Copy + DeserializeOwned + 'static, T: Scalar + 'static>(
    field: fn(&mut PortConfig) -> &mut F,
    show: fn(F) -> T,
) -> Leaf {
    let read = move |view: &View, at: Instance| {
        let mut config = view.ports.get(at.port)?.config;
        Some(show(*field(&mut config)))
    };
    of(read).writable(move |candidate, _, _, value| {
        let given = value.and_then(|value| serde_json::from_value(value).ok());
        let default = *field(&mut PortConfig::default());
        *field(&mut candidate.config) = given.unwrap_or(default);
        Ok(())
    })
}

fn limit(field: fn(&mut PortConfig) -> &mut u64) -> Leaf {
    option(field, |limit| (limit != UNLIMITED).then_some(limit))
}

/// A limit of each queue, which OpenConfig has in 32 bits.
fn depth(field: fn(&mut PortConfig) -> &mut u64) -> Leaf {
    option(field, |limit| u32::try_from(limit).ok())
}

fn enabled() -> Leaf {
    port(|p| p.link.admin_up).writable(|candidate, port, _, value| {
        candidate.enabled = value != Some(Json::Bool(false));
        match candidate.enabled || !port.interface.cpu {
            true => Ok(()),
            false => Err("the CPU port has no interface that could be down".to_owned()),
        }
    })
}

/// Queues cannot be removed: without a value they stay.
fn number_of_queues() -> Leaf {
    port(|p| u32::try_from(p.config.queues).ok()).writable(|candidate, _, _, value| {
        if let Some(queues) = value.and_then(|value| value.as_u64()) {
            candidate.config.queues = queues as usize;
        }
        Ok(())
    })
}

fn weight() -> Leaf {
    queue(|q| q.weight.into()).writable(|candidate, _, queue, value| {
        let weight = value.map_or(Some(1), |value| value.as_u64()?.try_into().ok());
        let weight = weight.filter(|weight| *weight > 0);
        let weight = weight.ok_or_else(|| format!("a weight is from 1 to {}", u32::MAX))?;
        candidate.weights.insert(queue, weight);
        Ok(())
    })
}

fn mac() -> Leaf {
    kernel(|p| {
        let parts = p.ethernet.mac?.map(|byte| format!("{byte:02X}"));
        Some(parts.join(":"))
    })
}

/// What the two ends agreed on, which nobody has configured; or the other way round.
fn agreed<T>(port: &PortView, agreed: bool, read: fn(&PortView) -> Option<T>) -> Option<T> {
    let negotiated = port.ethernet.auto_negotiate == Some(true);
    read(port).filter(|_| negotiated == agreed)
}

/// As OpenConfig names it: an identity of `ETHERNET_SPEED`.
fn speed(port: &PortView) -> Option<String> {
    const SPEEDS_GB: [u32; 11] = [1, 5, 10, 25, 40, 50, 100, 200, 400, 600, 800];
    let mbps = port.ethernet.speed_mbps?;
    let gb = mbps / 1_000;
    Some(match mbps {
        10 | 100 | 2_500 => format!("SPEED_{mbps}MB"),
        _ if mbps.is_multiple_of(1_000) && SPEEDS_GB.contains(&gb) => format!("SPEED_{gb}GB"),
        _ => "SPEED_UNKNOWN".to_owned(),
    })
}

fn duplex(port: &PortView) -> Option<&'static str> {
    let full = port.ethernet.full_duplex?;
    Some(if full { "FULL" } else { "HALF" })
}

fn up_or_down(up: bool) -> &'static str {
    if up {
        "UP"
    } else {
        "DOWN"
    }
}

/// In which containers a row's leaf is: they fill the `{}` of its path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Row {
    /// `config` and `state`.
    Both,
    /// `config` alone.
    Config,
    /// `state` that follows a `config` of another row.
    Applied,
    /// `state` alone, reported on change.
    State,
    /// `state` alone, sampled.
    Sampled,
}

/// Leaves side by side: in which containers they are, where, and each by its name.
pub type Rows = (Row, String, Vec<(&'static str, Leaf)>);

/// All rows; `{}` of a path is the container, and a list's key is a leaf of the list as well. Those of one list stand
/// together, those of the switch behind those of its ports.
pub fn rows() -> Vec<Rows> {
    let interface = |path| format!("openconfig-interfaces:interfaces/interface[name=port]/{path}");
    let ethernet = || interface("openconfig-if-ethernet:ethernet/{}");
    let drops = || interface("fairlane-port:port/drops/drop[reason=port-reason]/{}");
    let output =
        |path| format!("openconfig-qos:qos/interfaces/interface[interface-id=port]/{path}");
    let queues = || output("output/queues/queue[name=queue]/{}");
    let policy =
        |path| format!("openconfig-qos:qos/scheduler-policies/scheduler-policy[name=port]/{path}");
    let scheduler = |path| policy("schedulers/scheduler[sequence=sequence]/") + path;
    let switch_drops = || "fairlane-port:switch/drops/drop[reason=switch-reason]/{}".to_owned();
    let packets = "fairlane-port:switch/packets/{}".to_owned();
    vec![
        (
            Both,
            interface("{}"),
            vec![
                ("name", key(Key::Port)),
                (
                    "type",
                    port(|p| match p.interface.cpu {
                        true => "iana-if-type:other",
                        false => "iana-if-type:ethernetCsmacd",
                    }),
                ),
                ("enabled", enabled()),
            ],
        ),
        (
            State,
            interface("{}"),
            vec![
                ("ifindex", port(|p| p.interface.port)),
                ("openconfig-p4rt:id", port(|p| p.interface.port)),
                ("admin-status", port(|p| up_or_down(p.link.admin_up))),
                ("oper-status", port(|p| up_or_down(p.link.oper_up))),
                ("cpu", port(|p| p.interface.cpu)),
            ],
        ),
        (
            Both,
            interface("{}"),
            // What goes where is the program's business: the switch itself excludes no port.
            vec![("openconfig-if-sdn-ext:forwarding-viable", port(|_| true))],
        ),
        (
            Sampled,
            interface("{}/counters"),
            vec![
                ("in-pkts", port(|p| p.stats.rx_packets)),
                ("in-octets", port(|p| p.stats.rx_bytes)),
                ("in-unicast-pkts", frames(|s| s.rx_frames.unicast)),
                ("in-multicast-pkts", frames(|s| s.rx_frames.multicast)),
                ("in-broadcast-pkts", frames(|s| s.rx_frames.broadcast)),
                (
                    "in-discards",
                    port(|p| p.stats.rx_unprocessed + p.stats.rx_lost),
                ),
                (
                    "in-errors",
                    kernel(|p| p.stats.rx_errors + p.ethernet.fcs_errors.unwrap_or(0)),
                ),
                // The program gets every frame, whatever its protocol.
                ("in-unknown-protos", frames(|_| 0)),
                ("in-fcs-errors", kernel(|p| p.ethernet.fcs_errors)),
                ("out-pkts", port(|p| p.stats.tx_packets)),
                ("out-octets", port(|p| p.stats.tx_bytes)),
                ("out-unicast-pkts", frames(|s| s.tx_frames.unicast)),
                ("out-multicast-pkts", frames(|s| s.tx_frames.multicast)),
                ("out-broadcast-pkts", frames(|s| s.tx_frames.broadcast)),
                ("out-discards", port(|p| p.stats.refused_packets)),
                ("out-errors", port(|p| p.stats.tx_errors)),
            ],
        ),
        (
            State,
            interface("{}/counters"),
            vec![("last-clear", switch(|v| v.counting_since_ns as u64))],
        ),
        (
            Both,
            ethernet(),
            vec![("auto-negotiate", kernel(|p| p.ethernet.auto_negotiate))],
        ),
        (
            Config,
            ethernet(),
            vec![
                ("port-speed", kernel(|p| agreed(p, false, speed))),
                ("duplex-mode", kernel(|p| agreed(p, false, duplex))),
            ],
        ),
        (
            Applied,
            ethernet(),
            vec![
                ("port-speed", kernel(speed)),
                ("duplex-mode", kernel(duplex)),
            ],
        ),
        (
            State,
            ethernet(),
            vec![
                ("mac-address", mac()),
                ("hw-mac-address", mac()),
                ("negotiated-port-speed", kernel(|p| agreed(p, true, speed))),
                (
                    "negotiated-duplex-mode",
                    kernel(|p| agreed(p, true, duplex)),
                ),
            ],
        ),
        (
            Both,
            interface("fairlane-port:port/{}"),
            vec![
                ("link-layer", option(|c| &mut c.link_layer, |v| v)),
                ("scheduler", option(|c| &mut c.scheduler, |v| v)),
                ("queues", number_of_queues()),
                ("queue-cells", limit(|c| &mut c.queue_limits.cells)),
                ("port-packets", limit(|c| &mut c.port_limits.packets)),
                ("port-bytes", limit(|c| &mut c.port_limits.bytes)),
                ("port-cells", limit(|c| &mut c.port_limits.cells)),
            ],
        ),
        (
            Sampled,
            interface("fairlane-port:port/{}"),
            vec![
                ("waiting-packets", port(|p| p.usage.packets)),
                ("waiting-bytes", port(|p| p.usage.bytes)),
                ("waiting-cells", port(|p| p.usage.cells)),
            ],
        ),
        (State, drops(), vec![("reason", key(Key::PortReason))]),
        (
            Sampled,
            drops(),
            vec![(
                "packets",
                of(|view, at| {
                    let reason = *PORT_REFUSALS.get(at.member)?;
                    Some(view.ports.get(at.port)?.stats.refused(reason))
                }),
            )],
        ),
        (Both, output("{}"), vec![("interface-id", key(Key::Port))]),
        (
            Both,
            output("output/scheduler-policy/{}"),
            vec![("name", key(Key::Port))],
        ),
        (Both, queues(), vec![("name", key(Key::Queue))]),
        (
            Sampled,
            queues(),
            vec![
                (
                    "transmit-pkts",
                    queue(|q| {
                        let gone = q.usage.packets + q.stats.removed_packets;
                        q.stats.enqueued_packets.saturating_sub(gone)
                    }),
                ),
                (
                    "transmit-octets",
                    queue(|q| {
                        let gone = q.usage.bytes + q.stats.removed_bytes;
                        q.stats.enqueued_bytes.saturating_sub(gone)
                    }),
                ),
                (
                    "dropped-pkts",
                    queue(|q| {
                        let full = q.stats.dropped_queue_full + q.stats.dropped_port_full;
                        full + q.stats.dropped_buffer_full
                    }),
                ),
                ("dropped-octets", queue(|q| q.stats.dropped_bytes)),
                ("max-queue-len", queue(|q| q.stats.high_water.bytes)),
                ("fairlane-port:waiting-packets", queue(|q| q.usage.packets)),
                ("fairlane-port:waiting-bytes", queue(|q| q.usage.bytes)),
                ("fairlane-port:waiting-cells", queue(|q| q.usage.cells)),
            ],
        ),
        (Both, policy("{}"), vec![("name", key(Key::Port))]),
        (
            Both,
            scheduler("{}"),
            vec![
                ("sequence", port(|_| 1_u32)),
                (
                    "priority",
                    port(|p| (p.config.scheduler == SchedulerKind::Strict).then_some("STRICT")),
                ),
            ],
        ),
        (
            Both,
            scheduler("one-rate-two-color/{}"),
            vec![
                (
                    "cir",
                    option(|c| &mut c.rate_bps, |rate| (rate > 0).then_some(rate)),
                ),
                (
                    "max-queue-depth-packets",
                    depth(|c| &mut c.queue_limits.packets),
                ),
                (
                    "max-queue-depth-bytes",
                    depth(|c| &mut c.queue_limits.bytes),
                ),
            ],
        ),
        (
            Both,
            scheduler("inputs/input[id=queue]/{}"),
            vec![
                ("id", key(Key::Queue)),
                ("input-type", port(|_| "QUEUE")),
                ("queue", key(Key::Queue)),
                ("weight", weight()),
            ],
        ),
        (
            State,
            switch_drops(),
            vec![("reason", key(Key::SwitchReason))],
        ),
        (
            Sampled,
            switch_drops(),
            vec![("packets", of(|view, at| Some(view.drops.get(at.member)?.1)))],
        ),
        (
            Sampled,
            packets,
            vec![
                ("received", switch(|v| v.accounts.received)),
                ("copied", switch(|v| v.accounts.copied)),
                ("transmitted", switch(|v| v.accounts.transmitted)),
                ("packet-ins", switch(|v| v.accounts.packet_ins)),
                ("dropped", switch(|v| v.accounts.dropped)),
                ("waiting", switch(|v| v.accounts.waiting)),
                ("on-line", switch(|v| v.accounts.on_line)),
            ],
        ),
    ]
}

/// A port's options as a Set would leave them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    pub interface: Interface,
    pub config: PortConfig,
    pub enabled: bool,
    /// Of the queues whose weight the Set names.
    pub weights: BTreeMap<usize, u32>,
}

impl Candidate {
    pub fn new(port: &PortView) -> Candidate {
        Candidate {
            interface: port.interface.clone(),
            config: port.config,
            enabled: port.link.admin_up,
            weights: BTreeMap::new(),
        }
    }

    /// Gives a leaf another value, or its default (None), and checks the options then. Keys and fixed leaves may be
    /// given the value that they have.
    ///
    /// # Errors
    /// A sentence with what is allowed.
    pub fn assign(&mut self, view: &View, at: Instance, value: Option<Json>) -> Result<(), String> {
        let (node, port) = (at.node(), &view.ports[at.port]);
        match (&node.leaf.write, value) {
            (Some(write), value) if node.is_writable() => write(self, port, at.member, value)?,
            (_, Some(value)) if at.value(view).as_ref() != Some(&value) => {
                return Err(format!("it is read-only, and not {value}"))
            }
            _ => {}
        }
        self.config
            .check(port.interface.port)
            .map_err(|e| e.message)?;
        match self.config.queues < port.config.queues {
            false => Ok(()),
            true => Err(format!(
                "{} queues are fewer than its {}; queues can only be added while it runs",
                self.config.queues, port.config.queues
            )),
        }
    }
}
