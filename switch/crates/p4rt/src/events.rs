// SPDX-License-Identifier: Apache-2.0
//! What the device tells becomes what clients hear: packet-ins, digest lists, idle timeouts (P4Runtime 1.5 §16).

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use device::Event;
use prost::Message;
use tokio::sync::mpsc::Receiver;
use tokio::sync::Notify;
use v1model::{Bits, DigestId, Entry, EntryStats, TableId};

use crate::binding::Digest;
use crate::digests::List;
use crate::entity::profile;
use crate::pipeline::Loaded;
use crate::proto::p4rt::entity::Entity as Kind;
use crate::proto::p4rt::stream_message_response::Update;
use crate::proto::p4rt::*;
use crate::read::TableFilter;
use crate::shared::Shared;

/// The longest wait before the digests' clocks are looked at again, as their timeouts can change.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// Idle time-outs that wait for the state; more are not told now, but again when they are due again (§16.4).
const EXPIRED_MAX: usize = 8_192;

/// Bytes of entries in one notification: clients take messages of 4 MiB.
const NOTIFICATION_BYTES: usize = 1 << 20;

/// Serves events until the device is gone. What needs the state waits in a task of its own: a long Write holds it, and
/// packet-ins wait for nobody.
pub async fn serve(shared: Arc<Shared>, events: Receiver<Vec<Event>>) {
    let later = (Mutex::new(Later::default()), Notify::new());
    tokio::select! {
        () = serve_now(&shared, events, &later) => {}
        () = serve_later(&shared, &later) => {}
    }
}

/// What waits for the state, and who is told that there is something.
type Waiting = (Mutex<Later>, Notify);

async fn serve_later(shared: &Arc<Shared>, (later, more): &Waiting) {
    loop {
        more.notified().await;
        let all = std::mem::take(&mut *later.lock().unwrap_or_else(PoisonError::into_inner));
        follow(shared, all).await;
    }
}

async fn serve_now(
    shared: &Arc<Shared>,
    mut events: Receiver<Vec<Event>>,
    (later, more): &Waiting,
) {
    loop {
        let due = shared.digests().next_due();
        let wait = match due {
            Some(due) => {
                Duration::from_nanos(due.saturating_sub(shared.clock.now())).min(LOOK_AGAIN)
            }
            None => Duration::MAX,
        };
        match tokio::time::timeout(wait, events.recv()).await {
            Ok(Some(batch)) => {
                let mut later = later.lock().unwrap_or_else(PoisonError::into_inner);
                tell(shared, batch, &mut later);
                if !later.is_empty() {
                    more.notify_one();
                }
            }
            Ok(None) => return,
            Err(_) => {}
        }
        send_due(shared);
    }
}

/// Sends the digest lists whose time has come; in virtual time each at the instant at which it was due.
pub fn send_due(shared: &Shared) {
    let now = shared.clock.now();
    loop {
        let Some(at) = shared.digests().next_due().filter(|at| *at <= now) else {
            break;
        };
        shared.clock.set(at);
        let lists = shared.digests().due(shared.clock.now());
        if let Some(loaded) = shared.running() {
            lists
                .iter()
                .for_each(|list| send_list(shared, &loaded, list));
        }
    }
    shared.clock.set(now);
}

/// Makes messages of a batch of events.
pub async fn handle(shared: &Arc<Shared>, batch: Vec<Event>) {
    let mut later = Later::default();
    tell(shared, batch, &mut later);
    follow(shared, later).await;
}

/// What needs the state.
#[derive(Default)]
struct Later {
    /// The last state of each port that changed.
    ports: BTreeMap<u32, bool>,
    expired: Vec<(TableId, Entry)>,
}

impl Later {
    fn is_empty(&self) -> bool {
        self.ports.is_empty() && self.expired.is_empty()
    }
}

/// Sends what can be sent at once; the rest is `later`. In virtual time a sample counts from the instant at which it was
/// taken, so that it does not matter when the batch is looked at.
fn tell(shared: &Shared, batch: Vec<Event>, later: &mut Later) {
    let loaded = shared.running();
    for event in batch {
        match (event, &loaded) {
            (Event::PacketIn { frame }, loaded) => packet_in(shared, loaded.as_deref(), frame),
            (Event::Digest { id, sample, at }, Some(loaded)) => {
                if shared.clock.is_virtual() {
                    shared.clock.set(at);
                    send_due(shared);
                }
                digest(shared, loaded, id, &sample);
            }
            (Event::IdleTimeout { table, entry }, Some(_)) => {
                if later.expired.len() < EXPIRED_MAX {
                    later.expired.push((table, entry));
                }
            }
            (Event::PortStatus { port, up }, _) => {
                shared.port_changes.send_modify(|count| *count += 1);
                later.ports.insert(port, up);
            }
            (Event::PortOptions { .. }, _) => shared.port_changes.send_modify(|count| *count += 1),
            (Event::Digest { .. } | Event::IdleTimeout { .. }, None) => {}
        }
    }
}

async fn follow(shared: &Arc<Shared>, later: Later) {
    for (port, up) in later.ports {
        port_status(shared, port, up).await;
    }
    if !later.expired.is_empty() {
        idle_timeouts(shared, &later.expired).await;
    }
}

fn packet_in(shared: &Shared, loaded: Option<&Loaded>, frame: Vec<u8>) {
    let frame = frame.into();
    let parts = match loaded.and_then(|l| l.binding.packet_in.as_ref()) {
        Some(header) => header.decode(&frame),
        None => Some((Vec::new(), frame)),
    };
    let sent = parts.is_some_and(|(metadata, payload)| {
        shared
            .clients()
            .send_to_primaries(&Update::Packet(PacketIn { payload, metadata }))
    });
    if !sent {
        shared.packet_ins_lost.fetch_add(1, Ordering::Relaxed);
    }
}

fn digest(shared: &Shared, loaded: &Loaded, id: DigestId, sample: &[u8]) {
    let Some(binding) = loaded
        .binding
        .digests
        .items
        .iter()
        .find(|d| d.digests.contains(&id))
    else {
        return;
    };
    let list = shared
        .digests()
        .take(binding.id, sample, shared.clock.now());
    if let Some(list) = list {
        send_list(shared, loaded, &list);
    }
}

fn send_list(shared: &Shared, loaded: &Loaded, list: &List) {
    let Ok(binding) = loaded.binding.digests.get(list.digest_id) else {
        return;
    };
    let message = DigestList {
        digest_id: list.digest_id,
        list_id: list.list_id,
        data: list
            .samples
            .iter()
            .filter_map(|s| encode_sample(binding, s))
            .collect(),
        timestamp: shared.clock.timestamp_ns(),
    };
    let sent = shared.clients().send_to_primaries(&Update::Digest(message));
    if !sent {
        shared.digests().unsent(list);
    }
}

/// None for a sample of another program, which a change of config may have left behind.
fn encode_sample(binding: &Digest, sample: &[u8]) -> Option<P4Data> {
    let mut values = Vec::with_capacity(binding.widths.len());
    let mut rest = sample;
    for width in &binding.widths {
        let (value, tail) = rest.split_at_checked(width.div_ceil(8) as usize)?;
        values.push(Bits::from_be_bytes(*width, value).ok()?);
        rest = tail;
    }
    rest.is_empty()
        .then(|| binding.shape.encode(&mut values.iter()))
}

async fn idle_timeouts(shared: &Shared, expired: &[(TableId, Entry)]) {
    let state = shared.state.read().await;
    let Some(context) = &state.running else {
        return;
    };
    let filter = TableFilter::default();
    let encode = |(table, entry): &(TableId, Entry)| {
        let table = context.loaded.binding.table_of(*table)?;
        match filter.encode(table, &context.soft, entry, &EntryStats::default(), 0)? {
            Kind::TableEntry(entry) => Some(entry),
            _ => None,
        }
    };
    let mut entries: Vec<TableEntry> = expired.iter().filter_map(encode).collect();
    while !entries.is_empty() {
        let mut bytes = 0;
        let fits = |entry: &&TableEntry| {
            bytes += entry.encoded_len();
            bytes <= NOTIFICATION_BYTES
        };
        let count = entries.iter().take_while(fits).count();
        let rest = entries.split_off(count.max(1));
        let message = IdleTimeoutNotification {
            table_entry: entries,
            timestamp: shared.clock.timestamp_ns(),
        };
        let message = Update::IdleTimeoutNotification(message);
        shared.clients().send_to_primaries(&message);
        entries = rest;
    }
}

/// Groups whose members watch the port follow it, one between two packets.
async fn port_status(shared: &Arc<Shared>, port: u32, up: bool) {
    let mut state = shared.state.write().await;
    let Some(running) = &mut state.running else {
        return;
    };
    let loaded = running.loaded.clone();
    let mut groups = profile::port_changed(&mut running.soft, port, up).into_iter();
    let done = shared.handle.call_in_pieces(move |device, _| {
        let Some(group) = groups.next() else {
            return Some(());
        };
        if let Some(pipeline) = device.pipeline_mut() {
            profile::follow(&loaded.binding, pipeline, [group]);
        }
        None
    });
    if done.await.is_err() {
        tracing::debug!(
            port,
            "the switch stopped before a port's change was handled"
        );
    }
}
