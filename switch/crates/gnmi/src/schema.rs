// SPDX-License-Identifier: Apache-2.0
//! The leaves that are served, one row each; names are OpenConfig's, and those of `fairlane-port` (switch/yang) where it has none.

use crate::value::Type;
use std::sync::OnceLock;

/// What a list's key names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    /// A port, by its interface.
    Port,
    /// The one scheduler of a port.
    Sequence,
    /// A queue of a port, by its number.
    Queue,
    /// A reason why the port refused packets.
    PortReason,
    /// A reason why the switch dropped packets.
    SwitchReason,
}

/// One element of a leaf's path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    pub name: &'static str,
    /// The YANG module that defines it.
    pub module: &'static str,
    /// The list's key, by name.
    pub key: Option<(&'static str, Key)>,
}

/// Which part of the data a leaf belongs to (gNMI 0.10, GetRequest.type).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// A list's key: in every part.
    Key,
    Config,
    /// State that follows a config leaf.
    Applied,
    /// State that has no config leaf.
    Operational,
}

/// What a leaf tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Leaf {
    Name,
    InterfaceType,
    Enabled,
    Ifindex,
    AdminStatus,
    OperStatus,
    Cpu,
    ForwardingViable,
    MacAddress,
    AutoNegotiate,
    PortSpeed,
    DuplexMode,
    NegotiatedPortSpeed,
    NegotiatedDuplexMode,
    InPkts,
    InOctets,
    InUnicastPkts,
    InMulticastPkts,
    InBroadcastPkts,
    InDiscards,
    InErrors,
    InUnknownProtos,
    InFcsErrors,
    OutPkts,
    OutOctets,
    OutUnicastPkts,
    OutMulticastPkts,
    OutBroadcastPkts,
    OutDiscards,
    OutErrors,
    LastClear,
    LinkLayer,
    Scheduler,
    Queues,
    QueueCells,
    PortPackets,
    PortBytes,
    PortCells,
    WaitingPackets,
    WaitingBytes,
    WaitingCells,
    Reason,
    ReasonPackets,
    SwitchReason,
    SwitchReasonPackets,
    Received,
    Copied,
    Transmitted,
    PacketIns,
    Dropped,
    Waiting,
    OnLine,
    Sequence,
    Priority,
    Cir,
    DepthPackets,
    DepthBytes,
    Queue,
    InputType,
    Weight,
    QueueTransmitPkts,
    QueueTransmitOctets,
    QueueDroppedPkts,
    QueueDroppedOctets,
    QueueMaxLen,
    QueueWaitingPackets,
    QueueWaitingBytes,
    QueueWaitingCells,
}

impl Leaf {
    /// Its value is the kernel's word on the interface ([`netio::Ethernet`]).
    pub fn is_ethernet(self) -> bool {
        use Leaf::*;
        matches!(
            self,
            MacAddress
                | AutoNegotiate
                | PortSpeed
                | DuplexMode
                | NegotiatedPortSpeed
                | NegotiatedDuplexMode
                | InErrors
                | InFcsErrors
        )
    }
}

/// A leaf at its place.
#[derive(Debug)]
pub struct Node {
    pub steps: Vec<Step>,
    pub leaf: Leaf,
    pub part: Part,
    pub kind: Type,
    /// A Set may change it.
    pub writable: bool,
    /// Its changes are told at once.
    pub on_change: bool,
}

impl Node {
    pub fn has_key(&self, key: Key) -> bool {
        self.steps
            .iter()
            .any(|step| step.key.is_some_and(|(_, k)| k == key))
    }
}

const IF: &str = "openconfig-interfaces";
const QOS: &str = "openconfig-qos";
const P4RT: &str = "openconfig-p4rt";
/// Our own module.
pub const FAIRLANE: &str = "fairlane-port";

/// Modules with their organizations and versions, as Capabilities names them.
pub const MODELS: [(&str, &str, &str); 6] = [
    (IF, "OpenConfig working group", "3.8.1"),
    (
        "openconfig-if-ethernet",
        "OpenConfig working group",
        "2.13.0",
    ),
    ("openconfig-if-sdn-ext", "OpenConfig working group", "0.2.0"),
    (QOS, "OpenConfig working group", "2.2.0"),
    (P4RT, "OpenConfig working group", "1.0.0"),
    (FAIRLANE, "fairlane", "1.0.0"),
];

/// How a row's `{}` is filled.
enum Row {
    /// A list's key leaf: no `{}`.
    Key,
    /// `config` and `state`, read-only: what the switch gives.
    Fixed,
    /// `config` and `state`, writable.
    Writable,
    /// `state` alone, told on change.
    Watched,
    /// `state` alone, sampled.
    Sampled,
}

const LINK_LAYERS: &[&str] = &["none", "ethernet", "atm"];
const SCHEDULERS: &[&str] = &["strict", "wrr", "drr"];

const INTERFACE: &str = "interfaces/interface[name=port]";
const ETHERNET: &str = "interfaces/interface[name=port]/openconfig-if-ethernet:ethernet";
const PORT: &str = "interfaces/interface[name=port]/fairlane-port:port";
const DROPS: &str =
    "interfaces/interface[name=port]/fairlane-port:port/drops/drop[reason=port-reason]";
const OUTPUT: &str = "qos/interfaces/interface[interface-id=port]";
const QUEUE: &str = "qos/interfaces/interface[interface-id=port]/output/queues/queue[name=queue]";
const POLICY: &str = "qos/scheduler-policies/scheduler-policy[name=port]";
const SCHEDULER: &str =
    "qos/scheduler-policies/scheduler-policy[name=port]/schedulers/scheduler[sequence=sequence]";
const INPUT: &str = "qos/scheduler-policies/scheduler-policy[name=port]/schedulers/scheduler[sequence=sequence]/inputs/input[id=queue]";
const SWITCH: &str = "fairlane-port:switch/drops/drop[reason=switch-reason]";
const PACKETS: &str = "fairlane-port:switch/packets";

const ROWS: &[(&str, &str, Row, Leaf)] = &[
    (INTERFACE, "name", Row::Key, Leaf::Name),
    (INTERFACE, "{}/name", Row::Fixed, Leaf::Name),
    (INTERFACE, "{}/type", Row::Fixed, Leaf::InterfaceType),
    (INTERFACE, "{}/enabled", Row::Writable, Leaf::Enabled),
    (INTERFACE, "{}/ifindex", Row::Watched, Leaf::Ifindex),
    (
        INTERFACE,
        "{}/openconfig-p4rt:id",
        Row::Watched,
        Leaf::Ifindex,
    ),
    (
        INTERFACE,
        "{}/admin-status",
        Row::Watched,
        Leaf::AdminStatus,
    ),
    (INTERFACE, "{}/oper-status", Row::Watched, Leaf::OperStatus),
    (INTERFACE, "{}/cpu", Row::Watched, Leaf::Cpu),
    (
        INTERFACE,
        "{}/openconfig-if-sdn-ext:forwarding-viable",
        Row::Fixed,
        Leaf::ForwardingViable,
    ),
    (INTERFACE, "{}/counters/in-pkts", Row::Sampled, Leaf::InPkts),
    (
        INTERFACE,
        "{}/counters/in-octets",
        Row::Sampled,
        Leaf::InOctets,
    ),
    (
        INTERFACE,
        "{}/counters/in-unicast-pkts",
        Row::Sampled,
        Leaf::InUnicastPkts,
    ),
    (
        INTERFACE,
        "{}/counters/in-multicast-pkts",
        Row::Sampled,
        Leaf::InMulticastPkts,
    ),
    (
        INTERFACE,
        "{}/counters/in-broadcast-pkts",
        Row::Sampled,
        Leaf::InBroadcastPkts,
    ),
    (
        INTERFACE,
        "{}/counters/in-discards",
        Row::Sampled,
        Leaf::InDiscards,
    ),
    (
        INTERFACE,
        "{}/counters/in-errors",
        Row::Sampled,
        Leaf::InErrors,
    ),
    (
        INTERFACE,
        "{}/counters/in-unknown-protos",
        Row::Sampled,
        Leaf::InUnknownProtos,
    ),
    (
        INTERFACE,
        "{}/counters/in-fcs-errors",
        Row::Sampled,
        Leaf::InFcsErrors,
    ),
    (
        INTERFACE,
        "{}/counters/out-pkts",
        Row::Sampled,
        Leaf::OutPkts,
    ),
    (
        INTERFACE,
        "{}/counters/out-octets",
        Row::Sampled,
        Leaf::OutOctets,
    ),
    (
        INTERFACE,
        "{}/counters/out-unicast-pkts",
        Row::Sampled,
        Leaf::OutUnicastPkts,
    ),
    (
        INTERFACE,
        "{}/counters/out-multicast-pkts",
        Row::Sampled,
        Leaf::OutMulticastPkts,
    ),
    (
        INTERFACE,
        "{}/counters/out-broadcast-pkts",
        Row::Sampled,
        Leaf::OutBroadcastPkts,
    ),
    (
        INTERFACE,
        "{}/counters/out-discards",
        Row::Sampled,
        Leaf::OutDiscards,
    ),
    (
        INTERFACE,
        "{}/counters/out-errors",
        Row::Sampled,
        Leaf::OutErrors,
    ),
    (
        INTERFACE,
        "{}/counters/last-clear",
        Row::Watched,
        Leaf::LastClear,
    ),
    (ETHERNET, "{}/mac-address", Row::Watched, Leaf::MacAddress),
    (
        ETHERNET,
        "{}/hw-mac-address",
        Row::Watched,
        Leaf::MacAddress,
    ),
    (
        ETHERNET,
        "{}/auto-negotiate",
        Row::Fixed,
        Leaf::AutoNegotiate,
    ),
    (ETHERNET, "{}/port-speed", Row::Fixed, Leaf::PortSpeed),
    (ETHERNET, "{}/duplex-mode", Row::Fixed, Leaf::DuplexMode),
    (
        ETHERNET,
        "{}/negotiated-port-speed",
        Row::Watched,
        Leaf::NegotiatedPortSpeed,
    ),
    (
        ETHERNET,
        "{}/negotiated-duplex-mode",
        Row::Watched,
        Leaf::NegotiatedDuplexMode,
    ),
    (PORT, "{}/link-layer", Row::Writable, Leaf::LinkLayer),
    (PORT, "{}/scheduler", Row::Writable, Leaf::Scheduler),
    (PORT, "{}/queues", Row::Writable, Leaf::Queues),
    (PORT, "{}/queue-cells", Row::Writable, Leaf::QueueCells),
    (PORT, "{}/port-packets", Row::Writable, Leaf::PortPackets),
    (PORT, "{}/port-bytes", Row::Writable, Leaf::PortBytes),
    (PORT, "{}/port-cells", Row::Writable, Leaf::PortCells),
    (
        PORT,
        "{}/waiting-packets",
        Row::Sampled,
        Leaf::WaitingPackets,
    ),
    (PORT, "{}/waiting-bytes", Row::Sampled, Leaf::WaitingBytes),
    (PORT, "{}/waiting-cells", Row::Sampled, Leaf::WaitingCells),
    (DROPS, "reason", Row::Key, Leaf::Reason),
    (DROPS, "{}/reason", Row::Watched, Leaf::Reason),
    (DROPS, "{}/packets", Row::Sampled, Leaf::ReasonPackets),
    (OUTPUT, "interface-id", Row::Key, Leaf::Name),
    (OUTPUT, "{}/interface-id", Row::Fixed, Leaf::Name),
    (
        OUTPUT,
        "output/scheduler-policy/{}/name",
        Row::Fixed,
        Leaf::Name,
    ),
    (QUEUE, "name", Row::Key, Leaf::Queue),
    (QUEUE, "{}/name", Row::Fixed, Leaf::Queue),
    (
        QUEUE,
        "{}/transmit-pkts",
        Row::Sampled,
        Leaf::QueueTransmitPkts,
    ),
    (
        QUEUE,
        "{}/transmit-octets",
        Row::Sampled,
        Leaf::QueueTransmitOctets,
    ),
    (
        QUEUE,
        "{}/dropped-pkts",
        Row::Sampled,
        Leaf::QueueDroppedPkts,
    ),
    (
        QUEUE,
        "{}/dropped-octets",
        Row::Sampled,
        Leaf::QueueDroppedOctets,
    ),
    (QUEUE, "{}/max-queue-len", Row::Sampled, Leaf::QueueMaxLen),
    (
        QUEUE,
        "{}/fairlane-port:waiting-packets",
        Row::Sampled,
        Leaf::QueueWaitingPackets,
    ),
    (
        QUEUE,
        "{}/fairlane-port:waiting-bytes",
        Row::Sampled,
        Leaf::QueueWaitingBytes,
    ),
    (
        QUEUE,
        "{}/fairlane-port:waiting-cells",
        Row::Sampled,
        Leaf::QueueWaitingCells,
    ),
    (POLICY, "name", Row::Key, Leaf::Name),
    (POLICY, "{}/name", Row::Fixed, Leaf::Name),
    (SCHEDULER, "sequence", Row::Key, Leaf::Sequence),
    (SCHEDULER, "{}/sequence", Row::Fixed, Leaf::Sequence),
    (SCHEDULER, "{}/priority", Row::Fixed, Leaf::Priority),
    (
        SCHEDULER,
        "one-rate-two-color/{}/cir",
        Row::Writable,
        Leaf::Cir,
    ),
    (
        SCHEDULER,
        "one-rate-two-color/{}/max-queue-depth-packets",
        Row::Writable,
        Leaf::DepthPackets,
    ),
    (
        SCHEDULER,
        "one-rate-two-color/{}/max-queue-depth-bytes",
        Row::Writable,
        Leaf::DepthBytes,
    ),
    (INPUT, "id", Row::Key, Leaf::Queue),
    (INPUT, "{}/id", Row::Fixed, Leaf::Queue),
    (INPUT, "{}/input-type", Row::Fixed, Leaf::InputType),
    (INPUT, "{}/queue", Row::Fixed, Leaf::Queue),
    (INPUT, "{}/weight", Row::Writable, Leaf::Weight),
    (SWITCH, "reason", Row::Key, Leaf::SwitchReason),
    (SWITCH, "{}/reason", Row::Watched, Leaf::SwitchReason),
    (
        SWITCH,
        "{}/packets",
        Row::Sampled,
        Leaf::SwitchReasonPackets,
    ),
    (PACKETS, "{}/received", Row::Sampled, Leaf::Received),
    (PACKETS, "{}/copied", Row::Sampled, Leaf::Copied),
    (PACKETS, "{}/transmitted", Row::Sampled, Leaf::Transmitted),
    (PACKETS, "{}/packet-ins", Row::Sampled, Leaf::PacketIns),
    (PACKETS, "{}/dropped", Row::Sampled, Leaf::Dropped),
    (PACKETS, "{}/waiting", Row::Sampled, Leaf::Waiting),
    (PACKETS, "{}/on-line", Row::Sampled, Leaf::OnLine),
];

fn kind_of(leaf: Leaf) -> Type {
    match leaf {
        Leaf::Name
        | Leaf::InterfaceType
        | Leaf::AdminStatus
        | Leaf::OperStatus
        | Leaf::Reason
        | Leaf::SwitchReason
        | Leaf::Queue
        | Leaf::InputType
        | Leaf::Priority
        | Leaf::MacAddress
        | Leaf::PortSpeed
        | Leaf::DuplexMode
        | Leaf::NegotiatedPortSpeed
        | Leaf::NegotiatedDuplexMode => Type::Text,
        Leaf::LinkLayer => Type::Word(LINK_LAYERS),
        Leaf::Scheduler => Type::Word(SCHEDULERS),
        Leaf::Enabled | Leaf::Cpu | Leaf::ForwardingViable | Leaf::AutoNegotiate => Type::Bool,
        Leaf::Ifindex | Leaf::Queues | Leaf::Sequence | Leaf::DepthPackets | Leaf::DepthBytes => {
            Type::U32
        }
        _ => Type::U64,
    }
}

fn steps_of(path: &'static str) -> Vec<Step> {
    let mut module = "";
    let mut steps = Vec::new();
    for part in path.split('/') {
        let (part, key) = match part.split_once('[') {
            Some((name, key)) => (name, Some(key.trim_end_matches(']'))),
            None => (part, None),
        };
        let name = match part.split_once(':') {
            Some((other, name)) => {
                module = other;
                name
            }
            None => {
                match part {
                    "interfaces" if steps.is_empty() => module = IF,
                    "qos" if steps.is_empty() => module = QOS,
                    _ => {}
                }
                part
            }
        };
        let key = key.and_then(|key| key.split_once('=')).map(|(name, of)| {
            let of = match of {
                "port" => Key::Port,
                "sequence" => Key::Sequence,
                "queue" => Key::Queue,
                "port-reason" => Key::PortReason,
                _ => Key::SwitchReason,
            };
            (name, of)
        });
        steps.push(Step { name, module, key });
    }
    steps
}

fn nodes_of(parent: &'static str, rest: &'static str, row: &Row, leaf: Leaf) -> Vec<Node> {
    let node = |container: &str, part, writable, on_change| {
        let path: &'static str =
            Box::leak(format!("{parent}/{}", rest.replace("{}", container)).into_boxed_str());
        Node {
            steps: steps_of(path),
            leaf,
            part,
            kind: kind_of(leaf),
            writable,
            on_change,
        }
    };
    let config = |writable| node("config", Part::Config, writable, true);
    match row {
        Row::Key => vec![node("", Part::Key, false, true)],
        Row::Fixed => vec![config(false), node("state", Part::Applied, false, true)],
        Row::Writable => vec![config(true), node("state", Part::Applied, false, true)],
        Row::Watched => vec![node("state", Part::Operational, false, true)],
        Row::Sampled => vec![node("state", Part::Operational, false, false)],
    }
}

/// All leaves, made once: those of a port first, then those of its drops, its queues, then the switch's.
pub fn nodes() -> &'static [Node] {
    static NODES: OnceLock<Vec<Node>> = OnceLock::new();
    NODES.get_or_init(|| {
        let rows = ROWS.iter();
        rows.flat_map(|(parent, rest, row, leaf)| nodes_of(parent, rest, row, *leaf))
            .collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use device::{LinkLayer, SchedulerKind};

    #[test]
    fn words_are_those_of_the_device() {
        let layers = LinkLayer::ALL.iter().map(|each| each.name());
        let schedulers = SchedulerKind::ALL.iter().map(|each| each.name());
        assert!(layers.eq(LINK_LAYERS.iter().copied()));
        assert!(schedulers.eq(SCHEDULERS.iter().copied()));
    }

    #[test]
    fn modules_follow_the_path() {
        let node = nodes()
            .iter()
            .find(|node| node.leaf == Leaf::QueueCells && node.part == Part::Config)
            .unwrap();
        let modules: Vec<_> = node.steps.iter().map(|s| (s.module, s.name)).collect();
        assert_eq!(modules[0], (IF, "interfaces"));
        assert_eq!(modules[2], (FAIRLANE, "port"));
        assert_eq!(modules[4], (FAIRLANE, "queue-cells"));
        assert!(node.writable && node.has_key(Key::Port) && !node.has_key(Key::Queue));
    }

    #[test]
    fn no_path_is_there_twice() {
        let mut paths: Vec<Vec<&str>> = nodes()
            .iter()
            .map(|node| node.steps.iter().map(|s| s.name).collect())
            .collect();
        let count = paths.len();
        paths.sort();
        paths.dedup();
        assert_eq!(paths.len(), count);
    }
}
