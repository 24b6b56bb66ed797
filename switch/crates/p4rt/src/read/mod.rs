// SPDX-License-Identifier: Apache-2.0
//! The Read call: requests become jobs, jobs read in short pieces, entities go out in messages of bounded size (§13).
//!
//! A read sees the state between two writes (§13.3), so it holds the state while it collects; but never while it waits
//! for its client. What the client has not taken yet is kept encoded, and when that is too much, the state is let go
//! until the client has taken it; a read that finds that a write came meanwhile ends with ABORTED.
//!
//! Reads of indexed counters, meters and registers: one cell, all cells, all arrays.

mod backlog;
mod tables;

use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Unbounded};
use std::sync::Arc;
use std::time::Duration;

use backlog::Backlog;
use prost::Message;
use tables::Wanted;
use tokio::sync::mpsc::{self, Sender};
use tokio::sync::{OwnedRwLockReadGuard, OwnedSemaphorePermit, Semaphore};
use tonic::Status;
use v1model::{ControlResult, Key, Pipeline};

use crate::binding::{Array, Binding, Bound, ById, Register};
use crate::entity::array::{check_colours, encode_counter, encode_meter, pieces};
use crate::entity::{matches, no_externs, pre};
use crate::error::{bail, batch_status, refuse, short, MetadataRoom, Refusal};
use crate::pipeline::{Context, Loaded, State};
use crate::proto::p4rt::digest_entry::Config;
use crate::proto::p4rt::entity::Entity as Kind;
use crate::proto::p4rt::packet_replication_engine_entry::Type as PreType;
use crate::proto::p4rt::*;
use crate::shared::Shared;
use crate::soft::{Group, Soft};

pub use backlog::Room;
pub use tables::TableFilter;

/// Entities that one request may ask for.
pub const MAX_REQUESTS: usize = 4096;
/// Reads that collect at a time: a write waits for these.
pub const COLLECTING: usize = 2;
/// Messages of a read that wait for the transport.
pub const QUEUE: usize = 2;
/// Entities in one message.
const MESSAGE_ENTITIES: usize = 512;
/// Bytes in one message, unless a single entity is longer.
const MESSAGE_BYTES: usize = 64 << 10;
/// How long the status of a read waits for a client that takes nothing.
const LAST: Duration = Duration::from_secs(10);
/// Groups and sessions that are copied at once.
const PIECE: usize = 32;
/// Members read between two packets: about 50 µs of work.
const SLICE_MEMBERS: usize = 256;

/// Serves one request within `limit`; what goes wrong is sent as the last item.
pub async fn read(
    mut reader: Reader,
    request: ReadRequest,
    out: Sender<Result<ReadResponse, Status>>,
    place: OwnedSemaphorePermit,
    limit: Duration,
) {
    let done = tokio::time::timeout(limit, reader.all(&request)).await;
    drop((reader, place));
    let status = match done {
        Ok(Ok(Ok(()))) => return,
        Ok(Ok(Err(status)) | Err(status)) => status,
        Err(_) => Status::deadline_exceeded(format!(
            "the read was not done after {} s: read less at a time, or faster",
            limit.as_secs_f64()
        )),
    };
    // A client that left, or takes nothing, needs no status.
    let _ = tokio::time::timeout(LAST, out.send(Err(short(status)))).await;
}

/// As `read`, for a caller that takes all messages at the end; nothing of it waits for time to pass.
///
/// # Errors
/// What `read` sends as the last item.
pub async fn read_here(
    shared: Arc<Shared>,
    request: ReadRequest,
) -> Result<Vec<ReadResponse>, Status> {
    let (out, mut messages) = mpsc::channel(Semaphore::MAX_PERMITS);
    let mut reader = Reader::new(shared, &out, MetadataRoom::max());
    reader.all(&request).await??;
    drop((reader, out));
    let messages = std::iter::from_fn(|| messages.try_recv().ok());
    messages.collect()
}

/// # Errors
/// INVALID_ARGUMENT for a request that asks for too much.
pub fn check(request: &ReadRequest) -> Result<(), Status> {
    match request.entities.len() {
        ..=MAX_REQUESTS => Ok(()),
        count => bail!(
            invalid_argument,
            "the request has {count} entities; at most {MAX_REQUESTS} are allowed"
        ),
    }
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

/// The state, and the right to hold it while others may want to write.
type Held = (OwnedRwLockReadGuard<State>, OwnedSemaphorePermit);

/// Reads for one request.
pub struct Reader {
    shared: Arc<Shared>,
    /// None while the client has its turn.
    held: Option<Held>,
    /// The config, and the number of the last write, that all of the read is about.
    of: Option<(Arc<Loaded>, u64)>,
    backlog: Backlog,
    entities: Vec<Entity>,
    bytes: usize,
    metadata: MetadataRoom,
}

impl Reader {
    /// For a client, who takes the messages as fast as it likes.
    pub fn new(
        shared: Arc<Shared>,
        out: &Sender<Result<ReadResponse, Status>>,
        metadata: MetadataRoom,
    ) -> Self {
        Self {
            backlog: Backlog::new(out.clone(), shared.reads.clone()),
            shared,
            held: None,
            of: None,
            entities: Vec::new(),
            bytes: 0,
            metadata,
        }
    }

    /// Reads all that is asked for. Ok: the batch's status. Err: the status that cut it short.
    async fn all(&mut self, request: &ReadRequest) -> Result<Result<(), Status>, Status> {
        self.hold().await?;
        let mut results = Vec::with_capacity(request.entities.len());
        for entity in &request.entities {
            match self.entity(entity).await {
                Ok(()) => results.push(Ok(())),
                Err(Stop::Refused(refusal)) => results.push(Err(refusal)),
                Err(Stop::Ended(status)) => return Err(status),
            }
            self.breathe().await?;
        }
        self.held = None;
        self.message();
        self.backlog.empty().await?;
        Ok(batch_status("Read", &results, self.metadata))
    }

    /// Takes the state.
    ///
    /// # Errors
    /// ABORTED when it is another one than at the beginning, FAILED_PRECONDITION when there is none.
    async fn hold(&mut self) -> Result<(), Status> {
        let turn = self.shared.collecting.clone().acquire_owned().await;
        let turn = turn.map_err(|e| Status::internal(e.to_string()))?;
        let state = self.shared.state.clone().read_owned().await;
        let loaded = &state.current()?.loaded;
        match &self.of {
            None => self.of = Some((loaded.clone(), state.writes)),
            Some((of, writes)) if Arc::ptr_eq(of, loaded) && *writes == state.writes => {}
            Some(_) => {
                bail!(aborted, "something was written while the client had not taken what was read before: read again, read less \
                     at a time, or faster")
            }
        }
        self.held = Some((state, turn));
        Ok(())
    }

    /// To be called between two pieces: the client gets its turn when too much waits for it.
    async fn breathe(&mut self) -> Result<(), Status> {
        if !self.backlog.is_full() {
            return Ok(());
        }
        self.held = None;
        self.backlog.empty().await?;
        self.hold().await
    }

    /// The config that is read.
    fn context(&self) -> Result<&Context, Status> {
        let held = self.held.as_ref().map(|(state, _)| state.current());
        held.unwrap_or_else(|| bail!(internal, "a read without the state"))
    }

    async fn entity(&mut self, entity: &Entity) -> Result<(), Stop> {
        // The config lives longer than the state is held.
        let loaded = self.context()?.loaded.clone();
        let binding = &loaded.binding;
        let Some(kind) = &entity.entity else {
            refuse!("the entity is unset; name what to read");
        };
        match kind {
            Kind::TableEntry(e) => self.tables(binding, e, Wanted::Entry).await,
            Kind::DirectCounterEntry(e) => {
                let entry = e.table_entry.clone().unwrap_or_default();
                self.tables(binding, &entry, Wanted::Counter).await
            }
            Kind::DirectMeterEntry(e) => {
                check_colours(&e.counter_data)?;
                let entry = e.table_entry.clone().unwrap_or_default();
                self.tables(binding, &entry, Wanted::Meter).await
            }
            Kind::CounterEntry(e) => self.counters(binding, e).await,
            Kind::MeterEntry(e) => self.meters(binding, e).await,
            Kind::RegisterEntry(e) => self.registers(binding, e).await,
            Kind::ActionProfileMember(e) => self.members(binding, e).await,
            Kind::ActionProfileGroup(e) => {
                binding.profiles.wanted(e.action_profile_id)?;
                let wanted = |(profile, group): (u32, u32)| {
                    wild(e.action_profile_id, profile) && wild(e.group_id, group)
                };
                let encode = |_, group: &Group| Kind::ActionProfileGroup(group.message.clone());
                self.stored(|soft| &soft.groups, wanted, encode).await
            }
            Kind::PacketReplicationEngineEntry(e) => {
                // Unset means both kinds.
                let asked = e.r#type.as_ref().map(pre::id_of);
                let wanted = |(kind, id): (bool, u32)| {
                    asked.is_none_or(|(of, one)| of == kind && wild(one, id))
                };
                let encode = |_, e: &PreType| {
                    let r#type = Some(e.clone());
                    Kind::PacketReplicationEngineEntry(PacketReplicationEngineEntry { r#type })
                };
                self.stored(|soft| &soft.replication, wanted, encode).await
            }
            Kind::ValueSetEntry(e) => {
                for set in binding.value_sets.wanted(e.value_set_id)? {
                    let members = self.context()?.soft.value_sets.get(&set.id);
                    let encode = |key: &Key| {
                        let key = key.describe(&set.key.keys);
                        ValueSetMember {
                            r#match: matches::encode_key(&set.key, &key),
                        }
                    };
                    let members = members.into_iter().flatten().map(encode).collect();
                    self.push(Kind::ValueSetEntry(ValueSetEntry {
                        value_set_id: set.id,
                        members,
                    }));
                    self.breathe().await?;
                }
                Ok(())
            }
            Kind::DigestEntry(e) => {
                binding.digests.wanted(e.digest_id)?;
                let encode = |digest_id, config: &Config| {
                    let config = Some(*config);
                    Kind::DigestEntry(DigestEntry { digest_id, config })
                };
                self.stored(|soft| &soft.digests, |id| wild(e.digest_id, id), encode)
                    .await
            }
            Kind::ExternEntry(e) if e.extern_type_id == 0 => Ok(()), // a wildcard over none
            Kind::ExternEntry(e) => Err(no_externs(e).into()),
        }
    }

    async fn members(
        &mut self,
        binding: &Binding,
        request: &ActionProfileMember,
    ) -> Result<(), Stop> {
        for own in binding.profiles.wanted(request.action_profile_id)? {
            // With one-shots its members are theirs.
            let table = binding.tables.get(own.table_id).ok();
            let table =
                table.filter(|_| self.context().is_ok_and(|c| c.soft.one_shots(own.id) == 0));
            let Some(table) = table else { continue };
            let (id, wanted) = (own.profile, request.member_id);
            let mut cursor = Some(0);
            while let Some(from) = cursor {
                let read = self.shared.read(self.context()?, move |p, _| {
                    let (profile, mut members) = (p.profile(id), Vec::new());
                    if wanted == 0 {
                        let next = profile.scan_members(from, SLICE_MEMBERS, &mut members);
                        return (next, members);
                    }
                    members.extend(profile.get_member(wanted).map(|call| (wanted, call)));
                    (None, members)
                });
                let members;
                (cursor, members) = read.await?;
                for (member_id, call) in members {
                    self.push(Kind::ActionProfileMember(ActionProfileMember {
                        action_profile_id: own.id,
                        member_id,
                        action: matches::encode_call(table, &call),
                    }));
                }
                self.breathe().await?;
            }
        }
        Ok(())
    }

    /// What the server itself remembers, in pieces: those of `all` that are wanted.
    async fn stored<K: Copy + Ord, V>(
        &mut self,
        all: impl Fn(&Soft) -> &BTreeMap<K, V>,
        wanted: impl Fn(K) -> bool,
        encode: impl Fn(K, &V) -> Kind,
    ) -> Result<(), Stop> {
        let mut from = Unbounded;
        loop {
            let range = all(&self.context()?.soft).range((from, Unbounded));
            let some = range.filter(|(key, _)| wanted(**key)).take(PIECE);
            let piece = some.map(|(key, value)| (*key, encode(*key, value)));
            let piece: Vec<(K, Kind)> = piece.collect();
            let Some((last, _)) = piece.last() else {
                return Ok(());
            };
            from = Excluded(*last);
            piece.into_iter().for_each(|(_, kind)| self.push(kind));
            self.breathe().await?;
        }
    }

    fn push(&mut self, kind: Kind) {
        let entity = Entity { entity: Some(kind) };
        let bytes = entity.encoded_len() + 6;
        if self.entities.len() >= MESSAGE_ENTITIES || self.bytes + bytes > MESSAGE_BYTES {
            self.message();
        }
        self.bytes += bytes;
        self.entities.push(entity);
    }

    /// What was pushed so far becomes a message.
    fn message(&mut self) {
        if self.entities.is_empty() {
            return;
        }
        self.bytes = 0;
        let entities = std::mem::take(&mut self.entities);
        self.backlog.put(ReadResponse { entities });
    }
}

/// Does a request for `wanted` (0: all) mean `id`?
fn wild(wanted: u32, id: u32) -> bool {
    wanted == 0 || wanted == id
}

/// Cells read between two packets.
const SLICE_CELLS: u32 = 1024;

impl Reader {
    async fn counters(&mut self, binding: &Binding, e: &CounterEntry) -> Result<(), Stop> {
        let encode = |counter: &Bound<_>, index, (packets, bytes)| {
            Kind::CounterEntry(CounterEntry {
                counter_id: counter.id,
                index,
                data: Some(encode_counter(packets, bytes)),
            })
        };
        let (all, read) = (&binding.counters, Pipeline::counter_get);
        self.cells(all, e.counter_id, &e.index, read, encode).await
    }

    async fn meters(&mut self, binding: &Binding, e: &MeterEntry) -> Result<(), Stop> {
        check_colours(&e.counter_data)?;
        let encode = |meter: &Bound<_>, index, config: Option<_>| {
            Kind::MeterEntry(MeterEntry {
                meter_id: meter.id,
                index,
                config: config.as_ref().map(encode_meter),
                counter_data: None,
            })
        };
        let (all, read) = (&binding.meters, Pipeline::meter_get);
        self.cells(all, e.meter_id, &e.index, read, encode).await
    }

    async fn registers(&mut self, binding: &Binding, e: &RegisterEntry) -> Result<(), Stop> {
        let encode = |register: &Bound<Register>, index, value| {
            Kind::RegisterEntry(RegisterEntry {
                register_id: register.id,
                index,
                data: Some(register.more.0.encode(&mut std::iter::once(&value))),
            })
        };
        let (all, read) = (&binding.registers, Pipeline::register_get);
        self.cells(all, e.register_id, &e.index, read, encode).await
    }

    /// The cells of one kind of array: of array `id`, 0 for all; of one index, None for all.
    async fn cells<I: Copy + Send + 'static, M, V: Send + 'static>(
        &mut self,
        arrays: &ById<Array<I, M>>,
        id: u32,
        index: &Option<Index>,
        read: fn(&Pipeline, I, u32) -> ControlResult<V>,
        encode: impl Fn(&Bound<Array<I, M>>, Option<Index>, V) -> Kind,
    ) -> Result<(), Stop> {
        for array in arrays.wanted(id)? {
            let own = array.own;
            for cells in pieces(index.as_ref().filter(|_| id != 0), array, SLICE_CELLS)? {
                let first = cells.start;
                let values = self
                    .shared
                    .read(self.context()?, move |p, _| {
                        cells.map(|i| read(p, own, i)).collect::<Vec<_>>()
                    })
                    .await?;
                for (index, value) in (i64::from(first)..).zip(values) {
                    self.push(encode(array, Some(Index { index }), value?));
                }
                self.breathe().await?;
            }
        }
        Ok(())
    }
}
