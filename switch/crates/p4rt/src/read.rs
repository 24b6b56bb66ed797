// SPDX-License-Identifier: Apache-2.0
//! The Read call: requests become jobs, jobs read in short pieces, entities go out in messages of bounded size (§13).

use std::sync::Arc;

use prost::Message;
use tokio::sync::mpsc::Sender;
use tokio::sync::OwnedRwLockReadGuard;
use tonic::Status;
use v1model::{Entry, EntryKey, EntryStats, KeyMatch};

use crate::binding::{Binding, TableBinding};
use crate::config::State;
use crate::entity::table::TableFilter;
use crate::entity::{action, array, direct, matches, profile};
use crate::error::{batch_status, Refusal};
use crate::proto::p4rt::entity::Entity as Kind;
use crate::proto::p4rt::packet_replication_engine_entry::Type as PreType;
use crate::proto::p4rt::{
    ActionProfileMember, CounterData, CounterEntry, DigestEntry, Entity, Index, MeterEntry,
    PacketReplicationEngineEntry, ReadRequest, ReadResponse, RegisterEntry, TableEntry,
    ValueSetEntry,
};
use crate::shared::Shared;

/// Entities in one message.
const MESSAGE_ENTITIES: usize = 1024;
/// Bytes in one message, below the 4 MiB that clients take by default.
const MESSAGE_BYTES: usize = 2 << 20;
/// Entries read between two packets: about 100 µs of work.
const SLICE_ENTRIES: usize = 256;
/// Cells read between two packets.
const SLICE_CELLS: u32 = 1024;
/// How long a client may leave a full channel unread: writes wait for the end of a read.
const STALL: std::time::Duration = std::time::Duration::from_secs(10);

/// Serves one request; what goes wrong is sent as the last item.
pub async fn read(
    shared: Arc<Shared>,
    state: OwnedRwLockReadGuard<State>,
    request: ReadRequest,
    out: Sender<Result<ReadResponse, Status>>,
) {
    let mut reader = Reader {
        shared: &shared,
        state: &state,
        out: &out,
        entities: Vec::new(),
        bytes: 0,
    };
    let mut results = Vec::with_capacity(request.entities.len());
    for entity in &request.entities {
        match reader.entity(entity).await {
            Ok(()) => results.push(Ok(())),
            Err(Stop::Refused(refusal)) => results.push(Err(refusal)),
            Err(Stop::Ended(status)) => {
                let _ = out.try_send(Err(status)); // nobody listens when this fails
                return;
            }
        }
    }
    let end = match reader.flush().await {
        Ok(()) => batch_status("Read", &results).err(),
        Err(Stop::Ended(status)) => Some(status),
        Err(Stop::Refused(refusal)) => Some(refusal.into()),
    };
    if let Some(status) = end {
        let _ = tokio::time::timeout(STALL, out.send(Err(status))).await; // a client that left needs no status
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

struct Reader<'a> {
    shared: &'a Shared,
    state: &'a State,
    out: &'a Sender<Result<ReadResponse, Status>>,
    entities: Vec<Entity>,
    bytes: usize,
}

/// What is made of a table entry.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wanted {
    Entry,
    Counter,
    Meter,
}

impl<'a> Reader<'a> {
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
                    let entry = DigestEntry { digest_id: *id, config: Some(config.clone()) };
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

    async fn tables(&mut self, request: &TableEntry, wanted: Wanted) -> Result<(), Stop> {
        let binding: &Binding = &self.state.current()?.loaded.binding;
        if request.table_id != 0 {
            let table = binding.tables.get(request.table_id)?;
            match wanted {
                Wanted::Entry => {}
                Wanted::Counter => drop(direct::table_of(binding, Some(request), true)?),
                Wanted::Meter => drop(direct::table_of(binding, Some(request), false)?),
            }
            if request.time_since_last_hit.is_some() && !table.idle_timeout {
                let text = format!("table {}: it does not support idle timeouts: time_since_last_hit must be unset", table.name);
                return Err(Refusal::invalid(text).into());
            }
            return self.table(table, request, wanted).await;
        }
        if !request.r#match.is_empty() || request.action.is_some() || request.priority != 0 {
            return Err(Refusal::invalid(
                "table id 0 means all tables: it takes no match, action or priority",
            )
            .into());
        }
        for table in &binding.tables.items {
            let has = match wanted {
                Wanted::Entry => true,
                Wanted::Counter => table.direct_counter,
                Wanted::Meter => table.direct_meter.is_some(),
            };
            if has {
                self.table(table, request, wanted).await?;
            }
        }
        Ok(())
    }

    async fn table(
        &mut self,
        table: &'a TableBinding,
        request: &TableEntry,
        wanted: Wanted,
    ) -> Result<(), Stop> {
        let place = |e: Refusal| e.at(&format!("table {}", table.name));
        let filter = TableFilter::new(request).map_err(place)?;
        if request.is_default_action {
            return self.default_entry(table, &filter, wanted).await;
        }
        if request.r#match.is_empty() {
            return self.scan(table, &filter, None, wanted).await;
        }
        if table.needs_priority && request.priority == 0 {
            let fields = matches::decode_fields(&table.fields, &request.r#match).map_err(place)?;
            return self.scan(table, &filter, Some(fields), wanted).await;
        }
        let key = matches::decode_key(table, &request.r#match, request.priority).map_err(place)?;
        self.one(table, &filter, key, wanted).await
    }

    async fn default_entry(
        &mut self,
        table: &TableBinding,
        filter: &TableFilter,
        wanted: Wanted,
    ) -> Result<(), Stop> {
        let (context, id) = (self.state.current()?, table.table);
        let (call, stats) = self
            .shared
            .read(context, move |p, _| {
                (p.table_default(id), p.table_default_stats(id))
            })
            .await?;
        match filter.encode_default(table, &context.soft, call.as_ref(), &stats) {
            Some(entry) => self.push(kind_of(wanted, entry, &stats)).await,
            None => Ok(()),
        }
    }

    async fn one(
        &mut self,
        table: &TableBinding,
        filter: &TableFilter,
        key: EntryKey,
        wanted: Wanted,
    ) -> Result<(), Stop> {
        let (context, id) = (self.state.current()?, table.table);
        let found = self
            .shared
            .read(context, move |p, now| (p.table_get(id, &key), now))
            .await?;
        let (Some((entry, stats)), now) = found else {
            return match wanted {
                Wanted::Entry => Ok(()),
                _ => Err(Refusal::not_found(format!(
                    "table {}: no entry has this match and priority",
                    table.name
                ))
                .into()),
            };
        };
        self.entry(table, filter, &entry, &stats, now, wanted).await
    }

    async fn scan(
        &mut self,
        table: &TableBinding,
        filter: &TableFilter,
        fields: Option<Vec<KeyMatch>>,
        wanted: Wanted,
    ) -> Result<(), Stop> {
        let (context, id) = (self.state.current()?, table.table);
        let mut cursor = Some(0);
        let mut entries: Vec<(Entry, EntryStats)> = Vec::new();
        while let Some(from) = cursor {
            entries.clear();
            let mut read = std::mem::take(&mut entries);
            let (next, read, now) = self
                .shared
                .read(context, move |p, now| {
                    let next = p.table_scan(id, from, SLICE_ENTRIES, &mut read);
                    (next, read, now)
                })
                .await?;
            entries = read;
            cursor = next;
            for (entry, stats) in &entries {
                if fields.as_ref().is_none_or(|f| *f == entry.key.matches) {
                    self.entry(table, filter, entry, stats, now, wanted).await?;
                }
            }
        }
        Ok(())
    }

    async fn entry(
        &mut self,
        table: &TableBinding,
        filter: &TableFilter,
        entry: &Entry,
        stats: &EntryStats,
        now: u64,
        wanted: Wanted,
    ) -> Result<(), Stop> {
        let soft = &self.state.current()?.soft;
        match filter.encode(table, soft, entry, stats, now) {
            Some(message) => self.push(kind_of(wanted, message, stats)).await,
            None => Ok(()),
        }
    }

    async fn counters(&mut self, request: &CounterEntry) -> Result<(), Stop> {
        let context = self.state.current()?;
        let counters = &context.loaded.binding.counters;
        if request.counter_id != 0 {
            counters.get(request.counter_id)?;
        }
        for counter in counters
            .items
            .iter()
            .filter(|c| wild(request.counter_id, c.id))
        {
            let index = if request.counter_id == 0 {
                None
            } else {
                request.index.as_ref()
            };
            let cells = array::cells(index, counter.size)
                .map_err(|e| e.at(&format!("counter {}", counter.name)))?;
            let id = counter.counter;
            for cells in pieces(cells) {
                let first = cells.start;
                let values = self
                    .shared
                    .read(context, move |p, _| {
                        cells.map(|i| p.counter_get(id, i)).collect::<Vec<_>>()
                    })
                    .await?;
                for (index, value) in (i64::from(first)..).zip(values) {
                    let (packets, bytes) = value.map_err(Refusal::from)?;
                    let data = CounterData {
                        packet_count: packets as i64,
                        byte_count: bytes as i64,
                    };
                    let entry = CounterEntry {
                        counter_id: counter.id,
                        index: Some(Index { index }),
                        data: Some(data),
                    };
                    self.push(Kind::CounterEntry(entry)).await?;
                }
            }
        }
        Ok(())
    }

    async fn meters(&mut self, request: &MeterEntry) -> Result<(), Stop> {
        if request.counter_data.is_some() {
            return Err(Refusal::unimplemented(
                "meters keep no counters per colour: counter_data must be unset",
            )
            .into());
        }
        let context = self.state.current()?;
        let meters = &context.loaded.binding.meters;
        if request.meter_id != 0 {
            meters.get(request.meter_id)?;
        }
        for meter in meters.items.iter().filter(|m| wild(request.meter_id, m.id)) {
            let index = if request.meter_id == 0 {
                None
            } else {
                request.index.as_ref()
            };
            let cells = array::cells(index, meter.size)
                .map_err(|e| e.at(&format!("meter {}", meter.name)))?;
            let id = meter.meter;
            for cells in pieces(cells) {
                let first = cells.start;
                let values = self
                    .shared
                    .read(context, move |p, _| {
                        cells.map(|i| p.meter_get(id, i)).collect::<Vec<_>>()
                    })
                    .await?;
                for (index, value) in (i64::from(first)..).zip(values) {
                    let config = value
                        .map_err(Refusal::from)?
                        .as_ref()
                        .map(array::encode_meter);
                    let entry = MeterEntry {
                        meter_id: meter.id,
                        index: Some(Index { index }),
                        config,
                        counter_data: None,
                    };
                    self.push(Kind::MeterEntry(entry)).await?;
                }
            }
        }
        Ok(())
    }

    async fn registers(&mut self, request: &RegisterEntry) -> Result<(), Stop> {
        let context = self.state.current()?;
        let registers = &context.loaded.binding.registers;
        if request.register_id != 0 {
            registers.get(request.register_id)?;
        }
        for register in registers
            .items
            .iter()
            .filter(|r| wild(request.register_id, r.id))
        {
            let index = if request.register_id == 0 {
                None
            } else {
                request.index.as_ref()
            };
            let cells = array::cells(index, register.size)
                .map_err(|e| e.at(&format!("register {}", register.name)))?;
            let id = register.register;
            for cells in pieces(cells) {
                let first = cells.start;
                let values = self
                    .shared
                    .read(context, move |p, _| {
                        cells.map(|i| p.register_get(id, i)).collect::<Vec<_>>()
                    })
                    .await?;
                for (index, value) in (i64::from(first)..).zip(values) {
                    let value = value.map_err(Refusal::from)?;
                    let data = Some(register.shape.encode(&mut std::iter::once(&value)));
                    let entry = RegisterEntry {
                        register_id: register.id,
                        index: Some(Index { index }),
                        data,
                    };
                    self.push(Kind::RegisterEntry(entry)).await?;
                }
            }
        }
        Ok(())
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

    async fn flush(&mut self) -> Result<(), Stop> {
        if self.entities.is_empty() {
            return Ok(());
        }
        self.bytes = 0;
        let response = ReadResponse {
            entities: std::mem::take(&mut self.entities),
        };
        match tokio::time::timeout(STALL, self.out.send(Ok(response))).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => Err(Status::cancelled("the client has gone").into()),
            Err(_) => Err(Status::aborted(format!(
                "the client did not read for {} s",
                STALL.as_secs()
            ))
            .into()),
        }
    }
}

/// Does a request for `wanted` (0: all) mean `id`?
fn wild(wanted: u32, id: u32) -> bool {
    wanted == 0 || wanted == id
}

fn pieces(cells: std::ops::Range<u32>) -> impl Iterator<Item = std::ops::Range<u32>> {
    let end = cells.end;
    cells
        .step_by(SLICE_CELLS as usize)
        .map(move |s| s..s.saturating_add(SLICE_CELLS).min(end))
}

fn kind_of(wanted: Wanted, entry: TableEntry, stats: &EntryStats) -> Kind {
    let key = |e: TableEntry| TableEntry {
        table_id: e.table_id,
        r#match: e.r#match,
        priority: e.priority,
        is_default_action: e.is_default_action,
        ..Default::default()
    };
    match wanted {
        Wanted::Entry => Kind::TableEntry(entry),
        Wanted::Counter => Kind::DirectCounterEntry(direct::encode_counter(key(entry), stats)),
        Wanted::Meter => Kind::DirectMeterEntry(direct::encode_meter(key(entry), stats)),
    }
}
