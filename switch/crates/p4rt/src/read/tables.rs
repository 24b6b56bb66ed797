// SPDX-License-Identifier: Apache-2.0
//! Reads of table entries and of their direct counters and meters: one entry, a scan in slices, the default entry.
//!
//! Table entries as a read gives them: filters, and the messages of entries and default entries (P4Runtime 1.5 §9.1.6).

use v1model::{ActionCall, Entry, EntryAction, EntryStats, KeyMatch, Nanos};

use super::{Reader, Stop};
use crate::binding::{Binding, Bound, Table};
use crate::entity::array::{check_colours, encode_count, encode_meter};
use crate::entity::matches;
use crate::entity::table::NO_ENTRY;
use crate::error::{refuse, At, Checked};
use crate::proto::p4rt::entity::Entity as Kind;
use crate::proto::p4rt::table_action::Type;
use crate::proto::p4rt::table_entry::IdleTimeout;
use crate::proto::p4rt::*;
use crate::soft::{Extra, Soft};

/// Entries read between two packets: less than 100 µs of work.
const SLICE_ENTRIES: usize = 128;

impl Reader {
    pub(super) async fn tables(
        &mut self,
        binding: &Binding,
        request: &TableEntry,
        wanted: Wanted,
    ) -> Result<(), Stop> {
        let tables = binding.tables.wanted(request.table_id)?;
        let is_one = request.table_id != 0;
        if !is_one
            && (!request.r#match.is_empty() || request.action.is_some() || request.priority != 0)
        {
            refuse!("table id 0 means all tables: it takes no match, action or priority");
        }
        for table in tables {
            let (has, what) = match wanted {
                Wanted::Entry => (true, ""),
                Wanted::Counter => (table.direct_counter, "counter"),
                Wanted::Meter => (table.direct_meter.is_some(), "meter"),
            };
            match has {
                true => self.table(table, request, wanted).await?,
                false if is_one => refuse!("{table}: it has no direct {what}"),
                false => {}
            }
        }
        Ok(())
    }

    async fn table(
        &mut self,
        table: &Bound<Table>,
        request: &TableEntry,
        wanted: Wanted,
    ) -> Result<(), Stop> {
        if request.table_id != 0 && request.time_since_last_hit.is_some() && !table.idle_timeout {
            refuse!("{table}: it has no idle timeouts: time_since_last_hit must be unset");
        }
        let filter = TableFilter::new(request, wanted).at(table)?;
        let id = table.table;
        if request.is_default_action {
            let (context, read) = (self.context()?, &self.shared);
            let read = read.read(context, move |p, _| {
                (p.table(id).default_call(), p.table(id).default_stats())
            });
            let (call, stats) = read.await?;
            let entry = filter.encode_default(table, &context.soft, call, &stats);
            entry.into_iter().for_each(|entry| self.push(entry));
            return Ok(());
        }
        if request.r#match.is_empty() {
            return self.scan(table, &filter, None).await;
        }
        let key = matches::decode_fields(&table.key, &request.r#match).at(table)?;
        if table.needs_priority && request.priority == 0 {
            let matches = key.describe(&table.key.keys).matches;
            return self.scan(table, &filter, Some(matches)).await;
        }
        let key = key
            .with_priority(table.needs_priority, request.priority)
            .at(table)?;
        let read = self
            .shared
            .read(self.context()?, move |p, now| (p.table_get(id, &key), now));
        match read.await? {
            (Some((entry, stats)), now) => self.entry(table, &filter, &entry, &stats, now),
            (None, _) if wanted == Wanted::Entry => Ok(()),
            (None, _) => refuse!(NotFound, "{table}: {NO_ENTRY}"),
        }
    }

    async fn scan(
        &mut self,
        table: &Bound<Table>,
        filter: &TableFilter,
        fields: Option<Vec<KeyMatch>>,
    ) -> Result<(), Stop> {
        let id = table.table;
        let (mut cursor, mut entries) = (Some(0), Vec::new());
        while let Some(from) = cursor {
            let mut read: Vec<(Entry, EntryStats)> = std::mem::take(&mut entries);
            read.clear();
            let read = self.shared.read(self.context()?, move |p, now| {
                let next = p.table_scan(id, from, SLICE_ENTRIES, &mut read);
                (next, read, now)
            });
            let now;
            (cursor, entries, now) = read.await?;
            for (entry, stats) in &entries {
                if fields.as_ref().is_none_or(|f| *f == entry.key.matches) {
                    self.entry(table, filter, entry, stats, now)?;
                }
            }
            self.breathe().await?;
        }
        Ok(())
    }

    fn entry(
        &mut self,
        table: &Bound<Table>,
        filter: &TableFilter,
        entry: &Entry,
        stats: &EntryStats,
        now: u64,
    ) -> Result<(), Stop> {
        let soft = &self.context()?.soft;
        let message = filter.encode(table, soft, entry, stats, now);
        message.into_iter().for_each(|message| self.push(message));
        Ok(())
    }
}

/// What a read wants of each table entry: the entry, or its direct counter or meter.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Wanted {
    #[default]
    Entry,
    Counter,
    Meter,
}

/// What a read asks of each entry, beyond its key.
#[derive(Debug, Clone, Default)]
pub struct TableFilter {
    pub wanted: Wanted,
    /// As the client gave it: what is set in it is a condition, or is to be reported.
    request: TableEntry,
    /// The P4Info id of an action.
    action_id: Option<u32>,
}

impl TableFilter {
    /// # Errors
    /// INVALID_ARGUMENT and UNIMPLEMENTED for filters that do not exist.
    #[allow(deprecated)]
    pub fn new(request: &TableEntry, wanted: Wanted) -> Checked<Self> {
        let action_id = match request.action.as_ref().map(|a| &a.r#type) {
            None => None,
            Some(Some(Type::Action(a))) => Some(a.action_id),
            Some(_) => refuse!("entries can be filtered by action id only"),
        };
        check_colours(&request.meter_counter_data)?;
        Ok(Self {
            wanted,
            request: request.clone(),
            action_id,
        })
    }

    /// The message of an entry; None when the filter does not want it.
    #[allow(deprecated)]
    pub fn encode(
        &self,
        table: &Bound<Table>,
        soft: &Soft,
        entry: &Entry,
        stats: &EntryStats,
        now: Nanos,
    ) -> Option<Kind> {
        let extra = soft.extra(entry.cookie).map(|e| e.as_ref());
        let priority = entry.key.priority;
        if self.request.priority != 0 && self.request.priority != priority {
            return None;
        }
        let ns = |ns: Nanos| i64::try_from(ns).unwrap_or(i64::MAX);
        let since_last_hit = IdleTimeout {
            elapsed_ns: ns(now.saturating_sub(stats.last_hit)),
        };
        let with_last_hit = self.request.time_since_last_hit.is_some() && table.idle_timeout;
        let message = TableEntry {
            table_id: table.id,
            r#match: matches::encode_key(&table.key, &entry.key),
            action: Some(encode_action(table, &entry.action, extra)?),
            priority,
            idle_timeout_ns: ns(entry.idle_timeout),
            is_const: table.is_const,
            time_since_last_hit: with_last_hit.then_some(since_last_hit),
            ..Default::default()
        };
        self.finish(table, message, extra, stats)
    }

    /// The message of a default entry.
    pub fn encode_default(
        &self,
        table: &Bound<Table>,
        soft: &Soft,
        call: Option<ActionCall>,
        stats: &EntryStats,
    ) -> Option<Kind> {
        let action = call.and_then(|c| encode_action(table, &EntryAction::Direct(c), None));
        let message = TableEntry {
            table_id: table.id,
            action,
            is_default_action: true,
            is_const: table.const_default,
            ..Default::default()
        };
        let extra = soft.defaults.get(&table.id).map(|e| e.as_ref());
        self.finish(table, message, extra, stats)
    }

    #[allow(deprecated)]
    fn finish(
        &self,
        table: &Table,
        mut message: TableEntry,
        extra: Option<&Extra>,
        stats: &EntryStats,
    ) -> Option<Kind> {
        if let Some(extra) = extra {
            message.metadata = extra.metadata.clone();
            message.controller_metadata = extra.controller_metadata;
        }
        let action_id = match message.action.as_ref().and_then(|a| a.r#type.as_ref()) {
            Some(Type::Action(a)) => Some(a.action_id),
            _ => None,
        };
        let (wanted, cookie) = (&self.request, self.request.controller_metadata);
        let is_wanted = (self.action_id.is_none() || self.action_id == action_id)
            && (cookie == 0 || cookie == message.controller_metadata)
            && (wanted.metadata.is_empty() || wanted.metadata == message.metadata);
        if !is_wanted {
            return None;
        }
        let counter = encode_count(stats);
        let meter = stats.meter.as_ref().map(encode_meter);
        if self.wanted == Wanted::Entry {
            let with_counter = wanted.counter_data.is_some() && table.direct_counter;
            message.counter_data = with_counter.then_some(counter);
            message.meter_config = meter.filter(|_| wanted.meter_config.is_some());
            return Some(Kind::TableEntry(message));
        }
        let key = TableEntry {
            table_id: message.table_id,
            r#match: message.r#match,
            priority: message.priority,
            is_default_action: message.is_default_action,
            ..Default::default()
        };
        Some(match self.wanted {
            Wanted::Meter => Kind::DirectMeterEntry(DirectMeterEntry {
                table_entry: Some(key),
                config: meter,
                counter_data: None,
            }),
            _ => Kind::DirectCounterEntry(DirectCounterEntry {
                table_entry: Some(key),
                data: Some(counter),
            }),
        })
    }
}

fn encode_action(
    table: &Table,
    action: &EntryAction,
    extra: Option<&Extra>,
) -> Option<TableAction> {
    let kind = match (action, extra.and_then(|e| e.one_shot.as_ref())) {
        (_, Some(one_shot)) => Type::ActionProfileActionSet(one_shot.message.clone()),
        (EntryAction::Direct(call), None) => Type::Action(matches::encode_call(table, call)?),
        (EntryAction::Member(id), None) => Type::ActionProfileMemberId(*id),
        (EntryAction::Group(id), None) => Type::ActionProfileGroupId(*id),
    };
    Some(TableAction { r#type: Some(kind) })
}
