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

impl Pipeline {
    /// (packets, bytes) of a counter cell.
    pub fn counter_get(&self, counter: CounterId, index: u32) -> ControlResult<(u64, u64)> {
        let cell = self.state.counters[counter.index()].get(index.into());
        let schema = &self.schema.counters[counter.index()];
        in_range("counter", &schema.name, index, schema.size, cell)
    }

    /// Sets (packets, bytes) of a counter cell.
    pub fn counter_set(
        &mut self,
        counter: CounterId,
        index: u32,
        packets: u64,
        bytes: u64,
    ) -> ControlResult {
        let is_set = self.state.counters[counter.index()].set(index.into(), packets, bytes);
        let (schema, is_set) = (&self.schema.counters[counter.index()], is_set.then_some(()));
        in_range("counter", &schema.name, index, schema.size, is_set)
    }

    /// Rates of a meter cell.
    pub fn meter_get(&self, meter: MeterId, index: u32) -> ControlResult<Option<MeterConfig>> {
        let cell = self.state.meters[meter.index()].get(index.into());
        let schema = &self.schema.meters[meter.index()];
        in_range("meter", &schema.name, index, schema.size, cell)
    }

    /// Sets the rates of a meter cell; None: every packet is green.
    pub fn meter_set(
        &mut self,
        meter: MeterId,
        index: u32,
        config: Option<MeterConfig>,
    ) -> ControlResult {
        if let Some(config) = &config {
            check_config(config).map_err(|text| {
                let name = &self.schema.meters[meter.index()].name;
                ControlError::invalid(format!("meter {name}: index {index}: {text}"))
            })?;
        }
        let is_set = self.state.meters[meter.index()].set(index.into(), config.as_ref());
        let (schema, is_set) = (&self.schema.meters[meter.index()], is_set.then_some(()));
        in_range("meter", &schema.name, index, schema.size, is_set)
    }

    /// A register cell.
    pub fn register_get(&self, register: RegisterId, index: u32) -> ControlResult<Bits> {
        let limbs = self.state.registers[register.index()].get(index.into());
        let width = self.schema.registers[register.index()].width;
        let cell = limbs.map(|limbs| Bits::from_limbs(width, &limbs));
        let schema = &self.schema.registers[register.index()];
        in_range("register", &schema.name, index, schema.size, cell)
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
            let name = &schema.name;
            return Err(ControlError::invalid(format!(
                "register {name}: the value is {given} bits wide, the register {width}"
            )));
        }
        let is_set = self.state.registers[register.index()].write(index.into(), &value.to_limbs());
        in_range(
            "register",
            &schema.name,
            index,
            schema.size,
            is_set.then_some(()),
        )
    }

    /// Puts a set that was made for this schema in the place of the one that is there, which comes back: so that neither
    /// is made or dropped where packets wait.
    pub fn value_set_replace(&mut self, set: ValueSetId, with: ValueSet) -> ValueSet {
        std::mem::replace(&mut self.state.value_sets[set.index()], with)
    }
}

/// What was found in a cell; an error where the array has no such.
fn in_range<T>(
    kind: &str,
    name: &str,
    index: u32,
    size: u32,
    found: Option<T>,
) -> ControlResult<T> {
    let allowed = match size {
        0 => "it has none".to_string(),
        n => format!("its indices are 0 to {}", n - 1),
    };
    found.ok_or_else(|| {
        ControlError::new(
            ErrorKind::OutOfRange,
            format!("{kind} {name}: index {index} is out of range; {allowed}"),
        )
    })
}
