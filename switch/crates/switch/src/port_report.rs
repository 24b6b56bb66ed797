// SPDX-License-Identifier: Apache-2.0
//! What the control socket tells of ports: options, counts, drops by reason, what waits and where; and the few lines of log at a
//! switch's end.

use device::{Accounts, Device, DropReason, PortChange, PortStats, Usage, PORT_REFUSALS};
use serde::Serialize;

/// Packets by the reason why they were dropped; reasons without a packet are left out.
type Drops = serde_json::Map<String, serde_json::Value>;

/// A port.
#[derive(Debug, Serialize)]
pub struct PortReport {
    port: u32,
    /// With null where there is no limit.
    #[serde(flatten)]
    options: PortChange,
    /// What its rate follows.
    #[serde(skip_serializing_if = "Option::is_none")]
    rate_form: Option<serde_json::Value>,
    #[serde(flatten)]
    counts: PortStats,
    #[serde(serialize_with = "by_name")]
    drops: Vec<(DropReason, u64)>,
    waiting: Usage,
    queues_waiting: Vec<QueueReport>,
}

/// A queue that holds something.
#[derive(Debug, Serialize)]
struct QueueReport {
    queue: usize,
    weight: u32,
    #[serde(flatten)]
    waiting: Usage,
}

/// All ports, and drops of the whole switch by reason.
#[derive(Debug, Serialize)]
pub struct SwitchReport {
    ports: Vec<PortReport>,
    packets: Accounts,
    #[serde(serialize_with = "by_name")]
    drops: Vec<(DropReason, u64)>,
}

fn by_name<S: serde::Serializer>(drops: &[(DropReason, u64)], to: S) -> Result<S::Ok, S::Error> {
    let counted = drops.iter().filter(|(_, packets)| *packets > 0);
    let named = counted.map(|(reason, packets)| (reason.name().to_owned(), (*packets).into()));
    named.collect::<Drops>().serialize(to)
}

impl PortReport {
    /// None when there is no such port.
    pub fn new(device: &Device, port: u32) -> Option<PortReport> {
        let (config, stats) = (device.port(port)?, device.port_stats(port)?);
        let waiting = device.port_usage(port)?;
        let queue = |queue: usize| {
            let (_, usage) = device.queue_stats(port, queue)?;
            (usage.packets > 0).then(|| QueueReport {
                queue,
                weight: device.queue_weight(port, queue).unwrap_or_default(),
                waiting: usage,
            })
        };
        let queues_waiting = match waiting.packets {
            0 => Vec::new(),
            _ => (0..config.queues).filter_map(queue).collect(),
        };
        Some(PortReport {
            port,
            options: config.into(),
            rate_form: device.rate(port).map(|series| series.form().clone()),
            counts: stats,
            drops: PORT_REFUSALS.map(|r| (r, stats.refused(r))).into(),
            waiting,
            queues_waiting,
        })
    }
}

impl SwitchReport {
    /// Of the switch as it is now.
    pub fn new(device: &Device) -> SwitchReport {
        let stats = device.stats();
        let drops = DropReason::ALL.iter().map(|r| (*r, stats.dropped(*r)));
        SwitchReport {
            ports: device
                .ports()
                .filter_map(|port| PortReport::new(device, port))
                .collect(),
            packets: device.accounts(),
            drops: drops.collect(),
        }
    }
}

/// Logs what the switch did: packets, drops by reason, and ports.
pub fn log(device: &Device) {
    let stats = device.stats();
    let accounts = device.accounts();
    tracing::info!(
        received = accounts.received,
        copied = accounts.copied,
        transmitted = accounts.transmitted,
        dropped = accounts.dropped,
        waiting = accounts.waiting,
        on_line = accounts.on_line,
        "packets"
    );
    for &reason in DropReason::ALL {
        let packets = stats.dropped(reason);
        if packets > 0 {
            tracing::info!(reason = reason.name(), packets, "dropped");
        }
    }
    let missed = device.missed_events();
    if missed.digests > 0 {
        tracing::warn!(digests = missed.digests, "the control plane was too slow");
    }
    for port in device.ports() {
        if let Some(s) = device.port_stats(port) {
            if s.rx_lost > 0 {
                tracing::warn!(port, frames = s.rx_lost, "frames lost at reception");
            }
            tracing::debug!(port, ?s, "port");
        }
    }
}
