// SPDX-License-Identifier: Apache-2.0
//! Packet replication engine: multicast groups and clone sessions (P4Runtime 1.5 §9.5).

use std::collections::BTreeMap;
use v1model::{ControlError, ErrorKind};

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
    for (i, replica) in replicas.iter().enumerate() {
        if replicas[..i].contains(replica) {
            return Err(error(
                ErrorKind::InvalidArgument,
                format!(
                    "{of}: replica (port {}, instance {}) is there twice",
                    replica.port, replica.instance
                ),
            ));
        }
    }
    Ok(())
}

/// Groups and sessions of one device.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pre {
    groups: BTreeMap<u32, MulticastGroup>,
    sessions: BTreeMap<u32, CloneSession>,
}

impl Pre {
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
        self.groups.insert(g.id, g);
        Ok(())
    }

    pub(crate) fn delete_group(&mut self, id: u32) -> Result<(), ControlError> {
        match self.groups.remove(&id) {
            Some(_) => Ok(()),
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
        self.sessions.insert(s.id, s);
        Ok(())
    }

    pub(crate) fn delete_session(&mut self, id: u32) -> Result<(), ControlError> {
        match self.sessions.remove(&id) {
            Some(_) => Ok(()),
            None => Err(error(
                ErrorKind::NotFound,
                format!("clone session {id} does not exist"),
            )),
        }
    }

    pub(crate) fn clear(&mut self) {
        self.groups.clear();
        self.sessions.clear();
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
