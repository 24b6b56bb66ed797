// SPDX-License-Identifier: Apache-2.0
//! Direct counters and meters as entities of their own (P4Runtime 1.5 §9.3.1, §9.4.1).

use v1model::{EntryKey, EntryStats, MeterConfig, TableId};

use super::{array, matches, modify_only, table_read, Verb};
use crate::binding::{Binding, TableBinding};
use crate::error::Refusal;
use crate::proto::p4rt::{DirectCounterEntry, DirectMeterEntry, TableEntry};
use crate::target::Target;

/// A checked update of a direct counter or meter.
pub struct DirectOp {
    name: String,
    table: TableId,
    /// None for the default entry.
    key: Option<EntryKey>,
    change: Change,
}

enum Change {
    Nothing,
    Counter(u64, u64),
    Meter(Option<MeterConfig>),
}

/// The table that an entity's `table_entry` names.
///
/// # Errors
/// INVALID_ARGUMENT when there is none, or when it has no such direct resource.
pub fn table_of<'a>(
    binding: &'a Binding,
    entry: Option<&'a TableEntry>,
    counter: bool,
) -> Result<(&'a TableBinding, &'a TableEntry), Refusal> {
    let entry =
        entry.ok_or_else(|| Refusal::invalid("table_entry is unset; it names the entry"))?;
    let table = binding.tables.get(entry.table_id)?;
    let (has, what) = match counter {
        true => (table.direct_counter, "counter"),
        false => (table.direct_meter.is_some(), "meter"),
    };
    if !has {
        return Err(Refusal::invalid(format!(
            "table {}: it has no direct {what}",
            table.name
        )));
    }
    Ok((table, entry))
}

fn key(table: &TableBinding, entry: &TableEntry) -> Result<Option<EntryKey>, Refusal> {
    let key = match entry.is_default_action {
        true if entry.r#match.is_empty() && entry.priority == 0 => Ok(None),
        true => Err(Refusal::invalid(
            "the default entry takes neither match fields nor a priority",
        )),
        false => matches::decode_key(table, &entry.r#match, entry.priority).map(Some),
    };
    key.map_err(|e| e.with_place(&format!("table {}", table.name)))
}

/// # Errors
/// INVALID_ARGUMENT for anything but MODIFY, for a table without a counter and for a bad key.
pub fn plan_counter(
    binding: &Binding,
    verb: Verb,
    entry: &DirectCounterEntry,
) -> Result<DirectOp, Refusal> {
    modify_only(verb, "direct counter")?;
    let (table, target) = table_of(binding, entry.table_entry.as_ref(), true)?;
    let change = match &entry.data {
        Some(data) => {
            let (packets, bytes) = array::counter_data(data)
                .map_err(|e| e.with_place(&format!("table {}", table.name)))?;
            Change::Counter(packets, bytes)
        }
        None => Change::Nothing,
    };
    Ok(DirectOp {
        name: table.name.clone(),
        table: table.table,
        key: key(table, target)?,
        change,
    })
}

/// # Errors
/// INVALID_ARGUMENT for anything but MODIFY, for a table without a meter, for a bad key or configuration.
pub fn plan_meter(
    binding: &Binding,
    verb: Verb,
    entry: &DirectMeterEntry,
) -> Result<DirectOp, Refusal> {
    modify_only(verb, "direct meter")?;
    if entry.counter_data.is_some() {
        return Err(array::no_meter_counters("counter_data"));
    }
    let (table, target) = table_of(binding, entry.table_entry.as_ref(), false)?;
    let Some(key) = key(table, target)? else {
        return Err(Refusal::unimplemented(format!(
            "table {}: the direct meter of the default entry cannot be set: a miss executes none",
            table.name
        )));
    };
    let kind = table
        .direct_meter
        .as_ref()
        .map_or_else(Default::default, |m| m.kind);
    let config = entry
        .config
        .as_ref()
        .map(|c| array::meter_config(c, kind))
        .transpose();
    let config = config.map_err(|e| e.with_place(&format!("table {}", table.name)))?;
    Ok(DirectOp {
        name: table.name.clone(),
        table: table.table,
        key: Some(key),
        change: Change::Meter(config),
    })
}

impl DirectOp {
    /// # Errors
    /// NOT_FOUND when no entry has this key.
    pub fn apply(self, target: &mut Target) -> Result<(), Refusal> {
        let pipeline = target.pipeline()?;
        let Some(key) = self.key else {
            if let Change::Counter(packets, bytes) = self.change {
                pipeline.table_set_default_stats(self.table, packets, bytes);
            }
            return Ok(());
        };
        let done = match self.change {
            Change::Nothing => match pipeline.table_get(self.table, &key) {
                Some(_) => return Ok(()),
                None => {
                    return Err(Refusal::not_found(format!(
                        "table {}: no entry has this match and priority",
                        self.name
                    )))
                }
            },
            Change::Counter(packets, bytes) => {
                pipeline.direct_counter_set(self.table, &key, packets, bytes)
            }
            Change::Meter(config) => pipeline.direct_meter_set(self.table, &key, config),
        };
        done.map_err(Refusal::from)
    }
}

/// The message of a direct counter; `entry` is the key part of its table entry.
pub fn encode_counter(entry: TableEntry, stats: &EntryStats) -> DirectCounterEntry {
    DirectCounterEntry {
        table_entry: Some(entry),
        data: Some(table_read::counter_data(stats)),
    }
}

/// The message of a direct meter; without a configuration its `config` is unset.
pub fn encode_meter(entry: TableEntry, stats: &EntryStats) -> DirectMeterEntry {
    DirectMeterEntry {
        table_entry: Some(entry),
        config: stats.meter.as_ref().map(array::encode_meter),
        counter_data: None,
    }
}
