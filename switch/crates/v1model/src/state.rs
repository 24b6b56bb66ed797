// SPDX-License-Identifier: Apache-2.0
//! What a program keeps between packets: tables, profiles, value sets, counters, meters, registers, hashes, random numbers.

use std::sync::Arc;

use crate::compile::code::Program;
use crate::error::LoadError;
use crate::externs::{Cells, Counters, Hash, Meters, Random, Registers};
use crate::schema::Schema;
use crate::table::{Profile, Table, ValueSet};

/// The state of a pipeline.
pub(crate) struct State {
    pub tables: Cells<Table>,
    pub profiles: Vec<Profile>,
    pub value_sets: Vec<ValueSet>,
    pub counters: Cells<Counters>,
    pub meters: Vec<Meters>,
    pub registers: Cells<Registers>,
    /// One for each calculation.
    pub hashes: Vec<Hash>,
    pub random: Random,
}

impl State {
    /// The state in which a program starts; `algorithms` are those of its calculations.
    pub fn new(schema: &Arc<Schema>, algorithms: &[&str], seed: u64) -> Result<State, LoadError> {
        let mut tables = Vec::new();
        for table in &schema.tables {
            tables.push(Table::new(schema, table.id).map_err(|error| {
                LoadError::new("/pipelines", format!("table {}: {error}", table.name))
            })?);
        }
        let mut random = Random::new(seed);
        let stream = random.next_stream();
        let hashes = hashes(algorithms.iter().copied(), random);
        Ok(State {
            tables: tables.into_boxed_slice().into(),
            profiles: schema
                .profiles
                .iter()
                .map(|p| Profile::new(schema, p.id))
                .collect(),
            value_sets: vec![ValueSet::default(); schema.value_sets.len()],
            counters: schema
                .counters
                .iter()
                .map(|c| Counters::new(c.size))
                .collect::<Box<[_]>>()
                .into(),
            meters: schema
                .meters
                .iter()
                .map(|m| Meters::new(m.size, m.unit))
                .collect(),
            registers: schema
                .registers
                .iter()
                .map(|r| Registers::new(r.size, r.width))
                .collect::<Box<[_]>>()
                .into(),
            hashes,
            random: stream,
        })
    }

    /// Seeds everything that is random.
    pub fn seed(&mut self, program: &Program, seed: u64) {
        let mut random = Random::new(seed);
        self.random = random.next_stream();
        let algorithms = program.calculations.iter().map(|c| c.algorithm.as_str());
        self.hashes = hashes(algorithms, random);
    }
}

/// The hashes of a program's calculations; each has a stream of its own.
fn hashes<'a>(algorithms: impl Iterator<Item = &'a str>, mut random: Random) -> Vec<Hash> {
    let hash = |name| Hash::from_name(name, random.next_stream()).expect("checked at load");
    algorithms.map(hash).collect()
}
