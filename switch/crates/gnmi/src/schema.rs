// SPDX-License-Identifier: Apache-2.0
//! The leaves that are served, one row each; names are OpenConfig's, and those of `fairlane-port` (switch/yang) where it has none.

use self::{Leaf::*, Row::*};
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
    /// Its value is what the kernel reports of the interface ([`netio::Ethernet`]).
    pub fn is_ethernet(self) -> bool {
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
    /// Its changes are reported at once.
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
#[derive(Clone, Copy)]
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
const SCHEDULERS: &[&str] = &["strict", "wrr", "drr", "calendar", "fq"];

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

/// The rows of one place: what kind, the path below it, the leaf.
type Rows = &'static [(Row, &'static str, Leaf)];

/// Rows by the place where they stand.
const ROWS: &[(&str, Rows)] = &[
    (
        INTERFACE,
        &[
            (Key, "name", Name),
            (Fixed, "{}/name", Name),
            (Fixed, "{}/type", InterfaceType),
            (Writable, "{}/enabled", Enabled),
            (Watched, "{}/ifindex", Ifindex),
            (Watched, "{}/openconfig-p4rt:id", Ifindex),
            (Watched, "{}/admin-status", AdminStatus),
            (Watched, "{}/oper-status", OperStatus),
            (Watched, "{}/cpu", Cpu),
            (
                Fixed,
                "{}/openconfig-if-sdn-ext:forwarding-viable",
                ForwardingViable,
            ),
            (Sampled, "{}/counters/in-pkts", InPkts),
            (Sampled, "{}/counters/in-octets", InOctets),
            (Sampled, "{}/counters/in-unicast-pkts", InUnicastPkts),
            (Sampled, "{}/counters/in-multicast-pkts", InMulticastPkts),
            (Sampled, "{}/counters/in-broadcast-pkts", InBroadcastPkts),
            (Sampled, "{}/counters/in-discards", InDiscards),
            (Sampled, "{}/counters/in-errors", InErrors),
            (Sampled, "{}/counters/in-unknown-protos", InUnknownProtos),
            (Sampled, "{}/counters/in-fcs-errors", InFcsErrors),
            (Sampled, "{}/counters/out-pkts", OutPkts),
            (Sampled, "{}/counters/out-octets", OutOctets),
            (Sampled, "{}/counters/out-unicast-pkts", OutUnicastPkts),
            (Sampled, "{}/counters/out-multicast-pkts", OutMulticastPkts),
            (Sampled, "{}/counters/out-broadcast-pkts", OutBroadcastPkts),
            (Sampled, "{}/counters/out-discards", OutDiscards),
            (Sampled, "{}/counters/out-errors", OutErrors),
            (Watched, "{}/counters/last-clear", LastClear),
        ],
    ),
    (
        ETHERNET,
        &[
            (Watched, "{}/mac-address", MacAddress),
            (Watched, "{}/hw-mac-address", MacAddress),
            (Fixed, "{}/auto-negotiate", AutoNegotiate),
            (Fixed, "{}/port-speed", PortSpeed),
            (Fixed, "{}/duplex-mode", DuplexMode),
            (Watched, "{}/negotiated-port-speed", NegotiatedPortSpeed),
            (Watched, "{}/negotiated-duplex-mode", NegotiatedDuplexMode),
        ],
    ),
    (
        PORT,
        &[
            (Writable, "{}/link-layer", LinkLayer),
            (Writable, "{}/scheduler", Scheduler),
            (Writable, "{}/queues", Queues),
            (Writable, "{}/queue-cells", QueueCells),
            (Writable, "{}/port-packets", PortPackets),
            (Writable, "{}/port-bytes", PortBytes),
            (Writable, "{}/port-cells", PortCells),
            (Sampled, "{}/waiting-packets", WaitingPackets),
            (Sampled, "{}/waiting-bytes", WaitingBytes),
            (Sampled, "{}/waiting-cells", WaitingCells),
        ],
    ),
    (
        DROPS,
        &[
            (Key, "reason", Reason),
            (Watched, "{}/reason", Reason),
            (Sampled, "{}/packets", ReasonPackets),
        ],
    ),
    (
        OUTPUT,
        &[
            (Key, "interface-id", Name),
            (Fixed, "{}/interface-id", Name),
            (Fixed, "output/scheduler-policy/{}/name", Name),
        ],
    ),
    (
        QUEUE,
        &[
            (Key, "name", Queue),
            (Fixed, "{}/name", Queue),
            (Sampled, "{}/transmit-pkts", QueueTransmitPkts),
            (Sampled, "{}/transmit-octets", QueueTransmitOctets),
            (Sampled, "{}/dropped-pkts", QueueDroppedPkts),
            (Sampled, "{}/dropped-octets", QueueDroppedOctets),
            (Sampled, "{}/max-queue-len", QueueMaxLen),
            (
                Sampled,
                "{}/fairlane-port:waiting-packets",
                QueueWaitingPackets,
            ),
            (Sampled, "{}/fairlane-port:waiting-bytes", QueueWaitingBytes),
            (Sampled, "{}/fairlane-port:waiting-cells", QueueWaitingCells),
        ],
    ),
    (POLICY, &[(Key, "name", Name), (Fixed, "{}/name", Name)]),
    (
        SCHEDULER,
        &[
            (Key, "sequence", Sequence),
            (Fixed, "{}/sequence", Sequence),
            (Fixed, "{}/priority", Priority),
            (Writable, "one-rate-two-color/{}/cir", Cir),
            (
                Writable,
                "one-rate-two-color/{}/max-queue-depth-packets",
                DepthPackets,
            ),
            (
                Writable,
                "one-rate-two-color/{}/max-queue-depth-bytes",
                DepthBytes,
            ),
        ],
    ),
    (
        INPUT,
        &[
            (Key, "id", Queue),
            (Fixed, "{}/id", Queue),
            (Fixed, "{}/input-type", InputType),
            (Fixed, "{}/queue", Queue),
            (Writable, "{}/weight", Weight),
        ],
    ),
    (
        SWITCH,
        &[
            (Key, "reason", SwitchReason),
            (Watched, "{}/reason", SwitchReason),
            (Sampled, "{}/packets", SwitchReasonPackets),
        ],
    ),
    (
        PACKETS,
        &[
            (Sampled, "{}/received", Received),
            (Sampled, "{}/copied", Copied),
            (Sampled, "{}/transmitted", Transmitted),
            (Sampled, "{}/packet-ins", PacketIns),
            (Sampled, "{}/dropped", Dropped),
            (Sampled, "{}/waiting", Waiting),
            (Sampled, "{}/on-line", OnLine),
        ],
    ),
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

fn nodes_of(parent: &'static str, rest: &'static str, row: Row, leaf: Leaf) -> Vec<Node> {
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
        let rows = ROWS.iter().flat_map(|(parent, rows)| {
            let nodes =
                |&(row, rest, leaf): &(Row, &'static str, Leaf)| nodes_of(parent, rest, row, leaf);
            rows.iter().flat_map(nodes)
        });
        rows.collect()
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
