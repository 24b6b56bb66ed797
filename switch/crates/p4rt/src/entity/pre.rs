// SPDX-License-Identifier: Apache-2.0
//! The packet replication engine: multicast groups and clone sessions (P4Runtime 1.5 §9.5).

use device::{CloneSession, Copies, MulticastGroup, Replica};

use super::{check_metadata, Planner, Verb};
use crate::bytestring;
use crate::error::{in_range, refuse, At, Checked};
use crate::proto::p4rt::packet_replication_engine_entry::Type as PreType;
use crate::proto::p4rt::replica::PortKind;
use crate::proto::p4rt::{self, CloneSessionEntry};
use crate::soft::Target;

/// `egress_rid` is 16 bits wide in v1model.
const MAX_INSTANCE: u32 = 0xffff;
/// `egress_spec` is 9 bits wide.
const MAX_PORT: u32 = 0x1ff;
/// Clone sessions of simple_switch.
const MAX_SESSION: u32 = 0x7fff;
/// The port to the controller as P4Runtime names it (§18.1.1), beside its number in the data plane.
const SDN_PORT_CPU: u32 = 0xffff_fffd;

impl Planner<'_> {
    /// The replicas of an update; none for a DELETE, of which nothing but the id counts.
    fn replicas(&self, given: &[p4rt::Replica]) -> Checked<Vec<Replica>> {
        let given = given
            .iter()
            .enumerate()
            .filter(|_| self.verb != Verb::Delete);
        let own = given.map(|(i, replica)| self.replica(replica).at(format_args!("replica {i}")));
        own.collect()
    }

    #[allow(deprecated)]
    fn replica(&self, given: &p4rt::Replica) -> Checked<Replica> {
        let port = match &given.port_kind {
            Some(PortKind::Port(port)) => bytestring::decode_port(port)?,
            Some(PortKind::EgressPort(port)) => *port,
            // Clients made from a p4runtime.proto before 1.4 send port 0 as nothing: it was no oneof yet.
            None => 0,
        };
        let port = match (port, self.binding.cpu_port) {
            (SDN_PORT_CPU, Some(cpu)) => cpu,
            _ => port,
        };
        if !given.backup_replicas.is_empty() {
            refuse!(Unimplemented, "backup replicas are not supported");
        }
        Ok(Replica {
            port: in_range("port", port, 0..=MAX_PORT)?,
            instance: in_range("instance", given.instance, 0..=MAX_INSTANCE)? as u16,
        })
    }

    /// # Errors
    /// INVALID_ARGUMENT and UNIMPLEMENTED, naming the group or session and the replica; when it is applied the device's
    /// refusal.
    pub(super) fn replication(&mut self, entry: &PreType) -> Checked {
        let (_, id) = id_of(entry);
        match entry {
            PreType::MulticastGroupEntry(given) => {
                let place = format_args!("multicast group {id}");
                if self.verb != Verb::Delete {
                    check_metadata(&given.metadata).at(place)?;
                }
                let replicas = self.replicas(&given.replicas).at(place)?;
                self.put(entry, MulticastGroup { id, replicas })
            }
            PreType::CloneSessionEntry(given) => {
                in_range("clone session id", id, 1..=MAX_SESSION)?;
                let session = self.session(given);
                self.put(entry, session.at(format_args!("clone session {id}"))?)
            }
        }
    }

    /// Changes the device's own, and keeps what the client wrote.
    fn put<T: Copies + Send + 'static>(&mut self, entry: &PreType, own: T) -> Checked {
        let (verb, id, message) = (self.verb, id_of(entry), canonical(entry));
        self.op(1 + own.replicas().len() / 16, move |target: &mut Target| {
            let all = target.replication();
            match verb {
                Verb::Insert => all.insert(own),
                Verb::Modify => all.modify(own),
                _ => all.delete::<T>(id.1),
            }?;
            let before = match verb {
                Verb::Delete => target.soft.replication.remove(&id),
                _ => target.soft.replication.insert(id, message),
            };
            target.discard(before);
            Ok(())
        })
    }

    fn session(&self, entry: &CloneSessionEntry) -> Checked<CloneSession> {
        let (class, length) = (entry.class_of_service, entry.packet_length_bytes);
        Ok(CloneSession {
            id: entry.session_id,
            replicas: self.replicas(&entry.replicas)?,
            class_of_service: in_range("class of service", class, 0..=7)?,
            packet_length_bytes: in_range("packet_length_bytes", length, 0..=i32::MAX as u32)?,
        })
    }
}

/// The same with its ports as the shortest byte strings.
fn canonical(entry: &PreType) -> PreType {
    let mut own = entry.clone();
    let replicas = match &mut own {
        PreType::MulticastGroupEntry(group) => &mut group.replicas,
        PreType::CloneSessionEntry(session) => &mut session.replicas,
    };
    for replica in replicas {
        if let Some(PortKind::Port(port)) = &mut replica.port_kind {
            *port = bytestring::encode_be(port);
        }
    }
    own
}

/// Is it a clone session, and which?
pub fn id_of(entry: &PreType) -> (bool, u32) {
    match entry {
        PreType::MulticastGroupEntry(group) => (false, group.multicast_group_id),
        PreType::CloneSessionEntry(session) => (true, session.session_id),
    }
}
