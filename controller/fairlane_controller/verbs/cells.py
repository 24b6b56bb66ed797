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
from finsy.p4schema import P4Counter, P4CounterUnit, P4DirectCounter, P4Meter, P4Register

from fairlane_controller.switch.entities import EntityChange, entity_of, identity
from fairlane_controller.switch.values import bad_input
from fairlane_controller.verbs.context import Context, Data, Written
from fairlane_controller.verbs.entries import entry_row, match_text
from fairlane_controller.verbs.grammar import meter_unit


async def _read(ctx: Context, pattern: Any) -> Any:
    """The cells that the switch has of it."""
    return await ctx.client.read_entities([pattern])


async def _read_one(ctx: Context, pattern: Any) -> Any:
    """The pattern itself when the switch returns nothing."""
    return next(iter(await _read(ctx, pattern)), pattern)


def _change(ctx: Context, before: Any, after: Any) -> EntityChange:
    return EntityChange(*(one and entity_of(one, ctx.schema) for one in (before, after)))


async def _set(ctx: Context, cell: Any, **value: Any) -> EntityChange:
    """The change of a cell's value."""
    return _change(ctx, await _read_one(ctx, cell), replace(cell, **value))


def _reset(ctx: Context, kind: str, alias: str, cells: list[Any], zero: Any) -> Written:
    """Set the cells that are not `zero` to it."""
    changes = [_change(ctx, cell, replace(cell, data=zero)) for cell in cells if cell.data not in (None, zero)]
    return {kind: alias, "written": len(changes)}, changes


# ---- counters ----------------------------------------------------------------------------------------------------


async def counter_read(ctx: Context, counter: P4Counter | P4DirectCounter, index: int | None = None) -> Data:
    """A cell, or all that are not 0; of a direct counter the entries of its table."""
    if isinstance(counter, P4DirectCounter):
        table = ctx.schema.tables[counter.direct_table_name].alias
        rows = [entry_row(e, ctx.schema) for e in await ctx.client.read_table(table, counters=True)]
        cells = [{"index": match_text(row), "packets": row.get("packets"), "bytes": row.get("bytes")} for row in rows]
        return {"counter": counter.alias, "table": table, "cells": cells}
    found = await _read(ctx, P4CounterEntry(counter.alias, index=index))
    cells = [
        {
            "index": one.index,
            "packets": None if counter.unit == P4CounterUnit.BYTES else one.packet_count,
            "bytes": None if counter.unit == P4CounterUnit.PACKETS else one.byte_count,
        }
        for one in found
        if index is not None or one.packet_count or one.byte_count
    ]
    return {"counter": counter.alias, "size": counter.size, "cells": cells}


async def counter_write(ctx: Context, counter: P4Counter, index: int, packets: int, size: int) -> Written:
    """Set a cell."""
    cell = P4CounterEntry(counter.alias, index=index, data=P4CounterData())
    change = await _set(ctx, cell, data=P4CounterData(byte_count=size, packet_count=packets))
    return {"counter": counter.alias, "index": index, "packets": packets, "bytes": size}, [change]


async def counter_reset(ctx: Context, counter: P4Counter | P4DirectCounter) -> Written:
    """Set all cells to 0."""
    if isinstance(counter, P4Counter):
        cells = await _read(ctx, P4CounterEntry(counter.alias))
    else:
        entries = await ctx.client.read_table(ctx.schema.tables[counter.direct_table_name].alias, counters=True)
        cells = [P4DirectCounterEntry(table_entry=identity(one), data=one.counter_data) for one in entries]
    return _reset(ctx, "counter", counter.alias, cells, P4CounterData())


# ---- registers ---------------------------------------------------------------------------------------------------


async def register_read(ctx: Context, register: P4Register, index: int | None = None) -> Data:
    """The value of a cell, or those of all, by index."""
    found = await _read(ctx, P4RegisterEntry(register.alias, index=index))
    values = [one.data for one in sorted(found, key=lambda one: one.index)]
    data = {"register": register.alias, "size": register.size, "values": values}
    return data if index is None else {**data, "index": index}


async def register_write(ctx: Context, register: P4Register, index: int, value: int) -> Written:
    """Set a cell."""
    change = await _set(ctx, P4RegisterEntry(register.alias, index=index), data=value)
    return {"register": register.alias, "index": index, "value": value}, [change]


async def register_reset(ctx: Context, register: P4Register) -> Written:
    """Set all cells to 0."""
    cells = await _read(ctx, P4RegisterEntry(register.alias))
    return _reset(ctx, "register", register.alias, cells, 0)


# ---- meters ------------------------------------------------------------------------------------------------------


def _meter_cell(index: int | None, config: P4MeterConfig | None) -> Data:
    return {"index": index, **{name: getattr(config, name, None) for name in ("cir", "cburst", "pir", "pburst")}}


async def meter_get_rates(ctx: Context, meter: P4Meter, index: int | None = None) -> Data:
    """Rates, in units a second, and bursts of a cell, or of all that are set."""
    found = await _read(ctx, P4MeterEntry(meter.alias, index=index))
    cells = [_meter_cell(one.index, one.config) for one in found if index is not None or one.config]
    return {"meter": meter.alias, "size": meter.size, "unit": meter_unit(meter), "cells": cells}


async def meter_set_rates(
    ctx: Context, meter: P4Meter, index: int, committed: tuple[int, int], peak: tuple[int, int]
) -> Written:
    """Set a cell; P4Runtime counts units a second, simple_switch_CLI units a microsecond."""
    (cir, cburst), (pir, pburst), unit = committed, peak, meter_unit(meter)
    if pir < cir:
        raise bad_input(f"the peak rate, {pir} {unit}/s, is below the committed rate, {cir} {unit}/s")
    config = P4MeterConfig(cir=cir, cburst=cburst, pir=pir, pburst=pburst)
    change = await _set(ctx, P4MeterEntry(meter.alias, index=index), config=config)
    return {"meter": meter.alias, **_meter_cell(index, config), "unit": unit}, [change]


# ---- clone sessions ----------------------------------------------------------------------------------------------


async def mirroring_add(ctx: Context, session: int, port: int) -> Written:
    """INSERT of a session with one port."""
    entry = P4CloneSessionEntry(session_id=session, replicas=(port,))
    return {"session": session, "port": port}, [_change(ctx, None, entry)]


async def mirroring_delete(ctx: Context, session: int) -> Written:
    """DELETE of a session."""
    before = await _read_one(ctx, P4CloneSessionEntry(session_id=session))
    return {"session": session, "deleted": True}, [_change(ctx, before, None)]


async def mirroring_get(ctx: Context, session: int) -> Data:
    """The ports of a session; None where there is no such session."""
    found = await _read(ctx, P4CloneSessionEntry(session_id=session))
    return {"session": session, "ports": found[0].replicas_str() if found else None}
