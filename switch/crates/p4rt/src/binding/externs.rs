// SPDX-License-Identifier: Apache-2.0
//! Action profiles, indexed counters, meters and registers, digests and value sets of P4Info bound to the pipeline's.

use std::collections::BTreeMap;

use v1model::{
    CounterId, DigestId, DigestSchema, MeterId, ProfileId, ProfileSchema, RegisterId, Schema,
    ValueSetId, ValueSetSchema,
};

use super::table::{is_translated, MeterType};
use super::{data, same, ById, DataShape, MatchKey, Table};
use crate::error::{in_range, Checked};
use crate::proto::p4info::action_profile::SelectorSizeSemantics;
use crate::proto::p4info::{self, P4Info};

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

impl Profile {
    pub(super) fn new(
        profile: &p4info::ActionProfile,
        own: &ProfileSchema,
        tables: &ById<Table>,
    ) -> Checked<Profile> {
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
    }
}

/// The places of the program that send a digest, by P4Info's name for it.
pub(super) struct Sent {
    pub name: String,
    places: Vec<DigestSchema>,
}

/// All digests that the program sends. One of an unnamed type is `digest_0` in P4Info and `tuple_0` in the device config:
/// what is left over is paired in order when both have as many.
pub(super) fn sent(info: &P4Info, schema: &Schema) -> Vec<Sent> {
    let mut sent = BTreeMap::<&str, Vec<DigestSchema>>::new();
    for own in &schema.digests {
        sent.entry(&own.name).or_default().push(own.clone());
    }
    let preambles = info.digests.iter().flat_map(|d| &d.preamble);
    let shown: Vec<&str> = preambles.map(|p| &*p.name).collect();
    let own_rest = sent.keys().filter(|name| !shown.contains(name));
    let own_rest: Vec<&str> = own_rest.copied().collect();
    let rest: Vec<&str> = shown
        .into_iter()
        .filter(|n| !sent.contains_key(n))
        .collect();
    if rest.len() == own_rest.len() {
        for (name, own) in rest.into_iter().zip(own_rest) {
            let places = sent.remove(own).unwrap_or_default();
            sent.insert(name, places);
        }
    }
    let of = |(name, places): (&str, _)| Sent {
        name: name.to_owned(),
        places,
    };
    sent.into_iter().map(of).collect()
}

impl Digest {
    pub(super) fn new(digest: &p4info::Digest, own: &Sent, types: &data::Types) -> Checked<Digest> {
        let mut bound = Digest {
            digests: Vec::new(),
            widths: Vec::new(),
            shape: DataShape::Bool,
        };
        for own in &own.places {
            bound.shape = types.shape(&digest.type_spec, &own.widths)?;
            bound.digests.push(own.id);
            bound.widths.clone_from(&own.widths);
        }
        Ok(bound)
    }
}

impl ValueSet {
    pub(super) fn new(
        info: &P4Info,
        set: &p4info::ValueSet,
        own: &ValueSetSchema,
    ) -> Checked<ValueSet> {
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
    }
}
