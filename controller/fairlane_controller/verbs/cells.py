# SPDX-License-Identifier: Apache-2.0
"""The verbs of counters, registers, meters and clone sessions, as `tables.py` has those of tables."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from finsy import (
    P4CloneSessionEntry,
    P4CounterData,
    P4CounterEntry,
    P4DirectCounterEntry,
    P4MeterConfig,
    P4MeterEntry,
    P4RegisterEntry,
)
from finsy.p4schema import P4Counter, P4DirectCounter, P4Meter, P4Register

from fairlane_controller.switch.entities import EntityChange, entity_of, identity
from fairlane_controller.switch.values import bad_input
from fairlane_controller.verbs.context import Context, Data, Written
from fairlane_controller.verbs.entries import entry_row, match_text
from fairlane_controller.verbs.grammar import meter_unit

_RATES = ("cir", "cburst", "pir", "pburst")
Array = P4Counter | P4DirectCounter | P4Register | P4Meter


def _cell(array: Array, index: int | None = None) -> Any:
    """A cell of an array without its value; without an index all of them."""
    if isinstance(array, P4Counter):
        return P4CounterEntry(array.alias, index=index, data=None if index is None else P4CounterData())
    return (P4RegisterEntry if isinstance(array, P4Register) else P4MeterEntry)(array.alias, index=index)


async def _cells(ctx: Context, array: Array, index: int | None = None) -> list[Any]:
    """The cells that a switch has; of a direct counter those of its table's entries."""
    if not isinstance(array, P4DirectCounter):
        return await ctx.client.read_entities([_cell(array, index)])
    entries = await ctx.client.read_table(ctx.schema.tables[array.direct_table_name].alias, counters=True)
    return [P4DirectCounterEntry(table_entry=one, data=one.counter_data) for one in entries]


def _row(ctx: Context, cell: Any) -> Data:
    """A cell as plain data."""
    if isinstance(cell, P4RegisterEntry):
        return {"index": cell.index, "value": cell.data}
    if isinstance(cell, P4MeterEntry):
        return {"index": cell.index, **{name: getattr(cell.config, name, None) for name in _RATES}}
    index = match_text(entry_row(cell.table_entry, ctx.schema)) if hasattr(cell, "table_entry") else cell.index
    return {"index": index, "packets": cell.packet_count, "bytes": cell.byte_count}


def _kind(array: Array) -> str:
    """`counter`, `register` or `meter`."""
    return type(array).__name__.removeprefix("P4").removeprefix("Direct").lower()


async def _read(ctx: Context, array: Array, index: int | None = None) -> Data:
    """A cell, or all that have a value other than 0."""
    rows = sorted((_row(ctx, one) for one in await _cells(ctx, array, index)), key=lambda row: row["index"])
    shown = [row for row in rows if index is not None or any(list(row.values())[1:])]
    unit = {"unit": meter_unit(array)} if isinstance(array, P4Meter) else {}
    return {_kind(array): array.alias, **unit, "cells": shown}


def _change(ctx: Context, before: Any, after: Any) -> EntityChange:
    return EntityChange(*(one and entity_of(one, ctx.schema) for one in (before, after)))


async def _write(ctx: Context, array: Array, index: int, **value: Any) -> Written:
    """Set a cell; one that the switch does not return has no value before."""
    cell = _cell(array, index)
    before, after = next(iter(await ctx.client.read_entities([cell])), cell), replace(cell, **value)
    return {_kind(array): array.alias, **_row(ctx, after)}, [_change(ctx, before, after)]


async def _reset(ctx: Context, array: Array) -> Written:
    """Set all cells to 0."""
    zero = 0 if isinstance(array, P4Register) else P4CounterData()
    changes: list[EntityChange] = []
    for one in await _cells(ctx, array):
        cell = replace(one, table_entry=identity(one.table_entry)) if hasattr(one, "table_entry") else one
        if one.data not in (None, zero):
            changes.append(_change(ctx, cell, replace(cell, data=zero)))
    return {_kind(array): array.alias, "written": len(changes)}, changes


counter_read = register_read = meter_get_rates = _read
counter_reset = register_reset = _reset


async def counter_write(ctx: Context, counter: P4Counter, index: int, packets: int, size: int) -> Written:
    """Set a cell."""
    return await _write(ctx, counter, index, data=P4CounterData(byte_count=size, packet_count=packets))


async def register_write(ctx: Context, register: P4Register, index: int, value: int) -> Written:
    """Set a cell."""
    return await _write(ctx, register, index, data=value)


async def meter_set_rates(
    ctx: Context, meter: P4Meter, index: int, committed: tuple[int, int], peak: tuple[int, int]
) -> Written:
    """Set a cell; P4Runtime counts units a second, simple_switch_CLI units a microsecond."""
    if peak[0] < committed[0]:
        raise bad_input(f"the peak rate, {peak[0]} {meter_unit(meter)}/s, is below the committed rate, {committed[0]}")
    config = P4MeterConfig(**dict(zip(_RATES, (*committed, *peak), strict=True)))
    return await _write(ctx, meter, index, config=config)


async def mirroring_add(ctx: Context, session: int, port: int) -> Written:
    """INSERT of a session with one port."""
    entry = P4CloneSessionEntry(session_id=session, replicas=(port,))
    return {"session": session, "port": port}, [_change(ctx, None, entry)]


async def mirroring_delete(ctx: Context, session: int) -> Written:
    """DELETE of a session."""
    pattern = P4CloneSessionEntry(session_id=session)
    before = next(iter(await ctx.client.read_entities([pattern])), pattern)
    return {"session": session, "deleted": True}, [_change(ctx, before, None)]


async def mirroring_get(ctx: Context, session: int) -> Data:
    """The ports of a session; None where there is no such session."""
    found: Any = await ctx.client.read_entities([P4CloneSessionEntry(session_id=session)])
    return {"session": session, "ports": found[0].replicas_str() if found else None}
