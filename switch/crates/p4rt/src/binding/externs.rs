// SPDX-License-Identifier: Apache-2.0
//! Action profiles, indexed counters, meters and registers, digests and value sets of P4Info bound to the pipeline's.

use std::collections::{HashMap, HashSet};

use v1model::{
    CounterSchema, DigestId, DigestSchema, KeySchema, MeterSchema, Pipeline, ProfileId,
    RegisterSchema, ValueSetId,
};

use super::{
    absent, data, left_out, named, number, preamble, table, unique, width, ById, DataShape,
    FieldBinding, TableBinding,
};
use crate::error::{refusal, refuse, At, Refusal};
use crate::proto::p4info::action_profile::SelectorSizeSemantics;
use crate::proto::p4info::{
    meter_spec, ActionProfile, Counter, Digest, Meter, P4Info, P4NamedType, Preamble, Register,
    ValueSet,
};

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

/// An object whose shape is the pipeline's, and what P4Info says beside.
#[derive(Debug)]
pub struct Bound<S, M = ()> {
    pub id: u32,
    pub name: String,
    pub own: S,
    pub more: M,
}

impl<S, M> Bound<S, M> {
    fn new(preamble: &Preamble, own: &S, more: M) -> Self
    where
        S: Clone,
    {
        Self {
            id: preamble.id,
            name: preamble.name.clone(),
            own: own.clone(),
            more,
        }
    }
}

impl<S, M> super::Named for Bound<S, M> {
    fn id(&self) -> u32 {
        self.id
    }

    fn name(&self) -> &str {
        &self.name
    }
}

/// An indexed counter.
pub type CounterBinding = Bound<CounterSchema>;
/// An indexed meter and its type.
pub type MeterBinding = Bound<MeterSchema, meter_spec::Type>;
/// A register and the shape of its cells.
pub type RegisterBinding = Bound<RegisterSchema, DataShape>;

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
    /// One for each field.
    pub keys: Vec<KeySchema>,
}

named!(ProfileBinding, DigestBinding, ValueSetBinding);

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

/// Binds each of P4Info's `objects` of one kind that the compiler did not leave out: `make` gets its preamble, and the
/// place of its name among the pipeline's `own`.
fn bind<'a, O, B: super::Named>(
    kind: &'static str,
    objects: &'a [O],
    preamble_of: impl Fn(&'a O) -> &'a Option<Preamble>,
    own: &[&str],
    mut make: impl FnMut(&'a O, &'a Preamble, usize) -> Result<B, Refusal>,
) -> Result<ById<B>, Refusal> {
    let left_out = left_out(kind, objects.iter().map(&preamble_of), own)?;
    // Of two with one name the first.
    let places: HashMap<&str, usize> = own.iter().copied().zip(0..own.len()).rev().collect();
    let mut items = Vec::with_capacity(objects.len());
    for object in objects {
        let preamble = preamble(kind, preamble_of(object))?;
        if left_out.contains_key(&preamble.id) {
            continue;
        }
        let place = places.get(preamble.name.as_str());
        let place = *place.ok_or_else(|| absent(kind, &preamble.name, own))?;
        let item = make(object, preamble, place);
        items.push(item.at(format_args!("{kind} {}", preamble.name))?);
    }
    ById::new(kind, items, left_out)
}

pub(super) fn bind_profiles(
    info: &P4Info,
    tables: &ById<TableBinding>,
    pipeline: &Pipeline,
) -> Result<ById<ProfileBinding>, Refusal> {
    let own = names!(pipeline, profiles);
    let make = |profile: &ActionProfile, preamble: &Preamble, place: usize| {
        let schema = &pipeline.schema().profiles[place];
        if schema.selector != profile.with_selector {
            refuse!(
                invalid,
                "P4Info and the device config differ about a selector"
            );
        }
        number("size", profile.size, schema.max_size)?;
        let max_group_size = number("max_group_size", profile.max_group_size.into(), MAX)?;
        let mut used = profile.table_ids.iter();
        for table in used.clone() {
            if !tables.left_out.contains_key(table) {
                tables
                    .get(*table)
                    .map_err(|e| Refusal::invalid(e.message))?;
            }
        }
        let members = match &profile.selector_size_semantics {
            Some(SelectorSizeSemantics::SumOfMembers(m)) => Some(number(
                "max_member_weight",
                m.max_member_weight.into(),
                MAX,
            )?),
            _ => None,
        };
        Ok(ProfileBinding {
            id: preamble.id,
            name: preamble.name.clone(),
            profile: schema.id,
            table_id: *used.find(|id| tables.get(**id).is_ok()).unwrap_or(&0),
            selector: profile.with_selector,
            max_group_size,
            max_member_weight: members.unwrap_or(0),
            size_counts_members: members.is_some(),
            weights_disallowed: profile.weights_disallowed,
        })
    };
    bind(
        "action profile",
        &info.action_profiles,
        |p| &p.preamble,
        &own,
        make,
    )
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

fn check_size(size: i64, own: u32) -> Result<(), Refusal> {
    if size == i64::from(own) {
        return Ok(());
    }
    Err(refusal!(
        invalid,
        "{size} cells in P4Info, {own} in the device config"
    ))
}

pub(super) fn bind_counters(
    info: &P4Info,
    pipeline: &Pipeline,
) -> Result<ById<CounterBinding>, Refusal> {
    let own = names!(pipeline, counters);
    let make = |counter: &Counter, preamble: &Preamble, place: usize| {
        let schema = &pipeline.schema().counters[place];
        check_size(counter.size, schema.size)?;
        check_index(info, counter.index_type_name.as_ref())?;
        Ok(Bound::new(preamble, schema, ()))
    };
    bind("counter", &info.counters, |c| &c.preamble, &own, make)
}

pub(super) fn bind_meters(
    info: &P4Info,
    pipeline: &Pipeline,
) -> Result<ById<MeterBinding>, Refusal> {
    let own = names!(pipeline, meters);
    let make = |meter: &Meter, preamble: &Preamble, place: usize| {
        let schema = &pipeline.schema().meters[place];
        check_size(meter.size, schema.size)?;
        check_index(info, meter.index_type_name.as_ref())?;
        let kind = meter.spec.as_ref().map(|s| s.r#type()).unwrap_or_default();
        Ok(Bound::new(preamble, schema, kind))
    };
    bind("meter", &info.meters, |m| &m.preamble, &own, make)
}

pub(super) fn bind_registers(
    info: &P4Info,
    types: &data::Types,
    pipeline: &Pipeline,
) -> Result<ById<RegisterBinding>, Refusal> {
    let own = names!(pipeline, registers);
    let make = |register: &Register, preamble: &Preamble, place: usize| {
        let schema = &pipeline.schema().registers[place];
        check_size(register.size.into(), schema.size)?;
        check_index(info, register.index_type_name.as_ref())?;
        let shape = types.shape(register.type_spec.as_ref())?;
        shape.check_leaves(&[schema.width])?;
        Ok(Bound::new(preamble, schema, shape))
    };
    bind("register", &info.registers, |r| &r.preamble, &own, make)
}

pub(super) fn bind_digests(
    info: &P4Info,
    types: &data::Types,
    pipeline: &Pipeline,
) -> Result<ById<DigestBinding>, Refusal> {
    let names = digest_names(info, pipeline);
    let mut all: HashMap<&str, Vec<&DigestSchema>> = HashMap::new();
    for digest in &pipeline.schema().digests {
        all.entry(&digest.name).or_default().push(digest);
    }
    let shown: Vec<&str> = names.iter().map(|(shown, _)| *shown).collect();
    let make = |digest: &Digest, preamble: &Preamble, place: usize| {
        let own = all.get(names[place].1).map_or(&[][..], |own| own);
        let first = own
            .first()
            .ok_or_else(|| absent("digest", &preamble.name, &shown))?;
        let shape = types.shape(digest.type_spec.as_ref())?;
        for schema in own {
            shape.check_leaves(&schema.widths)?;
        }
        Ok(DigestBinding {
            id: preamble.id,
            name: preamble.name.clone(),
            digests: own.iter().map(|d| d.id).collect(),
            widths: first.widths.clone(),
            shape,
        })
    };
    bind("digest", &info.digests, |d| &d.preamble, &shown, make)
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
    let make = |set: &ValueSet, preamble: &Preamble, place: usize| {
        let schema = &pipeline.schema().value_sets[place];
        unique(set.r#match.iter().map(|f| f.id))?;
        let (mut fields, mut keys) = (Vec::new(), Vec::new());
        for field in &set.r#match {
            check_index(info, field.type_name.as_ref())?;
            let (id, kind) = (field.id, table::field_kind(field)?);
            fields.push(FieldBinding { id, kind });
            keys.push(KeySchema {
                name: field.name.clone(),
                kind,
                width: width(field.bitwidth)?,
            });
        }
        let width: u64 = keys.iter().map(|key| u64::from(key.width)).sum();
        if width != u64::from(schema.width) {
            refuse!(
                invalid,
                "{width} bits in P4Info, {} bits in the device config",
                schema.width
            );
        }
        Ok(ValueSetBinding {
            id: preamble.id,
            name: preamble.name.clone(),
            value_set: schema.id,
            size: number("size", set.size.into(), schema.max_size)?.min(VALUES_MAX),
            fields,
            keys,
        })
    };
    bind("value set", &info.value_sets, |s| &s.preamble, &own, make)
}
