// SPDX-License-Identifier: Apache-2.0
//! The packet replication engine: multicast groups and clone sessions (P4Runtime 1.5 §9.5).

use std::collections::HashSet;

use device::{Replication, REPLICAS_MAX};
use tonic::Code;

use super::Verb;
use crate::binding::Binding;
use crate::bytestring;
use crate::error::Refusal;
use crate::proto::p4rt::replica::PortKind;
use crate::proto::p4rt::{CloneSessionEntry, MulticastGroupEntry, Replica};
use crate::soft::Soft;
use crate::target::{self, Target};

/// `mcast_grp` and `egress_rid` are 16 bits wide in v1model.
const MAX_ID: u32 = 0xffff;
/// Clone sessions of simple_switch.
const MAX_SESSION: u32 = 0x7fff;
/// The port to the controller as P4Runtime names it (§18.1.1), beside its number in the data plane.
const SDN_PORT_CPU: u32 = 0xffff_fffd;

/// A copy: egress port and replica id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Copy {
    pub port: u32,
    pub instance: u32,
}

/// A checked update of a multicast group.
pub struct MulticastOp {
    verb: Verb,
    message: MulticastGroupEntry,
    copies: Vec<Copy>,
}

/// A checked update of a clone session.
pub struct CloneOp {
    verb: Verb,
    message: CloneSessionEntry,
    copies: Vec<Copy>,
}

#[allow(deprecated)]
fn copies(binding: &Binding, replicas: &[Replica]) -> Result<Vec<Copy>, Refusal> {
    if replicas.len() > REPLICAS_MAX {
        return Err(Refusal::new(
            Code::ResourceExhausted,
            format!(
                "{} replicas; at most {REPLICAS_MAX} are possible",
                replicas.len()
            ),
        ));
    }
    let mut seen = HashSet::with_capacity(replicas.len());
    let mut copies = Vec::with_capacity(replicas.len());
    for (index, replica) in replicas.iter().enumerate() {
        let place = format!("replica {index}");
        let port = match &replica.port_kind {
            Some(PortKind::Port(port)) => {
                bytestring::decode_port(port).map_err(|e| e.at(&place))?
            }
            Some(PortKind::EgressPort(port)) => *port,
            // Clients made from a p4runtime.proto before 1.4 send port 0 as nothing: it was no oneof yet.
            None => 0,
        };
        let port = match (port, binding.cpu_port) {
            (SDN_PORT_CPU, Some(cpu)) => cpu,
            _ => port,
        };
        if port > 0x1ff {
            return Err(Refusal::invalid(format!(
                "{place}: port {port} is not within 0 to 511"
            )));
        }
        if replica.instance > MAX_ID {
            return Err(Refusal::invalid(format!(
                "{place}: instance {} is not within 0 to {MAX_ID}",
                replica.instance
            )));
        }
        if !replica.backup_replicas.is_empty() {
            return Err(Refusal::unimplemented(format!(
                "{place}: backup replicas are not supported"
            )));
        }
        let copy = Copy {
            port,
            instance: replica.instance,
        };
        if !seen.insert(copy) {
            return Err(Refusal::invalid(format!(
                "{place}: port {port} with instance {} is given twice",
                replica.instance
            )));
        }
        copies.push(copy);
    }
    Ok(copies)
}

/// # Errors
/// INVALID_ARGUMENT and UNIMPLEMENTED, naming the group and the replica.
pub fn plan_multicast(
    binding: &Binding,
    verb: Verb,
    entry: &MulticastGroupEntry,
) -> Result<MulticastOp, Refusal> {
    let id = entry.multicast_group_id;
    if !(1..=MAX_ID).contains(&id) {
        return Err(Refusal::invalid(format!(
            "multicast group id {id} is not within 1 to {MAX_ID}"
        )));
    }
    let copies = match verb {
        Verb::Delete => Vec::new(),
        _ => {
            copies(binding, &entry.replicas).map_err(|e| e.at(&format!("multicast group {id}")))?
        }
    };
    Ok(MulticastOp {
        verb,
        message: entry.clone(),
        copies,
    })
}

/// # Errors
/// INVALID_ARGUMENT and UNIMPLEMENTED, naming the session and the replica.
pub fn plan_clone(
    binding: &Binding,
    verb: Verb,
    entry: &CloneSessionEntry,
) -> Result<CloneOp, Refusal> {
    let id = entry.session_id;
    if !(1..=MAX_SESSION).contains(&id) {
        return Err(Refusal::invalid(format!(
            "clone session id {id} is not within 1 to {MAX_SESSION}"
        )));
    }
    let place = format!("clone session {id}");
    let mut own = Vec::new();
    if verb != Verb::Delete {
        own = copies(binding, &entry.replicas).map_err(|e| e.at(&place))?;
        if entry.class_of_service > 7 {
            return Err(Refusal::invalid(format!(
                "{place}: class of service {} is not within 0 to 7",
                entry.class_of_service
            )));
        }
        if entry.packet_length_bytes < 0 {
            return Err(Refusal::invalid(format!(
                "{place}: packet_length_bytes {} is negative",
                entry.packet_length_bytes
            )));
        }
    }
    Ok(CloneOp {
        verb,
        message: entry.clone(),
        copies: own,
    })
}

/// # Errors
/// ALREADY_EXISTS and NOT_FOUND.
fn check(verb: Verb, exists: bool, place: &str) -> Result<(), Refusal> {
    match (verb, exists) {
        (Verb::Insert, true) => Err(Refusal::exists(format!("{place} exists already"))),
        (Verb::Modify | Verb::Delete, false) => {
            Err(Refusal::not_found(format!("{place} does not exist")))
        }
        _ => Ok(()),
    }
}

impl MulticastOp {
    pub fn work(&self) -> usize {
        1 + self.copies.len() / 16
    }

    /// # Errors
    /// ALREADY_EXISTS, NOT_FOUND and the device's refusal.
    pub fn apply(self, target: &mut Target, soft: &mut Soft) -> Result<(), Refusal> {
        let id = self.message.multicast_group_id;
        check(
            self.verb,
            soft.multicast.contains_key(&id),
            &format!("multicast group {id}"),
        )?;
        match self.verb {
            Verb::Delete => {
                target.set_multicast(id, None)?;
                target.discard(soft.multicast.remove(&id));
            }
            Verb::Insert | Verb::Modify => {
                target.set_multicast(id, Some(&self.copies))?;
                target.discard(soft.multicast.insert(id, (self.message, self.copies)));
            }
        }
        Ok(())
    }
}

impl CloneOp {
    pub fn work(&self) -> usize {
        1 + self.copies.len() / 16
    }

    /// # Errors
    /// ALREADY_EXISTS, NOT_FOUND and the device's refusal.
    pub fn apply(self, target: &mut Target, soft: &mut Soft) -> Result<(), Refusal> {
        let id = self.message.session_id;
        check(
            self.verb,
            soft.clones.contains_key(&id),
            &format!("clone session {id}"),
        )?;
        match self.verb {
            Verb::Delete => {
                target.set_clone(id, None)?;
                target.discard(soft.clones.remove(&id));
            }
            Verb::Insert | Verb::Modify => {
                let session = CloneSession {
                    copies: self.copies,
                    class_of_service: self.message.class_of_service,
                    truncate_bytes: self.message.packet_length_bytes as u32,
                };
                target.set_clone(id, Some(&session))?;
                target.discard(soft.clones.insert(id, (self.message, session)));
            }
        }
        Ok(())
    }
}

/// What a clone session does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CloneSession {
    pub copies: Vec<Copy>,
    pub class_of_service: u32,
    /// 0: the whole packet.
    pub truncate_bytes: u32,
}

/// Everything that a saved config holds, for the device.
///
/// # Errors
/// The device's refusal.
pub fn replication(soft: &Soft) -> Result<Replication, Refusal> {
    let mut all = Replication::default();
    for (id, (_, copies)) in &soft.multicast {
        all.insert_group(target::group(*id, copies))?;
    }
    for (id, (_, session)) in &soft.clones {
        all.insert_session(target::clone_session(*id, session))?;
    }
    Ok(all)
}
