// SPDX-License-Identifier: Apache-2.0
//! Tables of P4Info bound to those of the pipeline: match fields, actions with their scopes, direct resources.

use std::collections::{HashMap, HashSet};

use v1model::{ActionId, KeySchema, MatchKind, Pipeline, TableId};

use super::{absent, preambles, same, unique, unknown, width, ById};
use crate::error::{in_range, refusal, refuse, At, Checked};
use crate::proto::p4info;
use crate::proto::p4info::action_ref::Scope;
use crate::proto::p4info::match_field::{Match, MatchType};
pub use crate::proto::p4info::meter_spec::Type as MeterType;
use crate::proto::p4info::p4_new_type_spec::Representation;
use crate::proto::p4info::p4_new_type_translation::SdnType;
use crate::proto::p4info::{ActionRef, MatchField, MeterSpec, P4Info, P4NamedType};

/// The match fields of a table or of a value set.
#[derive(Debug, Default)]
pub struct MatchKey {
    /// P4Info's id and kind of each field; an optional one may be ternary in the pipeline: p4c has no other form for it.
    pub fields: Vec<(u32, MatchKind)>,
    /// One for each field, with P4Info's name.
    pub keys: Vec<KeySchema>,
}

/// A parameter of an action, with its width in bits in the pipeline.
#[derive(Debug)]
pub struct Param {
    pub id: u32,
    pub name: String,
    pub width: u32,
}

/// An action of a table.
#[derive(Debug)]
pub struct Action {
    pub id: u32,
    pub name: String,
    pub action: ActionId,
    pub scope: Scope,
    pub params: Vec<Param>,
}

/// A table.
#[derive(Debug)]
pub struct Table {
    pub table: TableId,
    pub key: MatchKey,
    pub actions: Vec<Action>,
    /// The P4Info id of its action profile.
    pub profile: Option<u32>,
    pub direct_counter: bool,
    pub direct_meter: Option<MeterType>,
    pub idle_timeout: bool,
    pub needs_priority: bool,
    pub is_const: bool,
    /// Max entries, as P4Info has it.
    pub size: u32,
    pub const_default: bool,
}

impl Table {
    /// # Errors
    /// INVALID_ARGUMENT with the id and the actions that the table has.
    pub fn action(&self, id: u32) -> Checked<&Action> {
        let known = self.actions.iter();
        let action = known.clone().find(|a| a.id == id);
        let known = known.map(|a| (a.id, &*a.name));
        action.ok_or_else(|| refusal!("{}", unknown("action", id, known)))
    }
}

pub(super) fn bind(info: &P4Info, pipeline: &Pipeline) -> Checked<ById<Table>> {
    let ids = preambles("action", info.actions.iter().map(|a| &a.preamble))?;
    let actions: HashMap<u32, (&str, &p4info::Action)> = ids
        .iter()
        .zip(&info.actions)
        .map(|(preamble, action)| (preamble.id, (&*preamble.name, action)))
        .collect();
    for (name, action) in actions.values() {
        unique(action.params.iter().map(|p| p.id)).at(format_args!("action {name}: parameters"))?;
    }
    let counters = info.direct_counters.iter().flat_map(|c| &c.preamble);
    let counters: HashSet<u32> = counters.map(|p| p.id).collect();
    let meters = info.direct_meters.iter();
    let meters = meters.filter_map(|m| Some((m.preamble.as_ref()?.id, meter_type(&m.spec))));
    let meters: HashMap<u32, MeterType> = meters.collect();
    super::bind(&info.tables, &pipeline.schema().tables, |table, schema| {
        // Where the program has entries of its own, the device config has their number for the size.
        let max = match schema.const_entries {
            Some(_) => u32::MAX,
            None => schema.max_size,
        };
        unique(table.action_refs.iter().map(|a| a.id)).at("actions")?;
        let key = bind_fields(info, &table.match_fields, &schema.keys)?;
        let mut bound = Vec::with_capacity(table.action_refs.len());
        for reference in &table.action_refs {
            let Some((name, action)) = actions.get(&reference.id) else {
                refuse!("P4Info has no action with the id {:#x}", reference.id);
            };
            let place = format_args!("action {name}");
            bound.push(bind_action(info, action, reference, name, schema.id, pipeline).at(place)?);
        }
        let resources = &table.direct_resource_ids;
        let direct_counter = resources.iter().any(|id| counters.contains(id));
        let direct_meter = resources.iter().find_map(|id| meters.get(id)).copied();
        if direct_counter {
            same("direct counter", true, schema.direct_counter.is_some())?;
        }
        if direct_meter.is_some() {
            same("direct meter", true, schema.direct_meter.is_some())?;
        }
        let profile = Some(table.implementation_id).filter(|id| *id != 0);
        same(
            "action profile",
            profile.is_some(),
            schema.profile.is_some(),
        )?;
        Ok(Table {
            table: schema.id,
            needs_priority: key.fields.iter().any(|(_, kind)| kind.has_priority()),
            key,
            actions: bound,
            profile,
            direct_counter,
            direct_meter,
            // p4c does not always mark `support_timeout` in P4Info, so either side may.
            idle_timeout: table.idle_timeout_behavior != 0 || schema.support_timeout,
            is_const: table.is_const_table,
            size: in_range("P4Info's size", table.size, 0..=max)?,
            const_default: table.const_default_action_id != 0 || schema.const_default_action,
        })
    })
}

pub(super) fn meter_type(spec: &Option<MeterSpec>) -> MeterType {
    spec.as_ref().map(|s| s.r#type()).unwrap_or_default()
}

fn bind_fields(info: &P4Info, fields: &[MatchField], keys: &[KeySchema]) -> Checked<MatchKey> {
    same("match fields", fields.len(), keys.len())?;
    let mut bound = MatchKey::new(fields)?;
    for ((own, key), field) in bound.keys.iter_mut().zip(keys).zip(fields) {
        let bind = || -> Checked {
            if (own.kind, key.kind) != (MatchKind::Optional, MatchKind::Ternary) {
                same("match kind", own.kind, key.kind)?;
            }
            check_width(info, field.bitwidth, &field.type_name, key.width)
        };
        bind().at(format_args!("match field {}", field.name))?;
        (own.kind, own.width) = (key.kind, key.width);
    }
    Ok(bound)
}

impl MatchKey {
    /// As P4Info gives it.
    ///
    /// # Errors
    /// INVALID_ARGUMENT for another match kind, for an id that is 0 or used twice, and for a width below 0.
    pub(super) fn new(fields: &[MatchField]) -> Checked<MatchKey> {
        unique(fields.iter().map(|f| f.id)).at("match fields")?;
        let mut key = MatchKey::default();
        for field in fields {
            let (name, given) = (field.name.clone(), field.r#match.as_ref());
            let kind = match given {
                Some(Match::MatchType(kind)) => MatchType::try_from(*kind).unwrap_or_default(),
                _ => MatchType::Unspecified,
            };
            let kind = match kind {
                MatchType::Exact => MatchKind::Exact,
                MatchType::Lpm => MatchKind::Lpm,
                MatchType::Ternary => MatchKind::Ternary,
                MatchType::Range => MatchKind::Range,
                MatchType::Optional => MatchKind::Optional,
                MatchType::Unspecified => refuse!(
                    "match field {name}: {given:?} is unknown; known: exact, lpm, ternary, range, optional"
                ),
            };
            let width = width(field.bitwidth)?;
            key.fields.push((field.id, kind));
            key.keys.push(KeySchema { name, kind, width });
        }
        Ok(key)
    }
}

fn bind_action(
    info: &P4Info,
    action: &p4info::Action,
    reference: &ActionRef,
    name: &str,
    table: TableId,
    pipeline: &Pipeline,
) -> Checked<Action> {
    let Some(id) = pipeline.table_action(table, name) else {
        let actions = pipeline.table_schema(table).actions.iter();
        let known = actions.map(|a| &*pipeline.action_schema(*a).name);
        return Err(absent("action", name, known));
    };
    let own = &pipeline.action_schema(id).params;
    same("parameters", action.params.len(), own.len())?;
    let mut params = Vec::with_capacity(own.len());
    for (param, own) in action.params.iter().zip(own) {
        check_width(info, param.bitwidth, &param.type_name, own.width)
            .at(format_args!("parameter {}", param.name))?;
        params.push(Param {
            id: param.id,
            name: param.name.clone(),
            width: own.width,
        });
    }
    Ok(Action {
        id: reference.id,
        name: name.to_owned(),
        action: id,
        scope: reference.scope(),
        params,
    })
}

/// P4Info's width must be the pipeline's, but for types that the SDN side sees at another width.
fn check_width(
    info: &P4Info,
    bitwidth: i32,
    type_name: &Option<P4NamedType>,
    width: u32,
) -> Checked {
    // 0 is unset: P4Info gives no width for values of the types `error` and `enum`.
    match is_translated(info, type_name)? || bitwidth == 0 {
        true => Ok(()),
        false => same("width", i64::from(bitwidth), i64::from(width)),
    }
}

/// Does the SDN side see a type at another width?
///
/// # Errors
/// UNIMPLEMENTED for a type that it sees as a string.
pub(super) fn is_translated(info: &P4Info, name: &Option<P4NamedType>) -> Checked<bool> {
    let types = info.type_info.as_ref().map(|types| &types.new_types);
    let own = types.zip(name.as_ref());
    let own = own.and_then(|(types, name)| types.get(&name.name)?.representation.as_ref());
    let Some(Representation::TranslatedType(own)) = own else {
        return Ok(false);
    };
    match &own.sdn_type {
        Some(SdnType::SdnString(_)) => refuse!(
            Unimplemented,
            "its type is translated to an SDN string; only translations to a bit width are supported"
        ),
        sdn => Ok(sdn.is_some()),
    }
}
