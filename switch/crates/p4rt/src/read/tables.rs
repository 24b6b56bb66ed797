// SPDX-License-Identifier: Apache-2.0
//! Reads of table entries and of their direct counters and meters: one entry, a scan in slices, the default entry.

use tonic::Status;
use v1model::{Entry, EntryStats, Key, KeyMatch};

use super::{Reader, Stop};
use crate::binding::{Binding, TableBinding};
use crate::entity::table_read::TableFilter;
use crate::entity::{direct, matches};
use crate::error::{refusal, Refusal};
use crate::proto::p4rt::entity::Entity as Kind;
use crate::proto::p4rt::TableEntry;

/// Entries read between two packets: less than 100 µs of work.
const SLICE_ENTRIES: usize = 128;

/// What is made of a table entry.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    Entry,
    Counter,
    Meter,
}

impl Reader {
    pub(super) async fn tables(
        &mut self,
        request: &TableEntry,
        wanted: Wanted,
    ) -> Result<(), Stop> {
        let loaded = self.loaded()?;
        let binding: &Binding = &loaded.binding;
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
        table: &TableBinding,
        request: &TableEntry,
        wanted: Wanted,
    ) -> Result<(), Stop> {
        let place = |e: Refusal| e.at(format_args!("table {}", table.name));
        let filter = TableFilter::new(request).map_err(place)?;
        if request.is_default_action {
            return self.default_entry(table, &filter, wanted).await;
        }
        if request.r#match.is_empty() {
            return self.scan(table, &filter, None, wanted).await;
        }
        if table.needs_priority && request.priority == 0 {
            let key = matches::decode_fields(&table.fields, &table.keys, &request.r#match)
                .map_err(place)?;
            let matches = key.describe(&table.keys).matches;
            return self.scan(table, &filter, Some(matches), wanted).await;
        }
        let key = matches::decode_key(table, &request.r#match, request.priority).map_err(place)?;
        self.read_entry(table, &filter, key, wanted).await
    }

    async fn default_entry(
        &mut self,
        table: &TableBinding,
        filter: &TableFilter,
        wanted: Wanted,
    ) -> Result<(), Stop> {
        let (context, id) = (self.context()?, table.table);
        let (call, stats) = self
            .shared
            .read(context, move |p, _| {
                (p.table(id).default_call(), p.table(id).default_stats())
            })
            .await?;
        let entry = filter.encode_default(table, &context.soft, call.as_ref(), &stats);
        if let Some(entry) = entry {
            self.push(kind_of(wanted, entry, &stats));
        }
        Ok(())
    }

    async fn read_entry(
        &mut self,
        table: &TableBinding,
        filter: &TableFilter,
        key: Key,
        wanted: Wanted,
    ) -> Result<(), Stop> {
        let id = table.table;
        let found = self
            .shared
            .read(self.context()?, move |p, now| (p.table_get(id, &key), now))
            .await?;
        let (Some((entry, stats)), now) = found else {
            return match wanted {
                Wanted::Entry => Ok(()),
                _ => Err(refusal!(
                    not_found,
                    "table {}: no entry has this match and priority",
                    table.name
                )
                .into()),
            };
        };
        self.entry(table, filter, &entry, &stats, now, wanted)?;
        Ok(())
    }

    async fn scan(
        &mut self,
        table: &TableBinding,
        filter: &TableFilter,
        fields: Option<Vec<KeyMatch>>,
        wanted: Wanted,
    ) -> Result<(), Stop> {
        let id = table.table;
        let mut cursor = Some(0);
        let mut entries: Vec<(Entry, EntryStats)> = Vec::new();
        while let Some(from) = cursor {
            entries.clear();
            let mut read = std::mem::take(&mut entries);
            let (next, read, now) = self
                .shared
                .read(self.context()?, move |p, now| {
                    let next = p.table_scan(id, from, SLICE_ENTRIES, &mut read);
                    (next, read, now)
                })
                .await?;
            entries = read;
            cursor = next;
            for (entry, stats) in &entries {
                if fields.as_ref().is_none_or(|f| *f == entry.key.matches) {
                    self.entry(table, filter, entry, stats, now, wanted)?;
                }
            }
            self.breathe().await?;
        }
        Ok(())
    }

    fn entry(
        &mut self,
        table: &TableBinding,
        filter: &TableFilter,
        entry: &Entry,
        stats: &EntryStats,
        now: u64,
        wanted: Wanted,
    ) -> Result<(), Status> {
        let soft = &self.context()?.soft;
        if let Some(message) = filter.encode(table, soft, entry, stats, now) {
            self.push(kind_of(wanted, message, stats));
        }
        Ok(())
    }
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
