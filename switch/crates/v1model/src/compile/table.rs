// SPDX-License-Identifier: Apache-2.0
//! Tables, their entries and action profiles: from JSON to schema, and to what the packet path needs.

use std::collections::HashMap;

use super::calculation;
use super::code::TableCode;
use super::control::Controls;
use super::emit::Emitter;
use super::layout::Layout;
use super::names::Names;
use crate::bits::{limbs_for, ActionCall, Bits, Entry, EntryAction, EntryKey, KeyMatch};
use crate::json::{fail, to_limbs, Json, Load, Unique};
use crate::schema::*;
use crate::table::{push_prefix, Table};

/// A `hexstr` of `width` bits.
fn hex_bits(json: &Json, width: u32) -> Load<Bits> {
    let value = json.hexstr_of(width)?;
    Ok(Bits::from_limbs(width, &to_limbs(&value, limbs_for(width))))
}

/// The action and arguments in `{action_id, action_data}`.
fn action_call(json: &Json, names: &Names, actions: &[ActionSchema]) -> Load<ActionCall> {
    let action = names.action(&json.get("action_id")?)?;
    let params = &actions[action.index()].params;
    let data = json.list("action_data")?;
    if data.len() != params.len() {
        fail!(
            json,
            "the action takes {} arguments, found {}",
            params.len(),
            data.len()
        );
    }
    let mut args = Vec::new();
    for (json, param) in data.iter().zip(params) {
        hex_bits(json, param.width)?.push_limbs(&mut args);
    }
    Ok(ActionCall { action, args })
}

/// Reads the action profiles of a pipeline.
pub(crate) fn profiles(e: &mut Emitter, pipeline: &Json, schema: &mut Schema) -> Load<()> {
    for json in pipeline.list("action_profiles")? {
        let id = ProfileId(schema.profiles.len() as u32);
        let name = json.str_at("name")?;
        if schema.profiles.iter().any(|p| p.name == name) {
            fail!(json, "there are two action profiles `{name}`");
        }
        if schema.profiles.len() == PROFILES_MAX {
            fail!(json, "a program has at most {PROFILES_MAX} action profiles");
        }
        let selector = json.opt("selector");
        let hash = |json: &Json| calculation::add(e.layout, json, &mut e.program.calculations);
        let hash = selector.as_ref().map(hash).transpose()?;
        e.program.selectors.push(hash);
        let size_json = json.get("max_size")?;
        let max_size = size_json.u32()?;
        size_json.charge(u64::from(max_size) * MEMBER_BYTES, || {
            format!("action profile `{name}` of {max_size} members")
        })?;
        schema.profiles.push(ProfileSchema {
            id,
            name: name.to_string(),
            max_size,
            selector: selector.is_some(),
            tables: Vec::new(),
            actions: Vec::new(),
        });
    }
    Ok(())
}

/// Most action profiles of a program; a bound for sanity.
const PROFILES_MAX: usize = 4096;
/// About what a member of an action profile takes.
const MEMBER_BYTES: u64 = 128;

/// The actions that a table may run.
pub(crate) fn actions(table: &TableSchema, schema: &Schema) -> Vec<u32> {
    // A member of a shared profile may name another table's copy of an action.
    if table.profile.is_some() {
        return (0..schema.actions.len() as u32).collect();
    }
    let mut actions: Vec<u32> = table.actions.iter().map(|a| a.0).collect();
    actions.extend(table.default_action.iter().map(|call| call.action.0));
    actions.sort_unstable();
    actions.dedup();
    actions
}

/// A table of the JSON: its schema goes to `schema.tables`, its packet-path half is returned (without next nodes).
pub(crate) fn table(json: &Json, shared: &Controls, schema: &mut Schema) -> Load<TableCode> {
    let names = shared.names;
    let id = TableId(schema.tables.len() as u32);
    let name = json.str_at("name")?.to_string();
    // For each action, where the program goes on after a hit and after a miss.
    json.charge(schema.actions.len() as u64 * 8, || {
        format!("table `{name}` of {} actions", schema.actions.len())
    })?;
    let mut code = TableCode::default();
    let keys = key(json, shared.layout, &mut code)?;
    let mut actions = Vec::new();
    let mut unique = Unique::new("the table's action");
    for action in json.list("action_ids")? {
        let id = names.action(&action)?;
        unique.add(shared.actions[id.index()].str_at("name")?, &action)?;
        actions.push(id);
    }
    if actions.is_empty() {
        for action in json.list("actions")? {
            let name = action.str()?;
            unique.add(name, &action)?;
            match shared.actions_named.get(name) {
                Some(ids) => actions.push(ids[0]),
                None => fail!(action, "there is no action `{name}`"),
            }
        }
    }
    let profile = table_profile(json, id, &actions, schema)?;
    code.profile = profile.map(|p| p.0);
    let direct_meter = names.direct_meters.get(&name).map(|(meter, target)| {
        code.meter = target.map(|f| (f.slot, f.width.min(64) as u8));
        meter.clone()
    });
    let direct_counter = match names.direct_counters.get(&name) {
        Some(counter) => Some(counter.clone()),
        None if json.bool_or("with_counters", false)? => Some(name.clone()),
        None => None,
    };
    let (mut default_action, mut const_default_action) = (None, false);
    if let Some(entry) = json.opt("default_entry") {
        default_action = Some(action_call(&entry, names, &schema.actions)?);
        const_default_action =
            entry.bool_or("action_const", false)? || entry.bool_or("action_entry_const", false)?;
    }
    let entries_json = json.opt("entries");
    let read = |json: &Json| const_entries(json, &keys, names, &schema.actions);
    let const_entries = entries_json.as_ref().map(read).transpose()?;
    let entries = const_entries.as_ref().map_or(0, |e| e.len() as u32);
    let table = TableSchema {
        id,
        name,
        keys,
        max_size: json
            .opt("max_size")
            .map_or(Ok(entries), |j| j.u32())?
            .max(entries),
        actions,
        direct_counter,
        direct_meter,
        profile,
        support_timeout: json.bool_or("support_timeout", false)?,
        const_entries,
        default_action,
        const_default_action,
    };
    let place = json.opt("max_size").unwrap_or_else(|| json.clone());
    place.charge(Table::bytes(&table, &schema.actions), || {
        format!("table `{}` of {} entries", table.name, table.max_size)
    })?;
    if let (Some(entries), Some(places)) = (&table.const_entries, &entries_json) {
        check_entries(&table, &schema.actions, entries, &places.items()?)?;
    }
    schema.tables.push(table);
    Ok(code)
}

/// Sees that the table takes the program's own entries.
fn check_entries(
    table: &TableSchema,
    actions: &[ActionSchema],
    entries: &[Entry],
    places: &[Json],
) -> Load<()> {
    let mut keys = HashMap::new();
    for (entry, place) in entries.iter().zip(places) {
        let key = Table::check_own(table, actions, entry).map_err(|e| place.error(e.message))?;
        if let Some(first) = keys.insert(key, place) {
            fail!(place, "the same key as {}", first.path());
        }
    }
    Ok(())
}

fn key(json: &Json, layout: &Layout, code: &mut TableCode) -> Load<Vec<KeySchema>> {
    let mut keys: Vec<KeySchema> = Vec::new();
    for part in json.list("key")? {
        let kind_json = part.get("match_type")?;
        let target = part.get("target")?;
        let kind = match kind_json.str()? {
            "exact" | "valid" => MatchKind::Exact,
            "lpm" => MatchKind::Lpm,
            "ternary" => MatchKind::Ternary,
            "range" => MatchKind::Range,
            "optional" => MatchKind::Optional,
            other => fail!(kind_json, "there is no match kind `{other}`"),
        };
        if kind == MatchKind::Lpm && keys.iter().any(|k| k.kind == kind) {
            fail!(kind_json, "a table has at most one lpm field");
        }
        let field = if target.is_array() {
            layout.field(&target)?
        } else {
            let header = layout.named("header", &target)?;
            layout
                .field_of(header, "$valid$")
                .expect("every header has one")
        };
        if field.varbit_bits.is_some() {
            fail!(target, "a varbit field cannot be matched");
        }
        let limbs = limbs_for(field.width);
        if field.width == 0 {
            fail!(target, "a key field has no bits");
        }
        part.charge(limbs as u64 * 16, || "a key field".into())?;
        if code.key.len() + limbs > usize::from(u16::MAX) {
            fail!(part, "a key is at most 65535 words of 64 bits wide");
        }
        let masks = match part.opt("mask") {
            Some(mask) => hex_bits(&mask, field.width)?.to_limbs(),
            None => vec![u64::MAX; limbs],
        };
        code.key.extend((field.slot..).zip(masks));
        let name = match part.opt("name") {
            Some(name) => name.str()?.to_string(),
            None if target.is_array() => {
                format!("{}.{}", target.item(0)?.str()?, target.item(1)?.str()?)
            }
            None => format!("{}.$valid$", target.str()?),
        };
        keys.push(KeySchema {
            name,
            kind,
            width: field.width,
        });
    }
    Ok(keys)
}

fn table_profile(
    json: &Json,
    id: TableId,
    actions: &[ActionId],
    schema: &mut Schema,
) -> Load<Option<ProfileId>> {
    let ty = json.get("type")?;
    match ty.str()? {
        "simple" => Ok(None),
        "indirect" | "indirect_ws" => {
            let profile_json = json.get("action_profile")?;
            let name = profile_json.str()?;
            let Some(profile) = schema.profiles.iter_mut().find(|p| p.name == name) else {
                fail!(profile_json, "there is no action profile `{name}`");
            };
            profile.tables.push(id);
            if profile.actions.is_empty() {
                profile.actions = actions.to_vec();
            }
            Ok(Some(profile.id))
        }
        other => fail!(
            ty,
            "tables are simple, indirect or indirect_ws, not `{other}`"
        ),
    }
}

/// The program's own entries. BMv2 JSON orders by the smallest priority number first, P4Runtime by the largest.
fn const_entries(
    json: &Json,
    keys: &[KeySchema],
    names: &Names,
    actions: &[ActionSchema],
) -> Load<Vec<Entry>> {
    let entries = json.items()?;
    let needs_priority = keys.iter().any(|k| k.kind.has_priority());
    let limbs: usize = keys.iter().map(|k| limbs_for(k.width)).sum();
    let mut out = Vec::new();
    for entry in &entries {
        entry.charge(limbs as u64 * 16 + 100, || "an entry".into())?;
        let match_key = entry.get("match_key")?;
        let parts = match_key.items()?;
        if parts.len() != keys.len() {
            fail!(
                match_key,
                "the table has {} key fields, found {}",
                keys.len(),
                parts.len()
            );
        }
        let mut matches = Vec::new();
        for (part, key) in parts.iter().zip(keys) {
            matches.push(entry_match(part, key)?);
        }
        let priority_json = entry.opt("priority");
        let priority = match &priority_json {
            Some(priority) if needs_priority => {
                let number = priority.i64()?;
                match i32::try_from(number) {
                    Ok(number) if (0..i32::MAX).contains(&number) => i32::MAX - number,
                    _ => {
                        fail!(
                            priority,
                            "the priority is {number}; allowed: 0 to {}",
                            i32::MAX - 1
                        )
                    }
                }
            }
            None if needs_priority => fail!(entry, "`priority` is missing"),
            _ => 0,
        };
        let call = action_call(&entry.get("action_entry")?, names, actions)?;
        out.push(Entry {
            key: EntryKey { matches, priority },
            action: EntryAction::Direct(call),
            idle_timeout: 0,
            cookie: 0,
        });
    }
    Ok(out)
}

fn and(a: &Bits, b: &Bits) -> Bits {
    let limbs = a.to_limbs().into_iter().zip(b.to_limbs());
    let limbs: Vec<u64> = limbs.map(|(a, b)| a & b).collect();
    Bits::from_limbs(a.width(), &limbs)
}

fn prefix_mask(width: u32, prefix_len: u32) -> Bits {
    let mut limbs = Vec::new();
    push_prefix(width, prefix_len, &mut limbs);
    Bits::from_limbs(width, &limbs)
}

fn entry_match(json: &Json, key: &KeySchema) -> Load<KeyMatch> {
    let width = key.width;
    let kind = json.str_at("match_type")?;
    let mask = || -> Load<Bits> {
        let mask = json.opt("mask");
        mask.map_or(Ok(Bits::ones(width)), |mask| hex_bits(&mask, width))
    };
    let value = || -> Load<Bits> {
        let value = json.get("key")?;
        if let Ok(valid) = value.bool() {
            return Ok(Bits::from_limbs(width, &[valid.into()]));
        }
        hex_bits(&value, width)
    };
    Ok(match key.kind {
        MatchKind::Exact => KeyMatch::Exact(value()?),
        MatchKind::Lpm => {
            let value = value()?;
            let prefix_len = match json.opt("prefix_length") {
                Some(len) => len.u32()?,
                None => width,
            };
            if prefix_len > width {
                fail!(
                    json,
                    "prefix length {prefix_len} is above the width {width}"
                );
            }
            KeyMatch::Lpm {
                value: and(&value, &prefix_mask(width, prefix_len)),
                prefix_len,
            }
        }
        MatchKind::Ternary => {
            let value = value()?;
            let mask = match kind {
                "lpm" => prefix_mask(width, json.u32_at("prefix_length")?.min(width)),
                _ => mask()?,
            };
            KeyMatch::Ternary {
                value: and(&value, &mask),
                mask,
            }
        }
        MatchKind::Range => KeyMatch::Range {
            low: hex_bits(&json.get("start")?, width)?,
            high: hex_bits(&json.get("end")?, width)?,
        },
        MatchKind::Optional => {
            let mask = mask()?;
            if mask.is_zero() {
                KeyMatch::Optional(None)
            } else if mask == Bits::ones(width) {
                KeyMatch::Optional(Some(value()?))
            } else {
                fail!(json, "an optional field is matched whole or not at all");
            }
        }
    })
}
