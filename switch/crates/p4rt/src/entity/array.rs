// SPDX-License-Identifier: Apache-2.0
//! Indexed counters, meters and registers (P4Runtime 1.5 §9.3.2, §9.4.2, §9.7).

use std::ops::Range;

use v1model::externs::meter::check_config;
use v1model::{ControlResult, EntryStats, MeterConfig, Pipeline};

use super::Planner;
use crate::binding::{Array, Bound};
use crate::error::{refusal, refuse, At, Checked};
use crate::proto::p4info::meter_spec::Type as MeterType;
use crate::proto::p4rt::{self, *};
use crate::soft::Target;

/// Cells of an array that are changed at once at most, so that none holds up packets for long.
const SLICE_CELLS: u32 = 2048;

/// The cells that an index means, in pieces of at most `max`; None is all of them.
///
/// # Errors
/// INVALID_ARGUMENT for a negative index, OUT_OF_RANGE for one beyond the array.
pub fn pieces<I, M>(
    index: Option<&Index>,
    array: &Bound<Array<I, M>>,
    max: u32,
) -> Checked<impl Iterator<Item = Range<u32>>> {
    let size = array.size;
    let cells = match index.map(|i| i.index) {
        None => 0..size,
        Some(index) => match u32::try_from(number("index", index).at(array)?) {
            Ok(i) if i < size => i..i + 1,
            _ => refuse!(
                OutOfRange,
                "{array}: index {index} is not below the size, {size}"
            ),
        },
    };
    let end = cells.end;
    let starts = cells.step_by(max as usize);
    Ok(starts.map(move |start| start..start.saturating_add(max).min(end)))
}

/// # Errors
/// INVALID_ARGUMENT for a negative number.
pub fn number(name: &str, value: i64) -> Checked<u64> {
    u64::try_from(value).map_err(|_| refusal!("{name} {value} is negative"))
}

/// (packets, bytes)
///
/// # Errors
/// INVALID_ARGUMENT for a negative number.
pub fn counter_data(data: &CounterData) -> Checked<(u64, u64)> {
    let packets = number("packet_count", data.packet_count)?;
    Ok((packets, number("byte_count", data.byte_count)?))
}

pub fn encode_counter(packets: u64, bytes: u64) -> CounterData {
    CounterData {
        packet_count: packets as i64,
        byte_count: bytes as i64,
    }
}

pub fn encode_count(stats: &EntryStats) -> CounterData {
    encode_counter(stats.packets, stats.bytes)
}

/// # Errors
/// INVALID_ARGUMENT for negative numbers, for fields that the meter's type does not take and for a peak rate below the
/// committed one, UNIMPLEMENTED for an excess burst.
pub fn meter_config(config: &p4rt::MeterConfig, kind: MeterType) -> Checked<MeterConfig> {
    let own = MeterConfig {
        cir: number("cir", config.cir)?,
        cburst: number("cburst", config.cburst)?,
        pir: number("pir", config.pir)?,
        pburst: number("pburst", config.pburst)?,
    };
    match (config.eburst, kind) {
        (0, _) => {}
        (_, MeterType::SingleRateThreeColor) => refuse!(
            Unimplemented,
            "single-rate meters with an excess burst (RFC 2697) are not supported"
        ),
        (eburst, _) => refuse!("eburst {eburst} must be unset for this type of meter"),
    }
    if kind != MeterType::TwoRateThreeColor && (own.pir, own.pburst) != (own.cir, own.cburst) {
        refuse!("a single-rate meter needs pir = cir and pburst = cburst");
    }
    check_config(&own).map(|()| own)
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
/// UNIMPLEMENTED for counters per colour.
pub fn check_colours<T>(counters: &Option<T>) -> Checked {
    match counters {
        None => Ok(()),
        Some(_) => refuse!(
            Unimplemented,
            "meters have no counters per colour: the meter's counter_data must be unset"
        ),
    }
}

impl Planner<'_> {
    /// Makes an op of a change of each of the cells, or several.
    fn cells<I, M>(
        &mut self,
        index: Option<&Index>,
        array: &Bound<Array<I, M>>,
        change: impl Fn(&mut Pipeline, u32) -> ControlResult + Clone + Send + 'static,
    ) -> Checked {
        for mut piece in pieces(index, array, SLICE_CELLS)? {
            let (change, work) = (change.clone(), 1 + piece.len() / 32);
            self.op(work, move |target: &mut Target| {
                let pipeline = target.pipeline()?;
                piece.try_for_each(|index| change(pipeline, index))
            })?;
        }
        Ok(())
    }

    /// # Errors
    /// INVALID_ARGUMENT, NOT_FOUND or OUT_OF_RANGE, naming the counter.
    pub(super) fn counter(&mut self, entry: &CounterEntry) -> Checked {
        self.modify_only("counter cell")?;
        let counter = self.binding.counters.get(entry.counter_id)?;
        let data = entry
            .data
            .as_ref()
            .map(counter_data)
            .transpose()
            .at(counter)?;
        let id = counter.own;
        self.cells(entry.index.as_ref(), counter, move |p, i| match data {
            Some((packets, bytes)) => p.counter_set(id, i, packets, bytes),
            None => Ok(()),
        })
    }

    /// # Errors
    /// INVALID_ARGUMENT, NOT_FOUND, OUT_OF_RANGE or UNIMPLEMENTED, naming the meter.
    pub(super) fn meter(&mut self, entry: &MeterEntry) -> Checked {
        self.modify_only("meter cell")?;
        let meter = self.binding.meters.get(entry.meter_id)?;
        check_colours(&entry.counter_data).at(meter)?;
        let config = entry.config.as_ref().map(|c| meter_config(c, meter.more));
        let (config, id) = (config.transpose().at(meter)?, meter.own);
        self.cells(entry.index.as_ref(), meter, move |p, i| {
            p.meter_set(id, i, config)
        })
    }

    /// # Errors
    /// INVALID_ARGUMENT, NOT_FOUND or OUT_OF_RANGE, naming the register.
    pub(super) fn register(&mut self, entry: &RegisterEntry) -> Checked {
        self.modify_only("register cell")?;
        let register = self.binding.registers.get(entry.register_id)?;
        let Some(data) = &entry.data else {
            refuse!("{register}: the data is unset");
        };
        let (shape, width) = &register.more;
        let (value, id) = (shape.decode(data, *width).at(register)?, register.own);
        self.cells(entry.index.as_ref(), register, move |p, i| {
            p.register_set(id, i, &value)
        })
    }
}
