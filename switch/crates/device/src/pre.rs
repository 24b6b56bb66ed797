// SPDX-License-Identifier: Apache-2.0
//! Packet replication engine: multicast groups and clone sessions (P4Runtime 1.5 §9.5).

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use v1model::{refusal, refuse, ControlError, ControlResult};

/// Most replicas of a group or session: all of them are made of one packet before the next one gets its turn.
pub const REPLICAS_MAX: usize = 1024;
/// Most replicas of all groups and sessions together.
pub const REPLICAS_ALL_MAX: usize = 1 << 18;

/// One copy: where it goes, and its `egress_rid`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Replica {
    /// Egress port.
    pub port: u32,
    /// `egress_rid` of the copy.
    pub instance: u16,
}

/// A multicast group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MulticastGroup {
    /// `mcast_grp`; 0 means none and is not allowed.
    pub id: u32,
    /// The copies, each (port, instance) once.
    pub replicas: Vec<Replica>,
    /// Opaque to the device.
    pub metadata: Vec<u8>,
}

/// A clone session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CloneSession {
    /// The session number that `clone` names.
    pub id: u32,
    /// The copies, each (port, instance) once.
    pub replicas: Vec<Replica>,
    /// Queue of the copies where it is not 0.
    pub class_of_service: u32,
    /// Copies are cut to this length when not 0.
    pub packet_length_bytes: u32,
}

/// A multicast group or a clone session.
trait Copies {
    const KIND: &'static str;
    /// Numbers that it may have.
    const IDS: RangeInclusive<u32>;
    fn id(&self) -> u32;
    fn replicas(&self) -> &[Replica];
}

impl Copies for MulticastGroup {
    const KIND: &'static str = "multicast group";
    const IDS: RangeInclusive<u32> = 1..=0xffff;
    fn id(&self) -> u32 {
        self.id
    }
    fn replicas(&self) -> &[Replica] {
        &self.replicas
    }
}

impl Copies for CloneSession {
    const KIND: &'static str = "clone session";
    const IDS: RangeInclusive<u32> = 0..=0x7fff;
    fn id(&self) -> u32 {
        self.id
    }
    fn replicas(&self) -> &[Replica] {
        &self.replicas
    }
}

fn check_replicas(of: &str, replicas: &[Replica]) -> ControlResult {
    if replicas.len() > REPLICAS_MAX {
        let count = replicas.len();
        refuse!(
            ResourceExhausted,
            "{of}: {count} replicas; at most {REPLICAS_MAX} are possible"
        );
    }
    let mut sorted = replicas.to_vec();
    sorted.sort_unstable();
    match sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        None => Ok(()),
        Some(pair) => {
            let Replica { port, instance } = pair[0];
            refuse!("{of}: replica (port {port}, instance {instance}) is there twice")
        }
    }
}

/// Groups and sessions of one device.
#[derive(Clone, Debug, Default)]
pub struct Replication {
    groups: BTreeMap<u32, MulticastGroup>,
    sessions: BTreeMap<u32, CloneSession>,
    /// Replicas of all of them.
    replicas: usize,
}

/// How something is put in its place.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Put {
    /// It must be new.
    Insert,
    /// It must be there.
    Modify,
}

/// Puts `new` among `all`; `total` is the number of all replicas.
fn put<T: Copies>(
    all: &mut BTreeMap<u32, T>,
    total: &mut usize,
    new: T,
    put: Put,
) -> ControlResult {
    let name = format!("{} {}", T::KIND, new.id());
    if !T::IDS.contains(&new.id()) {
        let (first, last) = (T::IDS.start(), T::IDS.end());
        refuse!("{name}: the number must be {first} to {last}");
    }
    check_replicas(&name, new.replicas())?;
    let before = all.get(&new.id());
    match (before, put) {
        (Some(_), Put::Insert) => refuse!(AlreadyExists, "{name} exists already"),
        (None, Put::Modify) => return Err(absent(&name)),
        _ => {}
    }
    let others = *total - before.map_or(0, |before| before.replicas().len());
    let after = new.replicas().len();
    if others + after > REPLICAS_ALL_MAX {
        refuse!(
            ResourceExhausted,
            "{name}: {after} replicas; all groups and sessions together have at most {REPLICAS_ALL_MAX}, and the \
             others have {others}"
        );
    }
    *total = others + after;
    all.insert(new.id(), new);
    Ok(())
}

fn delete<T: Copies>(all: &mut BTreeMap<u32, T>, total: &mut usize, id: u32) -> ControlResult {
    let before = all.remove(&id);
    let before = before.ok_or_else(|| absent(&format!("{} {id}", T::KIND)))?;
    *total -= before.replicas().len();
    Ok(())
}

fn absent(name: &str) -> ControlError {
    refusal!(NotFound, "{name} does not exist")
}

impl Replication {
    /// A multicast group.
    pub fn group(&self, id: u32) -> Option<&MulticastGroup> {
        self.groups.get(&id)
    }

    /// Adds a multicast group.
    ///
    /// # Errors
    /// AlreadyExists, InvalidArgument for a bad number or a replica that is there twice, or ResourceExhausted.
    pub fn insert_group(&mut self, group: MulticastGroup) -> ControlResult {
        put(&mut self.groups, &mut self.replicas, group, Put::Insert)
    }

    /// Replaces a multicast group.
    ///
    /// # Errors
    /// As `insert_group`, but NotFound.
    pub fn modify_group(&mut self, group: MulticastGroup) -> ControlResult {
        put(&mut self.groups, &mut self.replicas, group, Put::Modify)
    }

    /// Removes a multicast group.
    ///
    /// # Errors
    /// NotFound.
    pub fn delete_group(&mut self, id: u32) -> ControlResult {
        delete(&mut self.groups, &mut self.replicas, id)
    }

    /// A clone session.
    pub fn session(&self, id: u32) -> Option<&CloneSession> {
        self.sessions.get(&id)
    }

    /// Adds a clone session.
    ///
    /// # Errors
    /// As `insert_group`.
    pub fn insert_session(&mut self, session: CloneSession) -> ControlResult {
        put(&mut self.sessions, &mut self.replicas, session, Put::Insert)
    }

    /// Replaces a clone session.
    ///
    /// # Errors
    /// As `modify_group`.
    pub fn modify_session(&mut self, session: CloneSession) -> ControlResult {
        put(&mut self.sessions, &mut self.replicas, session, Put::Modify)
    }

    /// Removes a clone session.
    ///
    /// # Errors
    /// NotFound.
    pub fn delete_session(&mut self, id: u32) -> ControlResult {
        delete(&mut self.sessions, &mut self.replicas, id)
    }
}
