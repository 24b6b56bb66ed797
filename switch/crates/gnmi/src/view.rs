// SPDX-License-Identifier: Apache-2.0
//! A picture of all ports: read by short calls of the device, one reading for all who ask at the same time.

use crate::links::{LinkStatus, Links};
use device::{Accounts, DeviceHandle, DropReason, PortConfig, PortStats, QueueStats, Usage};
use netio::Ethernet;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::sync::Mutex;
use tonic::Status;

/// Queues read in one call of the device: packets wait meanwhile (some 20 us).
const QUEUES_A_CALL: usize = 512;
/// Samples of different clients share a picture that is not older; shorter than the shortest interval between samples of
/// one client, so that it gets no picture twice.
const SAMPLE_AGE: Duration = Duration::from_millis(5);

/// A port and its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interface {
    pub port: u32,
    /// Its name in paths.
    pub name: String,
    /// The port of packet-in and packet-out: it has no interface.
    pub cpu: bool,
}

/// A queue as it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueView {
    pub weight: u32,
    pub stats: QueueStats,
    pub usage: Usage,
}

/// A port as it was.
#[derive(Debug, Clone)]
pub struct PortView {
    pub interface: Interface,
    pub config: PortConfig,
    pub stats: PortStats,
    pub usage: Usage,
    pub link: LinkStatus,
    /// Nothing known when it was not asked for, and of the CPU port.
    pub ethernet: Ethernet,
    /// Empty when queues were not asked for.
    pub queues: Vec<QueueView>,
}

/// What takes time to read, and is read for those only who ask for it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Wants {
    pub queues: bool,
    pub ethernet: bool,
}

impl Wants {
    pub const ALL: Wants = Wants {
        queues: true,
        ethernet: true,
    };

    pub fn or(self, other: Wants) -> Wants {
        Wants {
            queues: self.queues | other.queues,
            ethernet: self.ethernet | other.ethernet,
        }
    }
}

/// All ports as they were at a time.
#[derive(Debug)]
pub struct View {
    /// Since 1970, nanoseconds.
    pub timestamp_ns: i64,
    /// When the counters began to count, since 1970, nanoseconds.
    pub counting_since_ns: i64,
    taken: Instant,
    has: Wants,
    pub ports: Vec<PortView>,
    pub drops: Vec<(DropReason, u64)>,
    /// Of the same moment as `drops`.
    pub accounts: Accounts,
}

/// Takes pictures.
pub struct Viewer {
    handle: DeviceHandle,
    links: Arc<dyn Links>,
    interfaces: Vec<Interface>,
    counting_since_ns: i64,
    last: Mutex<Option<Arc<View>>>,
}

impl Viewer {
    /// Over a device that was just made: its counters begin now.
    pub fn new(handle: DeviceHandle, links: Arc<dyn Links>, interfaces: Vec<Interface>) -> Viewer {
        Viewer {
            handle,
            links,
            interfaces,
            counting_since_ns: now_ns(),
            last: Mutex::new(None),
        }
    }

    pub fn handle(&self) -> &DeviceHandle {
        &self.handle
    }

    pub fn links(&self) -> &Arc<dyn Links> {
        &self.links
    }

    /// A picture not older than this call: one that another call began to take after this one began will do.
    ///
    /// # Errors
    /// UNAVAILABLE when the switch has stopped.
    pub async fn view(&self, wants: Wants) -> Result<Arc<View>, Status> {
        self.not_before(Instant::now(), wants).await
    }

    /// A picture for samples: at most 5 ms old, so that however many they are, the device is read 200 times a second.
    ///
    /// # Errors
    /// UNAVAILABLE when the switch has stopped.
    pub async fn sample(&self, wants: Wants) -> Result<Arc<View>, Status> {
        let now = Instant::now();
        let oldest = now.checked_sub(SAMPLE_AGE).unwrap_or(now);
        self.not_before(oldest, wants).await
    }

    async fn not_before(&self, oldest: Instant, wants: Wants) -> Result<Arc<View>, Status> {
        let mut last = self.last.lock().await;
        if let Some(view) = last.as_ref() {
            if view.taken >= oldest && view.has.or(wants) == view.has {
                return Ok(view.clone());
            }
        }
        let view = Arc::new(self.take(wants).await?);
        *last = Some(view.clone());
        Ok(view)
    }

    async fn take(&self, wants: Wants) -> Result<View, Status> {
        let gone = |e: device::DeviceGone| Status::unavailable(e.to_string());
        let taken = Instant::now();
        let numbers: Vec<u32> = self.interfaces.iter().map(|i| i.port).collect();
        let (read, drops, accounts) = self
            .handle
            .call(move |device, _| {
                let read = |port| {
                    let config = *device.port(port)?;
                    Some((config, device.port_stats(port)?, device.port_usage(port)?))
                };
                let ports: Vec<_> = numbers.into_iter().map(read).collect();
                let drops = |reason: &DropReason| (*reason, device.stats().dropped(*reason));
                let drops = DropReason::ALL.iter().map(drops).collect();
                (ports, drops, device.accounts())
            })
            .await
            .map_err(gone)?;
        let mut ports = Vec::with_capacity(read.len());
        for (interface, read) in self.interfaces.iter().zip(read) {
            let Some((config, stats, usage)) = read else {
                continue;
            };
            let mut queues = Vec::new();
            while wants.queues && queues.len() < config.queues {
                let (port, from) = (interface.port, queues.len());
                let to = config.queues.min(from + QUEUES_A_CALL);
                let read = move |device: &mut device::Device, _| -> Vec<QueueView> {
                    let one = |queue| {
                        let (stats, usage) = device.queue_stats(port, queue)?;
                        let weight = device.queue_weight(port, queue)?;
                        Some(QueueView {
                            weight,
                            stats,
                            usage,
                        })
                    };
                    (from..to).filter_map(one).collect()
                };
                let some = self.handle.call(read).await.map_err(gone)?;
                if some.is_empty() {
                    break;
                }
                queues.extend(some);
            }
            let link = match interface.cpu {
                true => LinkStatus {
                    admin_up: true,
                    oper_up: true,
                },
                false => self.links.status(&interface.name),
            };
            ports.push(PortView {
                interface: interface.clone(),
                config,
                stats,
                usage,
                link,
                ethernet: match wants.ethernet && !interface.cpu {
                    true => self.links.ethernet(&interface.name),
                    false => Ethernet::default(),
                },
                queues,
            });
        }
        Ok(View {
            timestamp_ns: now_ns(),
            counting_since_ns: self.counting_since_ns,
            taken,
            has: wants,
            ports,
            accounts,
            drops,
        })
    }
}

/// Since 1970, nanoseconds.
pub fn now_ns() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |d| d.as_nanos() as i64)
}
