// SPDX-License-Identifier: Apache-2.0
//! Packet replication engine: multicast groups and clone sessions (P4Runtime 1.5 §9.5).

use std::collections::BTreeMap;
use v1model::{ControlError, ErrorKind};

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

fn error(kind: ErrorKind, message: String) -> ControlError {
    ControlError::new(kind, message)
}

fn check_replicas(of: &str, replicas: &[Replica]) -> Result<(), ControlError> {
    if replicas.len() > REPLICAS_MAX {
        return Err(error(
            ErrorKind::ResourceExhausted,
            format!(
                "{of}: {} replicas; at most {REPLICAS_MAX} are possible",
                replicas.len()
            ),
        ));
    }
    let mut sorted = replicas.to_vec();
    sorted.sort_unstable();
    match sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        None => Ok(()),
        Some(pair) => Err(error(
            ErrorKind::InvalidArgument,
            format!(
                "{of}: replica (port {}, instance {}) is there twice",
                pair[0].port, pair[0].instance
            ),
        )),
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
    /// Adds a group, as [`crate::Device::mcast_group_insert`] does.
    ///
    /// # Errors
    /// As it.
    pub fn insert_group(&mut self, group: MulticastGroup) -> Result<(), ControlError> {
        self.put_group(group, false)
    }

    /// Adds a session, as [`crate::Device::clone_session_insert`] does.
    ///
    /// # Errors
    /// As it.
    pub fn insert_session(&mut self, session: CloneSession) -> Result<(), ControlError> {
        self.put_session(session, false)
    }

    pub(crate) fn group(&self, id: u32) -> Option<&MulticastGroup> {
        self.groups.get(&id)
    }

    pub(crate) fn groups(&self) -> impl Iterator<Item = &MulticastGroup> {
        self.groups.values()
    }

    pub(crate) fn put_group(
        &mut self,
        g: MulticastGroup,
        modify: bool,
    ) -> Result<(), ControlError> {
        let name = format!("multicast group {}", g.id);
        if g.id == 0 || g.id > 0xffff {
            return Err(error(
                ErrorKind::InvalidArgument,
                format!("{name}: the number must be 1 to 65535"),
            ));
        }
        check_replicas(&name, &g.replicas)?;
        check_presence(&name, self.groups.contains_key(&g.id), modify)?;
        let before = self.groups.get(&g.id).map_or(0, |g| g.replicas.len());
        self.make_room(&name, before, g.replicas.len())?;
        self.groups.insert(g.id, g);
        Ok(())
    }

    pub(crate) fn delete_group(&mut self, id: u32) -> Result<(), ControlError> {
        match self.groups.remove(&id) {
            Some(group) => {
                self.replicas -= group.replicas.len();
                Ok(())
            }
            None => Err(error(
                ErrorKind::NotFound,
                format!("multicast group {id} does not exist"),
            )),
        }
    }

    pub(crate) fn session(&self, id: u32) -> Option<&CloneSession> {
        self.sessions.get(&id)
    }

    pub(crate) fn sessions(&self) -> impl Iterator<Item = &CloneSession> {
        self.sessions.values()
    }

    pub(crate) fn put_session(
        &mut self,
        s: CloneSession,
        modify: bool,
    ) -> Result<(), ControlError> {
        let name = format!("clone session {}", s.id);
        if s.id > 0x7fff {
            return Err(error(
                ErrorKind::InvalidArgument,
                format!("{name}: the number must be 0 to 32767"),
            ));
        }
        check_replicas(&name, &s.replicas)?;
        check_presence(&name, self.sessions.contains_key(&s.id), modify)?;
        let before = self.sessions.get(&s.id).map_or(0, |s| s.replicas.len());
        self.make_room(&name, before, s.replicas.len())?;
        self.sessions.insert(s.id, s);
        Ok(())
    }

    pub(crate) fn delete_session(&mut self, id: u32) -> Result<(), ControlError> {
        match self.sessions.remove(&id) {
            Some(session) => {
                self.replicas -= session.replicas.len();
                Ok(())
            }
            None => Err(error(
                ErrorKind::NotFound,
                format!("clone session {id} does not exist"),
            )),
        }
    }

    /// `before` replicas become `after`.
    fn make_room(&mut self, name: &str, before: usize, after: usize) -> Result<(), ControlError> {
        let others = self.replicas - before;
        if others + after > REPLICAS_ALL_MAX {
            return Err(error(
                ErrorKind::ResourceExhausted,
                format!(
                    "{name}: {after} replicas; all groups and sessions together have at most {REPLICAS_ALL_MAX}, and the \
                     others have {others}"
                ),
            ));
        }
        self.replicas = others + after;
        Ok(())
    }
}

fn check_presence(name: &str, present: bool, modify: bool) -> Result<(), ControlError> {
    match (present, modify) {
        (true, false) => Err(error(
            ErrorKind::AlreadyExists,
            format!("{name} exists already"),
        )),
        (false, true) => Err(error(ErrorKind::NotFound, format!("{name} does not exist"))),
        _ => Ok(()),
    }
}
