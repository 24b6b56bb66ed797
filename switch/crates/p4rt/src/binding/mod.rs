// SPDX-License-Identifier: Apache-2.0
//! P4Info bound to a pipeline: every id of the one resolved to an object of the other, checked once when a config is set.

mod data;
mod externs;
mod packet;
mod table;

use std::collections::{HashMap, HashSet};

use tonic::Code;
use v1model::{Pipeline, TableId};

pub use data::DataShape;
pub use externs::{
    CounterBinding, DigestBinding, MeterBinding, ProfileBinding, RegisterBinding, ValueSetBinding,
};
pub use packet::PacketHeader;
pub use table::{FieldBinding, TableBinding};

use crate::error::{refusal, refuse, At, Refusal};
use crate::proto::p4info::{Action, P4Info, Preamble};

/// Everything that a P4Runtime message can name, by P4Info id.
pub struct Binding {
    pub tables: ById<TableBinding>,
    pub profiles: ById<ProfileBinding>,
    pub counters: ById<CounterBinding>,
    pub meters: ById<MeterBinding>,
    pub registers: ById<RegisterBinding>,
    pub digests: ById<DigestBinding>,
    pub value_sets: ById<ValueSetBinding>,
    pub packet_in: Option<PacketHeader>,
    pub packet_out: Option<PacketHeader>,
    /// The data plane's number of the port to the controller.
    pub cpu_port: Option<u32>,
    /// Index in `tables` of a pipeline's table; None for tables that P4Info does not show.
    table_of: Vec<Option<usize>>,
}

impl Binding {
    /// Checks P4Info against the pipeline that was made from the device config.
    ///
    /// # Errors
    /// INVALID_ARGUMENT with the object, its name and what does not fit.
    pub fn new(info: &P4Info, pipeline: &Pipeline, cpu_port: Option<u32>) -> Result<Self, Refusal> {
        let actions = actions_by_id(info)?;
        let tables = table::bind(info, &actions, pipeline)?;
        let mut table_of = vec![None; pipeline.schema().tables.len()];
        for (index, table) in tables.items.iter().enumerate() {
            table_of[table.table.index()] = Some(index);
        }
        let (packet_in, packet_out) = packet::bind(info)?;
        let types = data::Types::new(info);
        Ok(Self {
            profiles: externs::bind_profiles(info, &tables, pipeline)?,
            counters: externs::bind_counters(info, pipeline)?,
            meters: externs::bind_meters(info, pipeline)?,
            registers: externs::bind_registers(info, &types, pipeline)?,
            digests: externs::bind_digests(info, &types, pipeline)?,
            value_sets: externs::bind_value_sets(info, pipeline)?,
            packet_in,
            packet_out,
            cpu_port,
            tables,
            table_of,
        })
    }

    /// The P4Info side of a pipeline's table.
    pub fn table_of(&self, table: TableId) -> Option<&TableBinding> {
        let index = (*self.table_of.get(table.index())?)?;
        self.tables.items.get(index)
    }
}

/// An object with a P4Info id and a name.
pub trait Named {
    fn id(&self) -> u32;
    fn name(&self) -> &str;
}

macro_rules! named {
    ($($type:ty),*) => {$(impl $crate::binding::Named for $type {
        fn id(&self) -> u32 { self.id }
        fn name(&self) -> &str { &self.name }
    })*};
}
pub(crate) use named;

/// Objects of one kind, in P4Info's order.
pub struct ById<T> {
    kind: &'static str,
    pub items: Vec<T>,
    index: HashMap<u32, usize>,
    left_out: LeftOut,
}

/// Objects of P4Info, by id, that the compiler left out of the device config: no packet can reach them.
type LeftOut = HashMap<u32, String>;

impl<T: Named> ById<T> {
    /// # Errors
    /// INVALID_ARGUMENT when an id is 0, or an id or a name is used twice.
    fn new(kind: &'static str, items: Vec<T>, left_out: LeftOut) -> Result<Self, Refusal> {
        let mut index = HashMap::with_capacity(items.len());
        let mut names = HashSet::with_capacity(items.len());
        for (i, item) in items.iter().enumerate() {
            if !names.insert(item.name()) {
                refuse!(invalid, "P4Info: there are two {kind}s {}", item.name());
            }
            if item.id() == 0 {
                refuse!(
                    invalid,
                    "P4Info: {kind} {} has the id 0, which means none",
                    item.name()
                );
            }
            if let Some(other) = index.insert(item.id(), i) {
                let other: &T = &items[other];
                refuse!(
                    invalid,
                    "P4Info: {kind} {} and {kind} {} have the same id {:#010x}",
                    other.name(),
                    item.name(),
                    item.id()
                );
            }
        }
        Ok(Self {
            kind,
            items,
            index,
            left_out,
        })
    }

    /// How an error names an object.
    pub fn place(&self, item: &T) -> String {
        format!("{} {}", self.kind, item.name())
    }

    /// Sees that an object has this id, unless it is 0, which means all.
    ///
    /// # Errors
    /// As `get`.
    pub fn check(&self, id: u32) -> Result<(), Refusal> {
        match id {
            0 => Ok(()),
            _ => self.get(id).map(drop),
        }
    }

    /// Those that a read asks for: the one with this id, or all for 0.
    ///
    /// # Errors
    /// As `get`.
    pub fn wanted(&self, id: u32) -> Result<impl Iterator<Item = &T>, Refusal> {
        self.check(id)?;
        Ok(self.items.iter().filter(move |t| id == 0 || t.id() == id))
    }

    /// # Errors
    /// NOT_FOUND with the id and what there is.
    pub fn get(&self, id: u32) -> Result<&T, Refusal> {
        if let Some(i) = self.index.get(&id) {
            return Ok(&self.items[*i]);
        }
        if let Some(name) = self.left_out.get(&id) {
            refuse!(
                not_found,
                "{} {name} was left out by the compiler: no packet can reach it",
                self.kind
            );
        }
        let known: Vec<String> = self
            .items
            .iter()
            .take(8)
            .map(|t| format!("{:#010x} {}", t.id(), t.name()))
            .collect();
        let mut known = if known.is_empty() {
            "the program has none".to_owned()
        } else {
            known.join(", ")
        };
        if self.items.len() > 8 {
            known.push_str(", …");
        }
        Err(Refusal::new(
            Code::NotFound,
            format!("{} id {id:#010x} is unknown; known: {known}", self.kind),
        ))
    }
}

/// Ids and names of fields for an error text.
pub fn list_known<'a>(fields: impl Iterator<Item = (u32, &'a str)>) -> String {
    let known: Vec<String> = fields.map(|(id, name)| format!("{id} {name}")).collect();
    match known.is_empty() {
        true => "it has none".to_owned(),
        false => format!("known: {}", known.join(", ")),
    }
}

fn actions_by_id(info: &P4Info) -> Result<HashMap<u32, &Action>, Refusal> {
    let (mut actions, mut names) = (HashMap::new(), HashSet::new());
    for action in &info.actions {
        let preamble = preamble("action", &action.preamble)?;
        if preamble.id == 0 || actions.insert(preamble.id, action).is_some() {
            refuse!(
                invalid,
                "P4Info: action {}: the id {:#010x} is 0 or used twice",
                preamble.name,
                preamble.id
            );
        }
        if !names.insert(&preamble.name) {
            refuse!(invalid, "P4Info: there are two actions {}", preamble.name);
        }
        unique(action.params.iter().map(|p| p.id))
            .at(format_args!("action {}: parameters", preamble.name))?;
    }
    Ok(actions)
}

/// Sees that ids are neither 0 nor used twice.
///
/// # Errors
/// INVALID_ARGUMENT with the id.
fn unique(ids: impl Iterator<Item = u32>) -> Result<(), Refusal> {
    let mut seen = HashSet::new();
    let mut wrong = ids.filter(|&id| id == 0 || !seen.insert(id));
    match wrong.next() {
        Some(id) => Err(refusal!(invalid, "id {id} is 0 or used twice")),
        None => Ok(()),
    }
}

/// A number of P4Info that says how many there may be.
///
/// # Errors
/// INVALID_ARGUMENT beyond 0 to `most`, with what it is the number of.
fn number(what: &str, given: i64, most: u32) -> Result<u32, Refusal> {
    match u32::try_from(given) {
        Ok(number) if number <= most => Ok(number),
        _ => Err(refusal!(
            invalid,
            "{what}: {given} in P4Info; allowed: 0 to {most}"
        )),
    }
}

/// A width of P4Info in bits.
///
/// # Errors
/// INVALID_ARGUMENT beyond 0 to 65536.
fn width(bits: i32) -> Result<u32, Refusal> {
    number("bits", bits.into(), 1 << 16)
}

fn preamble<'a>(kind: &str, preamble: &'a Option<Preamble>) -> Result<&'a Preamble, Refusal> {
    preamble
        .as_ref()
        .ok_or_else(|| refusal!(invalid, "P4Info: a {kind} has no preamble"))
}

/// What the compiler left out: P4Info has it, the device config does not. That is so only when P4Info has all that the
/// device config has; else the two belong to different programs.
///
/// # Errors
/// INVALID_ARGUMENT when they do not belong together.
fn left_out<'a>(
    kind: &str,
    info: impl Iterator<Item = &'a Option<Preamble>>,
    own: &[&str],
) -> Result<LeftOut, Refusal> {
    let shown: Vec<&Preamble> = info.flatten().collect();
    let own_names: HashSet<&str> = own.iter().copied().collect();
    let shown_names: HashSet<&str> = shown.iter().map(|p| p.name.as_str()).collect();
    let missing: Vec<&&Preamble> = shown
        .iter()
        .filter(|p| !own_names.contains(p.name.as_str()))
        .collect();
    let strange = own.iter().any(|name| !shown_names.contains(name));
    match missing.first() {
        Some(first) if strange => Err(absent(kind, &first.name, own)),
        _ => Ok(missing
            .into_iter()
            .map(|p| (p.id, p.name.clone()))
            .collect()),
    }
}

/// The refusal of an object that P4Info has and the device config has not.
fn absent(kind: &str, name: &str, known: &[&str]) -> Refusal {
    let mut list = known.iter().take(8).copied().collect::<Vec<_>>().join(", ");
    if known.is_empty() {
        list.push_str("none");
    } else if known.len() > 8 {
        list.push_str(", …");
    }
    refusal!(
        invalid,
        "P4Info has the {kind} {name}, the device config does not (it has: {list})"
    )
}
