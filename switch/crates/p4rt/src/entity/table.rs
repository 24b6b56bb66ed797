// SPDX-License-Identifier: Apache-2.0
//! Updates of table entries, default entries and the direct resources that travel with them (P4Runtime 1.5 §9.1).

use v1model::{ActionCall, Entry, EntryAction, Key, MeterConfig, Nanos, Pipeline, TableId};

use super::action::{self, Place};
use super::direct::NO_ENTRY;
use super::{array, matches, one_shot, profile, Op, Verb};
use crate::binding::{Binding, ProfileBinding, TableBinding};
use crate::error::{refuse, At, Refusal};
use crate::proto::p4rt::table_action::Type;
use crate::proto::p4rt::TableEntry;
use crate::soft::{Extra, Soft};
use crate::target::Target;

/// Most bytes of an entry's metadata, which is its client's own.
const METADATA_MAX: usize = 4096;

/// What an entry is to be.
struct Content {
    table: TableId,
    action: Option<Action>,
    idle_timeout: Nanos,
    /// What the entry carries for its client alone.
    extra: Extra,
    counter: Option<(u64, u64)>,
    /// Some: the table has a direct meter, which gets this configuration.
    meter: Option<Option<MeterConfig>>,
}

enum Action {
    Existing(EntryAction),
    OneShot(one_shot::OneShotPlan),
}

impl Action {
    /// What the pipeline's entry does; a one-shot is installed before, and stands in `extra`.
    ///
    /// # Errors
    /// As `OneShotPlan::install`.
    fn install(
        self,
        pipeline: &mut Pipeline,
        soft: &mut Soft,
        extra: &mut Extra,
    ) -> Result<EntryAction, Refusal> {
        match self {
            Action::Existing(action) => Ok(action),
            Action::OneShot(plan) => {
                let one_shot = extra.one_shot.insert(plan.install(pipeline, soft)?);
                Ok(EntryAction::Group(one_shot.group_id))
            }
        }
    }
}

/// # Errors
/// See the rules of §9.1 in the order of the code; when it is applied the pipeline's refusal, with the table's name.
pub fn plan(binding: &Binding, verb: Verb, entry: &TableEntry) -> Result<Op, Refusal> {
    if entry.table_id == 0 {
        refuse!(
            invalid,
            "table id 0 is a wildcard, which only a read may use"
        );
    }
    let table = binding.tables.get(entry.table_id)?;
    if verb != Verb::Delete {
        check_as_pi(table, entry)?;
    }
    plan_in(binding, table, verb, entry).at(format_args!("table {}", table.name))
}

#[allow(deprecated)]
fn plan_in(
    binding: &Binding,
    table: &TableBinding,
    verb: Verb,
    entry: &TableEntry,
) -> Result<Op, Refusal> {
    if entry.is_const {
        refuse!(invalid, "is_const must be false in an update");
    }
    let key = match entry.is_default_action {
        true => check_default(table, verb, entry).map(|()| None)?,
        false => Some(entry_key(table, verb, entry)?),
    };
    let id = table.id;
    if verb == Verb::Delete {
        // §9.1: nothing but the key counts
        let Some(key) = key else {
            refuse!(invalid, "{ALWAYS_THERE}");
        };
        let table = table.table;
        return Ok(op(id, 1, move |target| delete(table, &key, target)));
    }
    let profile = profile_of(binding, table);
    let action = plan_action(table, profile, entry)?;
    if verb == Verb::Insert && action.is_none() {
        refuse!(invalid, "the action is unset; an INSERT needs one");
    }
    let idle_timeout = array::number("idle_timeout_ns", entry.idle_timeout_ns)?;
    if entry.metadata.len() > METADATA_MAX {
        refuse!(
            invalid,
            "metadata of {} bytes; at most {METADATA_MAX} are allowed",
            entry.metadata.len()
        );
    }
    let content = Content {
        table: table.table,
        action,
        idle_timeout,
        extra: Extra {
            metadata: entry.metadata.clone(),
            controller_metadata: entry.controller_metadata,
            one_shot: None,
        },
        counter: plan_counter(table, entry)?,
        meter: plan_meter(table, entry)?,
    };
    if table.is_const
        && key.is_some()
        && (content.action.is_some() || idle_timeout != 0 || !content.extra.metadata.is_empty())
    {
        refuse!(
            denied,
            "its entries are const: only their direct counters and meters can be modified"
        );
    }
    let Some(key) = key else {
        return Ok(op(id, 1, move |target| content.set_default(id, target)));
    };
    let work = match &content.action {
        Some(Action::OneShot(plan)) => 1 + plan.work(),
        _ => 1,
    };
    // Members and groups do not stand beside one-shots.
    let points_to = match content.action {
        Some(Action::Existing(EntryAction::Member(_) | EntryAction::Group(_))) => profile,
        _ => None,
    };
    let points_to = points_to.map(|profile| profile.id);
    Ok(op(id, work, move |target| {
        let one_shots = points_to.and_then(|id| target.soft.one_shots.get(&id));
        profile::refuse_mixing(
            one_shots,
            "one-shot entries",
            "an entry of a member or group",
        )?;
        match verb {
            Verb::Insert => content.insert(key, target),
            _ => content.modify(key, target),
        }
    }))
}

/// What is refused when it is applied names the table.
fn op(
    table: u32,
    work: usize,
    apply: impl FnOnce(&mut Target) -> Result<(), Refusal> + Send + 'static,
) -> Op {
    Op::new(work, move |target: &mut Target| {
        let refusal = match apply(target) {
            Err(refusal) if !refusal.message.starts_with("table ") => refusal,
            done => return done,
        };
        let table = target.binding.tables.get(table)?;
        Err(refusal.at(format_args!("table {}", table.name)))
    })
}

const ALWAYS_THERE: &str = "the default entry always exists: only MODIFY is allowed";

fn check_default(table: &TableBinding, verb: Verb, entry: &TableEntry) -> Result<(), Refusal> {
    if verb != Verb::Modify {
        refuse!(invalid, "{ALWAYS_THERE}");
    }
    matches::no_key(entry)?;
    if entry.idle_timeout_ns != 0 {
        refuse!(invalid, "the default entry has no idle timeout");
    }
    if table.const_default {
        refuse!(denied, "its default action is const");
    }
    if table.profile.is_some() {
        refuse!(
            denied,
            "its default entry is fixed, as it has an action profile"
        );
    }
    if entry.meter_config.is_some() {
        refuse!(
            unimplemented,
            "the direct meter of the default entry cannot be set: a miss executes none"
        );
    }
    Ok(())
}

fn entry_key(table: &TableBinding, verb: Verb, entry: &TableEntry) -> Result<Key, Refusal> {
    if table.fields.is_empty() {
        refuse!(
            invalid,
            "it has no key: only its default entry can be changed (is_default_action)"
        );
    }
    if table.is_const && verb != Verb::Modify {
        refuse!(
            denied,
            "its entries are const: none can be added or removed"
        );
    }
    matches::decode_key(table, &entry.r#match, entry.priority)
}

fn profile_of<'a>(binding: &'a Binding, table: &TableBinding) -> Option<&'a ProfileBinding> {
    let wanted = table.profile?;
    binding.profiles.items.iter().find(|p| p.profile == wanted)
}

fn plan_action(
    table: &TableBinding,
    profile: Option<&ProfileBinding>,
    entry: &TableEntry,
) -> Result<Option<Action>, Refusal> {
    let Some(action) = &entry.action else {
        return Ok(None);
    };
    let Some(kind) = &action.r#type else {
        refuse!(invalid, "the table action is set, but holds nothing");
    };
    let existing = match (kind, profile) {
        (Type::Action(a), None) => {
            let place = if entry.is_default_action { Place::Default } else { Place::Entry };
            EntryAction::Direct(action::decode(table, a, place)?)
        }
        (Type::Action(_), Some(p)) => refuse!(
            invalid,
            "its entries point to members of the action profile {}, they hold no action of their own",
            p.name
        ),
        (_, None) => {
            refuse!(invalid, "it has no action profile: its entries hold an action of their own")
        }
        (Type::ActionProfileMemberId(id), Some(_)) => {
            profile::check_id("member", *id)?;
            EntryAction::Member(*id)
        }
        (Type::ActionProfileGroupId(id), Some(p)) => {
            if !p.selector {
                refuse!(invalid, "the action profile {} has no selector, so no groups", p.name);
            }
            profile::check_id("group", *id)?;
            EntryAction::Group(*id)
        }
        (Type::ActionProfileActionSet(set), Some(p)) => {
            return Ok(Some(Action::OneShot(one_shot::plan(table, p, set)?)))
        }
    };
    Ok(Some(Action::Existing(existing)))
}

/// What BMv2's server (PI) says to the letter, without the table's name: its clients compare it (p4-guide's idletimeout).
fn check_as_pi(table: &TableBinding, entry: &TableEntry) -> Result<(), Refusal> {
    if entry.time_since_last_hit.is_some() {
        refuse!(
            invalid,
            "has_time_since_last_hit must not be set in WriteRequest"
        );
    }
    if entry.idle_timeout_ns != 0 && !entry.is_default_action && !table.idle_timeout {
        refuse!(
            invalid,
            "idle_timeout_ns must be set to 0 for tables which do not support idle timeout"
        );
    }
    Ok(())
}

fn plan_counter(table: &TableBinding, entry: &TableEntry) -> Result<Option<(u64, u64)>, Refusal> {
    match &entry.counter_data {
        None => Ok(None),
        Some(_) if !table.direct_counter => {
            refuse!(
                invalid,
                "it has no direct counter: counter_data must be unset"
            )
        }
        Some(data) => array::counter_data(data).map(Some),
    }
}

fn plan_meter(
    table: &TableBinding,
    entry: &TableEntry,
) -> Result<Option<Option<MeterConfig>>, Refusal> {
    if entry.meter_counter_data.is_some() {
        return Err(array::no_meter_counters("meter_counter_data"));
    }
    match (&entry.meter_config, table.direct_meter) {
        (None, meter) => Ok(meter.map(|_| None)),
        (Some(_), None) => refuse!(
            invalid,
            "it has no direct meter: meter_config must be unset"
        ),
        (Some(config), Some(kind)) => Ok(Some(Some(array::meter_config(config, kind)?))),
    }
}

impl Content {
    fn set_default(self, id: u32, target: &mut Target) -> Result<(), Refusal> {
        let call: Option<ActionCall> = match self.action {
            Some(Action::Existing(EntryAction::Direct(call))) => Some(call),
            _ => None,
        };
        let is_reset = call.is_none();
        let (pipeline, soft) = target.parts()?;
        pipeline.table_mut(self.table).set_default(call.as_ref())?;
        let counter = self.counter.or(is_reset.then_some((0, 0)));
        if let Some((packets, bytes)) = counter {
            pipeline
                .table_mut(self.table)
                .set_default_count(packets, bytes);
        }
        if is_reset || self.extra.is_empty() {
            soft.defaults.remove(&id);
        } else {
            soft.defaults.insert(id, self.extra.into());
        }
        Ok(())
    }

    fn insert(self, key: Key, target: &mut Target) -> Result<(), Refusal> {
        let now = target.now;
        let (pipeline, soft) = target.parts()?;
        let (table, mut extra) = (self.table, self.extra);
        let Some(action) = self.action else {
            refuse!(invalid, "the action is unset; an INSERT needs one");
        };
        let action = action.install(pipeline, soft, &mut extra)?;
        let cookie = soft.keep(extra);
        let entry = Entry {
            key,
            action,
            idle_timeout: self.idle_timeout,
            cookie,
        };
        let mut insert = || {
            pipeline.table_insert(table, &entry, now)?;
            let direct = set_direct(
                pipeline,
                table,
                &entry.key,
                self.counter,
                self.meter.flatten().map(Some),
            );
            if direct.is_err() {
                pipeline.table_delete(table, &entry.key)?;
            }
            direct
        };
        let done = insert();
        if done.is_err() {
            release(pipeline, soft, cookie);
        }
        done
    }

    fn modify(self, key: Key, target: &mut Target) -> Result<(), Refusal> {
        let now = target.now;
        let (pipeline, soft) = target.parts()?;
        let (table, mut extra) = (self.table, self.extra);
        let has_extras = !extra.is_empty() || soft.has_extras();
        let mut old = None;
        let action = match self.action {
            Some(Action::Existing(action)) if !has_extras => action,
            action => {
                let Some((entry, _)) = pipeline.table_get(table, &key) else {
                    refuse!(not_found, "{NO_ENTRY}");
                };
                if pipeline.table_schema(table).const_entries.is_some() {
                    return set_direct(pipeline, table, &key, self.counter, self.meter);
                }
                old = soft
                    .extra(entry.cookie)
                    .cloned()
                    .map(|extra| (entry.cookie, extra));
                match action {
                    Some(action) => action.install(pipeline, soft, &mut extra)?,
                    None => {
                        extra.one_shot = old.as_ref().and_then(|(_, e)| e.one_shot.clone());
                        entry.action
                    }
                }
            }
        };
        let group = |extra: &Extra| extra.one_shot.as_ref().map(|o| o.group_id);
        let new_group = group(&extra);
        let cookie = soft.keep(extra);
        let entry = Entry {
            key,
            action,
            idle_timeout: self.idle_timeout,
            cookie,
        };
        if let Err(error) = pipeline.table_modify(table, &entry, now) {
            release(pipeline, soft, cookie);
            return Err(error.into());
        }
        match old {
            // Its one-shot, if any, lives on in the new extra.
            Some((cookie, extra)) if group(&extra) == new_group => drop(soft.drop_extra(cookie)),
            Some((cookie, _)) => release(pipeline, soft, cookie),
            None => {}
        }
        set_direct(pipeline, table, &entry.key, self.counter, self.meter)
    }
}

fn delete(table: TableId, key: &Key, target: &mut Target) -> Result<(), Refusal> {
    let (pipeline, soft) = target.parts()?;
    let entry = soft.has_extras().then(|| pipeline.table_get(table, key));
    pipeline.table_delete(table, key)?;
    if let Some((entry, _)) = entry.flatten() {
        release(pipeline, soft, entry.cookie);
    }
    Ok(())
}

fn set_direct(
    pipeline: &mut Pipeline,
    table: TableId,
    key: &Key,
    counter: Option<(u64, u64)>,
    meter: Option<Option<MeterConfig>>,
) -> Result<(), Refusal> {
    if let Some(config) = meter {
        pipeline.table_mut(table).set_meter(key, config.as_ref())?;
    }
    if let Some((packets, bytes)) = counter {
        pipeline.table_mut(table).set_count(key, packets, bytes)?;
    }
    Ok(())
}

/// Forgets an entry's extra, and the hidden group and members of a one-shot.
fn release(pipeline: &mut Pipeline, soft: &mut Soft, cookie: u64) {
    let extra = soft.drop_extra(cookie);
    if let Some(one_shot) = extra.as_ref().and_then(|extra| extra.one_shot.as_ref()) {
        one_shot.remove(pipeline, soft);
    }
}
