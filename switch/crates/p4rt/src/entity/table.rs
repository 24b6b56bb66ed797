// SPDX-License-Identifier: Apache-2.0
//! Updates of table entries, default entries and the direct resources that travel with them (P4Runtime 1.5 §9.1).

use v1model::{Entry, EntryAction, EntryKey, MeterConfig, Nanos, Pipeline, TableId};

use super::action::{self, Place};
use super::{array, matches, one_shot, profile, Verb};
use crate::binding::{Binding, ProfileBinding, TableBinding};
use crate::error::Refusal;
use crate::proto::p4rt::table_action::Type;
use crate::proto::p4rt::TableEntry;
use crate::soft::{Extra, Soft};
use crate::target::Target;

/// Most bytes of an entry's metadata, which is its client's own.
const METADATA_MAX: usize = 4096;

/// A checked update of a table entry.
pub struct TableOp {
    verb: Verb,
    /// Name for error texts.
    name: String,
    id: u32,
    table: TableId,
    /// None for the default entry.
    key: Option<EntryKey>,
    /// The action profile that its entries point into, by P4Info id.
    profile: Option<u32>,
    action: Option<Act>,
    idle_timeout: Nanos,
    /// What the entry carries for its client alone.
    extra: Extra,
    counter: Option<(u64, u64)>,
    /// Some: the table has a direct meter, which gets this configuration.
    meter: Option<Option<MeterConfig>>,
}

enum Act {
    Existing(EntryAction),
    OneShot(one_shot::OneShotPlan),
}

impl Act {
    /// What the pipeline's entry does; a one-shot is installed before, and kept in `extra`.
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
            Act::Existing(action) => Ok(action),
            Act::OneShot(plan) => {
                let one_shot = extra.one_shot.insert(plan.install(pipeline, soft)?);
                Ok(EntryAction::Group(one_shot.group_id))
            }
        }
    }
}

/// # Errors
/// See the rules of §9.1 in the order of the code.
pub fn plan(binding: &Binding, verb: Verb, entry: &TableEntry) -> Result<TableOp, Refusal> {
    if entry.table_id == 0 {
        return Err(Refusal::invalid(
            "table id 0 is a wildcard, which only a read may use",
        ));
    }
    let table = binding.tables.get(entry.table_id)?;
    if verb != Verb::Delete {
        check_as_pi(table, entry)?;
    }
    plan_in(binding, table, verb, entry).map_err(|e| e.with_place(&format!("table {}", table.name)))
}

#[allow(deprecated)]
fn plan_in(
    binding: &Binding,
    table: &TableBinding,
    verb: Verb,
    entry: &TableEntry,
) -> Result<TableOp, Refusal> {
    if entry.is_const {
        return Err(Refusal::invalid("is_const must be false in an update"));
    }
    let key = if entry.is_default_action {
        default_key(table, verb, entry)?
    } else {
        entry_key(table, verb, entry)?
    };
    let mut op = TableOp {
        verb,
        name: table.name.clone(),
        id: table.id,
        table: table.table,
        key,
        profile: profile_of(binding, table).map(|p| p.id),
        action: None,
        idle_timeout: 0,
        extra: Extra::default(),
        counter: None,
        meter: None,
    };
    if verb == Verb::Delete {
        return Ok(op); // §9.1: nothing but the key counts
    }
    op.action = plan_action(binding, table, entry)?;
    if verb == Verb::Insert && op.action.is_none() {
        return Err(Refusal::invalid("the action is unset; an INSERT needs one"));
    }
    op.idle_timeout = array::number("idle_timeout_ns", entry.idle_timeout_ns)?;
    if entry.metadata.len() > METADATA_MAX {
        return Err(Refusal::invalid(format!(
            "metadata of {} bytes; at most {METADATA_MAX} are allowed",
            entry.metadata.len()
        )));
    }
    op.extra.metadata = entry.metadata.clone();
    op.extra.controller_metadata = entry.controller_metadata;
    op.counter = plan_counter(table, entry)?;
    op.meter = plan_meter(table, entry)?;
    if table.is_const
        && op.key.is_some()
        && (op.action.is_some() || op.idle_timeout != 0 || !op.extra.metadata.is_empty())
    {
        return Err(Refusal::denied(
            "its entries are const: only their direct counters and meters can be modified",
        ));
    }
    Ok(op)
}

fn default_key(
    table: &TableBinding,
    verb: Verb,
    entry: &TableEntry,
) -> Result<Option<EntryKey>, Refusal> {
    if verb != Verb::Modify {
        return Err(Refusal::invalid(
            "the default entry always exists: only MODIFY is allowed",
        ));
    }
    if !entry.r#match.is_empty() || entry.priority != 0 {
        return Err(Refusal::invalid(
            "the default entry takes neither match fields nor a priority",
        ));
    }
    if entry.idle_timeout_ns != 0 {
        return Err(Refusal::invalid("the default entry has no idle timeout"));
    }
    if table.const_default {
        return Err(Refusal::denied("its default action is const"));
    }
    if table.profile.is_some() {
        return Err(Refusal::denied(
            "its default entry is fixed, as it has an action profile",
        ));
    }
    if entry.meter_config.is_some() {
        return Err(Refusal::unimplemented(
            "the direct meter of the default entry cannot be set: a miss executes none",
        ));
    }
    Ok(None)
}

fn entry_key(
    table: &TableBinding,
    verb: Verb,
    entry: &TableEntry,
) -> Result<Option<EntryKey>, Refusal> {
    if table.fields.is_empty() {
        return Err(Refusal::invalid(
            "it has no key: only its default entry can be changed (is_default_action)",
        ));
    }
    if table.is_const && verb != Verb::Modify {
        return Err(Refusal::denied(
            "its entries are const: none can be added or removed",
        ));
    }
    matches::decode_key(table, &entry.r#match, entry.priority).map(Some)
}

fn profile_of<'a>(binding: &'a Binding, table: &TableBinding) -> Option<&'a ProfileBinding> {
    let wanted = table.profile?;
    binding.profiles.items.iter().find(|p| p.profile == wanted)
}

fn plan_action(
    binding: &Binding,
    table: &TableBinding,
    entry: &TableEntry,
) -> Result<Option<Act>, Refusal> {
    let Some(action) = &entry.action else {
        return Ok(None);
    };
    let Some(kind) = &action.r#type else {
        return Err(Refusal::invalid(
            "the table action is set, but holds nothing",
        ));
    };
    let act = match (kind, profile_of(binding, table)) {
        (Type::Action(a), None) => {
            let place = if entry.is_default_action { Place::Default } else { Place::Entry };
            Act::Existing(EntryAction::Direct(action::decode(table, a, place)?))
        }
        (Type::Action(_), Some(p)) => {
            return Err(Refusal::invalid(format!(
                "its entries point to members of the action profile {}, they hold no action of their own",
                p.name
            )))
        }
        (_, None) => return Err(Refusal::invalid("it has no action profile: its entries hold an action of their own")),
        (Type::ActionProfileMemberId(id), Some(_)) => {
            profile::check_id("member", *id)?;
            Act::Existing(EntryAction::Member(*id))
        }
        (Type::ActionProfileGroupId(id), Some(p)) => {
            if !p.selector {
                return Err(Refusal::invalid(format!("the action profile {} has no selector, so no groups", p.name)));
            }
            profile::check_id("group", *id)?;
            Act::Existing(EntryAction::Group(*id))
        }
        (Type::ActionProfileActionSet(set), Some(p)) => Act::OneShot(one_shot::plan(table, p, set)?),
    };
    Ok(Some(act))
}

/// What BMv2's server (PI) says to the letter, without the table's name: its clients compare it (p4-guide's idletimeout).
fn check_as_pi(table: &TableBinding, entry: &TableEntry) -> Result<(), Refusal> {
    if entry.time_since_last_hit.is_some() {
        return Err(Refusal::invalid(
            "has_time_since_last_hit must not be set in WriteRequest",
        ));
    }
    if entry.idle_timeout_ns != 0 && !entry.is_default_action && !table.idle_timeout {
        return Err(Refusal::invalid(
            "idle_timeout_ns must be set to 0 for tables which do not support idle timeout",
        ));
    }
    Ok(())
}

fn plan_counter(table: &TableBinding, entry: &TableEntry) -> Result<Option<(u64, u64)>, Refusal> {
    match &entry.counter_data {
        None => Ok(None),
        Some(_) if !table.direct_counter => Err(Refusal::invalid(
            "it has no direct counter: counter_data must be unset",
        )),
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
    match (&entry.meter_config, &table.direct_meter) {
        (None, None) => Ok(None),
        (None, Some(_)) => Ok(Some(None)),
        (Some(_), None) => Err(Refusal::invalid(
            "it has no direct meter: meter_config must be unset",
        )),
        (Some(config), Some(meter)) => Ok(Some(Some(array::meter_config(config, meter.kind)?))),
    }
}

impl TableOp {
    pub fn work(&self) -> usize {
        match &self.action {
            Some(Act::OneShot(plan)) => 1 + plan.work(),
            _ => 1,
        }
    }

    /// # Errors
    /// The pipeline's refusal, with the table's name.
    pub fn apply(
        mut self,
        target: &mut Target,
        soft: &mut Soft,
        now: Nanos,
    ) -> Result<(), Refusal> {
        let name = std::mem::take(&mut self.name);
        let place = |e: Refusal| {
            if e.message.starts_with("table ") {
                e
            } else {
                e.with_place(&format!("table {name}"))
            }
        };
        self.refuse_mixing(soft).map_err(place)?;
        match (self.verb, self.key.take()) {
            (_, None) => self.set_default(target, soft),
            (Verb::Insert, Some(key)) => self.insert(key, target, soft, now),
            (Verb::Modify, Some(key)) => self.modify(key, target, soft, now),
            (Verb::Delete, Some(key)) => self.delete(&key, target, soft),
        }
        .map_err(place)
    }

    /// # Errors
    /// INVALID_ARGUMENT for a member or group in an action profile that is programmed by one-shots.
    fn refuse_mixing(&self, soft: &Soft) -> Result<(), Refusal> {
        let Some(Act::Existing(EntryAction::Member(_) | EntryAction::Group(_))) = self.action
        else {
            return Ok(());
        };
        let others = self.profile.and_then(|id| soft.one_shots.get(&id));
        profile::refuse_mixing(others, "one-shot entries", "an entry of a member or group")
    }

    fn set_default(self, target: &mut Target, soft: &mut Soft) -> Result<(), Refusal> {
        let reset = self.action.is_none();
        let call = match self.action {
            Some(Act::Existing(EntryAction::Direct(call))) => Some(call),
            _ => None,
        };
        let pipeline = target.pipeline()?;
        pipeline.table_set_default(self.table, call)?;
        let counter = self.counter.or(reset.then_some((0, 0)));
        if let Some((packets, bytes)) = counter {
            pipeline.table_set_default_stats(self.table, packets, bytes);
        }
        if reset || self.extra.is_empty() {
            soft.defaults.remove(&self.id);
        } else {
            soft.defaults.insert(self.id, self.extra.into());
        }
        Ok(())
    }

    fn insert(
        self,
        key: EntryKey,
        target: &mut Target,
        soft: &mut Soft,
        now: Nanos,
    ) -> Result<(), Refusal> {
        let pipeline = target.pipeline()?;
        let mut extra = self.extra;
        let action = match self.action {
            Some(act) => act.install(pipeline, soft, &mut extra)?,
            None => return Err(Refusal::invalid("the action is unset; an INSERT needs one")),
        };
        let cookie = soft.keep(extra);
        let entry = Entry {
            key,
            action,
            idle_timeout: self.idle_timeout,
            cookie,
        };
        let done = pipeline
            .table_insert(self.table, &entry, now)
            .map_err(Refusal::from)
            .and_then(|()| {
                let direct = set_direct(
                    pipeline,
                    self.table,
                    &entry.key,
                    self.counter,
                    self.meter.flatten().map(Some),
                );
                if direct.is_err() {
                    pipeline.table_delete(self.table, &entry.key)?;
                }
                direct
            });
        if done.is_err() {
            release(target, soft, cookie);
        }
        done
    }

    fn modify(
        self,
        key: EntryKey,
        target: &mut Target,
        soft: &mut Soft,
        now: Nanos,
    ) -> Result<(), Refusal> {
        let pipeline = target.pipeline()?;
        let mut extra = self.extra;
        let plain = extra.is_empty() && !soft.has_extras();
        if let (true, Some(Act::Existing(action))) = (plain, &self.action) {
            let entry = Entry {
                key,
                action: action.clone(),
                idle_timeout: self.idle_timeout,
                cookie: 0,
            };
            pipeline.table_modify(self.table, &entry, now)?;
            return set_direct(pipeline, self.table, &entry.key, self.counter, self.meter);
        }
        let Some((old, _)) = pipeline.table_get(self.table, &key) else {
            return Err(Refusal::not_found("no entry has this match and priority"));
        };
        if pipeline.table_schema(self.table).const_entries.is_some() {
            return set_direct(pipeline, self.table, &key, self.counter, self.meter);
        }
        let action = match self.action {
            Some(act) => act.install(pipeline, soft, &mut extra)?,
            None => {
                extra.one_shot = soft.extra(old.cookie).and_then(|e| e.one_shot.clone());
                old.action
            }
        };
        let kept = extra.one_shot.as_ref().map(|o| o.group_id);
        let cookie = soft.keep(extra);
        let entry = Entry {
            key,
            action,
            idle_timeout: self.idle_timeout,
            cookie,
        };
        if let Err(error) = pipeline.table_modify(self.table, &entry, now) {
            release(target, soft, cookie);
            return Err(error.into());
        }
        let same = soft
            .extra(old.cookie)
            .and_then(|e| e.one_shot.as_ref())
            .map(|o| o.group_id)
            == kept;
        if same {
            soft.drop_extra(old.cookie); // its one-shot, if any, lives on in the new extra
        } else {
            release(target, soft, old.cookie);
        }
        set_direct(
            target.pipeline()?,
            self.table,
            &entry.key,
            self.counter,
            self.meter,
        )
    }

    fn delete(self, key: &EntryKey, target: &mut Target, soft: &mut Soft) -> Result<(), Refusal> {
        let pipeline = target.pipeline()?;
        let cookie = match soft.has_extras() {
            true => pipeline
                .table_get(self.table, key)
                .map_or(0, |(entry, _)| entry.cookie),
            false => 0,
        };
        pipeline.table_delete(self.table, key)?;
        release(target, soft, cookie);
        Ok(())
    }
}

fn set_direct(
    pipeline: &mut Pipeline,
    table: TableId,
    key: &EntryKey,
    counter: Option<(u64, u64)>,
    meter: Option<Option<MeterConfig>>,
) -> Result<(), Refusal> {
    if let Some(config) = meter {
        pipeline.direct_meter_set(table, key, config)?;
    }
    if let Some((packets, bytes)) = counter {
        pipeline.direct_counter_set(table, key, packets, bytes)?;
    }
    Ok(())
}

/// Forgets an entry's extra, and the hidden group and members of a one-shot.
fn release(target: &mut Target, soft: &mut Soft, cookie: u64) {
    if cookie == 0 {
        return;
    }
    let Some(extra) = soft.drop_extra(cookie) else {
        return;
    };
    if let (Some(one_shot), Ok(pipeline)) = (&extra.one_shot, target.pipeline()) {
        one_shot.remove(pipeline, soft);
    }
}
