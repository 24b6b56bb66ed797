// SPDX-License-Identifier: Apache-2.0
//! The Read call: requests become jobs, jobs read in short pieces, entities go out in messages of bounded size (§13).

mod arrays;
mod tables;

use std::sync::Arc;

use prost::Message;
use tokio::sync::mpsc::Sender;
use tokio::sync::OwnedRwLockReadGuard;
use tonic::Status;

use crate::config::State;
use crate::entity::{action, profile};
use crate::error::{batch_status, Refusal};
use crate::proto::p4rt::entity::Entity as Kind;
use crate::proto::p4rt::packet_replication_engine_entry::Type as PreType;
use crate::proto::p4rt::{
    ActionProfileMember, DigestEntry, Entity, PacketReplicationEngineEntry, ReadRequest,
    ReadResponse, ValueSetEntry,
};
use crate::shared::Shared;
use tables::Wanted;

/// Entities in one message.
const MESSAGE_ENTITIES: usize = 1024;
/// Bytes in one message, below the 4 MiB that clients take by default.
const MESSAGE_BYTES: usize = 2 << 20;
/// How long a client may leave a full channel unread: writes wait for the end of a read.
const STALL: std::time::Duration = std::time::Duration::from_secs(10);

/// Serves one request; what goes wrong is sent as the last item.
pub async fn read(
    shared: Arc<Shared>,
    state: OwnedRwLockReadGuard<State>,
    request: ReadRequest,
    out: Sender<Result<ReadResponse, Status>>,
) {
    let mut reader = Reader::new(&shared, &state, Sink::Client(&out));
    match reader.all(&request).await {
        Ok(Ok(())) => {}
        Ok(Err(status)) => {
            let _ = tokio::time::timeout(STALL, out.send(Err(status))).await; // a client that left needs no status
        }
        Err(status) => {
            let _ = out.try_send(Err(status)); // nobody listens when this fails
        }
    }
}

/// As `read`, for a caller that waits for the end.
///
/// # Errors
/// What `read` sends as the last item.
pub async fn read_here(
    shared: Arc<Shared>,
    request: ReadRequest,
) -> Result<Vec<ReadResponse>, Status> {
    let state = shared.state.read().await;
    state.current()?;
    let mut responses = Vec::new();
    let mut reader = Reader::new(&shared, &state, Sink::Caller(&mut responses));
    reader.all(&request).await??;
    Ok(responses)
}

enum Stop {
    /// This request is refused, the others go on.
    Refused(Refusal),
    /// The whole call is over.
    Ended(Status),
}

impl From<Refusal> for Stop {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<Status> for Stop {
    fn from(status: Status) -> Self {
        Self::Ended(status)
    }
}

/// Where the messages go.
enum Sink<'a> {
    /// To a client, as fast as it reads.
    Client(&'a Sender<Result<ReadResponse, Status>>),
    /// To the caller, who takes all at once.
    Caller(&'a mut Vec<ReadResponse>),
}

struct Reader<'a> {
    shared: &'a Shared,
    state: &'a State,
    out: Sink<'a>,
    entities: Vec<Entity>,
    bytes: usize,
}

impl<'a> Reader<'a> {
    fn new(shared: &'a Shared, state: &'a State, out: Sink<'a>) -> Self {
        Self {
            shared,
            state,
            out,
            entities: Vec::new(),
            bytes: 0,
        }
    }

    /// Reads all that is asked for. Ok: the batch's status. Err: the status that cut it short.
    async fn all(&mut self, request: &ReadRequest) -> Result<Result<(), Status>, Status> {
        let mut results = Vec::with_capacity(request.entities.len());
        for entity in &request.entities {
            match self.entity(entity).await {
                Ok(()) => results.push(Ok(())),
                Err(Stop::Refused(refusal)) => results.push(Err(refusal)),
                Err(Stop::Ended(status)) => return Err(status),
            }
        }
        self.flush().await?;
        Ok(batch_status("Read", &results))
    }

    async fn entity(&mut self, entity: &Entity) -> Result<(), Stop> {
        let context = self.state.current()?;
        let binding = &context.loaded.binding;
        let soft = &context.soft;
        match &entity.entity {
            None => Err(Refusal::invalid("the entity is unset; name what to read").into()),
            Some(Kind::TableEntry(e)) => self.tables(e, Wanted::Entry).await,
            Some(Kind::DirectCounterEntry(e)) => self.tables(&e.table_entry.clone().unwrap_or_default(), Wanted::Counter).await,
            Some(Kind::DirectMeterEntry(e)) => {
                if e.counter_data.is_some() {
                    return Err(Refusal::unimplemented("meters keep no counters per colour: counter_data must be unset").into());
                }
                self.tables(&e.table_entry.clone().unwrap_or_default(), Wanted::Meter).await
            }
            Some(Kind::CounterEntry(e)) => self.counters(e).await,
            Some(Kind::MeterEntry(e)) => self.meters(e).await,
            Some(Kind::RegisterEntry(e)) => self.registers(e).await,
            Some(Kind::ActionProfileMember(e)) => self.members(e).await,
            Some(Kind::ActionProfileGroup(e)) => {
                if e.action_profile_id != 0 {
                    binding.profiles.get(e.action_profile_id)?;
                }
                for ((profile, group), value) in &soft.groups {
                    if wild(e.action_profile_id, *profile) && wild(e.group_id, *group) {
                        self.push(Kind::ActionProfileGroup(value.message.clone())).await?;
                    }
                }
                Ok(())
            }
            Some(Kind::PacketReplicationEngineEntry(e)) => self.replication(e).await,
            Some(Kind::ValueSetEntry(e)) => {
                if e.value_set_id != 0 {
                    binding.value_sets.get(e.value_set_id)?;
                }
                for set in binding.value_sets.items.iter().filter(|s| wild(e.value_set_id, s.id)) {
                    let members = soft.value_sets.get(&set.id).cloned().unwrap_or_default();
                    self.push(Kind::ValueSetEntry(ValueSetEntry { value_set_id: set.id, members })).await?;
                }
                Ok(())
            }
            Some(Kind::DigestEntry(e)) => {
                if e.digest_id != 0 {
                    binding.digests.get(e.digest_id)?;
                }
                for (id, config) in soft.digests.iter().filter(|(id, _)| wild(e.digest_id, **id)) {
                    let entry = DigestEntry { digest_id: *id, config: Some(*config) };
                    self.push(Kind::DigestEntry(entry)).await?;
                }
                Ok(())
            }
            Some(Kind::ExternEntry(e)) if e.extern_type_id == 0 => Ok(()), // a wildcard over none
            Some(Kind::ExternEntry(e)) => Err(Refusal::unimplemented(format!(
                "extern entries (extern type id {:#010x}) are not supported: v1model has none beyond the other entities",
                e.extern_type_id
            ))
            .into()),
        }
    }

    async fn members(&mut self, request: &ActionProfileMember) -> Result<(), Stop> {
        let context = self.state.current()?;
        let binding = &context.loaded.binding;
        if request.action_profile_id != 0 {
            binding.profiles.get(request.action_profile_id)?;
        }
        for own in binding
            .profiles
            .items
            .iter()
            .filter(|p| wild(request.action_profile_id, p.id))
        {
            let (id, wanted) = (own.profile, request.member_id);
            let members = self
                .shared
                .read(context, move |p, _| {
                    let ids = p
                        .profile_members(id)
                        .into_iter()
                        .filter(|m| *m < profile::HIDDEN_IDS && wild(wanted, *m));
                    ids.filter_map(|m| Some((m, p.profile_member_get(id, m)?)))
                        .collect::<Vec<_>>()
                })
                .await?;
            let Ok(table) = binding.tables.get(own.table_id) else {
                continue;
            };
            for (member_id, call) in members {
                let action = action::encode(table, &call);
                let entry = ActionProfileMember {
                    action_profile_id: own.id,
                    member_id,
                    action,
                };
                self.push(Kind::ActionProfileMember(entry)).await?;
            }
        }
        Ok(())
    }

    async fn replication(&mut self, request: &PacketReplicationEngineEntry) -> Result<(), Stop> {
        let soft = &self.state.current()?.soft;
        // Unset means both kinds.
        let group = match &request.r#type {
            None => Some(0),
            Some(PreType::MulticastGroupEntry(e)) => Some(e.multicast_group_id),
            Some(PreType::CloneSessionEntry(_)) => None,
        };
        let session = match &request.r#type {
            None => Some(0),
            Some(PreType::CloneSessionEntry(e)) => Some(e.session_id),
            Some(PreType::MulticastGroupEntry(_)) => None,
        };
        for (_, (message, _)) in soft
            .multicast
            .iter()
            .filter(|(id, _)| group.is_some_and(|g| wild(g, **id)))
        {
            let r#type = Some(PreType::MulticastGroupEntry(message.clone()));
            self.push(Kind::PacketReplicationEngineEntry(
                PacketReplicationEngineEntry { r#type },
            ))
            .await?;
        }
        for (_, (message, _)) in soft
            .clones
            .iter()
            .filter(|(id, _)| session.is_some_and(|s| wild(s, **id)))
        {
            let r#type = Some(PreType::CloneSessionEntry(message.clone()));
            self.push(Kind::PacketReplicationEngineEntry(
                PacketReplicationEngineEntry { r#type },
            ))
            .await?;
        }
        Ok(())
    }

    async fn push(&mut self, kind: Kind) -> Result<(), Stop> {
        let entity = Entity { entity: Some(kind) };
        let bytes = entity.encoded_len() + 6;
        if self.entities.len() >= MESSAGE_ENTITIES
            || (self.bytes + bytes > MESSAGE_BYTES && !self.entities.is_empty())
        {
            self.flush().await?;
        }
        self.bytes += bytes;
        self.entities.push(entity);
        Ok(())
    }

    async fn flush(&mut self) -> Result<(), Status> {
        if self.entities.is_empty() {
            return Ok(());
        }
        self.bytes = 0;
        let response = ReadResponse {
            entities: std::mem::take(&mut self.entities),
        };
        let out = match &mut self.out {
            Sink::Client(out) => out,
            Sink::Caller(responses) => {
                responses.push(response);
                return Ok(());
            }
        };
        match tokio::time::timeout(STALL, out.send(Ok(response))).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => Err(Status::cancelled("the client has gone")),
            Err(_) => Err(Status::aborted(format!(
                "the client did not read for {} s",
                STALL.as_secs()
            ))),
        }
    }
}

/// Does a request for `wanted` (0: all) mean `id`?
fn wild(wanted: u32, id: u32) -> bool {
    wanted == 0 || wanted == id
}
