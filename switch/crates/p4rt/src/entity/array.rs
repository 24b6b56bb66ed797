// SPDX-License-Identifier: Apache-2.0
//! Indexed counters, meters and registers (P4Runtime 1.5 §9.3.2, §9.4.2, §9.7).

use std::ops::Range;

use v1model::{ControlResult, MeterConfig, Pipeline};

use super::{modify_only, Op, Verb};
use crate::binding::Binding;
use crate::error::{refusal, refuse, At, Refusal};
use crate::proto::p4info::meter_spec::Type as MeterType;
use crate::proto::p4rt::{self, CounterData, CounterEntry, Index, MeterEntry, RegisterEntry};
use crate::target::Target;

/// Cells of an array that are changed at once at most, so that none holds up packets for long.
const SLICE_CELLS: u32 = 2048;

/// The cells that an index means; None is all of them.
///
/// # Errors
/// INVALID_ARGUMENT for a negative index, OUT_OF_RANGE for one beyond the array.
pub fn cells(index: Option<&Index>, size: u32) -> Result<Range<u32>, Refusal> {
    let Some(&Index { index }) = index else {
        return Ok(0..size);
    };
    if index < 0 {
        refuse!(invalid, "index {index} is negative");
    }
    match u32::try_from(index) {
        Ok(i) if i < size => Ok(i..i + 1),
        _ => refuse!(out_of_range, "index {index} is not below the size, {size}"),
    }
}

/// Cells in pieces of at most `max`.
pub fn pieces(cells: Range<u32>, max: u32) -> impl Iterator<Item = Range<u32>> {
    let end = cells.end;
    let starts = cells.step_by(max as usize);
    starts.map(move |start| start..start.saturating_add(max).min(end))
}

/// Makes ops of a change of each of the cells.
fn change_each(
    cells: Range<u32>,
    ops: &mut impl FnMut(Op),
    change: impl Fn(&mut Pipeline, u32) -> ControlResult + Clone + Send + 'static,
) {
    for piece in pieces(cells, SLICE_CELLS) {
        let (change, work) = (change.clone(), 1 + piece.len() / 32);
        let apply = move |target: &mut Target| {
            let pipeline = target.pipeline()?;
            for index in piece.clone() {
                change(pipeline, index)?;
            }
            Ok(())
        };
        ops(Op::new(work, apply));
    }
}

/// # Errors
/// INVALID_ARGUMENT for a negative number.
pub(super) fn number(name: &str, value: i64) -> Result<u64, Refusal> {
    u64::try_from(value).map_err(|_| refusal!(invalid, "{name} {value} is negative"))
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
    if config.eburst != 0 {
        match kind {
            MeterType::TwoRateThreeColor | MeterType::SingleRateTwoColor => refuse!(
                invalid,
                "eburst {} must be unset for this type of meter",
                config.eburst
            ),
            MeterType::SingleRateThreeColor => refuse!(
                unimplemented,
                "single-rate meters with an excess burst (RFC 2697) are not supported"
            ),
        }
    }
    if kind != MeterType::TwoRateThreeColor && (own.pir != own.cir || own.pburst != own.cburst) {
        refuse!(
            invalid,
            "a single-rate meter needs pir = cir and pburst = cburst"
        );
    }
    Ok(own)
}

/// The refusal of counters per colour in this field.
pub fn no_meter_counters(field: &str) -> Refusal {
    refusal!(
        unimplemented,
        "meters keep no counters per colour: {field} must be unset"
    )
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
    ops: &mut impl FnMut(Op),
) -> Result<(), Refusal> {
    modify_only(verb, "counter cell")?;
    let counter = binding.counters.get(entry.counter_id)?;
    let place = format_args!("counter {}", counter.name);
    let cells = cells(entry.index.as_ref(), counter.own.size).at(place)?;
    if let Some(data) = &entry.data {
        let (packets, bytes) = counter_data(data).at(place)?;
        let id = counter.own.id;
        change_each(cells, ops, move |p, i| p.counter_set(id, i, packets, bytes));
    }
    Ok(())
}

/// # Errors
/// INVALID_ARGUMENT, NOT_FOUND, OUT_OF_RANGE or UNIMPLEMENTED, naming the meter.
pub fn plan_meter(
    binding: &Binding,
    verb: Verb,
    entry: &MeterEntry,
    ops: &mut impl FnMut(Op),
) -> Result<(), Refusal> {
    modify_only(verb, "meter cell")?;
    let meter = binding.meters.get(entry.meter_id)?;
    let place = format_args!("meter {}", meter.name);
    if entry.counter_data.is_some() {
        return Err(no_meter_counters("counter_data").at(place));
    }
    let cells = cells(entry.index.as_ref(), meter.own.size).at(place)?;
    let config = entry.config.as_ref().map(|c| meter_config(c, meter.more));
    let (config, id) = (config.transpose().at(place)?, meter.own.id);
    change_each(cells, ops, move |p, i| p.meter_set(id, i, config));
    Ok(())
}

/// # Errors
/// INVALID_ARGUMENT, NOT_FOUND or OUT_OF_RANGE, naming the register.
pub fn plan_register(
    binding: &Binding,
    verb: Verb,
    entry: &RegisterEntry,
    ops: &mut impl FnMut(Op),
) -> Result<(), Refusal> {
    modify_only(verb, "register cell")?;
    let register = binding.registers.get(entry.register_id)?;
    let place = format_args!("register {}", register.name);
    let cells = cells(entry.index.as_ref(), register.own.size).at(place)?;
    let Some(data) = &entry.data else {
        refuse!(invalid, "{place}: the data is unset");
    };
    let value = register.more.decode(data, register.own.width).at(place)?;
    let id = register.own.id;
    change_each(cells, ops, move |p, i| p.register_set(id, i, &value));
    Ok(())
}
