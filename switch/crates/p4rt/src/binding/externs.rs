// SPDX-License-Identifier: Apache-2.0
//! Action profiles, indexed counters, meters and registers, digests and value sets of P4Info bound to the pipeline's.

use std::collections::HashSet;

use v1model::{CounterId, DigestId, MeterId, ProfileId, RegisterId, Schema, ValueSetId};

use super::table::{is_translated, meter_type, MeterType};
use super::{bind, data, same, ById, DataShape, MatchKey, Table};
use crate::error::{in_range, Checked};
use crate::proto::p4info::action_profile::SelectorSizeSemantics;
use crate::proto::p4info::{self, P4Info, P4NamedType};

/// Max members of a value set, whatever P4Info says: a packet's value is compared with one after the other.
const VALUES_MAX: u32 = 1024;
/// The largest of P4Info's 32-bit numbers.
const MAX: u32 = i32::MAX as u32;

/// An action profile or selector.
#[derive(Debug)]
pub struct Profile {
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

/// An indexed array of the pipeline, and what P4Info says beside.
#[derive(Debug)]
pub struct Array<I, M = ()> {
    pub own: I,
    pub size: u32,
    pub more: M,
}

pub type Counter = Array<CounterId>;
pub type Meter = Array<MeterId, MeterType>;
/// With the shape and the width of its cells.
pub type Register = Array<RegisterId, (DataShape, u32)>;

/// A digest.
#[derive(Debug)]
pub struct Digest {
    /// One for each place of the program that sends it.
    pub digests: Vec<DigestId>,
    /// Bits of each member, in the order of the sample.
    pub widths: Vec<u32>,
    pub shape: DataShape,
}

/// A parser value set.
#[derive(Debug)]
pub struct ValueSet {
    pub value_set: ValueSetId,
    /// Max members.
    pub size: u32,
    pub key: MatchKey,
}

macro_rules! names {
    ($schema:expr, $field:ident) => {
        $schema.$field.iter().map(|s| &*s.name).collect::<Vec<_>>()
    };
}

pub(super) fn bind_profiles(
    info: &P4Info,
    tables: &ById<Table>,
    schema: &Schema,
) -> Checked<ById<Profile>> {
    let make = |profile: &p4info::ActionProfile, place: usize| {
        let own = &schema.profiles[place];
        same("selector", profile.with_selector, own.selector)?;
        in_range("P4Info's size", profile.size, 0..=own.max_size)?;
        let max_weight = match &profile.selector_size_semantics {
            Some(SelectorSizeSemantics::SumOfMembers(m)) => Some(m.max_member_weight),
            _ => None,
        };
        let number = |what, number: i32| in_range(what, number, 0..=MAX);
        let mut used = profile.table_ids.iter();
        Ok(Profile {
            profile: own.id,
            table_id: *used.find(|id| tables.get(**id).is_ok()).unwrap_or(&0),
            selector: own.selector,
            max_group_size: number("max_group_size", profile.max_group_size)?,
            max_member_weight: number("max_member_weight", max_weight.unwrap_or(0))?,
            size_counts_members: max_weight.is_some(),
            weights_disallowed: profile.weights_disallowed,
        })
    };
    let (all, names) = (&info.action_profiles, names!(schema, profiles));
    bind("action profile", all, |p| &p.preamble, &names, make)
}

/// # Errors
/// INVALID_ARGUMENT for another size, UNIMPLEMENTED for an index that the SDN side sees as a string.
fn array<I, M>(
    info: &P4Info,
    (size, index): (i64, &Option<P4NamedType>),
    (own, own_size): (I, u32),
    more: M,
) -> Checked<Array<I, M>> {
    same("cells", size, own_size.into())?;
    is_translated(info, index)?;
    let size = own_size;
    Ok(Array { own, size, more })
}

pub(super) fn bind_counters(info: &P4Info, schema: &Schema) -> Checked<ById<Counter>> {
    let make = |counter: &p4info::Counter, place: usize| {
        let own = &schema.counters[place];
        let given = (counter.size, &counter.index_type_name);
        array(info, given, (own.id, own.size), ())
    };
    let (all, names) = (&info.counters, names!(schema, counters));
    bind("counter", all, |c| &c.preamble, &names, make)
}

pub(super) fn bind_meters(info: &P4Info, schema: &Schema) -> Checked<ById<Meter>> {
    let make = |meter: &p4info::Meter, place: usize| {
        let own = &schema.meters[place];
        let given = (meter.size, &meter.index_type_name);
        array(info, given, (own.id, own.size), meter_type(&meter.spec))
    };
    let (all, names) = (&info.meters, names!(schema, meters));
    bind("meter", all, |m| &m.preamble, &names, make)
}

pub(super) fn bind_registers(
    info: &P4Info,
    types: &data::Types,
    schema: &Schema,
) -> Checked<ById<Register>> {
    let make = |register: &p4info::Register, place: usize| {
        let own = &schema.registers[place];
        let given = (register.size.into(), &register.index_type_name);
        let shape = types.shape(&register.type_spec, &[own.width])?;
        array(info, given, (own.id, own.size), (shape, own.width))
    };
    let (all, names) = (&info.registers, names!(schema, registers));
    bind("register", all, |r| &r.preamble, &names, make)
}

pub(super) fn bind_digests(
    info: &P4Info,
    types: &data::Types,
    schema: &Schema,
) -> Checked<ById<Digest>> {
    let (shown, own) = digest_names(info, schema);
    let make = |digest: &p4info::Digest, place: usize| {
        let own = schema.digests.iter().filter(|d| d.name == own[place]);
        let mut bound = Digest {
            digests: Vec::new(),
            widths: Vec::new(),
            shape: DataShape::Bool,
        };
        for own in own {
            bound.shape = types.shape(&digest.type_spec, &own.widths)?;
            bound.digests.push(own.id);
            bound.widths.clone_from(&own.widths);
        }
        Ok(bound)
    };
    bind("digest", &info.digests, |d| &d.preamble, &shown, make)
}

/// Names of the pipeline's digests as P4Info has them, and as the device config has them. A digest of an unnamed type
/// is `digest_0` in the one and `tuple_0` in the other: what is left over is paired in order when both have as many.
fn digest_names<'a>(info: &'a P4Info, schema: &'a Schema) -> (Vec<&'a str>, Vec<&'a str>) {
    let preambles = info.digests.iter().flat_map(|d| &d.preamble);
    let shown: Vec<&str> = preambles.map(|p| &*p.name).collect();
    let mut own = names!(schema, digests);
    own.sort_unstable();
    own.dedup();
    let (of_own, of_shown): (HashSet<&str>, HashSet<&str>) = (
        own.iter().copied().collect(),
        shown.iter().copied().collect(),
    );
    let rest: Vec<&str> = shown.into_iter().filter(|n| !of_own.contains(n)).collect();
    let (both, own_rest): (Vec<&str>, Vec<&str>) =
        own.iter().partition(|name| of_shown.contains(**name));
    match rest.len() == own_rest.len() {
        true => ([both.clone(), rest].concat(), [both, own_rest].concat()),
        false => (own.clone(), own),
    }
}

pub(super) fn bind_value_sets(info: &P4Info, schema: &Schema) -> Checked<ById<ValueSet>> {
    let make = |set: &p4info::ValueSet, place: usize| {
        let own = &schema.value_sets[place];
        for field in &set.r#match {
            is_translated(info, &field.type_name)?;
        }
        let key = MatchKey::new(&set.r#match)?;
        let width = key.keys.iter().map(|key| u64::from(key.width)).sum();
        same::<u64>("width", width, own.width.into())?;
        let size = in_range("P4Info's size", set.size, 0..=own.max_size)?;
        Ok(ValueSet {
            value_set: own.id,
            size: size.min(VALUES_MAX),
            key,
        })
    };
    let (all, names) = (&info.value_sets, names!(schema, value_sets));
    bind("value set", all, |s| &s.preamble, &names, make)
}
