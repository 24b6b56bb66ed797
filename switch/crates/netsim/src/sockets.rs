// SPDX-License-Identifier: Apache-2.0
//! The connections' ends of all hosts, and who takes what comes for a pair of addresses and ports.

use crate::calendar::EntityId;
use device::Nanos;
use fabric::{Actor, Fabric};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::ptr;
use tcp::Connection;

/// Both ends of a conversation as one host sees it, and the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum SocketKey {
    V4(KeyOf<u64>),
    V6(KeyOf<[u64; 4]>),
}

/// Addresses, and ports with the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct KeyOf<A> {
    addresses: A,
    ports: u64,
}

impl SocketKey {
    #[inline]
    pub(crate) fn new(local: SocketAddr, remote: SocketAddr, protocol: u8) -> SocketKey {
        let port = |of: SocketAddr| u64::from(of.port());
        let ports = port(local) << 32 | port(remote) << 16 | u64::from(protocol);
        if let (IpAddr::V4(local), IpAddr::V4(remote)) = (local.ip(), remote.ip()) {
            let addresses = u64::from(local.to_bits()) << 32 | u64::from(remote.to_bits());
            return SocketKey::V4(KeyOf { addresses, ports });
        }
        let [a, b] = [local, remote].map(|end| match end.ip() {
            IpAddr::V4(ip) => ip.to_ipv6_mapped().to_bits(),
            IpAddr::V6(ip) => ip.to_bits(),
        });
        let addresses = [a as u64, b as u64, (a >> 64) as u64, (b >> 64) as u64];
        SocketKey::V6(KeyOf { addresses, ports })
    }
}

/// Who takes what comes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Socket {
    /// The receiver of a UDP flow.
    Udp(u32),
    /// An end of a TCP connection.
    Tcp(u32),
    /// A SYN is expected, of this flow.
    Expected(u32),
}

/// Bytes whose time until they are acknowledged counts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pending {
    pub(crate) start: Nanos,
    pub(crate) bytes: u64,
    /// Acknowledged bytes of the connection at which it is done.
    pub(crate) until: u64,
    /// Retransmissions of the connection before.
    pub(crate) retransmits: u64,
    /// Segments with data or FIN that it sent before.
    pub(crate) segments: u64,
    /// When the first data segment since left.
    pub(crate) first_sent: Option<Nanos>,
}

/// One end of a TCP connection.
pub(crate) struct Endpoint {
    pub(crate) connection: Connection,
    pub(crate) flow: u32,
    pub(crate) host: u32,
    pub(crate) local: SocketAddr,
    pub(crate) remote: SocketAddr,
    pub(crate) is_sender: bool,
    /// Bytes of all transfers so far.
    pub(crate) asked: u64,
    pub(crate) pending: VecDeque<Pending>,
    /// Closes as soon as what it may send of what was written is sent.
    pub(crate) closes_when_sent: bool,
    /// Segments with a FIN and no data that it sent.
    pub(crate) lone_fins: u64,
    /// How long the application lets data wait before it reads; 0: not at all.
    pub(crate) read_interval: Nanos,
    /// When it reads next.
    pub(crate) read_at: Option<Nanos>,
}

impl Endpoint {
    /// The receiving end at `host` of a connection of a flow, between local and remote end.
    pub(crate) fn new(
        connection: Connection,
        flow: u32,
        host: u32,
        ends: (SocketAddr, SocketAddr),
    ) -> Endpoint {
        Endpoint {
            connection,
            flow,
            host,
            local: ends.0,
            remote: ends.1,
            is_sender: false,
            asked: 0,
            pending: VecDeque::new(),
            closes_when_sent: false,
            lone_fins: 0,
            read_interval: 0,
            read_at: None,
        }
    }

    /// When something is due: a timer of the connection, or the application reads.
    pub(crate) fn next_due(&self) -> Option<Nanos> {
        match (self.connection.next_timer(), self.read_at) {
            (Some(timer), Some(read)) => Some(timer.min(read)),
            (timer, read) => timer.or(read),
        }
    }

    /// Data came: the application will read it in its time.
    pub(crate) fn will_read(&mut self, now: Nanos) {
        if self.read_interval > 0 && self.read_at.is_none() {
            self.read_at = Some(now.saturating_add(self.read_interval));
        }
    }

    /// Reads all that is there, if it is time to.
    pub(crate) fn read_due(&mut self, now: Nanos) {
        if self.read_at.is_some_and(|at| at <= now) {
            self.read_at = None;
            self.connection.set_reading(now, true);
            self.connection.set_reading(now, false);
        }
    }
}

struct Slot {
    entity: EntityId,
    endpoint: Option<Endpoint>,
}

/// The ends of 256 connections, of 1.8 KiB each, are in the second cache of most processors.
const MANY: usize = 512;

/// All sockets.
#[derive(Default)]
pub(crate) struct Sockets {
    v4: FxHashMap<KeyOf<u64>, Socket>,
    v6: FxHashMap<KeyOf<[u64; 4]>, Socket>,
    slots: Vec<Slot>,
    free: Vec<u32>,
}

impl Sockets {
    #[inline]
    pub(crate) fn find(&self, key: &SocketKey) -> Option<Socket> {
        match key {
            SocketKey::V4(key) => self.v4.get(key).copied(),
            SocketKey::V6(key) => self.v6.get(key).copied(),
        }
    }

    pub(crate) fn insert(&mut self, key: SocketKey, socket: Socket) {
        match key {
            SocketKey::V4(key) => self.v4.insert(key, socket),
            SocketKey::V6(key) => self.v6.insert(key, socket),
        };
    }

    pub(crate) fn remove(&mut self, key: &SocketKey) {
        match key {
            SocketKey::V4(key) => self.v4.remove(key),
            SocketKey::V6(key) => self.v6.remove(key),
        };
    }

    /// Keeps an end; its timer becomes an entity of the calendar.
    pub(crate) fn add(&mut self, endpoint: Endpoint, fabric: &mut Fabric) -> u32 {
        match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize].endpoint = Some(endpoint);
                slot
            }
            None => {
                let slot = self.slots.len() as u32;
                let entity = fabric.add_actor(Actor::Timer(slot));
                let endpoint = Some(endpoint);
                self.slots.push(Slot { entity, endpoint });
                slot
            }
        }
    }

    /// So many ends that most are not in the cache when a frame comes for them.
    #[inline]
    pub(crate) fn are_many(&self) -> bool {
        self.slots.len() >= MANY
    }

    /// Has an end come into the cache, whole and at once.
    #[inline]
    pub(crate) fn prefetch(&self, slot: u32) {
        let first = ptr::from_ref(&self.slots[slot as usize]).addr();
        device::prefetch_all(first, size_of::<Slot>());
    }

    /// The end in a slot and the entity of its timer.
    #[inline]
    pub(crate) fn get_mut(&mut self, slot: u32) -> Option<(&mut Endpoint, EntityId)> {
        let slot = &mut self.slots[slot as usize];
        Some((slot.endpoint.as_mut()?, slot.entity))
    }

    pub(crate) fn get(&self, slot: u32) -> Option<&Endpoint> {
        self.slots[slot as usize].endpoint.as_ref()
    }

    /// Entity of a slot's timer.
    pub(crate) fn entity(&self, slot: u32) -> EntityId {
        self.slots[slot as usize].entity
    }

    /// Takes an end out; the slot is used again.
    pub(crate) fn take(&mut self, slot: u32) -> Option<Endpoint> {
        let endpoint = self.slots[slot as usize].endpoint.take();
        if endpoint.is_some() {
            self.free.push(slot);
        }
        endpoint
    }

    /// All ends, in the order of their slots.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Endpoint> {
        self.slots.iter().filter_map(|slot| slot.endpoint.as_ref())
    }
}
