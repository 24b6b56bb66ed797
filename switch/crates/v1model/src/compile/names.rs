// SPDX-License-Identifier: Apache-2.0
//! Names and JSON ids of a program's objects, resolved to dense ids.

use std::collections::HashMap;

use crate::json::{Json, Load};
use crate::schema::*;

#[derive(Debug, Default)]
pub(crate) struct Names {
    /// Id and width.
    pub registers: HashMap<String, (u32, u32)>,
    pub counters: HashMap<String, u32>,
    pub meters: HashMap<String, u32>,
    pub calculations: HashMap<String, u16>,
    pub value_sets: HashMap<String, u32>,
    /// By JSON id.
    pub actions: HashMap<i64, u32>,
    pub digests: HashMap<u64, u32>,
    pub field_lists: HashMap<u64, u32>,
}

fn find<T: Copy>(map: &HashMap<String, T>, json: &Json, what: &str) -> Load<T> {
    let name = json.str()?;
    map.get(name)
        .copied()
        .ok_or_else(|| json.error(format!("there is no {what} `{name}`")))
}

impl Names {
    /// Id and width of a register array.
    pub fn register(&self, json: &Json) -> Load<(u32, u32)> {
        find(&self.registers, json, "register")
    }

    /// Id of an indirect counter.
    pub fn counter(&self, json: &Json) -> Load<u16> {
        Ok(find(&self.counters, json, "counter")? as u16)
    }

    /// Id of an indirect meter.
    pub fn meter(&self, json: &Json) -> Load<u16> {
        Ok(find(&self.meters, json, "meter")? as u16)
    }

    /// Index of a calculation.
    pub fn calculation(&self, json: &Json) -> Load<u16> {
        find(&self.calculations, json, "calculation")
    }

    /// Id of a parser value set.
    pub fn value_set(&self, json: &Json) -> Load<u32> {
        find(&self.value_sets, json, "parser value set")
    }

    /// The action with the JSON id `json`.
    pub fn action(&self, json: &Json) -> Load<ActionId> {
        let id = json.i64()?;
        match self.actions.get(&id) {
            Some(&action) => Ok(ActionId(action)),
            None => json.fail(format!("there is no action with id {id}")),
        }
    }

    /// Counters, meters, registers, digests, value sets into the schema and here.
    pub fn read_externs(&mut self, root: &Json, schema: &mut Schema) -> Load<()> {
        for json in root.list("counter_arrays")? {
            if json.bool_or("is_direct", false)? {
                continue;
            }
            let id = CounterId(schema.counters.len() as u32);
            let name = json.str_at("name")?.to_string();
            self.counters.insert(name.clone(), id.0);
            schema.counters.push(CounterSchema {
                id,
                name,
                size: json.u32_at("size")?,
            });
        }
        for json in root.list("meter_arrays")? {
            check_meter(&json)?;
            if json.bool_or("is_direct", false)? {
                continue;
            }
            let id = MeterId(schema.meters.len() as u32);
            let name = json.str_at("name")?.to_string();
            self.meters.insert(name.clone(), id.0);
            let unit = meter_unit(&json)?;
            schema.meters.push(MeterSchema {
                id,
                name,
                size: json.u32_at("size")?,
                unit,
            });
        }
        for json in root.list("register_arrays")? {
            let id = RegisterId(schema.registers.len() as u32);
            let name = json.str_at("name")?.to_string();
            let width = json.u32_at("bitwidth")?;
            if width == 0 || width > 1 << 16 {
                return json
                    .get("bitwidth")?
                    .fail("a register is 1 to 65536 bits wide");
            }
            self.registers.insert(name.clone(), (id.0, width));
            schema.registers.push(RegisterSchema {
                id,
                name,
                size: json.u32_at("size")?,
                width,
            });
        }
        for json in root.list("parse_vsets")? {
            let id = ValueSetId(schema.value_sets.len() as u32);
            let name = json.str_at("name")?.to_string();
            self.value_sets.insert(name.clone(), id.0);
            let max_size = json.opt("max_size").map_or(Ok(u32::MAX), |j| j.u32())?;
            let width = json.u32_at("compressed_bitwidth")?;
            schema.value_sets.push(ValueSetSchema {
                id,
                name,
                width,
                max_size,
            });
        }
        if let Some(externs) = root.list("extern_instances")?.first() {
            let ty = externs.str_at("type")?;
            return externs.fail(format!("v1model has no extern of type `{ty}`"));
        }
        Ok(())
    }
}

fn check_meter(json: &Json) -> Load<()> {
    match json.opt("rate_count") {
        Some(count) if count.u64()? != 2 => {
            count.fail("only two-rate three-colour meters are supported")
        }
        _ => Ok(()),
    }
}

/// What a meter measures.
pub(crate) fn meter_unit(json: &Json) -> Load<MeterUnit> {
    let ty = json.get("type")?;
    match ty.str()? {
        "packets" => Ok(MeterUnit::Packets),
        "bytes" => Ok(MeterUnit::Bytes),
        other => ty.fail(format!(
            "a meter measures `packets` or `bytes`, not `{other}`"
        )),
    }
}
