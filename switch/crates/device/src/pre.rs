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
pub trait Copies: Sized {
    const KIND: &'static str;
    /// Numbers that it may have.
    const IDS: RangeInclusive<u32>;
    fn id(&self) -> u32;
    fn replicas(&self) -> &[Replica];
    /// All of its kind.
    fn all(of: &mut Replication) -> &mut BTreeMap<u32, Self>;
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
    fn all(of: &mut Replication) -> &mut BTreeMap<u32, Self> {
        &mut of.groups
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
    fn all(of: &mut Replication) -> &mut BTreeMap<u32, Self> {
        &mut of.sessions
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

impl Replication {
    /// A multicast group.
    pub fn group(&self, id: u32) -> Option<&MulticastGroup> {
        self.groups.get(&id)
    }

    /// A clone session.
    pub fn session(&self, id: u32) -> Option<&CloneSession> {
        self.sessions.get(&id)
    }

    /// Adds a group or session.
    ///
    /// # Errors
    /// AlreadyExists, InvalidArgument for a bad number or a replica that is there twice, or ResourceExhausted.
    pub fn insert<T: Copies>(&mut self, new: T) -> ControlResult {
        self.put(new, false)
    }

    /// Replaces a group or session.
    ///
    /// # Errors
    /// As `insert`, but NotFound.
    pub fn modify<T: Copies>(&mut self, new: T) -> ControlResult {
        self.put(new, true)
    }

    fn put<T: Copies>(&mut self, new: T, is_there: bool) -> ControlResult {
        let name = format!("{} {}", T::KIND, new.id());
        if !T::IDS.contains(&new.id()) {
            let (first, last) = (T::IDS.start(), T::IDS.end());
            refuse!("{name}: the number must be {first} to {last}");
        }
        check_replicas(&name, new.replicas())?;
        let before = T::all(self).get(&new.id());
        let before = before.map(|before| before.replicas().len());
        match (before, is_there) {
            (Some(_), false) => refuse!(AlreadyExists, "{name} exists already"),
            (None, true) => return Err(absent(&name)),
            _ => {}
        }
        let others = self.replicas - before.unwrap_or(0);
        let after = new.replicas().len();
        if others + after > REPLICAS_ALL_MAX {
            refuse!(
                ResourceExhausted,
                "{name}: {after} replicas; all groups and sessions together have at most {REPLICAS_ALL_MAX}, and the \
                 others have {others}"
            );
        }
        self.replicas = others + after;
        T::all(self).insert(new.id(), new);
        Ok(())
    }

    /// Removes a group or session.
    ///
    /// # Errors
    /// NotFound.
    pub fn delete<T: Copies>(&mut self, id: u32) -> ControlResult {
        let before = T::all(self).remove(&id);
        let before = before.ok_or_else(|| absent(&format!("{} {id}", T::KIND)))?;
        self.replicas -= before.replicas().len();
        Ok(())
    }
}

fn absent(name: &str) -> ControlError {
    refusal!(NotFound, "{name} does not exist")
}
