// SPDX-License-Identifier: Apache-2.0
//! Indexed counters, meters and registers (P4Runtime 1.5 §9.3.2, §9.4.2, §9.7).

use std::ops::Range;

use v1model::{Bits, CounterId, MeterConfig, MeterId, RegisterId};

use super::{modify_only, Verb};
use crate::binding::Binding;
use crate::error::Refusal;
use crate::proto::p4info::meter_spec::Type as MeterType;
use crate::proto::p4rt::{self, CounterData, CounterEntry, Index, MeterEntry, RegisterEntry};
use crate::target::Target;

/// A checked update of some cells of an array.
#[derive(Clone)]
pub struct ArrayOp {
    cells: Range<u32>,
    change: Change,
}

#[derive(Clone)]
enum Change {
    Nothing,
    Counter(CounterId, u64, u64),
    Meter(MeterId, Option<MeterConfig>),
    Register(RegisterId, Bits),
}

/// The cells that an index means; None is all of them.
///
/// # Errors
/// INVALID_ARGUMENT for a negative index, OUT_OF_RANGE for one beyond the array.
pub fn cells(index: Option<&Index>, size: u32) -> Result<Range<u32>, Refusal> {
    let Some(&Index { index }) = index else {
        return Ok(0..size);
    };
    if index < 0 {
        return Err(Refusal::invalid(format!("index {index} is negative")));
    }
    match u32::try_from(index) {
        Ok(i) if i < size => Ok(i..i + 1),
        _ => Err(Refusal::out_of_range(format!(
            "index {index} is not below the size, {size}"
        ))),
    }
}

/// # Errors
/// INVALID_ARGUMENT for a negative number.
pub(super) fn number(name: &str, value: i64) -> Result<u64, Refusal> {
    u64::try_from(value).map_err(|_| Refusal::invalid(format!("{name} {value} is negative")))
}

/// (packets, bytes)
///
/// # Errors
/// INVALID_ARGUMENT for a negative number.
pub fn counter_data(data: &CounterData) -> Result<(u64, u64), Refusal> {
    Ok((
        number("packet_count", data.packet_count)?,
        number("byte_count", data.byte_count)?,
    ))
}

/// # Errors
/// INVALID_ARGUMENT for negative numbers and for fields that the meter's type does not take,
/// UNIMPLEMENTED for an excess burst.
pub fn meter_config(config: &p4rt::MeterConfig, kind: MeterType) -> Result<MeterConfig, Refusal> {
    let own = MeterConfig {
        cir: number("cir", config.cir)?,
        cburst: number("cburst", config.cburst)?,
        pir: number("pir", config.pir)?,
        pburst: number("pburst", config.pburst)?,
    };
    match kind {
        MeterType::TwoRateThreeColor | MeterType::SingleRateTwoColor if config.eburst != 0 => {
            return Err(Refusal::invalid(format!(
                "eburst {} must be unset for this type of meter",
                config.eburst
            )))
        }
        MeterType::SingleRateThreeColor if config.eburst != 0 => {
            return Err(Refusal::unimplemented(
                "single-rate meters with an excess burst (RFC 2697) are not supported",
            ))
        }
        _ => {}
    }
    if kind != MeterType::TwoRateThreeColor && (own.pir != own.cir || own.pburst != own.cburst) {
        return Err(Refusal::invalid(
            "a single-rate meter needs pir = cir and pburst = cburst",
        ));
    }
    Ok(own)
}

/// The refusal of counters per colour in this field.
pub fn no_meter_counters(field: &str) -> Refusal {
    Refusal::unimplemented(format!(
        "meters keep no counters per colour: {field} must be unset"
    ))
}

pub fn encode_meter(config: &MeterConfig) -> p4rt::MeterConfig {
    p4rt::MeterConfig {
        cir: config.cir as i64,
        cburst: config.cburst as i64,
        pir: config.pir as i64,
        pburst: config.pburst as i64,
        eburst: 0,
    }
}

/// # Errors
/// INVALID_ARGUMENT, NOT_FOUND or OUT_OF_RANGE, naming the counter.
pub fn plan_counter(
    binding: &Binding,
    verb: Verb,
    entry: &CounterEntry,
) -> Result<ArrayOp, Refusal> {
    modify_only(verb, "counter cell")?;
    let counter = binding.counters.get(entry.counter_id)?;
    let place = format!("counter {}", counter.name);
    let cells = cells(entry.index.as_ref(), counter.size).map_err(|e| e.with_place(&place))?;
    let change = match &entry.data {
        None => Change::Nothing,
        Some(data) => {
            let (packets, bytes) = counter_data(data).map_err(|e| e.with_place(&place))?;
            Change::Counter(counter.counter, packets, bytes)
        }
    };
    Ok(ArrayOp { cells, change })
}

/// # Errors
/// INVALID_ARGUMENT, NOT_FOUND, OUT_OF_RANGE or UNIMPLEMENTED, naming the meter.
pub fn plan_meter(binding: &Binding, verb: Verb, entry: &MeterEntry) -> Result<ArrayOp, Refusal> {
    modify_only(verb, "meter cell")?;
    let meter = binding.meters.get(entry.meter_id)?;
    let place = format!("meter {}", meter.name);
    if entry.counter_data.is_some() {
        return Err(no_meter_counters("counter_data").with_place(&place));
    }
    let cells = cells(entry.index.as_ref(), meter.size).map_err(|e| e.with_place(&place))?;
    let config = entry
        .config
        .as_ref()
        .map(|c| meter_config(c, meter.kind))
        .transpose()
        .map_err(|e| e.with_place(&place))?;
    Ok(ArrayOp {
        cells,
        change: Change::Meter(meter.meter, config),
    })
}

/// # Errors
/// INVALID_ARGUMENT, NOT_FOUND or OUT_OF_RANGE, naming the register.
pub fn plan_register(
    binding: &Binding,
    verb: Verb,
    entry: &RegisterEntry,
) -> Result<ArrayOp, Refusal> {
    modify_only(verb, "register cell")?;
    let register = binding.registers.get(entry.register_id)?;
    let place = format!("register {}", register.name);
    let cells = cells(entry.index.as_ref(), register.size).map_err(|e| e.with_place(&place))?;
    let data = entry
        .data
        .as_ref()
        .ok_or_else(|| Refusal::invalid(format!("{place}: the data is unset")))?;
    let value = register
        .shape
        .decode(data, register.width)
        .map_err(|e| e.with_place(&place))?;
    Ok(ArrayOp {
        cells,
        change: Change::Register(register.register, value),
    })
}

impl ArrayOp {
    /// Changes nothing of so many cells.
    #[cfg(test)]
    pub fn nothing(cells: u32) -> ArrayOp {
        ArrayOp {
            cells: 0..cells,
            change: Change::Nothing,
        }
    }

    pub fn work(&self) -> usize {
        1 + (self.cells.end - self.cells.start) as usize / 32
    }

    /// The same change in pieces of at most `max` cells, so that none holds up packets for long.
    pub fn split(self, max: u32) -> Vec<ArrayOp> {
        let Range { start, end } = self.cells;
        if end - start <= max {
            return vec![self];
        }
        let starts = (start..end).step_by(max as usize);
        starts
            .map(|s| ArrayOp {
                cells: s..s.saturating_add(max).min(end),
                change: self.change.clone(),
            })
            .collect()
    }

    /// # Errors
    /// The pipeline's refusal.
    pub fn apply(self, target: &mut Target) -> Result<(), Refusal> {
        let pipeline = target.pipeline()?;
        for index in self.cells {
            match &self.change {
                Change::Nothing => return Ok(()),
                Change::Counter(id, packets, bytes) => {
                    pipeline.counter_set(*id, index, *packets, *bytes)?
                }
                Change::Meter(id, config) => pipeline.meter_set(*id, index, *config)?,
                Change::Register(id, value) => pipeline.register_set(*id, index, value)?,
            }
        }
        Ok(())
    }
}
