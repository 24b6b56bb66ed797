// SPDX-License-Identifier: Apache-2.0
//! Table entries as a read gives them: filters, and the messages of entries and default entries (P4Runtime 1.5 §9.1.6).

use bytes::Bytes;
use v1model::{ActionCall, Entry, EntryAction, EntryStats, Nanos};

use super::{action, array, matches};
use crate::binding::TableBinding;
use crate::error::{refuse, Refusal};
use crate::proto::p4rt::table_action::Type;
use crate::proto::p4rt::table_entry::IdleTimeout;
use crate::proto::p4rt::{CounterData, TableAction, TableEntry};
use crate::soft::{Extra, Soft};

/// What a read asks of each entry, beyond its key.
#[derive(Debug, Clone, Default)]
pub struct TableFilter {
    /// The P4Info id of an action.
    pub action_id: Option<u32>,
    pub priority: i32,
    pub controller_metadata: u64,
    pub metadata: Bytes,
    pub with_counter: bool,
    pub with_meter: bool,
    pub with_last_hit: bool,
}

impl TableFilter {
    /// # Errors
    /// INVALID_ARGUMENT and UNIMPLEMENTED for filters that do not exist.
    #[allow(deprecated)]
    pub fn new(request: &TableEntry) -> Result<Self, Refusal> {
        let action_id = match &request.action {
            None => None,
            Some(TableAction {
                r#type: Some(Type::Action(a)),
            }) => Some(a.action_id),
            Some(_) => {
                refuse!(invalid, "entries can be filtered by action id only")
            }
        };
        if request.meter_counter_data.is_some() {
            return Err(array::no_meter_counters("meter_counter_data"));
        }
        Ok(Self {
            action_id,
            priority: request.priority,
            controller_metadata: request.controller_metadata,
            metadata: request.metadata.clone(),
            with_counter: request.counter_data.is_some(),
            with_meter: request.meter_config.is_some(),
            with_last_hit: request.time_since_last_hit.is_some(),
        })
    }

    /// The message of an entry; None when the filter does not want it.
    #[allow(deprecated)]
    pub fn encode(
        &self,
        table: &TableBinding,
        soft: &Soft,
        entry: &Entry,
        stats: &EntryStats,
        now: Nanos,
    ) -> Option<TableEntry> {
        let extra = soft.extra(entry.cookie).map(|e| e.as_ref());
        if self.priority != 0 && self.priority != entry.key.priority {
            return None;
        }
        let mut message = TableEntry {
            table_id: table.id,
            r#match: matches::encode_key(table, &entry.key),
            action: Some(encode_action(table, &entry.action, extra)?),
            priority: entry.key.priority,
            idle_timeout_ns: i64::try_from(entry.idle_timeout).unwrap_or(i64::MAX),
            is_const: table.is_const,
            ..Default::default()
        };
        self.finish(table, &mut message, extra, stats)?;
        if self.with_last_hit && table.idle_timeout {
            let elapsed_ns = i64::try_from(now.saturating_sub(stats.last_hit)).unwrap_or(i64::MAX);
            message.time_since_last_hit = Some(IdleTimeout { elapsed_ns });
        }
        Some(message)
    }

    /// The message of a default entry.
    pub fn encode_default(
        &self,
        table: &TableBinding,
        soft: &Soft,
        call: Option<&ActionCall>,
        stats: &EntryStats,
    ) -> Option<TableEntry> {
        let action = call.and_then(|c| action::encode(table, c));
        let mut message = TableEntry {
            table_id: table.id,
            action: action.map(|a| TableAction {
                r#type: Some(Type::Action(a)),
            }),
            is_default_action: true,
            is_const: table.const_default,
            ..Default::default()
        };
        self.finish(
            table,
            &mut message,
            soft.defaults.get(&table.id).map(|e| e.as_ref()),
            stats,
        )?;
        Some(message)
    }

    #[allow(deprecated)]
    fn finish(
        &self,
        table: &TableBinding,
        message: &mut TableEntry,
        extra: Option<&Extra>,
        stats: &EntryStats,
    ) -> Option<()> {
        if let Some(extra) = extra {
            message.metadata = extra.metadata.clone();
            message.controller_metadata = extra.controller_metadata;
        }
        if let Some(wanted) = self.action_id {
            match message.action.as_ref().and_then(|a| a.r#type.as_ref()) {
                Some(Type::Action(a)) if a.action_id == wanted => {}
                _ => return None,
            }
        }
        let other_cookie = self.controller_metadata != 0
            && self.controller_metadata != message.controller_metadata;
        let other_metadata = !self.metadata.is_empty() && self.metadata != message.metadata;
        if other_cookie || other_metadata {
            return None;
        }
        if self.with_counter && table.direct_counter {
            message.counter_data = Some(counter_data(stats));
        }
        if self.with_meter && table.direct_meter.is_some() {
            message.meter_config = stats.meter.as_ref().map(array::encode_meter);
        }
        Some(())
    }
}

pub fn counter_data(stats: &EntryStats) -> CounterData {
    CounterData {
        byte_count: stats.bytes as i64,
        packet_count: stats.packets as i64,
    }
}

fn encode_action(
    table: &TableBinding,
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
