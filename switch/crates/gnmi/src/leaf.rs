// SPDX-License-Identifier: Apache-2.0
//! A leaf's value in a picture of the ports, and its change in new options of a port.

use crate::schema::{Key, Leaf, Node, Part};
use crate::value::Value;
use crate::view::{PortView, View};
use device::{PortConfig, SchedulerKind, PORT_REFUSALS, UNLIMITED};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Which of a leaf's instances: its port, and its queue or reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Place {
    /// Index in the picture; none of the switch's own leaves has one.
    pub port: usize,
    /// Number of the queue, or index of the reason.
    pub member: usize,
}

/// The value of a list's key at a place.
pub fn key_at<'a>(view: &'a View, place: Place, key: Key) -> Option<Cow<'a, str>> {
    let port = || view.ports.get(place.port);
    Some(match key {
        Key::Port => Cow::Borrowed(port()?.interface.name.as_str()),
        Key::Sequence => Cow::Borrowed("1"),
        Key::Queue => Cow::Owned(place.member.to_string()),
        Key::PortReason => Cow::Borrowed(PORT_REFUSALS.get(place.member)?.name()),
        Key::SwitchReason => Cow::Borrowed(view.drops.get(place.member)?.0.name()),
    })
}

/// The value of a leaf; None where it has none: a limit that is not set.
pub fn read(node: &Node, view: &View, place: Place) -> Option<Value> {
    let text = |text: &str| Some(Value::Text(text.to_owned()));
    let up = |up: bool| text(if up { "UP" } else { "DOWN" });
    let limit = |value: u64| (value != UNLIMITED).then_some(Value::U64(value));
    let depth = |value: u64| u32::try_from(value).ok().map(Value::U32);
    match node.leaf {
        Leaf::SwitchReason => return text(view.drops.get(place.member)?.0.name()),
        Leaf::SwitchReasonPackets => return Some(Value::U64(view.drops.get(place.member)?.1)),
        Leaf::Received => return Some(Value::U64(view.accounts.received)),
        Leaf::Copied => return Some(Value::U64(view.accounts.copied)),
        Leaf::Transmitted => return Some(Value::U64(view.accounts.transmitted)),
        Leaf::PacketIns => return Some(Value::U64(view.accounts.packet_ins)),
        Leaf::Dropped => return Some(Value::U64(view.accounts.dropped)),
        Leaf::Waiting => return Some(Value::U64(view.accounts.waiting)),
        Leaf::OnLine => return Some(Value::U64(view.accounts.on_line)),
        _ => {}
    }
    let port = view.ports.get(place.port)?;
    let (config, stats, ethernet) = (&port.config, &port.stats, &port.ethernet);
    let of_interface = |count: u64| (!port.interface.cpu).then_some(Value::U64(count));
    let negotiated = ethernet.auto_negotiate == Some(true);
    let queue = || port.queues.get(place.member);
    match node.leaf {
        Leaf::Name => text(&port.interface.name),
        Leaf::InterfaceType => text(match port.interface.cpu {
            true => "iana-if-type:other",
            false => "iana-if-type:ethernetCsmacd",
        }),
        Leaf::Enabled => Some(Value::Bool(port.link.admin_up)),
        Leaf::Ifindex => Some(Value::U32(port.interface.port)),
        Leaf::AdminStatus => up(port.link.admin_up),
        Leaf::OperStatus => up(port.link.oper_up),
        Leaf::Cpu => Some(Value::Bool(port.interface.cpu)),
        // What goes where is the program's business: the switch itself keeps no port out of it.
        Leaf::ForwardingViable => Some(Value::Bool(true)),
        Leaf::MacAddress => ethernet.mac.map(|mac| {
            let parts = mac.map(|byte| format!("{byte:02X}"));
            Value::Text(parts.join(":"))
        }),
        Leaf::AutoNegotiate => ethernet.auto_negotiate.map(Value::Bool),
        // What is agreed with the other end nobody has configured.
        Leaf::PortSpeed | Leaf::DuplexMode if node.part == Part::Config && negotiated => None,
        Leaf::NegotiatedPortSpeed | Leaf::NegotiatedDuplexMode if !negotiated => None,
        Leaf::PortSpeed | Leaf::NegotiatedPortSpeed => ethernet.speed_mbps.map(speed),
        Leaf::DuplexMode | Leaf::NegotiatedDuplexMode => ethernet
            .full_duplex
            .and_then(|full| text(if full { "FULL" } else { "HALF" })),
        Leaf::InFcsErrors => ethernet.fcs_errors.map(Value::U64),
        Leaf::LastClear => Some(Value::U64(view.counting_since_ns as u64)),
        Leaf::InPkts => Some(Value::U64(stats.rx_packets)),
        Leaf::InOctets => Some(Value::U64(stats.rx_bytes)),
        // What goes through the CPU port begins with the program's own header.
        Leaf::InUnicastPkts => of_interface(stats.rx_frames.unicast),
        Leaf::InMulticastPkts => of_interface(stats.rx_frames.multicast),
        Leaf::InBroadcastPkts => of_interface(stats.rx_frames.broadcast),
        Leaf::OutUnicastPkts => of_interface(stats.tx_frames.unicast),
        Leaf::OutMulticastPkts => of_interface(stats.tx_frames.multicast),
        Leaf::OutBroadcastPkts => of_interface(stats.tx_frames.broadcast),
        Leaf::InDiscards => Some(Value::U64(stats.rx_unprocessed + stats.rx_lost)),
        Leaf::InErrors => Some(Value::U64(
            stats.rx_errors + ethernet.fcs_errors.unwrap_or(0),
        )),
        // The program gets every frame, whatever its protocol.
        Leaf::InUnknownProtos => of_interface(0),
        Leaf::OutPkts => Some(Value::U64(stats.tx_packets)),
        Leaf::OutOctets => Some(Value::U64(stats.tx_bytes)),
        Leaf::OutDiscards => Some(Value::U64(stats.refused_packets)),
        Leaf::OutErrors => Some(Value::U64(stats.tx_errors)),
        Leaf::LinkLayer => text(config.link_layer.name()),
        Leaf::Scheduler => text(config.scheduler.name()),
        Leaf::Queues => depth(config.queues as u64),
        Leaf::QueueCells => limit(config.queue_limits.cells),
        Leaf::PortPackets => limit(config.port_limits.packets),
        Leaf::PortBytes => limit(config.port_limits.bytes),
        Leaf::PortCells => limit(config.port_limits.cells),
        Leaf::WaitingPackets => Some(Value::U64(port.usage.packets)),
        Leaf::WaitingBytes => Some(Value::U64(port.usage.bytes)),
        Leaf::WaitingCells => Some(Value::U64(port.usage.cells)),
        Leaf::Reason => text(PORT_REFUSALS.get(place.member)?.name()),
        Leaf::ReasonPackets => Some(Value::U64(stats.refused(*PORT_REFUSALS.get(place.member)?))),
        Leaf::Sequence => Some(Value::U32(1)),
        Leaf::Priority => match config.scheduler {
            SchedulerKind::Strict => text("STRICT"),
            _ => None,
        },
        Leaf::Cir => (config.rate_bps > 0).then_some(Value::U64(config.rate_bps)),
        Leaf::DepthPackets => depth(config.queue_limits.packets),
        Leaf::DepthBytes => depth(config.queue_limits.bytes),
        Leaf::Queue => text(&place.member.to_string()),
        Leaf::InputType => text("QUEUE"),
        Leaf::Weight => Some(Value::U64(u64::from(queue()?.weight))),
        Leaf::QueueTransmitPkts => {
            let q = queue()?;
            let gone = q.usage.packets + q.stats.removed_packets;
            Some(Value::U64(q.stats.enqueued_packets.saturating_sub(gone)))
        }
        Leaf::QueueTransmitOctets => {
            let q = queue()?;
            let gone = q.usage.bytes + q.stats.removed_bytes;
            Some(Value::U64(q.stats.enqueued_bytes.saturating_sub(gone)))
        }
        Leaf::QueueDroppedPkts => {
            let s = &queue()?.stats;
            Some(Value::U64(
                s.dropped_queue_full + s.dropped_port_full + s.dropped_buffer_full,
            ))
        }
        Leaf::QueueDroppedOctets => Some(Value::U64(queue()?.stats.dropped_bytes)),
        Leaf::QueueMaxLen => Some(Value::U64(queue()?.stats.high_water.bytes)),
        Leaf::QueueWaitingPackets => Some(Value::U64(queue()?.usage.packets)),
        Leaf::QueueWaitingBytes => Some(Value::U64(queue()?.usage.bytes)),
        Leaf::QueueWaitingCells => Some(Value::U64(queue()?.usage.cells)),
        Leaf::SwitchReason
        | Leaf::SwitchReasonPackets
        | Leaf::Received
        | Leaf::Copied
        | Leaf::Transmitted
        | Leaf::PacketIns
        | Leaf::Dropped
        | Leaf::Waiting
        | Leaf::OnLine => None,
    }
}

/// As OpenConfig names it: an identity of `ETHERNET_SPEED`.
fn speed(mbps: u32) -> Value {
    let gb = mbps / 1_000;
    Value::Text(match mbps {
        10 | 100 | 2_500 => format!("SPEED_{mbps}MB"),
        _ if mbps.is_multiple_of(1_000) && SPEEDS_GB.contains(&gb) => format!("SPEED_{gb}GB"),
        _ => "SPEED_UNKNOWN".to_owned(),
    })
}

const SPEEDS_GB: [u32; 11] = [1, 5, 10, 25, 40, 50, 100, 200, 400, 600, 800];

/// A port's options as a Set would leave them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    pub config: PortConfig,
    pub enabled: bool,
    /// Of the queues whose weight the Set names.
    pub weights: BTreeMap<usize, u32>,
}

impl Candidate {
    pub fn new(port: &PortView) -> Candidate {
        Candidate {
            config: port.config,
            enabled: port.link.admin_up,
            weights: BTreeMap::new(),
        }
    }

    /// Gives a leaf another value, or its default (None). Values of keys and fixed leaves may be said again.
    ///
    /// # Errors
    /// A sentence with what is allowed.
    pub fn assign(
        &mut self,
        node: &Node,
        view: &View,
        place: Place,
        value: Option<Value>,
    ) -> Result<(), String> {
        if !node.writable {
            return match value {
                None => Ok(()),
                Some(value) if read(node, view, place).as_ref() == Some(&value) => Ok(()),
                Some(value) => Err(format!("it is read-only, and not {}", value.json(false))),
            };
        }
        let default = PortConfig::default();
        let number = |default: u64| match &value {
            Some(Value::U64(number)) => *number,
            Some(Value::U32(number)) => u64::from(*number),
            _ => default,
        };
        let word = match &value {
            Some(Value::Text(word)) => Some(word.as_str()),
            _ => None,
        };
        let config = &mut self.config;
        match node.leaf {
            Leaf::Enabled => {
                let up = value != Some(Value::Bool(false));
                if !up && view.ports[place.port].interface.cpu {
                    return Err("the CPU port has no interface that could be down".to_owned());
                }
                self.enabled = up;
            }
            Leaf::LinkLayer => {
                config.link_layer = match word {
                    Some(word) => word
                        .parse()
                        .map_err(|e: device::UnknownName| e.to_string())?,
                    None => default.link_layer,
                }
            }
            Leaf::Scheduler => {
                config.scheduler = match word {
                    Some(word) => word
                        .parse()
                        .map_err(|e: device::UnknownName| e.to_string())?,
                    None => default.scheduler,
                }
            }
            // Queues cannot be taken away: without a value they stay.
            Leaf::Queues => config.queues = number(config.queues as u64) as usize,
            Leaf::Cir => config.rate_bps = number(default.rate_bps),
            Leaf::DepthPackets => {
                config.queue_limits.packets = number(default.queue_limits.packets)
            }
            Leaf::DepthBytes => config.queue_limits.bytes = number(default.queue_limits.bytes),
            Leaf::QueueCells => config.queue_limits.cells = number(default.queue_limits.cells),
            Leaf::PortPackets => config.port_limits.packets = number(default.port_limits.packets),
            Leaf::PortBytes => config.port_limits.bytes = number(default.port_limits.bytes),
            Leaf::PortCells => config.port_limits.cells = number(default.port_limits.cells),
            Leaf::Weight => {
                let weight = number(1);
                let weight = u32::try_from(weight).ok().filter(|weight| *weight > 0);
                let weight = weight.ok_or_else(|| format!("a weight is from 1 to {}", u32::MAX))?;
                self.weights.insert(place.member, weight);
            }
            _ => return Err("it is read-only".to_owned()),
        }
        Ok(())
    }

    /// Checks the options as they are now.
    ///
    /// # Errors
    /// A sentence with what is allowed.
    pub fn check(&self, port: &PortView) -> Result<(), String> {
        let number = port.interface.port;
        self.config.check(number).map_err(|e| e.message)?;
        if self.config.queues < port.config.queues {
            return Err(format!(
                "{} queues are fewer than its {}; queues can only be added while it runs",
                self.config.queues, port.config.queues
            ));
        }
        Ok(())
    }
}
