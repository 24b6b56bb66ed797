// SPDX-License-Identifier: Apache-2.0
//! The packet replication engine: multicast groups and clone sessions (P4Runtime 1.5 §9.5).

use std::collections::HashSet;

use device::{CloneSession, MulticastGroup, Replica, Replication, REPLICAS_MAX};

use super::{Op, Verb};
use crate::binding::Binding;
use crate::bytestring;
use crate::error::{refuse, At, Refusal};
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

#[allow(deprecated)]
fn replicas(binding: &Binding, replicas: &[p4rt::Replica]) -> Result<Vec<Replica>, Refusal> {
    let count = replicas.len();
    if count > REPLICAS_MAX {
        refuse!(
            exhausted,
            "{count} replicas; at most {REPLICAS_MAX} are possible"
        );
    }
    let mut seen = HashSet::with_capacity(replicas.len());
    let mut copies = Vec::with_capacity(replicas.len());
    for (index, replica) in replicas.iter().enumerate() {
        let place = format_args!("replica {index}");
        let port = match &replica.port_kind {
            Some(PortKind::Port(port)) => bytestring::decode_port(port).at(place)?,
            Some(PortKind::EgressPort(port)) => *port,
            // Clients made from a p4runtime.proto before 1.4 send port 0 as nothing: it was no oneof yet.
            None => 0,
        };
        let port = match (port, binding.cpu_port) {
            (SDN_PORT_CPU, Some(cpu)) => cpu,
            _ => port,
        };
        let instance = replica.instance;
        if port > 0x1ff {
            refuse!(invalid, "{place}: port {port} is not within 0 to 511");
        }
        if instance > MAX_ID {
            refuse!(
                invalid,
                "{place}: instance {instance} is not within 0 to {MAX_ID}"
            );
        }
        if !replica.backup_replicas.is_empty() {
            refuse!(unimplemented, "{place}: backup replicas are not supported");
        }
        let copy = Replica {
            port,
            instance: instance as u16,
        };
        if !seen.insert(copy) {
            refuse!(
                invalid,
                "{place}: port {port} with instance {instance} is given twice"
            );
        }
        copies.push(copy);
    }
    Ok(copies)
}

/// # Errors
/// INVALID_ARGUMENT and UNIMPLEMENTED, naming the group and the replica; when it is applied ALREADY_EXISTS, NOT_FOUND
/// and the device's refusal.
pub fn plan_multicast(
    binding: &Binding,
    verb: Verb,
    entry: &MulticastGroupEntry,
) -> Result<Op, Refusal> {
    let id = entry.multicast_group_id;
    if !(1..=MAX_ID).contains(&id) {
        refuse!(
            invalid,
            "multicast group id {id} is not within 1 to {MAX_ID}"
        );
    }
    let place = format!("multicast group {id}");
    let group = match verb {
        Verb::Delete => None,
        _ => Some(MulticastGroup {
            id,
            replicas: replicas(binding, &entry.replicas).at(&place)?,
            metadata: Vec::new(),
        }),
    };
    let message = entry.clone();
    Ok(Op::new(
        work(&entry.replicas),
        move |target: &mut Target| {
            check(verb, target.soft.multicast.contains_key(&id), &place)?;
            let before = match group {
                None => {
                    target.replicate(|all| all.delete_group(id))?;
                    target.soft.multicast.remove(&id)
                }
                Some(group) => {
                    target.replicate(|all| all.set_group(group.clone()))?;
                    target.soft.multicast.insert(id, (message, group))
                }
            };
            target.discard(before);
            Ok(())
        },
    ))
}

/// # Errors
/// INVALID_ARGUMENT and UNIMPLEMENTED, naming the session and the replica; when it is applied ALREADY_EXISTS, NOT_FOUND
/// and the device's refusal.
pub fn plan_clone(binding: &Binding, verb: Verb, entry: &CloneSessionEntry) -> Result<Op, Refusal> {
    let id = entry.session_id;
    if !(1..=MAX_SESSION).contains(&id) {
        refuse!(
            invalid,
            "clone session id {id} is not within 1 to {MAX_SESSION}"
        );
    }
    let place = format!("clone session {id}");
    let session = match verb {
        Verb::Delete => None,
        _ => Some(session(binding, entry).at(&place)?),
    };
    let message = entry.clone();
    Ok(Op::new(
        work(&entry.replicas),
        move |target: &mut Target| {
            check(verb, target.soft.clones.contains_key(&id), &place)?;
            let before = match session {
                None => {
                    target.replicate(|all| all.delete_session(id))?;
                    target.soft.clones.remove(&id)
                }
                Some(session) => {
                    target.replicate(|all| all.set_session(session.clone()))?;
                    target.soft.clones.insert(id, (message, session))
                }
            };
            target.discard(before);
            Ok(())
        },
    ))
}

fn session(binding: &Binding, entry: &CloneSessionEntry) -> Result<CloneSession, Refusal> {
    let replicas = replicas(binding, &entry.replicas)?;
    let class_of_service = entry.class_of_service;
    if class_of_service > 7 {
        refuse!(
            invalid,
            "class of service {class_of_service} is not within 0 to 7"
        );
    }
    let Ok(packet_length_bytes) = u32::try_from(entry.packet_length_bytes) else {
        refuse!(
            invalid,
            "packet_length_bytes {} is negative",
            entry.packet_length_bytes
        );
    };
    Ok(CloneSession {
        id: entry.session_id,
        replicas,
        class_of_service,
        packet_length_bytes,
    })
}

fn work(replicas: &[p4rt::Replica]) -> usize {
    1 + replicas.len() / 16
}

/// # Errors
/// ALREADY_EXISTS and NOT_FOUND.
fn check(verb: Verb, exists: bool, place: &str) -> Result<(), Refusal> {
    match (verb, exists) {
        (Verb::Insert, true) => refuse!(exists, "{place} exists already"),
        (Verb::Modify | Verb::Delete, false) => refuse!(not_found, "{place} does not exist"),
        _ => Ok(()),
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
