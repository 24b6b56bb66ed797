// SPDX-License-Identifier: Apache-2.0
//! Reads of indexed counters, meters and registers: one cell, all cells, all arrays.

use v1model::{Bits, ControlError, MeterConfig, Pipeline};

use super::{Reader, Stop};
use crate::binding::{ById, CounterBinding, MeterBinding, Named, RegisterBinding};
use crate::entity::array;
use crate::error::{At, Refusal};
use crate::proto::p4rt::entity::Entity as Kind;
use crate::proto::p4rt::{CounterData, CounterEntry, Index, MeterEntry, RegisterEntry};

/// Cells read between two packets.
const SLICE_CELLS: u32 = 1024;

impl Reader {
    pub(super) async fn counters(&mut self, request: &CounterEntry) -> Result<(), Stop> {
        let loaded = self.loaded()?;
        let (id, index) = (request.counter_id, request.index.as_ref());
        let read = |counter: &CounterBinding| {
            let id = counter.own.id;
            move |p: &Pipeline, index| p.counter_get(id, index)
        };
        let encode = |counter: &CounterBinding, index, (packets, bytes): (u64, u64)| {
            Kind::CounterEntry(CounterEntry {
                counter_id: counter.id,
                index,
                data: Some(CounterData {
                    packet_count: packets as i64,
                    byte_count: bytes as i64,
                }),
            })
        };
        self.cells(
            &loaded.binding.counters,
            id,
            index,
            |c| c.own.size,
            read,
            encode,
        )
        .await
    }

    pub(super) async fn meters(&mut self, request: &MeterEntry) -> Result<(), Stop> {
        if request.counter_data.is_some() {
            return Err(array::no_meter_counters("counter_data").into());
        }
        let loaded = self.loaded()?;
        let (id, index) = (request.meter_id, request.index.as_ref());
        let read = |meter: &MeterBinding| {
            let id = meter.own.id;
            move |p: &Pipeline, index| p.meter_get(id, index)
        };
        let encode = |meter: &MeterBinding, index, config: Option<MeterConfig>| {
            Kind::MeterEntry(MeterEntry {
                meter_id: meter.id,
                index,
                config: config.as_ref().map(array::encode_meter),
                counter_data: None,
            })
        };
        self.cells(
            &loaded.binding.meters,
            id,
            index,
            |m| m.own.size,
            read,
            encode,
        )
        .await
    }

    pub(super) async fn registers(&mut self, request: &RegisterEntry) -> Result<(), Stop> {
        let loaded = self.loaded()?;
        let (id, index) = (request.register_id, request.index.as_ref());
        let read = |register: &RegisterBinding| {
            let id = register.own.id;
            move |p: &Pipeline, index| p.register_get(id, index)
        };
        let encode = |register: &RegisterBinding, index, value: Bits| {
            Kind::RegisterEntry(RegisterEntry {
                register_id: register.id,
                index,
                data: Some(register.more.encode(&mut std::iter::once(&value))),
            })
        };
        self.cells(
            &loaded.binding.registers,
            id,
            index,
            |r| r.own.size,
            read,
            encode,
        )
        .await
    }

    /// The cells of one kind of array: of array `id`, 0 for all; of one index, None for all.
    async fn cells<B: Named, V, R>(
        &mut self,
        arrays: &ById<B>,
        id: u32,
        index: Option<&Index>,
        size: impl Fn(&B) -> u32,
        read: impl Fn(&B) -> R,
        encode: impl Fn(&B, Option<Index>, V) -> Kind,
    ) -> Result<(), Stop>
    where
        V: Send + 'static,
        R: Fn(&Pipeline, u32) -> Result<V, ControlError> + Send + 'static,
    {
        for array in arrays.wanted(id)? {
            let index = index.filter(|_| id != 0);
            let cells = array::cells(index, size(array)).at(arrays.place(array))?;
            for cells in array::pieces(cells, SLICE_CELLS) {
                let (first, read) = (cells.start, read(array));
                let values = self
                    .shared
                    .read(self.context()?, move |p, _| {
                        cells.map(|i| read(p, i)).collect::<Vec<_>>()
                    })
                    .await?;
                for (index, value) in (i64::from(first)..).zip(values) {
                    let value = value.map_err(Refusal::from)?;
                    self.push(encode(array, Some(Index { index }), value));
                }
                self.breathe().await?;
            }
        }
        Ok(())
    }
}
