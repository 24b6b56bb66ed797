// SPDX-License-Identifier: Apache-2.0
//! Table entries as a read gives them: filters, and the messages of entries and default entries (P4Runtime 1.5 §9.1.6).

use v1model::{ActionCall, Entry, EntryAction, EntryStats, Nanos};

use super::array::{check_colours, encode_count, encode_meter};
use super::{action, matches};
use crate::binding::{Bound, Table};
use crate::error::{refuse, Checked};
use crate::proto::p4rt::entity::Entity as Kind;
use crate::proto::p4rt::table_action::Type;
use crate::proto::p4rt::table_entry::IdleTimeout;
use crate::proto::p4rt::*;
use crate::soft::{Extra, Soft};

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
            r#match: matches::encode_key(table, &entry.key),
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
        (EntryAction::Direct(call), None) => Type::Action(action::encode(table, call)?),
        (EntryAction::Member(id), None) => Type::ActionProfileMemberId(*id),
        (EntryAction::Group(id), None) => Type::ActionProfileGroupId(*id),
    };
    Some(TableAction { r#type: Some(kind) })
}
