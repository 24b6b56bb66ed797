// SPDX-License-Identifier: Apache-2.0
//! Names and JSON ids of a program's objects, resolved to dense ids.

use std::collections::HashMap;

use super::emit::index16;
use super::layout::{Field, Layout};
use crate::error::LoadError;
use crate::externs::{Counters, Meters, Registers};
use crate::json::{fail, At, Json, Load, Unique};
use crate::schema::*;

/// A register, counter or meter array.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Array {
    pub id: u16,
    /// Bits of a register.
    pub width: u32,
    pub size: u32,
}

impl Array {
    /// `json` declares it, whose cells take `bytes`; arrays of its kind have the ids from 0 on, `id` the next of them.
    fn from_json(
        json: &Json,
        id: usize,
        what: &str,
        width: u32,
        bytes: impl Fn(u32) -> u64,
    ) -> Load<Array> {
        let id = index16(id, &format!("{what} arrays")).at(json)?;
        let size_json = json.get("size")?;
        let size = size_json.u32()?;
        size_json.charge(bytes(size), || format!("{what} array of {size} cells"))?;
        Ok(Array { id, width, size })
    }
}

#[derive(Debug, Default)]
pub(crate) struct Names {
    pub registers: HashMap<String, Array>,
    pub counters: HashMap<String, Array>,
    pub meters: HashMap<String, Array>,
    pub calculations: HashMap<String, u16>,
    /// Id and width.
    pub value_sets: HashMap<String, (u32, u32)>,
    /// By the name of their table.
    pub direct_counters: HashMap<String, String>,
    /// With where the colour goes.
    pub direct_meters: HashMap<String, (DirectMeterSchema, Option<Field>)>,
    /// By JSON id.
    pub actions: HashMap<i64, u32>,
    pub digests: HashMap<u64, u32>,
    pub field_lists: HashMap<u64, u32>,
}

/// What `json` names.
pub(super) fn find<T: Copy>(map: &HashMap<String, T>, json: &Json, what: &str) -> Load<T> {
    let found = map.get(json.str()?).copied();
    found.ok_or_else(|| no_such(what, json))
}

pub(super) fn no_such(what: &str, json: &Json) -> LoadError {
    json.error(format!(
        "there is no {what} `{}`",
        json.str().unwrap_or_default()
    ))
}

/// What has the id `json`.
pub(super) fn find_id<T: Copy>(map: &HashMap<i64, T>, json: &Json, what: &str) -> Load<T> {
    let id = json.i64()?;
    map.get(&id)
        .copied()
        .ok_or_else(|| json.error(format!("there is no {what} with id {id}")))
}

impl Names {
    /// A register array.
    pub fn register(&self, json: &Json) -> Load<Array> {
        find(&self.registers, json, "register")
    }

    /// An indirect counter.
    pub fn counter(&self, json: &Json) -> Load<Array> {
        find(&self.counters, json, "counter")
    }

    /// An indirect meter.
    pub fn meter(&self, json: &Json) -> Load<Array> {
        find(&self.meters, json, "meter")
    }

    /// Index of a calculation.
    pub fn calculation(&self, json: &Json) -> Load<u16> {
        find(&self.calculations, json, "calculation")
    }

    /// Id and width of a parser value set.
    pub fn value_set(&self, json: &Json) -> Load<(u32, u32)> {
        find(&self.value_sets, json, "parser value set")
    }

    /// The action with the JSON id `json`.
    pub fn action(&self, json: &Json) -> Load<ActionId> {
        find_id(&self.actions, json, "action").map(ActionId)
    }

    /// Counters, meters, registers, value sets into the schema and here.
    pub fn read_externs(&mut self, root: &Json, layout: &Layout, schema: &mut Schema) -> Load<()> {
        let mut unique = Unique::new("counter");
        let mut direct = Unique::new("direct counter of table");
        for json in root.list("counter_arrays")? {
            let name = unique.add_name_of(&json)?.to_string();
            if let Some(table) = bound_table(&json, &mut direct)? {
                self.direct_counters.insert(table, name);
                continue;
            }
            let array =
                Array::from_json(&json, schema.counters.len(), "counter", 0, Counters::bytes)?;
            self.counters.insert(name.clone(), array);
            schema.counters.push(CounterSchema {
                id: CounterId(array.id.into()),
                name,
                size: array.size,
            });
        }
        let mut unique = Unique::new("meter");
        let mut direct = Unique::new("direct meter of table");
        for json in root.list("meter_arrays")? {
            let name = unique.add_name_of(&json)?.to_string();
            let unit = meter_unit(&json)?;
            if let Some(table) = bound_table(&json, &mut direct)? {
                let target = json.opt("result_target");
                let target = target.map(|json| layout.target(&json)).transpose()?;
                let schema = DirectMeterSchema { name, unit };
                self.direct_meters.insert(table, (schema, target));
                continue;
            }
            let array = Array::from_json(&json, schema.meters.len(), "meter", 0, Meters::bytes)?;
            self.meters.insert(name.clone(), array);
            schema.meters.push(MeterSchema {
                id: MeterId(array.id.into()),
                name,
                size: array.size,
                unit,
            });
        }
        let mut unique = Unique::new("register");
        for json in root.list("register_arrays")? {
            let name = unique.add_name_of(&json)?.to_string();
            let width = json.u32_at("bitwidth")?;
            if width == 0 || width > 1 << 16 {
                fail!(json.get("bitwidth")?, "a register is 1 to 65536 bits wide");
            }
            let bytes = |size| Registers::bytes(size, width);
            let array = Array::from_json(&json, schema.registers.len(), "register", width, bytes)?;
            self.registers.insert(name.clone(), array);
            schema.registers.push(RegisterSchema {
                id: RegisterId(array.id.into()),
                name,
                size: array.size,
                width,
            });
        }
        let mut unique = Unique::new("parser value set");
        for json in root.list("parse_vsets")? {
            let id = ValueSetId(schema.value_sets.len() as u32);
            let name = unique.add_name_of(&json)?.to_string();
            let max_size = json.opt("max_size").map_or(Ok(u32::MAX), |j| j.u32())?;
            let width_json = json.get("compressed_bitwidth")?;
            let width = width_json.u32()?;
            if !(1..=4096).contains(&width) {
                fail!(
                    width_json,
                    "the values of a parser value set are 1 to 4096 bits wide"
                );
            }
            self.value_sets.insert(name.clone(), (id.0, width));
            schema.value_sets.push(ValueSetSchema {
                id,
                name,
                width,
                max_size,
            });
        }
        if let Some(externs) = root.list("extern_instances")?.first() {
            let ty = externs.str_at("type")?;
            fail!(externs, "v1model has no extern of type `{ty}`");
        }
        Ok(())
    }
}

/// The table of a direct counter or meter; None for another.
fn bound_table<'a>(json: &Json<'a>, unique: &mut Unique<'a, &'a str>) -> Load<Option<String>> {
    if !json.bool_or("is_direct", false)? {
        return Ok(None);
    }
    let table = json.get("binding")?;
    unique.add(table.str()?, &table)?;
    Ok(Some(table.str()?.to_string()))
}

/// What a meter measures.
fn meter_unit(json: &Json) -> Load<MeterUnit> {
    if let Some(count) = json.opt("rate_count") {
        if count.u64()? != 2 {
            fail!(count, "only two-rate three-colour meters are supported");
        }
    }
    let ty = json.get("type")?;
    match ty.str()? {
        "packets" => Ok(MeterUnit::Packets),
        "bytes" => Ok(MeterUnit::Bytes),
        other => fail!(ty, "a meter measures `packets` or `bytes`, not `{other}`"),
    }
}
