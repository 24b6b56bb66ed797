// SPDX-License-Identifier: Apache-2.0
//! P4Info bound to a pipeline: every id of the one resolved to an object of the other, checked once when a config is set.
//!
//! Action profiles, indexed counters, meters and registers, digests and value sets of P4Info bound to the pipeline's.

mod data;
mod table;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::ops::Deref;

use table::{is_translated, meter_type, MeterType};
use v1model::{
    CounterId, DigestId, DigestSchema, MeterId, Pipeline, ProfileId, ProfileSchema, RegisterId,
    Schema, TableId, ValueSetId, ValueSetSchema,
};

use crate::error::{in_range, refusal, refuse, At, Checked, Refusal};
use crate::proto::p4info::action_profile::SelectorSizeSemantics;
use crate::proto::p4info::{self, P4Info, Preamble};

pub use data::{DataShape, PacketHeader};
pub use table::{Action, MatchKey, Table};

/// Everything that a P4Runtime message can name, by P4Info id.
pub struct Binding {
    pub tables: ById<Table>,
    pub profiles: ById<Profile>,
    pub counters: ById<Counter>,
    pub meters: ById<Meter>,
    pub registers: ById<Register>,
    pub digests: ById<Digest>,
    pub value_sets: ById<ValueSet>,
    pub packet_in: Option<PacketHeader>,
    pub packet_out: Option<PacketHeader>,
    /// The data plane's number of the port to the controller.
    pub cpu_port: Option<u32>,
    /// Index in `tables` of a pipeline's table that P4Info shows.
    table_of: HashMap<TableId, usize>,
}

impl Binding {
    /// Checks P4Info against the pipeline that was made from the device config.
    ///
    /// # Errors
    /// INVALID_ARGUMENT with the object, its name and what does not fit.
    pub fn new(info: &P4Info, pipeline: &Pipeline, cpu_port: Option<u32>) -> Checked<Self> {
        let own = pipeline.schema();
        let tables = table::bind(info, pipeline)?;
        let (packet_in, packet_out) = data::bind(info)?;
        let types = data::Types::new(info);
        let array = |size, index: &_, own_size| {
            same("cells", size, i64::from(own_size))?;
            is_translated(info, index).map(|_| own_size)
        };
        let indices = tables.items.iter().map(|table| table.table).zip(0..);
        Ok(Self {
            table_of: indices.collect(),
            profiles: bind(&info.action_profiles, &own.profiles, |profile, own| {
                Profile::new(profile, own, &tables)
            })?,
            counters: bind(&info.counters, &own.counters, |counter, own| {
                Ok(Array {
                    own: own.id,
                    size: array(counter.size, &counter.index_type_name, own.size)?,
                    more: (),
                })
            })?,
            meters: bind(&info.meters, &own.meters, |meter, own| {
                Ok(Array {
                    own: own.id,
                    size: array(meter.size, &meter.index_type_name, own.size)?,
                    more: meter_type(&meter.spec),
                })
            })?,
            registers: bind(&info.registers, &own.registers, |register, own| {
                let shape = types.shape(&register.type_spec, &[own.width])?;
                Ok(Array {
                    own: own.id,
                    size: array(register.size.into(), &register.index_type_name, own.size)?,
                    more: (shape, own.width),
                })
            })?,
            digests: bind(&info.digests, &sent(info, own), |digest, own| {
                Digest::new(digest, own, &types)
            })?,
            value_sets: bind(&info.value_sets, &own.value_sets, |set, own| {
                ValueSet::new(info, set, own)
            })?,
            packet_in,
            packet_out,
            cpu_port,
            tables,
        })
    }

    /// The P4Info side of a pipeline's table.
    pub fn table_of(&self, table: TableId) -> Option<&Bound<Table>> {
        self.tables.items.get(*self.table_of.get(&table)?)
    }

    /// The pipeline's action profile that has this P4Info id.
    ///
    /// # Errors
    /// NOT_FOUND for an id that P4Info has not.
    pub fn profile_mut<'p>(
        &self,
        pipeline: &'p mut Pipeline,
        id: u32,
    ) -> Checked<&'p mut v1model::Profile> {
        Ok(pipeline.profile_mut(self.profiles.get(id)?.profile))
    }
}

/// An object of P4Info with what it is in the pipeline. It shows as its kind and name.
pub struct Bound<T> {
    kind: &'static str,
    pub id: u32,
    pub name: String,
    of: T,
}

impl<T> Deref for Bound<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.of
    }
}

impl<T> fmt::Display for Bound<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind, self.name)
    }
}

/// Objects of one kind, in P4Info's order.
pub struct ById<T> {
    kind: &'static str,
    pub items: Vec<Bound<T>>,
    index: HashMap<u32, usize>,
    /// Objects of P4Info, by id, that the compiler left out of the device config: no packet can reach them.
    left_out: HashMap<u32, String>,
}

impl<T> ById<T> {
    /// Those that a read asks for: the one with this id, or all for 0.
    ///
    /// # Errors
    /// As `get`.
    pub fn wanted(&self, id: u32) -> Checked<&[Bound<T>]> {
        match id {
            0 => Ok(&self.items),
            _ => self.get(id).map(std::slice::from_ref),
        }
    }

    /// The ids that another P4Info has, each with that of the object which has the same name here, where it is `wanted`.
    pub fn renamed(&self, old: &ById<T>, wanted: impl Fn(&T) -> bool) -> HashMap<u32, u32> {
        let own = self.items.iter().filter(|own| wanted(&own.of));
        let own: HashMap<&str, u32> = own.map(|own| (&*own.name, own.id)).collect();
        let pair = |old: &Bound<T>| Some((old.id, *own.get(&*old.name)?));
        old.items.iter().filter_map(pair).collect()
    }

    /// # Errors
    /// NOT_FOUND with the id and what there is.
    pub fn get(&self, id: u32) -> Checked<&Bound<T>> {
        if let Some(i) = self.index.get(&id) {
            return Ok(&self.items[*i]);
        }
        let kind = self.kind;
        match self.left_out.get(&id) {
            Some(name) => refuse!(
                NotFound,
                "{kind} {name} was left out by the compiler: no packet can reach it"
            ),
            None => {
                let known = self.items.iter().map(|t| (t.id, &*t.name));
                refuse!(NotFound, "{}", unknown(kind, id, known))
            }
        }
    }
}

/// Of what a client `given` by id, what belongs to each of `own`, with their names, in their order.
///
/// # Errors
/// INVALID_ARGUMENT for an id that none of them has, or that is given twice.
pub fn in_order<'a, G>(
    kind: &str,
    given: &'a [G],
    id_of: impl Fn(&G) -> u32,
    own: impl Iterator<Item = (u32, &'a str)> + Clone,
) -> Checked<impl Iterator<Item = Option<&'a G>>> {
    for (i, one) in given.iter().enumerate() {
        let id = id_of(one);
        if !own.clone().any(|(own, _)| own == id) {
            refuse!("{}", unknown(kind, id, own));
        }
        if given[..i].iter().any(|other| id_of(other) == id) {
            refuse!("{kind} id {id:#x} is given twice");
        }
    }
    // Most clients send them in order: look there first.
    Ok(own.enumerate().map(move |(i, (id, _))| {
        let here = given.get(i).filter(|one| id_of(one) == id);
        here.or_else(|| given.iter().find(|one| id_of(one) == id))
    }))
}

/// The sentence for an id that nothing has, with what there is.
pub fn unknown<'a>(kind: &str, id: u32, known: impl Iterator<Item = (u32, &'a str)>) -> String {
    let names = known.map(|(id, name)| format!("{id:#x} {name}"));
    format!("{kind} id {id:#x} is unknown; known: {}", list(names))
}

/// The first few of all names.
fn list(names: impl Iterator<Item = String>) -> String {
    const SHOWN: usize = 8;
    let mut names: Vec<String> = names.take(SHOWN + 1).collect();
    match names.len() {
        0 => "none".to_owned(),
        n => {
            if n > SHOWN {
                names[SHOWN] = "…".to_owned();
            }
            names.join(", ")
        }
    }
}

/// The preambles of P4Info's objects of one kind.
///
/// # Errors
/// INVALID_ARGUMENT for an object without one, and when an id is 0, or an id or a name is used twice.
fn preambles<'a>(
    kind: &str,
    objects: impl Iterator<Item = &'a Option<Preamble>>,
) -> Checked<Vec<&'a Preamble>> {
    let (mut ids, mut names) = (HashMap::new(), HashSet::new());
    let mut all = Vec::new();
    for object in objects {
        let Some(own) = object else {
            refuse!("P4Info: a {kind} has no preamble");
        };
        let (id, name) = (own.id, &own.name);
        if id == 0 {
            refuse!("P4Info: {kind} {name} has the id 0, which means none");
        }
        if let Some(other) = ids.insert(id, name) {
            refuse!("P4Info: {kind} {other} and {kind} {name} have the same id {id:#x}");
        }
        if !names.insert(name) {
            refuse!("P4Info: there are two {kind}s {name}");
        }
        all.push(own);
    }
    Ok(all)
}

/// How the names of tables begin that p4c makes out of statements between tables; P4Info has none of them.
const OWN_TABLE: &str = "tbl_";

/// A kind of object that P4Info and the pipeline both have.
trait Object {
    const KIND: &'static str;
    /// What it is in the pipeline.
    type Own;
    fn preamble(&self) -> &Option<Preamble>;
    fn name(own: &Self::Own) -> &str;
}

macro_rules! objects {
    ($($kind:literal: $object:ident is $own:ty;)*) => {$(
        impl Object for p4info::$object {
            const KIND: &'static str = $kind;
            type Own = $own;
            fn preamble(&self) -> &Option<Preamble> {
                &self.preamble
            }
            fn name(own: &$own) -> &str {
                &own.name
            }
        }
    )*};
}

objects! {
    "table": Table is v1model::TableSchema;
    "action profile": ActionProfile is v1model::ProfileSchema;
    "counter": Counter is v1model::CounterSchema;
    "meter": Meter is v1model::MeterSchema;
    "register": Register is v1model::RegisterSchema;
    "digest": Digest is Sent;
    "value set": ValueSet is v1model::ValueSetSchema;
}

/// Binds each of P4Info's objects of one kind that the compiler did not leave out to the one of that name in the pipeline.
///
/// The compiler may leave an object out only when P4Info has all that the device config has; else the two belong to
/// different programs.
///
/// # Errors
/// INVALID_ARGUMENT for two that do not belong together.
fn bind<O: Object, T>(
    objects: &[O],
    all: &[O::Own],
    mut make: impl FnMut(&O, &O::Own) -> Checked<T>,
) -> Checked<ById<T>> {
    let kind = O::KIND;
    let preambles = preambles(kind, objects.iter().map(O::preamble))?;
    let shown: HashSet<&str> = preambles.iter().map(|p| &*p.name).collect();
    let names = || all.iter().map(O::name);
    let is_whole = names().all(|name| shown.contains(name) || name.starts_with(OWN_TABLE));
    // Of two with one name the first.
    let by_name: HashMap<&str, &O::Own> = names().zip(all).rev().collect();
    let (mut items, mut left_out) = (Vec::new(), HashMap::new());
    for (object, preamble) in objects.iter().zip(preambles) {
        let (id, name) = (preamble.id, preamble.name.clone());
        match by_name.get(&*name) {
            Some(own) => {
                let of = make(object, own).at(format_args!("{kind} {name}"))?;
                items.push(Bound { kind, id, name, of });
            }
            None if is_whole => drop(left_out.insert(id, name)),
            None => return Err(absent(kind, &name, names())),
        }
    }
    let index = items.iter().map(|item| item.id).zip(0..).collect();
    Ok(ById {
        kind,
        items,
        index,
        left_out,
    })
}

/// The refusal of an object that P4Info has and the device config has not.
fn absent<'a>(kind: &str, name: &str, known: impl Iterator<Item = &'a str>) -> Refusal {
    let known = known.filter(|name| !name.starts_with(OWN_TABLE));
    let known = list(known.map(str::to_owned));
    refusal!("P4Info has the {kind} {name}, the device config does not (it has: {known})")
}

/// Sees that ids are neither 0 nor used twice.
///
/// # Errors
/// INVALID_ARGUMENT with the id.
fn unique(ids: impl Iterator<Item = u32>) -> Checked {
    let mut seen = HashSet::new();
    let mut wrong = ids.filter(|&id| id == 0 || !seen.insert(id));
    match wrong.next() {
        Some(id) => refuse!("id {id} is 0 or used twice"),
        None => Ok(()),
    }
}

/// Sees that P4Info and the device config say the same.
///
/// # Errors
/// INVALID_ARGUMENT with both.
fn same<T: PartialEq + fmt::Debug>(what: &str, info: T, own: T) -> Checked {
    match info == own {
        true => Ok(()),
        false => refuse!("{what}: {info:?} in P4Info, {own:?} in the device config"),
    }
}

/// A width of P4Info in bits.
///
/// # Errors
/// INVALID_ARGUMENT beyond 0 to 65536.
fn width(bits: i32) -> Checked<u32> {
    in_range("P4Info's width", bits, 0..=1 << 16)
}

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
    fn new(
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
struct Sent {
    pub name: String,
    places: Vec<DigestSchema>,
}

/// All digests that the program sends. One of an unnamed type is `digest_0` in P4Info and `tuple_0` in the device config:
/// what is left over is paired in order when both have as many.
fn sent(info: &P4Info, schema: &Schema) -> Vec<Sent> {
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
    fn new(digest: &p4info::Digest, own: &Sent, types: &data::Types) -> Checked<Digest> {
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
    fn new(info: &P4Info, set: &p4info::ValueSet, own: &ValueSetSchema) -> Checked<ValueSet> {
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
