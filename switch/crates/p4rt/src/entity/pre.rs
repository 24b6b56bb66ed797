// SPDX-License-Identifier: Apache-2.0
//! The packet replication engine: multicast groups and clone sessions (P4Runtime 1.5 §9.5).

use std::collections::HashSet;

use device::{CloneSession, MulticastGroup, Replica, Replication, REPLICAS_MAX};
use tonic::Code;

use super::Verb;
use crate::binding::Binding;
use crate::bytestring;
use crate::error::Refusal;
use crate::proto::p4rt::replica::PortKind;
use crate::proto::p4rt::{self, CloneSessionEntry, MulticastGroupEntry};
use crate::soft::Soft;
use crate::target::Target;

/// `mcast_grp` and `egress_rid` are 16 bits wide in v1model.
const MAX_ID: u32 = 0xffff;
/// Clone sessions of simple_switch.
const MAX_SESSION: u32 = 0x7fff;
/// The port to the controller as P4Runtime names it (§18.1.1), beside its number in the data plane.
const SDN_PORT_CPU: u32 = 0xffff_fffd;

/// A checked update of a multicast group or clone session.
pub struct ReplicationOp {
    verb: Verb,
    entry: Entry,
}

/// As written, and what it means for the device.
enum Entry {
    Group(MulticastGroupEntry, MulticastGroup),
    Session(CloneSessionEntry, CloneSession),
}

#[allow(deprecated)]
fn replicas(binding: &Binding, replicas: &[p4rt::Replica]) -> Result<Vec<Replica>, Refusal> {
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
                bytestring::decode_port(port).map_err(|e| e.with_place(&place))?
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
        let copy = Replica {
            port,
            instance: replica.instance as u16,
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
) -> Result<ReplicationOp, Refusal> {
    let id = entry.multicast_group_id;
    if !(1..=MAX_ID).contains(&id) {
        return Err(Refusal::invalid(format!(
            "multicast group id {id} is not within 1 to {MAX_ID}"
        )));
    }
    let replicas = match verb {
        Verb::Delete => Vec::new(),
        _ => replicas(binding, &entry.replicas)
            .map_err(|e| e.with_place(&format!("multicast group {id}")))?,
    };
    let group = MulticastGroup {
        id,
        replicas,
        metadata: Vec::new(),
    };
    let entry = Entry::Group(entry.clone(), group);
    Ok(ReplicationOp { verb, entry })
}

/// # Errors
/// INVALID_ARGUMENT and UNIMPLEMENTED, naming the session and the replica.
pub fn plan_clone(
    binding: &Binding,
    verb: Verb,
    entry: &CloneSessionEntry,
) -> Result<ReplicationOp, Refusal> {
    let id = entry.session_id;
    if !(1..=MAX_SESSION).contains(&id) {
        return Err(Refusal::invalid(format!(
            "clone session id {id} is not within 1 to {MAX_SESSION}"
        )));
    }
    let place = format!("clone session {id}");
    let mut own = Vec::new();
    if verb != Verb::Delete {
        own = replicas(binding, &entry.replicas).map_err(|e| e.with_place(&place))?;
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
    let session = CloneSession {
        id,
        replicas: own,
        class_of_service: entry.class_of_service,
        packet_length_bytes: entry.packet_length_bytes as u32,
    };
    let entry = Entry::Session(entry.clone(), session);
    Ok(ReplicationOp { verb, entry })
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

impl ReplicationOp {
    pub fn work(&self) -> usize {
        let replicas = match &self.entry {
            Entry::Group(_, group) => &group.replicas,
            Entry::Session(_, session) => &session.replicas,
        };
        1 + replicas.len() / 16
    }

    /// # Errors
    /// ALREADY_EXISTS, NOT_FOUND and the device's refusal.
    pub fn apply(self, target: &mut Target, soft: &mut Soft) -> Result<(), Refusal> {
        let delete = self.verb == Verb::Delete;
        match self.entry {
            Entry::Group(message, group) => {
                let id = group.id;
                let exists = soft.multicast.contains_key(&id);
                check(self.verb, exists, &format!("multicast group {id}"))?;
                let before = if delete {
                    target.replicate(|all| all.delete_group(id))?;
                    soft.multicast.remove(&id)
                } else {
                    target.replicate(|all| all.set_group(group.clone()))?;
                    soft.multicast.insert(id, (message, group))
                };
                target.discard(before);
            }
            Entry::Session(message, session) => {
                let id = session.id;
                let exists = soft.clones.contains_key(&id);
                check(self.verb, exists, &format!("clone session {id}"))?;
                let before = if delete {
                    target.replicate(|all| all.delete_session(id))?;
                    soft.clones.remove(&id)
                } else {
                    target.replicate(|all| all.set_session(session.clone()))?;
                    soft.clones.insert(id, (message, session))
                };
                target.discard(before);
            }
        }
        Ok(())
    }
}

/// Everything that a saved config holds, for the device.
///
/// # Errors
/// The device's refusal.
pub fn replication(soft: &Soft) -> Result<Replication, Refusal> {
    let mut all = Replication::default();
    for (_, group) in soft.multicast.values() {
        all.insert_group(group.clone())?;
    }
    for (_, session) in soft.clones.values() {
        all.insert_session(session.clone())?;
    }
    Ok(all)
}
