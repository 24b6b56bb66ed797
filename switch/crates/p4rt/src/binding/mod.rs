// SPDX-License-Identifier: Apache-2.0
//! P4Info bound to a pipeline: every id of the one resolved to an object of the other, checked once when a config is set.

mod data;
mod externs;
mod packet;
mod table;

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::ops::Deref;

use v1model::{Pipeline, TableId};

pub use data::DataShape;
pub use externs::{Array, Counter, Digest, Meter, Profile, Register, ValueSet};
pub use packet::PacketHeader;
pub use table::{Action, MatchKey, Table};

use crate::error::{in_range, refusal, refuse, At, Checked, Refusal};
use crate::proto::p4info::{self, P4Info, Preamble};
use table::{is_translated, meter_type};

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
        let (packet_in, packet_out) = packet::bind(info)?;
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
            digests: bind(&info.digests, &externs::sent(info, own), |digest, own| {
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
    "digest": Digest is externs::Sent;
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
