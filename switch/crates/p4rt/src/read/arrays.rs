// SPDX-License-Identifier: Apache-2.0
//! Reads of indexed counters, meters and registers: one cell, all cells, all arrays.

use v1model::{ControlResult, Pipeline};

use super::{Reader, Stop};
use crate::binding::{Array, Binding, Bound, ById, Register};
use crate::entity::array::{check_colours, encode_counter, encode_meter, pieces};
use crate::proto::p4rt::entity::Entity as Kind;
use crate::proto::p4rt::*;

/// Cells read between two packets.
const SLICE_CELLS: u32 = 1024;

impl Reader {
    pub(super) async fn counters(
        &mut self,
        binding: &Binding,
        e: &CounterEntry,
    ) -> Result<(), Stop> {
        let encode = |counter: &Bound<_>, index, (packets, bytes)| {
            Kind::CounterEntry(CounterEntry {
                counter_id: counter.id,
                index,
                data: Some(encode_counter(packets, bytes)),
            })
        };
        let (all, read) = (&binding.counters, Pipeline::counter_get);
        self.cells(all, e.counter_id, &e.index, read, encode).await
    }

    pub(super) async fn meters(&mut self, binding: &Binding, e: &MeterEntry) -> Result<(), Stop> {
        check_colours(&e.counter_data)?;
        let encode = |meter: &Bound<_>, index, config: Option<_>| {
            Kind::MeterEntry(MeterEntry {
                meter_id: meter.id,
                index,
                config: config.as_ref().map(encode_meter),
                counter_data: None,
            })
        };
        let (all, read) = (&binding.meters, Pipeline::meter_get);
        self.cells(all, e.meter_id, &e.index, read, encode).await
    }

    pub(super) async fn registers(
        &mut self,
        binding: &Binding,
        e: &RegisterEntry,
    ) -> Result<(), Stop> {
        let encode = |register: &Bound<Register>, index, value| {
            Kind::RegisterEntry(RegisterEntry {
                register_id: register.id,
                index,
                data: Some(register.more.0.encode(&mut std::iter::once(&value))),
            })
        };
        let (all, read) = (&binding.registers, Pipeline::register_get);
        self.cells(all, e.register_id, &e.index, read, encode).await
    }

    /// The cells of one kind of array: of array `id`, 0 for all; of one index, None for all.
    async fn cells<I: Copy + Send + 'static, M, V: Send + 'static>(
        &mut self,
        arrays: &ById<Array<I, M>>,
        id: u32,
        index: &Option<Index>,
        read: fn(&Pipeline, I, u32) -> ControlResult<V>,
        encode: impl Fn(&Bound<Array<I, M>>, Option<Index>, V) -> Kind,
    ) -> Result<(), Stop> {
        for array in arrays.wanted(id)? {
            let own = array.own;
            for cells in pieces(index.as_ref().filter(|_| id != 0), array, SLICE_CELLS)? {
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
