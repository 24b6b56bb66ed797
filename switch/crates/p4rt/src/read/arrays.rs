// SPDX-License-Identifier: Apache-2.0
//! Reads of indexed counters, meters and registers: one cell, all cells, all arrays.

use super::{wild, Reader, Stop};
use crate::entity::array;
use crate::error::Refusal;
use crate::proto::p4rt::entity::Entity as Kind;
use crate::proto::p4rt::{CounterData, CounterEntry, Index, MeterEntry, RegisterEntry};

/// Cells read between two packets.
const SLICE_CELLS: u32 = 1024;

impl Reader {
    pub(super) async fn counters(&mut self, request: &CounterEntry) -> Result<(), Stop> {
        let loaded = self.loaded()?;
        let counters = &loaded.binding.counters;
        if request.counter_id != 0 {
            counters.get(request.counter_id)?;
        }
        for counter in counters
            .items
            .iter()
            .filter(|c| wild(request.counter_id, c.id))
        {
            let index = if request.counter_id == 0 {
                None
            } else {
                request.index.as_ref()
            };
            let cells = array::cells(index, counter.size)
                .map_err(|e| e.at(&format!("counter {}", counter.name)))?;
            let id = counter.counter;
            for cells in pieces(cells) {
                let first = cells.start;
                let values = self
                    .shared
                    .read(self.context()?, move |p, _| {
                        cells.map(|i| p.counter_get(id, i)).collect::<Vec<_>>()
                    })
                    .await?;
                for (index, value) in (i64::from(first)..).zip(values) {
                    let (packets, bytes) = value.map_err(Refusal::from)?;
                    let data = CounterData {
                        packet_count: packets as i64,
                        byte_count: bytes as i64,
                    };
                    let entry = CounterEntry {
                        counter_id: counter.id,
                        index: Some(Index { index }),
                        data: Some(data),
                    };
                    self.push(Kind::CounterEntry(entry));
                }
                self.breathe().await?;
            }
        }
        Ok(())
    }

    pub(super) async fn meters(&mut self, request: &MeterEntry) -> Result<(), Stop> {
        if request.counter_data.is_some() {
            return Err(Refusal::unimplemented(
                "meters keep no counters per colour: counter_data must be unset",
            )
            .into());
        }
        let loaded = self.loaded()?;
        let meters = &loaded.binding.meters;
        if request.meter_id != 0 {
            meters.get(request.meter_id)?;
        }
        for meter in meters.items.iter().filter(|m| wild(request.meter_id, m.id)) {
            let index = if request.meter_id == 0 {
                None
            } else {
                request.index.as_ref()
            };
            let cells = array::cells(index, meter.size)
                .map_err(|e| e.at(&format!("meter {}", meter.name)))?;
            let id = meter.meter;
            for cells in pieces(cells) {
                let first = cells.start;
                let values = self
                    .shared
                    .read(self.context()?, move |p, _| {
                        cells.map(|i| p.meter_get(id, i)).collect::<Vec<_>>()
                    })
                    .await?;
                for (index, value) in (i64::from(first)..).zip(values) {
                    let config = value
                        .map_err(Refusal::from)?
                        .as_ref()
                        .map(array::encode_meter);
                    let entry = MeterEntry {
                        meter_id: meter.id,
                        index: Some(Index { index }),
                        config,
                        counter_data: None,
                    };
                    self.push(Kind::MeterEntry(entry));
                }
                self.breathe().await?;
            }
        }
        Ok(())
    }

    pub(super) async fn registers(&mut self, request: &RegisterEntry) -> Result<(), Stop> {
        let loaded = self.loaded()?;
        let registers = &loaded.binding.registers;
        if request.register_id != 0 {
            registers.get(request.register_id)?;
        }
        for register in registers
            .items
            .iter()
            .filter(|r| wild(request.register_id, r.id))
        {
            let index = if request.register_id == 0 {
                None
            } else {
                request.index.as_ref()
            };
            let cells = array::cells(index, register.size)
                .map_err(|e| e.at(&format!("register {}", register.name)))?;
            let id = register.register;
            for cells in pieces(cells) {
                let first = cells.start;
                let values = self
                    .shared
                    .read(self.context()?, move |p, _| {
                        cells.map(|i| p.register_get(id, i)).collect::<Vec<_>>()
                    })
                    .await?;
                for (index, value) in (i64::from(first)..).zip(values) {
                    let value = value.map_err(Refusal::from)?;
                    let data = Some(register.shape.encode(&mut std::iter::once(&value)));
                    let entry = RegisterEntry {
                        register_id: register.id,
                        index: Some(Index { index }),
                        data,
                    };
                    self.push(Kind::RegisterEntry(entry));
                }
                self.breathe().await?;
            }
        }
        Ok(())
    }
}

fn pieces(cells: std::ops::Range<u32>) -> impl Iterator<Item = std::ops::Range<u32>> {
    let end = cells.end;
    cells
        .step_by(SLICE_CELLS as usize)
        .map(move |s| s..s.saturating_add(SLICE_CELLS).min(end))
}
