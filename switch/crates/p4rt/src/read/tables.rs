// SPDX-License-Identifier: Apache-2.0
//! Reads of table entries and of their direct counters and meters: one entry, a scan in slices, the default entry.

use v1model::{Entry, EntryStats, KeyMatch};

use super::{Reader, Stop};
use crate::binding::{Binding, Bound, Table};
use crate::entity::matches;
use crate::entity::table::NO_ENTRY;
use crate::entity::table_read::{TableFilter, Wanted};
use crate::error::{refuse, At};
use crate::proto::p4rt::TableEntry;

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
