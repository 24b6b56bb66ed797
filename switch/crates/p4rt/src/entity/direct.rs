// SPDX-License-Identifier: Apache-2.0
//! Direct counters and meters as entities of their own (P4Runtime 1.5 §9.3.1, §9.4.1).

use v1model::{EntryStats, Key};

use super::{array, matches, modify_only, table_read, Op, Verb};
use crate::binding::{Binding, TableBinding};
use crate::error::{refusal, refuse, At, Refusal};
use crate::proto::p4rt::{DirectCounterEntry, DirectMeterEntry, TableEntry};
use crate::target::Target;

/// The table that an entity's `table_entry` names.
///
/// # Errors
/// INVALID_ARGUMENT when there is none, or when it has no such direct resource.
pub fn table_of<'a>(
    binding: &'a Binding,
    entry: Option<&'a TableEntry>,
    counter: bool,
) -> Result<(&'a TableBinding, &'a TableEntry), Refusal> {
    let Some(entry) = entry else {
        refuse!(invalid, "table_entry is unset; it names the entry");
    };
    let table = binding.tables.get(entry.table_id)?;
    let (has, what) = match counter {
        true => (table.direct_counter, "counter"),
        false => (table.direct_meter.is_some(), "meter"),
    };
    if !has {
        refuse!(invalid, "table {}: it has no direct {what}", table.name);
    }
    Ok((table, entry))
}

/// None for the default entry.
fn key(table: &TableBinding, entry: &TableEntry) -> Result<Option<Key>, Refusal> {
    match entry.is_default_action {
        true => matches::no_key(entry).map(|()| None),
        false => matches::decode_key(table, &entry.r#match, entry.priority).map(Some),
    }
}

/// # Errors
/// INVALID_ARGUMENT for anything but MODIFY, for a table without a counter and for a bad key; NOT_FOUND when no entry
/// has this key.
pub fn plan_counter(
    binding: &Binding,
    verb: Verb,
    entry: &DirectCounterEntry,
) -> Result<Op, Refusal> {
    modify_only(verb, "direct counter")?;
    let (table, target) = table_of(binding, entry.table_entry.as_ref(), true)?;
    let place = format!("table {}", table.name);
    let data = entry.data.as_ref().map(array::counter_data);
    let data = data.transpose().at(&place)?;
    let (key, id) = (key(table, target).at(&place)?, table.table);
    Ok(Op::new(1, move |target: &mut Target| {
        let pipeline = target.pipeline()?;
        match (key, data) {
            (Some(key), Some((packets, bytes))) => {
                pipeline.table_mut(id).set_count(&key, packets, bytes)?;
            }
            (None, Some((packets, bytes))) => {
                pipeline.table_mut(id).set_default_count(packets, bytes)
            }
            (Some(key), None) if pipeline.table_get(id, &key).is_none() => {
                return Err(refusal!(not_found, "{place}: {NO_ENTRY}"))
            }
            (_, None) => {}
        }
        Ok(())
    }))
}

pub const NO_ENTRY: &str = "no entry has this match and priority";

/// # Errors
/// INVALID_ARGUMENT for anything but MODIFY, for a table without a meter, for a bad key or configuration; NOT_FOUND when
/// no entry has this key.
pub fn plan_meter(binding: &Binding, verb: Verb, entry: &DirectMeterEntry) -> Result<Op, Refusal> {
    modify_only(verb, "direct meter")?;
    if entry.counter_data.is_some() {
        return Err(array::no_meter_counters("counter_data"));
    }
    let (table, target) = table_of(binding, entry.table_entry.as_ref(), false)?;
    let place = format_args!("table {}", table.name);
    let Some(key) = key(table, target).at(place)? else {
        refuse!(
            unimplemented,
            "{place}: the direct meter of the default entry cannot be set: a miss executes none"
        );
    };
    let kind = table.direct_meter.unwrap_or_default();
    let config = entry.config.as_ref().map(|c| array::meter_config(c, kind));
    let (config, id) = (config.transpose().at(place)?, table.table);
    Ok(Op::new(1, move |target: &mut Target| {
        Ok(target
            .pipeline()?
            .table_mut(id)
            .set_meter(&key, config.as_ref())?)
    }))
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
