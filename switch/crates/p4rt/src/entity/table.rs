// SPDX-License-Identifier: Apache-2.0
//! Updates of table entries, default entries and their direct counters and meters (P4Runtime 1.5 §9.1, §9.3.1, §9.4.1).

use v1model::{Entry, EntryAction, Key, MeterConfig, Nanos, Pipeline, TableId};

use super::array::{check_colours, counter_data, meter_config, number};
use super::profile::{check_id, refuse_mixing, OneShot};
use super::{check_metadata, matches, Planner, Verb};
use crate::binding::{Binding, Bound, Table};
use crate::error::{refuse, At, Checked};
use crate::proto::p4rt::table_action::Type;
use crate::proto::p4rt::{self, *};
use crate::soft::{Extra, Target};

pub const NO_ENTRY: &str = "no entry has this match and priority";
const NO_DEFAULT_METER: &str =
    "the direct meter of the default entry cannot be set: a miss executes none";

/// What an entry is to be.
struct Content {
    table: TableId,
    /// None: as it is. Of a one-shot the group is not yet there.
    action: Option<EntryAction>,
    idle_timeout: Nanos,
    /// What the entry carries for its client alone.
    extra: Extra,
    counter: Option<(u64, u64)>,
    /// Some: the table has a direct meter, which gets this configuration.
    meter: Option<Option<MeterConfig>>,
}

/// The table of a direct counter or meter, with the entry that is named.
///
/// # Errors
/// INVALID_ARGUMENT when there is none, or when it has no such direct resource; NOT_FOUND for an unknown table.
pub fn table_of<'a>(
    binding: &'a Binding,
    entry: &'a Option<TableEntry>,
    what: &str,
    has: impl Fn(&Table) -> bool,
) -> Checked<(&'a Bound<Table>, &'a TableEntry)> {
    let Some(entry) = entry else {
        refuse!("table_entry is unset; it names the entry");
    };
    let table = binding.tables.get(entry.table_id)?;
    match has(table) {
        true => Ok((table, entry)),
        false => refuse!("{table}: it has no direct {what}"),
    }
}

impl Planner<'_> {
    /// # Errors
    /// See the rules of §9.1 in the order of the code; when it is applied the pipeline's refusal, with the table's name.
    pub(super) fn table_entry(&mut self, entry: &TableEntry) -> Checked {
        if entry.table_id == 0 {
            refuse!("table id 0 is a wildcard, which only a read may use");
        }
        let table = self.binding.tables.get(entry.table_id)?;
        if self.verb != Verb::Delete {
            check_as_pi(table, entry)?;
        }
        self.table_entry_of(table, entry).at(table)
    }

    fn table_entry_of(&mut self, table: &Table, entry: &TableEntry) -> Checked {
        let verb = self.verb;
        if entry.is_const {
            refuse!("is_const must be false in an update");
        }
        let id = entry.table_id;
        let key = match (verb, key(table, entry)?) {
            // §9.1: of a DELETE nothing but the key counts.
            (Verb::Delete, Some(key)) => {
                let table = table.table;
                return self.op_in(id, 1, move |target| delete(table, &key, target));
            }
            (_, key) => key,
        };
        if key.is_none() {
            check_default(verb, table, entry)?;
        }
        let content = self.content(table, entry)?;
        if verb == Verb::Insert && content.action.is_none() {
            refuse!("the action is unset; an INSERT needs one");
        }
        let Some(key) = key else {
            return self.op_in(id, 1, move |target| content.set_default(id, target));
        };
        let one_shot = content.extra.one_shot.as_ref();
        let work = 1 + one_shot.map_or(0, |own| own.work());
        // Members and groups do not stand beside one-shots.
        let is_changed = one_shot.is_none() && content.action.is_some();
        let profile = table.profile.filter(|_| is_changed);
        self.op_in(id, work, move |target| {
            let one_shots = profile.map_or(0, |id| target.soft.one_shots(id));
            let what = "an entry of a member or group";
            refuse_mixing(one_shots, "one-shot entries", what)?;
            match verb {
                Verb::Insert => content.insert(key, target),
                _ => content.modify(key, target),
            }
        })
    }

    #[allow(deprecated)]
    fn content(&self, table: &Table, entry: &TableEntry) -> Checked<Content> {
        check_metadata(&entry.metadata)?;
        check_colours(&entry.meter_counter_data)?;
        if entry.counter_data.is_some() && !table.direct_counter {
            refuse!("it has no direct counter: counter_data must be unset");
        }
        if entry.meter_config.is_some() && table.direct_meter.is_none() {
            refuse!("it has no direct meter: meter_config must be unset");
        }
        let config = entry.meter_config.as_ref();
        let config = |kind| config.map(|config| meter_config(config, kind)).transpose();
        let meter = table.direct_meter.map(config);
        let mut content = Content {
            table: table.table,
            action: None,
            idle_timeout: number("idle_timeout_ns", entry.idle_timeout_ns)?,
            extra: Extra {
                table_id: entry.table_id,
                metadata: entry.metadata.clone(),
                controller_metadata: entry.controller_metadata,
                one_shot: None,
            },
            counter: entry.counter_data.as_ref().map(counter_data).transpose()?,
            meter: meter.transpose()?,
        };
        let Some(given) = &entry.action else {
            return Ok(content);
        };
        let profile = table.profile.map(|id| self.binding.profiles.get(id));
        let profile = profile.transpose()?;
        content.action = Some(match (&given.r#type, profile) {
            (None, _) => refuse!("the table action is set, but is empty"),
            (Some(Type::Action(call)), None) => {
                EntryAction::Direct(matches::decode_call(table, call, entry.is_default_action)?)
            }
            (Some(Type::Action(_)), Some(own)) => {
                refuse!(
                    "its entries have no action of their own, but a member or group of the {own}"
                )
            }
            (_, None) => {
                refuse!("its entries have an action of their own: it has no action profile")
            }
            (Some(Type::ActionProfileMemberId(id)), _) => {
                EntryAction::Member(check_id("member id", *id)?)
            }
            (Some(Type::ActionProfileGroupId(_)), Some(own)) if !own.selector => {
                refuse!("the {own} has no selector, so no groups")
            }
            (Some(Type::ActionProfileGroupId(id)), _) => {
                EntryAction::Group(check_id("group id", *id)?)
            }
            (Some(Type::ActionProfileActionSet(set)), Some(own)) => {
                content.extra.one_shot = Some(OneShot::plan(table, own, set)?.into());
                EntryAction::Group(0)
            }
        });
        Ok(content)
    }

    /// An op whose refusal names the table.
    fn op_in(
        &mut self,
        table: u32,
        work: usize,
        apply: impl FnOnce(&mut Target) -> Checked + Send + 'static,
    ) -> Checked {
        self.op(work, move |target: &mut Target| match apply(target) {
            Err(refusal) if !refusal.message.starts_with("table ") => {
                Err(refusal).at(target.binding.tables.get(table)?)
            }
            done => done,
        })
    }

    /// # Errors
    /// INVALID_ARGUMENT for anything but MODIFY, for a table without a counter and for a bad key; NOT_FOUND when no
    /// entry has this key.
    pub(super) fn direct_counter(&mut self, entry: &DirectCounterEntry) -> Checked {
        self.modify_only("direct counter")?;
        let (table, of) = table_of(self.binding, &entry.table_entry, "counter", |t| {
            t.direct_counter
        })?;
        let data = |data: &CounterData| counter_data(data).at(table);
        let data = entry.data.as_ref().map(data).transpose()?;
        let (key, id) = (key(table, of).at(table)?, table.table);
        self.op_in(table.id, 1, move |target| {
            let pipeline = target.pipeline()?;
            match (key, data) {
                (Some(key), Some((packets, bytes))) => {
                    pipeline.table_mut(id).set_count(&key, packets, bytes)?;
                }
                (None, Some((packets, bytes))) => {
                    pipeline.table_mut(id).set_default_count(packets, bytes)
                }
                (Some(key), None) if pipeline.table_get(id, &key).is_none() => {
                    refuse!(NotFound, "{NO_ENTRY}")
                }
                (_, None) => {}
            }
            Ok(())
        })
    }

    /// # Errors
    /// INVALID_ARGUMENT for anything but MODIFY, for a table without a meter, for a bad key or configuration; NOT_FOUND
    /// when no entry has this key.
    pub(super) fn direct_meter(&mut self, entry: &DirectMeterEntry) -> Checked {
        self.modify_only("direct meter")?;
        check_colours(&entry.counter_data)?;
        let has_meter = |table: &Table| table.direct_meter.is_some();
        let (table, of) = table_of(self.binding, &entry.table_entry, "meter", has_meter)?;
        let config = |config: &p4rt::MeterConfig| {
            meter_config(config, table.direct_meter.unwrap_or_default()).at(table)
        };
        let config = entry.config.as_ref().map(config).transpose()?;
        let Some(key) = key(table, of).at(table)? else {
            refuse!(Unimplemented, "{table}: {NO_DEFAULT_METER}");
        };
        let id = table.table;
        self.op_in(table.id, 1, move |target| {
            target
                .pipeline()?
                .table_mut(id)
                .set_meter(&key, config.as_ref())
        })
    }
}

/// The key that an entry names; None for the default entry.
fn key(table: &Table, entry: &TableEntry) -> Checked<Option<Key>> {
    match entry.is_default_action {
        false => matches::decode_key(table, &entry.r#match, entry.priority).map(Some),
        true if entry.r#match.is_empty() && entry.priority == 0 => Ok(None),
        true => refuse!("the default entry takes neither match fields nor a priority"),
    }
}

fn check_default(verb: Verb, table: &Table, entry: &TableEntry) -> Checked {
    if verb != Verb::Modify {
        refuse!("the default entry always exists: only MODIFY is allowed");
    }
    if entry.idle_timeout_ns != 0 {
        refuse!("the default entry has no idle timeout");
    }
    if table.const_default || table.profile.is_some() {
        refuse!(PermissionDenied, "its default action is const");
    }
    if entry.meter_config.is_some() {
        refuse!(Unimplemented, "{NO_DEFAULT_METER}");
    }
    Ok(())
}

/// What BMv2's server (PI) says to the letter, without the table's name: its clients compare it (p4-guide's idletimeout).
fn check_as_pi(table: &Table, entry: &TableEntry) -> Checked {
    if entry.time_since_last_hit.is_some() {
        refuse!("has_time_since_last_hit must not be set in WriteRequest");
    }
    if entry.idle_timeout_ns != 0 && !entry.is_default_action && !table.idle_timeout {
        refuse!("idle_timeout_ns must be set to 0 for tables which do not support idle timeout");
    }
    Ok(())
}

impl Content {
    fn set_default(self, id: u32, target: &mut Target) -> Checked {
        let call = match self.action {
            Some(EntryAction::Direct(call)) => Some(call),
            _ => None,
        };
        let (pipeline, soft) = target.parts()?;
        let table = pipeline.table_mut(self.table);
        table.set_default(call.as_ref())?;
        let is_reset = call.is_none();
        if let Some((packets, bytes)) = self.counter.or(is_reset.then_some((0, 0))) {
            table.set_default_count(packets, bytes);
        }
        match is_reset || self.extra.is_empty() {
            true => soft.defaults.remove(&id),
            false => soft.defaults.insert(id, self.extra.into()),
        };
        Ok(())
    }

    /// What the entry is in the pipeline: its extra is stored, and a one-shot that is new is installed before.
    ///
    /// # Errors
    /// As [`OneShot::install`].
    fn entry(
        &mut self,
        key: Key,
        mut action: EntryAction,
        is_new: bool,
        target: &mut Target,
    ) -> Checked<Entry<Key>> {
        if let Some(one_shot) = self.extra.one_shot.as_mut().filter(|_| is_new) {
            one_shot.install(target)?;
            action = EntryAction::Group(one_shot.watched.group_id);
        }
        Ok(Entry {
            key,
            action,
            idle_timeout: self.idle_timeout,
            cookie: target.soft.keep(std::mem::take(&mut self.extra)),
        })
    }

    fn insert(mut self, key: Key, target: &mut Target) -> Checked {
        let now = target.now;
        let action = self.action.take().unwrap_or(EntryAction::Group(0));
        let entry = self.entry(key, action, true, target)?;
        self.meter = self.meter.flatten().map(Some);
        let done = target.pipeline()?.table_insert(self.table, &entry, now);
        if done.is_err() {
            release(target, entry.cookie, true)?;
        }
        done?;
        self.set_direct(target.pipeline()?, &entry.key)
    }

    fn modify(mut self, key: Key, target: &mut Target) -> Checked {
        let now = target.now;
        let is_new = self.action.is_some();
        let action = match self.action.take() {
            Some(action) => action,
            None => {
                let (pipeline, soft) = target.parts()?;
                let Some((entry, _)) = pipeline.table_get(self.table, &key) else {
                    refuse!(NotFound, "{NO_ENTRY}");
                };
                if pipeline.table(self.table).is_const() {
                    return self.set_direct(pipeline, &key);
                }
                let old = soft.extra(entry.cookie);
                self.extra.one_shot = old.and_then(|extra| extra.one_shot.clone());
                entry.action
            }
        };
        let entry = self.entry(key, action, is_new, target)?;
        // A one-shot that stays lives on in the new extra.
        let done = target.pipeline()?.table_modify(self.table, &entry, now);
        let (Ok(unused) | Err(unused)) = done.as_ref().map_err(|_| &entry.cookie);
        release(target, *unused, is_new)?;
        done?;
        self.set_direct(target.pipeline()?, &entry.key)
    }

    /// All that can be refused here was refused before anything was applied: the rates by `meter_config`.
    fn set_direct(&self, pipeline: &mut Pipeline, key: &Key) -> Checked {
        let table = pipeline.table_mut(self.table);
        if let Some(config) = &self.meter {
            table.set_meter(key, config.as_ref())?;
        }
        match self.counter {
            Some((packets, bytes)) => table.set_count(key, packets, bytes),
            None => Ok(()),
        }
    }
}

fn delete(table: TableId, key: &Key, target: &mut Target) -> Checked {
    let cookie = target.pipeline()?.table_delete(table, key)?;
    release(target, cookie, true)
}

/// Forgets an entry's extra; with its one-shot the hidden group and members of that.
fn release(target: &mut Target, cookie: u64, with_one_shot: bool) -> Checked {
    let (binding, (pipeline, soft)) = (target.binding, target.parts()?);
    let extra = soft.drop_extra(cookie);
    let one_shot = extra.as_ref().and_then(|extra| extra.one_shot.as_ref());
    if let Some(one_shot) = one_shot.filter(|_| with_one_shot) {
        one_shot.remove(binding, pipeline);
    }
    Ok(())
}
