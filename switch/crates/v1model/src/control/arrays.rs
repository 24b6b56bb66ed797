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
        let schema = &self.schema.counters[counter.index()];
        self.state.counters[counter.index()]
            .get(u64::from(index))
            .ok_or_else(|| out_of_range("counter", &schema.name, index, schema.size))
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
        if self.state.counters[counter.index()].set(u64::from(index), packets, bytes) {
            Ok(())
        } else {
            Err(out_of_range("counter", &schema.name, index, schema.size))
        }
    }

    /// Rates of a meter cell.
    pub fn meter_get(&self, meter: MeterId, index: u32) -> ControlResult<Option<MeterConfig>> {
        let schema = &self.schema.meters[meter.index()];
        self.state.meters[meter.index()]
            .get(u64::from(index))
            .ok_or_else(|| out_of_range("meter", &schema.name, index, schema.size))
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
            check_config(config).map_err(|text| {
                let text = format!("meter {}: index {index}: {text}", schema.name);
                ControlError::new(ErrorKind::InvalidArgument, text)
            })?;
        }
        if self.state.meters[meter.index()].set(u64::from(index), config.as_ref()) {
            Ok(())
        } else {
            Err(out_of_range("meter", &schema.name, index, schema.size))
        }
    }

    /// A register cell.
    pub fn register_get(&self, register: RegisterId, index: u32) -> ControlResult<Bits> {
        let schema = &self.schema.registers[register.index()];
        self.state.registers[register.index()]
            .get(u64::from(index))
            .map(|limbs| Bits::from_limbs(schema.width, &limbs))
            .ok_or_else(|| out_of_range("register", &schema.name, index, schema.size))
    }

    /// Writes a register cell.
    pub fn register_set(
        &mut self,
        register: RegisterId,
        index: u32,
        value: &Bits,
    ) -> ControlResult {
        let schema = &self.schema.registers[register.index()];
        if value.width() != schema.width {
            return Err(ControlError::new(
                ErrorKind::InvalidArgument,
                format!(
                    "register {}: the value is {} bits wide, the register {}",
                    schema.name,
                    value.width(),
                    schema.width
                ),
            ));
        }
        if self.state.registers[register.index()].write(u64::from(index), &value.to_limbs()) {
            Ok(())
        } else {
            Err(out_of_range("register", &schema.name, index, schema.size))
        }
    }

    /// Puts a set that was made for this schema in the place of the one that is there, which comes back: so that neither
    /// is made or dropped where packets wait.
    pub fn value_set_replace(&mut self, set: ValueSetId, with: ValueSet) -> ValueSet {
        std::mem::replace(&mut self.state.value_sets[set.index()], with)
    }
}

fn out_of_range(kind: &str, name: &str, index: u32, size: u32) -> ControlError {
    let allowed = match size {
        0 => "it has none".to_string(),
        n => format!("its indices are 0 to {}", n - 1),
    };
    ControlError::new(
        ErrorKind::OutOfRange,
        format!("{kind} {name}: index {index} is out of range; {allowed}"),
    )
}
