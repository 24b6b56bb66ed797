# SPDX-License-Identifier: Apache-2.0
"""The verbs of counters, registers, meters and clone sessions, as `tables.py` has those of tables."""

from __future__ import annotations

from collections.abc import Sequence
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

from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.switch.entities import EntityChange, entity_of, identity
from fairlane_controller.switch.values import bad_input
from fairlane_controller.units import counted
from fairlane_controller.verbs.context import Context, Data, Written
from fairlane_controller.verbs.entries import entry_row, match_text
from fairlane_controller.verbs.grammar import meter_unit, register_bits


async def _read(ctx: Context, pattern: Any) -> list[Any]:
    """All cells that the switch has of it."""
    try:
        return await ctx.client.read_entities([pattern])
    except FairlaneError as ex:
        if "UNIMPLEMENTED" not in ex.message or not isinstance(pattern, P4RegisterEntry):
            raise
    text = "reads and writes no registers over P4Runtime (BMv2 does not; the embedded switch does)"
    raise FairlaneError(ErrorCode.REFUSED, f"{ctx.client.endpoint} {text}")


async def _read_one(ctx: Context, pattern: Any) -> Any:
    """The pattern itself when the switch has nothing."""
    return next(iter(await _read(ctx, pattern)), pattern)


def _change(ctx: Context, before: Any, after: Any) -> EntityChange:
    return EntityChange(*(one and entity_of(one, ctx.schema) for one in (before, after)))


def _reset(ctx: Context, kind: str, alias: str, cells: Sequence[Any], zero: Any, noun: str = "cell") -> Written:
    """All to `zero`: those that are not."""
    changes = [_change(ctx, cell, replace(cell, data=zero)) for cell in cells if cell.data not in (None, zero)]
    return f"{alias}: {counted(len(changes), noun)} set to 0", {kind: alias, "written": len(changes)}, changes


# ---- counters ----------------------------------------------------------------------------------------------------


async def counter_read(ctx: Context, counter: P4Counter | P4DirectCounter, index: int | None = None) -> Data:
    """A cell, or all that are not 0; of a direct counter the entries of its table."""
    if isinstance(counter, P4DirectCounter):
        table = ctx.schema.tables[counter.direct_table_name].alias
        rows = [entry_row(e, ctx.schema) for e in await ctx.client.read_table(table, counters=True)]
        cells = [{"index": match_text(row), "packets": row.get("packets"), "bytes": row.get("bytes")} for row in rows]
        return {"counter": counter.alias, "table": table, "cells": cells}
    shown = {"packets": counter.unit != P4CounterUnit.BYTES, "bytes": counter.unit != P4CounterUnit.PACKETS}
    found = await _read(ctx, P4CounterEntry(counter.alias, index=index))
    counts = [(one.index, {"packets": one.packet_count, "bytes": one.byte_count}) for one in found]
    cells = [{"index": at, **{name: count[name] if shown[name] else None for name in shown}} for at, count in counts]
    if index is None:
        cells = [cell for cell in cells if cell["packets"] or cell["bytes"]]
    return {"counter": counter.alias, "size": counter.size, "cells": cells}


async def counter_write(ctx: Context, counter: P4Counter, index: int, packets: int, size: int) -> Written:
    """Set a cell."""
    cell = P4CounterEntry(counter.alias, index=index, data=P4CounterData())
    after = replace(cell, data=P4CounterData(byte_count=size, packet_count=packets))
    return (
        f"{counter.alias}[{index}]: {packets} packets, {size} bytes",
        {"counter": counter.alias, "written": 1},
        [_change(ctx, await _read_one(ctx, cell), after)],
    )


async def counter_reset(ctx: Context, counter: P4Counter | P4DirectCounter) -> Written:
    """All cells to 0."""
    if isinstance(counter, P4Counter):
        return _reset(ctx, "counter", counter.alias, await _read(ctx, P4CounterEntry(counter.alias)), P4CounterData())
    entries = await ctx.client.read_table(ctx.schema.tables[counter.direct_table_name].alias, counters=True)
    cells = [P4DirectCounterEntry(table_entry=identity(one), data=one.counter_data) for one in entries]
    return _reset(ctx, "counter", counter.alias, cells, P4CounterData(), "entry")


# ---- registers ---------------------------------------------------------------------------------------------------


async def register_read(ctx: Context, register: P4Register, index: int | None = None) -> Data:
    """A cell, or all."""
    found = await _read(ctx, P4RegisterEntry(register.alias, index=index))
    values = [one.data for one in sorted(found, key=lambda one: one.index)]
    data = {"register": register.alias, "size": register.size, "values": values}
    return data if index is None else {**data, "index": index}


async def register_write(ctx: Context, register: P4Register, index: int, value: int) -> Written:
    """Set a cell."""
    cell = P4RegisterEntry(register.alias, index=index)
    before = await _read_one(ctx, cell)
    return (
        f"{register.alias}[{index}] = {value} (was {before.data})",
        {"register": register.alias, "index": index, "value": value},
        [_change(ctx, before, replace(cell, data=value))],
    )


async def register_reset(ctx: Context, register: P4Register) -> Written:
    """All cells to 0."""
    register_bits(register, "reset")
    return _reset(ctx, "register", register.alias, await _read(ctx, P4RegisterEntry(register.alias)), 0)


# ---- meters ------------------------------------------------------------------------------------------------------


def _meter_cell(index: int | None, config: P4MeterConfig | None) -> Data:
    return {"index": index, **{name: getattr(config, name, None) for name in ("cir", "cburst", "pir", "pburst")}}


async def meter_get_rates(ctx: Context, meter: P4Meter, index: int | None = None) -> Data:
    """Rates and bursts of a cell, or of all that are set."""
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
    cell = P4MeterEntry(meter.alias, index=index)
    config = P4MeterConfig(cir=cir, cburst=cburst, pir=pir, pburst=pburst)
    return (
        f"{meter.alias}[{index}]: {cir} {unit}/s, burst {cburst}; peak {pir} {unit}/s, burst {pburst}",
        {"meter": meter.alias, **_meter_cell(index, config), "unit": unit},
        [_change(ctx, await _read_one(ctx, cell), replace(cell, config=config))],
    )


# ---- clone sessions ----------------------------------------------------------------------------------------------


async def mirroring_add(ctx: Context, session: int, port: int) -> Written:
    """INSERT of a session with one port."""
    entry = P4CloneSessionEntry(session_id=session, replicas=(port,))
    return f"clone session {session}: port {port}", {"session": session, "port": port}, [_change(ctx, None, entry)]


async def mirroring_delete(ctx: Context, session: int) -> Written:
    """DELETE of a session."""
    before = await _read_one(ctx, P4CloneSessionEntry(session_id=session))
    data = {"session": session, "deleted": True}
    return f"clone session {session}: deleted", data, [_change(ctx, before, None)]


async def mirroring_get(ctx: Context, session: int) -> Data:
    """The ports of a session."""
    found = await _read(ctx, P4CloneSessionEntry(session_id=session))
    return {"session": session, "ports": found[0].replicas_str() if found else None}
