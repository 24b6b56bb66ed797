// SPDX-License-Identifier: Apache-2.0
//! Tables of P4Info bound to those of the pipeline: match fields, actions with their scopes, direct resources.

use std::collections::{HashMap, HashSet};

use v1model::{ActionId, KeySchema, MatchKind, Pipeline, ProfileId, TableId, TableSchema};

use super::{absent, left_out, named, number, preamble, unique, ById};
use crate::error::{refusal, refuse, At, Refusal};
use crate::proto::p4info::action_ref::Scope;
use crate::proto::p4info::match_field::{Match, MatchType};
use crate::proto::p4info::{meter_spec, p4_new_type_spec, p4_new_type_translation};
use crate::proto::p4info::{Action, DirectMeter, MatchField, P4Info, P4NamedType, Preamble, Table};

/// What P4Info says of a match field, beside its key schema, which has P4Info's name.
#[derive(Debug, Clone)]
pub struct FieldBinding {
    pub id: u32,
    /// The pipeline may match an optional field as ternary: p4c has no other form for it.
    pub kind: MatchKind,
}

/// A parameter of an action.
#[derive(Debug, Clone)]
pub struct ParamBinding {
    pub id: u32,
    pub name: String,
    /// Width in bits in the pipeline.
    pub width: u32,
}

/// An action of a table.
#[derive(Debug, Clone)]
pub struct ActionBinding {
    pub id: u32,
    pub name: String,
    pub action: ActionId,
    pub scope: Scope,
    pub params: Vec<ParamBinding>,
}

/// A table.
#[derive(Debug)]
pub struct TableBinding {
    pub id: u32,
    pub name: String,
    pub table: TableId,
    pub fields: Vec<FieldBinding>,
    /// One for each field.
    pub keys: Vec<KeySchema>,
    pub actions: Vec<ActionBinding>,
    pub profile: Option<ProfileId>,
    pub direct_counter: bool,
    pub direct_meter: Option<meter_spec::Type>,
    pub idle_timeout: bool,
    pub needs_priority: bool,
    pub is_const: bool,
    /// Most entries, as P4Info has it.
    pub size: u32,
    pub const_default: bool,
}

named!(TableBinding, ActionBinding);

impl TableBinding {
    /// # Errors
    /// INVALID_ARGUMENT with the id and the actions that the table has.
    pub fn action(&self, id: u32) -> Result<&ActionBinding, Refusal> {
        self.actions.iter().find(|a| a.id == id).ok_or_else(|| {
            let known: Vec<String> = self
                .actions
                .iter()
                .map(|a| format!("{:#010x} {}", a.id, a.name))
                .collect();
            refusal!(
                invalid,
                "action id {id:#010x} is none of this table's actions: {}",
                known.join(", ")
            )
        })
    }

    /// The P4Info side of a pipeline's action of this table.
    pub fn action_of(&self, action: ActionId) -> Option<&ActionBinding> {
        self.actions.iter().find(|a| a.action == action)
    }
}

pub(super) fn bind(
    info: &P4Info,
    actions: &HashMap<u32, &Action>,
    pipeline: &Pipeline,
) -> Result<ById<TableBinding>, Refusal> {
    let names = pipeline.schema().tables.iter().map(|t| t.name.as_str());
    // p4c makes tables of its own out of statements between tables.
    let own: Vec<&str> = names.filter(|name| !name.starts_with("tbl_")).collect();
    let left_out = left_out("table", info.tables.iter().map(|t| &t.preamble), &own)?;
    let shown = info.direct_counters.iter().flat_map(|c| &c.preamble);
    let meters = info.direct_meters.iter();
    let meters = meters.filter_map(|m| Some((m.preamble.as_ref()?.id, m)));
    let own_tables = pipeline.schema().tables.iter();
    let context = Context {
        info,
        actions,
        pipeline,
        tables: own_tables.map(|t| (t.name.as_str(), t.id)).collect(),
        counters: shown.map(|p| p.id).collect(),
        meters: meters.collect(),
    };
    let mut items = Vec::with_capacity(info.tables.len());
    for table in &info.tables {
        let preamble = preamble("table", &table.preamble)?;
        if !left_out.contains_key(&preamble.id) {
            items.push(bind_table(&context, table, preamble)?);
        }
    }
    ById::new("table", items, left_out)
}

/// What the tables are bound to, by name and id.
struct Context<'a> {
    info: &'a P4Info,
    actions: &'a HashMap<u32, &'a Action>,
    pipeline: &'a Pipeline,
    tables: HashMap<&'a str, TableId>,
    counters: HashSet<u32>,
    meters: HashMap<u32, &'a DirectMeter>,
}

fn bind_table(
    context: &Context,
    table: &Table,
    preamble: &Preamble,
) -> Result<TableBinding, Refusal> {
    let Context {
        info,
        actions,
        pipeline,
        ..
    } = context;
    let place = format!("table {}", preamble.name);
    let Some(&id) = context.tables.get(preamble.name.as_str()) else {
        return Err(absent("table", &preamble.name, &[]));
    };
    let schema = pipeline.table_schema(id);
    // Where the program has entries of its own, the device config has their number for the size.
    let most = match schema.const_entries {
        Some(_) => u32::MAX,
        None => schema.max_size,
    };
    let size = number("size", table.size, most).at(&place)?;
    unique(table.action_refs.iter().map(|a| a.id)).at(format_args!("{place}: actions"))?;
    let (fields, keys) = bind_fields(info, &table.match_fields, &schema.keys).at(&place)?;
    let mut bound = Vec::with_capacity(table.action_refs.len());
    for reference in &table.action_refs {
        let action = actions.get(&reference.id).ok_or_else(|| {
            refusal!(
                invalid,
                "{place}: P4Info names the action id {:#010x}, but has no such action",
                reference.id
            )
        })?;
        bound.push(bind_action(info, action, reference.scope(), id, pipeline).at(&place)?);
    }
    let mut resources = table.direct_resource_ids.iter();
    let counter = resources.clone().find(|id| context.counters.contains(id));
    if counter.is_some() && schema.direct_counter.is_none() {
        refuse!(
            invalid,
            "{place}: P4Info has a direct counter, the device config has none"
        );
    }
    let meter = resources.find_map(|id| context.meters.get(id));
    if meter.is_some() && schema.direct_meter.is_none() {
        refuse!(
            invalid,
            "{place}: P4Info has a direct meter, the device config has none"
        );
    }
    if (table.implementation_id != 0) != schema.profile.is_some() {
        refuse!(
            invalid,
            "{place}: P4Info and the device config differ about an action profile"
        );
    }
    Ok(TableBinding {
        id: preamble.id,
        name: preamble.name.clone(),
        table: id,
        needs_priority: fields.iter().any(|f| f.kind.has_priority()),
        fields,
        keys,
        actions: bound,
        profile: schema.profile,
        direct_counter: counter.is_some(),
        direct_meter: meter.map(|m| m.spec.as_ref().map(|s| s.r#type()).unwrap_or_default()),
        idle_timeout: idle_timeout(table, schema),
        is_const: table.is_const_table,
        size,
        const_default: table.const_default_action_id != 0 || schema.const_default_action,
    })
}

/// p4c does not always mark `support_timeout` in P4Info, so either side may.
fn idle_timeout(table: &Table, schema: &TableSchema) -> bool {
    table.idle_timeout_behavior != 0 || schema.support_timeout
}

fn bind_fields(
    info: &P4Info,
    fields: &[MatchField],
    keys: &[KeySchema],
) -> Result<(Vec<FieldBinding>, Vec<KeySchema>), Refusal> {
    if fields.len() != keys.len() {
        refuse!(
            invalid,
            "P4Info has {} match fields, the device config {}",
            fields.len(),
            keys.len()
        );
    }
    unique(fields.iter().map(|f| f.id)).at("match fields")?;
    let (mut bound, mut own) = (
        Vec::with_capacity(fields.len()),
        Vec::with_capacity(keys.len()),
    );
    for (field, key) in fields.iter().zip(keys) {
        let kind = field_kind(field).at(format_args!("match field {}", field.name))?;
        let optional_as_ternary = kind == MatchKind::Optional && key.kind == MatchKind::Ternary;
        if kind != key.kind && !optional_as_ternary {
            refuse!(
                invalid,
                "match field {}: {kind:?} in P4Info, {:?} in the device config",
                field.name,
                key.kind
            );
        }
        check_width(info, field.bitwidth, field.type_name.as_ref(), key.width)
            .at(format_args!("match field {}", field.name))?;
        bound.push(FieldBinding { id: field.id, kind });
        own.push(KeySchema {
            name: field.name.clone(),
            ..key.clone()
        });
    }
    Ok((bound, own))
}

pub(super) fn field_kind(field: &MatchField) -> Result<MatchKind, Refusal> {
    let Some(Match::MatchType(kind)) = field.r#match else {
        refuse!(
            invalid,
            "its match kind is unknown; known: exact, lpm, ternary, range, optional"
        );
    };
    Ok(match MatchType::try_from(kind) {
        Ok(MatchType::Exact) => MatchKind::Exact,
        Ok(MatchType::Lpm) => MatchKind::Lpm,
        Ok(MatchType::Ternary) => MatchKind::Ternary,
        Ok(MatchType::Range) => MatchKind::Range,
        Ok(MatchType::Optional) => MatchKind::Optional,
        _ => {
            refuse!(invalid, "match type {kind} is unknown; known: 2 to 6")
        }
    })
}

fn bind_action(
    info: &P4Info,
    action: &Action,
    scope: Scope,
    table: TableId,
    pipeline: &Pipeline,
) -> Result<ActionBinding, Refusal> {
    let preamble = preamble("action", &action.preamble)?;
    let Some(id) = pipeline.table_action(table, &preamble.name) else {
        let schema = pipeline.table_schema(table);
        let known: Vec<&str> = schema
            .actions
            .iter()
            .map(|a| pipeline.action_schema(*a).name.as_str())
            .collect();
        return Err(absent("action", &preamble.name, &known));
    };
    let schema = pipeline.action_schema(id);
    let place = format!("action {}", preamble.name);
    if action.params.len() != schema.params.len() {
        refuse!(
            invalid,
            "{place}: P4Info has {} parameters, the device config {}",
            action.params.len(),
            schema.params.len()
        );
    }
    let mut params = Vec::with_capacity(action.params.len());
    for (param, own) in action.params.iter().zip(&schema.params) {
        let place = format!("{place}: parameter {}", param.name);
        check_width(info, param.bitwidth, param.type_name.as_ref(), own.width).at(&place)?;
        params.push(ParamBinding {
            id: param.id,
            name: param.name.clone(),
            width: own.width,
        });
    }
    Ok(ActionBinding {
        id: preamble.id,
        name: preamble.name.clone(),
        action: id,
        scope,
        params,
    })
}

/// P4Info's width must be the pipeline's, but for types that the SDN side sees at another width.
pub(super) fn check_width(
    info: &P4Info,
    bitwidth: i32,
    type_name: Option<&P4NamedType>,
    width: u32,
) -> Result<(), Refusal> {
    match sdn_type(info, type_name) {
        Some(p4_new_type_translation::SdnType::SdnString(_)) => Err(Refusal::new(
            tonic::Code::Unimplemented,
            "its type is translated to an SDN string; only translations to a bit width are supported",
        )),
        Some(p4_new_type_translation::SdnType::SdnBitwidth(_)) => Ok(()),
        // 0 is unset: P4Info gives no width for values of the types `error` and `enum`.
        None if bitwidth == 0 || u32::try_from(bitwidth) == Ok(width) => Ok(()),
        None => Err(refusal!(invalid, "{bitwidth} bits in P4Info, {width} bits in the device config")),
    }
}

fn sdn_type<'a>(
    info: &'a P4Info,
    name: Option<&P4NamedType>,
) -> Option<&'a p4_new_type_translation::SdnType> {
    let spec = info.type_info.as_ref()?.new_types.get(&name?.name)?;
    match spec.representation.as_ref()? {
        p4_new_type_spec::Representation::TranslatedType(t) => t.sdn_type.as_ref(),
        p4_new_type_spec::Representation::OriginalType(_) => None,
    }
}
