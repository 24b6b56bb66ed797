// SPDX-License-Identifier: Apache-2.0
//! Reads of indexed counters, meters and registers: one cell, all cells, all arrays.

use v1model::{ControlResult, Pipeline};

use super::{Reader, Stop};
use crate::binding::{Array, Bound, ById, Register};
use crate::entity::array::{check_colours, encode_counter, encode_meter, pieces};
use crate::proto::p4rt::entity::Entity as Kind;
use crate::proto::p4rt::*;

/// Cells read between two packets.
const SLICE_CELLS: u32 = 1024;

impl Reader {
    pub(super) async fn counters(&mut self, request: &CounterEntry) -> Result<(), Stop> {
        let (loaded, index) = (self.loaded()?, request.index.as_ref());
        let counters = &loaded.binding.counters;
        let encode = |counter: &Bound<_>, index, (packets, bytes)| {
            Kind::CounterEntry(CounterEntry {
                counter_id: counter.id,
                index,
                data: Some(encode_counter(packets, bytes)),
            })
        };
        let id = request.counter_id;
        self.cells(counters, id, index, Pipeline::counter_get, encode)
            .await
    }

    pub(super) async fn meters(&mut self, request: &MeterEntry) -> Result<(), Stop> {
        check_colours(&request.counter_data)?;
        let (loaded, index) = (self.loaded()?, request.index.as_ref());
        let meters = &loaded.binding.meters;
        let encode = |meter: &Bound<_>, index, config: Option<_>| {
            Kind::MeterEntry(MeterEntry {
                meter_id: meter.id,
                index,
                config: config.as_ref().map(encode_meter),
                counter_data: None,
            })
        };
        let id = request.meter_id;
        self.cells(meters, id, index, Pipeline::meter_get, encode)
            .await
    }

    pub(super) async fn registers(&mut self, request: &RegisterEntry) -> Result<(), Stop> {
        let (loaded, index) = (self.loaded()?, request.index.as_ref());
        let registers = &loaded.binding.registers;
        let encode = |register: &Bound<Register>, index, value| {
            Kind::RegisterEntry(RegisterEntry {
                register_id: register.id,
                index,
                data: Some(register.more.0.encode(&mut std::iter::once(&value))),
            })
        };
        let id = request.register_id;
        self.cells(registers, id, index, Pipeline::register_get, encode)
            .await
    }

    /// The cells of one kind of array: of array `id`, 0 for all; of one index, None for all.
    async fn cells<I: Copy + Send + 'static, M, V: Send + 'static>(
        &mut self,
        arrays: &ById<Array<I, M>>,
        id: u32,
        index: Option<&Index>,
        read: fn(&Pipeline, I, u32) -> ControlResult<V>,
        encode: impl Fn(&Bound<Array<I, M>>, Option<Index>, V) -> Kind,
    ) -> Result<(), Stop> {
        for array in arrays.wanted(id)? {
            let own = array.own;
            for cells in pieces(index.filter(|_| id != 0), array, SLICE_CELLS)? {
                let first = cells.start;
                let values = self
                    .shared
                    .read(self.context()?, move |p, _| {
                        cells.map(|i| read(p, own, i)).collect::<Vec<_>>()
                    })
                    .await?;
                for (index, value) in (i64::from(first)..).zip(values) {
                    self.push(encode(array, Some(Index { index }), value?));
                }
                self.breathe().await?;
            }
        }
        Ok(())
    }
}
