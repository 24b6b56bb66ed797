// SPDX-License-Identifier: Apache-2.0
//! Action profiles, indexed counters, meters and registers, digests and value sets of P4Info bound to the pipeline's.

use std::collections::{HashMap, HashSet};

use v1model::{
    CounterId, DigestId, DigestSchema, MeterId, Pipeline, ProfileId, RegisterId, ValueSetId,
    ValueSetSchema,
};

use super::{
    absent, data, left_out, named, number, preamble, table, unique, width, ById, DataShape,
    FieldBinding, TableBinding,
};
use crate::error::Refusal;
use crate::proto::p4info::action_profile::SelectorSizeSemantics;
use crate::proto::p4info::{meter_spec, P4Info, P4NamedType};

/// Most members of a value set, whatever P4Info says: a packet's value is compared with one after the other.
const VALUES_MAX: u32 = 1024;

/// An action profile or selector.
#[derive(Debug)]
pub struct ProfileBinding {
    pub id: u32,
    pub name: String,
    pub profile: ProfileId,
    /// The P4Info id of a table that uses it: its actions are those of the members.
    pub table_id: u32,
    pub selector: bool,
    /// 0: no limit.
    pub max_group_size: u32,
    /// 0: no limit; only with a size that counts members.
    pub max_member_weight: u32,
    /// The size of a group counts members, not the sum of their weights.
    pub size_counts_members: bool,
    pub weights_disallowed: bool,
}

/// An indexed counter.
#[derive(Debug)]
pub struct CounterBinding {
    pub id: u32,
    pub name: String,
    pub counter: CounterId,
    pub size: u32,
}

/// An indexed meter.
#[derive(Debug)]
pub struct MeterBinding {
    pub id: u32,
    pub name: String,
    pub meter: MeterId,
    pub size: u32,
    pub kind: meter_spec::Type,
}

/// A register.
#[derive(Debug)]
pub struct RegisterBinding {
    pub id: u32,
    pub name: String,
    pub register: RegisterId,
    pub size: u32,
    pub width: u32,
    pub shape: DataShape,
}

/// A digest.
#[derive(Debug)]
pub struct DigestBinding {
    pub id: u32,
    pub name: String,
    /// One for each place of the program that sends it.
    pub digests: Vec<DigestId>,
    /// Bits of each member, in the order of the sample.
    pub widths: Vec<u32>,
    pub shape: DataShape,
}

/// A parser value set.
#[derive(Debug)]
pub struct ValueSetBinding {
    pub id: u32,
    pub name: String,
    pub value_set: ValueSetId,
    /// Most members.
    pub size: u32,
    pub fields: Vec<FieldBinding>,
    pub schema: ValueSetSchema,
}

named!(
    ProfileBinding,
    CounterBinding,
    MeterBinding,
    RegisterBinding,
    DigestBinding,
    ValueSetBinding
);

/// Most that P4Info's 32-bit numbers say.
const MAX: u32 = i32::MAX as u32;

macro_rules! names {
    ($pipeline:expr, $field:ident) => {
        $pipeline
            .schema()
            .$field
            .iter()
            .map(|s| s.name.as_str())
            .collect::<Vec<_>>()
    };
}

pub(super) fn bind_profiles(
    info: &P4Info,
    tables: &ById<TableBinding>,
    pipeline: &Pipeline,
) -> Result<ById<ProfileBinding>, Refusal> {
    let own = names!(pipeline, profiles);
    let left_out = left_out(
        "action profile",
        info.action_profiles.iter().map(|o| &o.preamble),
        &own,
    )?;
    let mut items = Vec::new();
    for profile in &info.action_profiles {
        let preamble = preamble("action profile", &profile.preamble)?;
        if left_out.contains_key(&preamble.id) {
            continue;
        }
        let id = pipeline
            .find_action_profile(&preamble.name)
            .ok_or_else(|| absent("action profile", &preamble.name, &own))?;
        let place = format!("action profile {}", preamble.name);
        let schema = &pipeline.schema().profiles[id.index()];
        if schema.selector != profile.with_selector {
            return Err(Refusal::invalid(format!(
                "{place}: P4Info and the device config differ about a selector"
            )));
        }
        let most = |what, given, most| number(what, given, most).map_err(|e| e.at(&place));
        most("size", profile.size, schema.max_size)?;
        let max_group_size = most("max_group_size", profile.max_group_size.into(), MAX)?;
        for table in profile
            .table_ids
            .iter()
            .filter(|id| !tables.left_out.contains_key(id))
        {
            tables
                .get(*table)
                .map_err(|e| Refusal::invalid(e.message).at(&place))?;
        }
        let mut bound = profile
            .table_ids
            .iter()
            .copied()
            .filter(|id| tables.get(*id).is_ok());
        let members = match &profile.selector_size_semantics {
            Some(SelectorSizeSemantics::SumOfMembers(m)) => {
                Some(most("max_member_weight", m.max_member_weight.into(), MAX)?)
            }
            _ => None,
        };
        items.push(ProfileBinding {
            id: preamble.id,
            name: preamble.name.clone(),
            profile: id,
            table_id: bound.next().unwrap_or(0),
            selector: profile.with_selector,
            max_group_size,
            max_member_weight: members.unwrap_or(0),
            size_counts_members: members.is_some(),
            weights_disallowed: profile.weights_disallowed,
        });
    }
    ById::new("action profile", items, left_out)
}

/// Index types translated to strings cannot be used: an index is a number.
fn check_index(info: &P4Info, name: Option<&P4NamedType>) -> Result<(), Refusal> {
    match name {
        Some(_) => match table::check_width(info, 0, name, 0) {
            Err(e) if e.code == tonic::Code::Unimplemented => Err(e),
            _ => Ok(()),
        },
        None => Ok(()),
    }
}

fn check_size(place: &str, size: i64, own: u32) -> Result<(), Refusal> {
    if size == i64::from(own) {
        return Ok(());
    }
    Err(Refusal::invalid(format!(
        "{place}: {size} cells in P4Info, {own} in the device config"
    )))
}

pub(super) fn bind_counters(
    info: &P4Info,
    pipeline: &Pipeline,
) -> Result<ById<CounterBinding>, Refusal> {
    let own = names!(pipeline, counters);
    let left_out = left_out("counter", info.counters.iter().map(|o| &o.preamble), &own)?;
    let mut items = Vec::new();
    for counter in &info.counters {
        let preamble = preamble("counter", &counter.preamble)?;
        if left_out.contains_key(&preamble.id) {
            continue;
        }
        let id = pipeline
            .find_counter(&preamble.name)
            .ok_or_else(|| absent("counter", &preamble.name, &own))?;
        let place = format!("counter {}", preamble.name);
        let size = pipeline.schema().counters[id.index()].size;
        check_size(&place, counter.size, size)?;
        check_index(info, counter.index_type_name.as_ref()).map_err(|e| e.at(&place))?;
        items.push(CounterBinding {
            id: preamble.id,
            name: preamble.name.clone(),
            counter: id,
            size,
        });
    }
    ById::new("counter", items, left_out)
}

pub(super) fn bind_meters(
    info: &P4Info,
    pipeline: &Pipeline,
) -> Result<ById<MeterBinding>, Refusal> {
    let own = names!(pipeline, meters);
    let left_out = left_out("meter", info.meters.iter().map(|o| &o.preamble), &own)?;
    let mut items = Vec::new();
    for meter in &info.meters {
        let preamble = preamble("meter", &meter.preamble)?;
        if left_out.contains_key(&preamble.id) {
            continue;
        }
        let id = pipeline
            .find_meter(&preamble.name)
            .ok_or_else(|| absent("meter", &preamble.name, &own))?;
        let place = format!("meter {}", preamble.name);
        let size = pipeline.schema().meters[id.index()].size;
        check_size(&place, meter.size, size)?;
        check_index(info, meter.index_type_name.as_ref()).map_err(|e| e.at(&place))?;
        let kind = meter
            .spec
            .as_ref()
            .map_or_else(Default::default, |s| s.r#type());
        items.push(MeterBinding {
            id: preamble.id,
            name: preamble.name.clone(),
            meter: id,
            size,
            kind,
        });
    }
    ById::new("meter", items, left_out)
}

pub(super) fn bind_registers(
    info: &P4Info,
    types: &data::Types,
    pipeline: &Pipeline,
) -> Result<ById<RegisterBinding>, Refusal> {
    let own = names!(pipeline, registers);
    let left_out = left_out("register", info.registers.iter().map(|o| &o.preamble), &own)?;
    let mut items = Vec::new();
    for register in &info.registers {
        let preamble = preamble("register", &register.preamble)?;
        if left_out.contains_key(&preamble.id) {
            continue;
        }
        let id = pipeline
            .find_register(&preamble.name)
            .ok_or_else(|| absent("register", &preamble.name, &own))?;
        let place = format!("register {}", preamble.name);
        let schema = &pipeline.schema().registers[id.index()];
        check_size(&place, i64::from(register.size), schema.size)?;
        check_index(info, register.index_type_name.as_ref()).map_err(|e| e.at(&place))?;
        let shape = types
            .shape(register.type_spec.as_ref())
            .map_err(|e| e.at(&place))?;
        shape
            .check_leaves(&[schema.width])
            .map_err(|e| e.at(&place))?;
        items.push(RegisterBinding {
            id: preamble.id,
            name: preamble.name.clone(),
            register: id,
            size: schema.size,
            width: schema.width,
            shape,
        });
    }
    ById::new("register", items, left_out)
}

pub(super) fn bind_digests(
    info: &P4Info,
    types: &data::Types,
    pipeline: &Pipeline,
) -> Result<ById<DigestBinding>, Refusal> {
    let names = digest_names(info, pipeline);
    let by_shown: HashMap<&str, &str> = names.iter().copied().collect();
    let mut all: HashMap<&str, Vec<&DigestSchema>> = HashMap::new();
    for digest in &pipeline.schema().digests {
        all.entry(&digest.name).or_default().push(digest);
    }
    let own_names: Vec<&str> = names.iter().map(|(shown, _)| *shown).collect();
    let left_out = left_out(
        "digest",
        info.digests.iter().map(|d| &d.preamble),
        &own_names,
    )?;
    let mut items = Vec::new();
    for digest in &info.digests {
        let preamble = preamble("digest", &digest.preamble)?;
        let Some(name) = by_shown.get(preamble.name.as_str()) else {
            continue; // left out
        };
        let own = all.get(name).map_or(&[][..], |own| own);
        let first = own
            .first()
            .ok_or_else(|| absent("digest", &preamble.name, &own_names))?;
        let place = format!("digest {}", preamble.name);
        let shape = types
            .shape(digest.type_spec.as_ref())
            .map_err(|e| e.at(&place))?;
        for schema in own {
            shape
                .check_leaves(&schema.widths)
                .map_err(|e| e.at(&place))?;
        }
        let (digests, widths) = (own.iter().map(|d| d.id).collect(), first.widths.clone());
        items.push(DigestBinding {
            id: preamble.id,
            name: preamble.name.clone(),
            digests,
            widths,
            shape,
        });
    }
    ById::new("digest", items, left_out)
}

/// Names of the pipeline's digests as P4Info has them, and as the device config has them. A digest of an unnamed type
/// is `digest_0` in the one and `tuple_0` in the other: what is left over is paired in order when both have as many.
fn digest_names<'a>(info: &'a P4Info, pipeline: &'a Pipeline) -> Vec<(&'a str, &'a str)> {
    let shown: Vec<&str> = info
        .digests
        .iter()
        .flat_map(|d| &d.preamble)
        .map(|p| p.name.as_str())
        .collect();
    let mut own = names!(pipeline, digests);
    own.sort_unstable();
    own.dedup();
    let both: HashSet<&str> = own.iter().copied().collect();
    let both: HashSet<&str> = shown.iter().copied().filter(|n| both.contains(n)).collect();
    let rest = |all: &[&'a str]| -> Vec<&'a str> {
        let rest = all.iter().copied().filter(|name| !both.contains(name));
        rest.collect()
    };
    let (shown_rest, own_rest) = (rest(&shown), rest(&own));
    if shown_rest.len() != own_rest.len() {
        return own.into_iter().map(|name| (name, name)).collect();
    }
    let same = both.iter().map(|name| (*name, *name));
    same.chain(shown_rest.into_iter().zip(own_rest)).collect()
}

pub(super) fn bind_value_sets(
    info: &P4Info,
    pipeline: &Pipeline,
) -> Result<ById<ValueSetBinding>, Refusal> {
    let own = names!(pipeline, value_sets);
    let left_out = left_out(
        "value set",
        info.value_sets.iter().map(|o| &o.preamble),
        &own,
    )?;
    let mut items = Vec::new();
    for set in &info.value_sets {
        let preamble = preamble("value set", &set.preamble)?;
        if left_out.contains_key(&preamble.id) {
            continue;
        }
        let id = pipeline
            .find_value_set(&preamble.name)
            .ok_or_else(|| absent("value set", &preamble.name, &own))?;
        let place = format!("value set {}", preamble.name);
        let schema = &pipeline.schema().value_sets[id.index()];
        unique(set.r#match.iter().map(|f| f.id)).map_err(|e| e.at(&place))?;
        let mut fields = Vec::new();
        for field in &set.r#match {
            let kind = table::field_kind(field).map_err(|e| e.at(&place))?;
            let width = width(field.bitwidth).map_err(|e| e.at(&place))?;
            check_index(info, field.type_name.as_ref()).map_err(|e| e.at(&place))?;
            fields.push(FieldBinding {
                id: field.id,
                name: field.name.clone(),
                kind,
                optional_as_ternary: false,
                width,
            });
        }
        let width: u64 = fields.iter().map(|f| u64::from(f.width)).sum();
        if width != u64::from(schema.width) {
            return Err(Refusal::invalid(format!(
                "{place}: {width} bits in P4Info, {} bits in the device config",
                schema.width
            )));
        }
        items.push(ValueSetBinding {
            id: preamble.id,
            name: preamble.name.clone(),
            value_set: id,
            size: number("size", set.size.into(), schema.max_size)
                .map_err(|e| e.at(&place))?
                .min(VALUES_MAX),
            fields,
            schema: schema.clone(),
        });
    }
    ById::new("value set", items, left_out)
}
