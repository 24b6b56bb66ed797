// SPDX-License-Identifier: Apache-2.0
//! Control plane of what is indexed by a number (counters, meters, registers) and of parser value sets.

use super::ControlResult;
use crate::bits::Bits;
use crate::entry::MeterConfig;
use crate::error::{ControlError, ErrorKind};
use crate::externs::meter::check_config;
use crate::pipeline::Pipeline;
use crate::schema::{CounterId, MeterId, RegisterId, ValueSetId};
use crate::table::ValueSet;

/// A cell of an array called `name` of `size` cells; an error where it has no such.
fn cell<T>(kind: &str, name: &str, index: u32, size: u32, found: Option<T>) -> ControlResult<T> {
    let allowed = || match size {
        0 => "it has none".to_string(),
        n => format!("its indices are 0 to {}", n - 1),
    };
    found.ok_or_else(|| {
        let text = format!("index {index} is out of range; {}", allowed());
        ControlError::new(ErrorKind::OutOfRange, text).at(format_args!("{kind} {name}"))
    })
}

impl Pipeline {
    /// (packets, bytes) of a counter cell.
    pub fn counter_get(&self, counter: CounterId, index: u32) -> ControlResult<(u64, u64)> {
        let schema = &self.schema.counters[counter.index()];
        let found = self.state.counters[counter.index()].get(index.into());
        cell("counter", &schema.name, index, schema.size, found)
    }

    /// Sets (packets, bytes) of a counter cell.
    pub fn counter_set(
        &mut self,
        counter: CounterId,
        index: u32,
        packets: u64,
        bytes: u64,
    ) -> ControlResult {
        let schema = &self.schema.counters[counter.index()];
        let is_set = self.state.counters[counter.index()].set(index.into(), packets, bytes);
        let found = is_set.then_some(());
        cell("counter", &schema.name, index, schema.size, found)
    }

    /// Rates of a meter cell.
    pub fn meter_get(&self, meter: MeterId, index: u32) -> ControlResult<Option<MeterConfig>> {
        let schema = &self.schema.meters[meter.index()];
        let found = self.state.meters[meter.index()].get(index.into());
        cell("meter", &schema.name, index, schema.size, found)
    }

    /// Sets the rates of a meter cell; None: every packet is green.
    pub fn meter_set(
        &mut self,
        meter: MeterId,
        index: u32,
        config: Option<MeterConfig>,
    ) -> ControlResult {
        let schema = &self.schema.meters[meter.index()];
        if let Some(config) = &config {
            let place = format_args!("meter {}: index {index}", schema.name);
            check_config(config).map_err(|text| ControlError::invalid(text).at(place))?;
        }
        let is_set = self.state.meters[meter.index()].set(index.into(), config.as_ref());
        let found = is_set.then_some(());
        cell("meter", &schema.name, index, schema.size, found)
    }

    /// A register cell.
    pub fn register_get(&self, register: RegisterId, index: u32) -> ControlResult<Bits> {
        let schema = &self.schema.registers[register.index()];
        let limbs = self.state.registers[register.index()].get(index.into());
        let found = limbs.map(|limbs| Bits::from_limbs(schema.width, &limbs));
        cell("register", &schema.name, index, schema.size, found)
    }

    /// Writes a register cell.
    pub fn register_set(
        &mut self,
        register: RegisterId,
        index: u32,
        value: &Bits,
    ) -> ControlResult {
        let schema = &self.schema.registers[register.index()];
        let (given, width) = (value.width(), schema.width);
        if given != width {
            let text = format!("the value is {given} bits wide, the register {width}");
            return Err(ControlError::invalid(text).at(format_args!("register {}", schema.name)));
        }
        let is_set = self.state.registers[register.index()].write(index.into(), &value.to_limbs());
        let found = is_set.then_some(());
        cell("register", &schema.name, index, schema.size, found)
    }

    /// Puts a set that was made for this schema in the place of the one that is there, which comes back: so that neither
    /// is made or dropped where packets wait.
    pub fn value_set_replace(&mut self, set: ValueSetId, with: ValueSet) -> ValueSet {
        std::mem::replace(&mut self.state.value_sets[set.index()], with)
    }
}
