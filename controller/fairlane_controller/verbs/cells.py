# SPDX-License-Identifier: Apache-2.0
"""The verbs of what is not a table: counters, registers, meters, clone sessions."""

from __future__ import annotations

from collections.abc import Iterable
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
from finsy.p4entity import P4Entity
from finsy.p4schema import P4BitsType, P4Counter, P4CounterUnit, P4DirectCounter, P4Meter, P4MeterUnit, P4Register

from fairlane_controller.errors import ErrorCode, FairlaneError, out_of_range
from fairlane_controller.switch.entities import EntityChange, entity_of, identity
from fairlane_controller.units import counted, parse_rate, parse_size
from fairlane_controller.verbs.context import Context, Data, Step
from fairlane_controller.verbs.entries import entry_row, entry_text
from fairlane_controller.verbs.values import parse_value
from fairlane_controller.verbs.words import parse_number, usage

SESSIONS = 32_768
"""Clone session ids of v1model are 1 to this minus 1 on BMv2."""


def _change(ctx: Context, before: P4Entity | None, after: P4Entity | None) -> EntityChange:
    return EntityChange(*(one and entity_of(one, ctx.schema) for one in (before, after)))


async def _held(ctx: Context, entity: P4Entity) -> P4Entity:
    """What the switch has of it; the entity itself when it has nothing."""
    return next(iter(await ctx.client.read_entities([entity])), entity)


def _reset(alias: str, changes: Iterable[EntityChange], key: str, what: str = "cell") -> Step:
    made = tuple(changes)
    return Step(f"{alias}: {counted(len(made), what)} set to 0", {key: alias, "written": len(made)}, made)


# ---- counters ----------------------------------------------------------------------------------------------------


def _cell(index: int | None, data: P4CounterData | None, unit: P4CounterUnit) -> Data:
    packets = data.packet_count if data else 0
    counted = data.byte_count if data else 0
    return {
        "index": index,
        "packets": packets if unit != P4CounterUnit.BYTES else None,
        "bytes": counted if unit != P4CounterUnit.PACKETS else None,
    }


async def counter_read(ctx: Context, counter: P4Counter | P4DirectCounter, index: int | None = None) -> Step:
    """A cell, or all that are not 0; of a direct counter the entries of its table."""
    if isinstance(counter, P4DirectCounter):
        return _direct_counter(ctx, counter, index)

    async def read() -> Data:
        found = await ctx.client.read_entities([P4CounterEntry(counter.alias, index=index)])
        cells = [_cell(e.index, e.data, counter.unit) for e in found if isinstance(e, P4CounterEntry)]
        if index is None:
            cells = [cell for cell in cells if cell["packets"] or cell["bytes"]]
        return {"counter": counter.alias, "size": counter.size, "cells": cells}

    return Step(read=read)


def _direct_counter(ctx: Context, counter: P4DirectCounter, index: object) -> Step:
    table = ctx.schema.tables[counter.direct_table_name]
    if index is not None:
        raise FairlaneError(
            ErrorCode.BAD_INPUT,
            f"{counter.alias} is the direct counter of table {table.alias}: it has no index; without one all entries are shown",
        )

    async def read() -> Data:
        rows = [entry_row(e, ctx.schema) for e in await ctx.client.read_table(table.alias, counters=True)]
        return {
            "counter": counter.alias,
            "table": table.alias,
            "cells": [
                {
                    "index": entry_text(row).split(" => ", maxsplit=1)[0],
                    "packets": row.get("packets"),
                    "bytes": row.get("bytes"),
                }
                for row in rows
            ],
        }

    return Step(read=read)


async def counter_write(ctx: Context, counter: P4Counter, index: int, *words: str) -> Step:
    """Set a cell."""
    packets, size = (
        parse_number(word, what, 0, 2**63 - 1) for word, what in zip(words, ("packets", "bytes"), strict=True)
    )
    cell = P4CounterEntry(counter.alias, index=index, data=P4CounterData())
    after = replace(cell, data=P4CounterData(byte_count=size, packet_count=packets))
    return Step(
        f"{counter.alias}[{index}]: {packets} packets, {size} bytes",
        {"counter": counter.alias, "written": 1},
        (_change(ctx, await _held(ctx, cell), after),),
    )


async def counter_reset(ctx: Context, counter: P4Counter | P4DirectCounter) -> Step:
    """All cells to 0: those that are not."""
    found: list[Any]
    if isinstance(counter, P4Counter):
        found = await ctx.client.read_entities([P4CounterEntry(counter.alias)])
    else:
        entries = await ctx.client.read_table(ctx.schema.tables[counter.direct_table_name].alias, counters=True)
        found = [P4DirectCounterEntry(table_entry=identity(one), data=one.counter_data) for one in entries]
    changes = [
        _change(ctx, cell, replace(cell, data=P4CounterData()))
        for cell in found
        if cell.packet_count or cell.byte_count
    ]
    return _reset(counter.alias, changes, "counter", "cell" if isinstance(counter, P4Counter) else "entry")


# ---- registers ---------------------------------------------------------------------------------------------------


def _plain_bits(register: P4Register, done: str) -> int:
    """Bits of a number in a register; BAD_INPUT when it holds anything else."""
    if not isinstance(register.type_spec, P4BitsType):
        raise FairlaneError(
            ErrorCode.BAD_INPUT, f"register {register.alias} holds no plain numbers: it cannot be {done} here"
        )
    return register.type_spec.bitwidth


async def _read_cells(ctx: Context, register: P4Register, index: int | None) -> dict[int, Any]:
    try:
        found = await ctx.client.read_entities([P4RegisterEntry(register.alias, index=index)])
    except FairlaneError as ex:
        if "UNIMPLEMENTED" in ex.message:
            text = "reads and writes no registers over P4Runtime (BMv2 does not; the embedded switch does)"
            raise FairlaneError(ErrorCode.REFUSED, f"{ctx.client.endpoint} {text}") from None
        raise
    return {e.index: e.data for e in found if isinstance(e, P4RegisterEntry) and e.index is not None}


async def register_read(ctx: Context, register: P4Register, index: int | None = None) -> Step:
    """A cell, or all."""

    async def read() -> Data:
        cells = await _read_cells(ctx, register, index)
        return {"register": register.alias, "size": register.size, "values": [cells[i] for i in sorted(cells)]} | (
            {} if index is None else {"index": index}
        )

    return Step(read=read)


async def register_write(ctx: Context, register: P4Register, index: int, word: str) -> Step:
    """Set a cell."""
    value = parse_value(word, _plain_bits(register, "written"), f"value of {register.alias}")
    before = await _read_cells(ctx, register, index)
    return Step(
        f"{register.alias}[{index}] = {value} (was {before.get(index)})",
        {"register": register.alias, "index": index, "value": value},
        (_register_change(ctx, register, index, value, before.get(index, 0)),),
    )


def _register_change(ctx: Context, register: P4Register, index: int, value: Any, before: Any) -> EntityChange:
    old, new = (P4RegisterEntry(register.alias, index=index, data=data) for data in (before, value))
    return _change(ctx, old, new)


async def register_reset(ctx: Context, register: P4Register) -> Step:
    """All cells to 0: those that are not."""
    _plain_bits(register, "reset")
    cells = await _read_cells(ctx, register, None)
    changes = (_register_change(ctx, register, index, 0, value) for index, value in cells.items() if value)
    return _reset(register.alias, changes, "register")


# ---- meters ------------------------------------------------------------------------------------------------------


async def meter_get_rates(ctx: Context, meter: P4Meter, index: int | None = None) -> Step:
    """Rates and bursts of a cell, or of all that are set."""

    async def read() -> Data:
        found = await ctx.client.read_entities([P4MeterEntry(meter.alias, index=index)])
        cells = [_meter_cell(e.index, e.config) for e in found if isinstance(e, P4MeterEntry)]
        if index is None:
            cells = [cell for cell in cells if cell["cir"] is not None]
        return {"meter": meter.alias, "size": meter.size, "unit": _unit(meter), "cells": cells}

    return Step(read=read)


def _unit(meter: P4Meter) -> str:
    return "packets" if meter.unit == P4MeterUnit.PACKETS else "bytes"


def _meter_cell(index: int | None, config: P4MeterConfig | None) -> Data:
    if config is None:
        return {"index": index, "cir": None, "cburst": None, "pir": None, "pburst": None}
    return {"index": index, "cir": config.cir, "cburst": config.cburst, "pir": config.pir, "pburst": config.pburst}


async def meter_set_rates(ctx: Context, meter: P4Meter, index: int, *words: str) -> Step:
    """Set a cell; P4Runtime counts units a second, simple_switch_CLI units a microsecond."""
    unit = _unit(meter)
    (cir, cburst), (pir, pburst) = (parse_meter_rate(word, unit) for word in words)
    if pir < cir:
        raise FairlaneError(ErrorCode.BAD_INPUT, f"the peak rate {words[1]} is below the committed rate {words[0]}")
    cell = P4MeterEntry(meter.alias, index=index)
    config = P4MeterConfig(cir=cir, cburst=cburst, pir=pir, pburst=pburst)
    return Step(
        f"{meter.alias}[{index}]: {cir} {unit}/s, burst {cburst}; peak {pir} {unit}/s, burst {pburst}",
        {"meter": meter.alias, **_meter_cell(index, config), "unit": unit},
        (_change(ctx, await _held(ctx, cell), replace(cell, config=config)),),
    )


def parse_meter_rate(word: str, unit: str) -> tuple[int, int]:
    """Units a second and a burst in units, of `0.25:15000` (units a microsecond) or `2Mbit:15KB`."""
    rate, colon, burst = word.partition(":")
    if not colon:
        raise usage("meter_set_rates", f"{word!r} is not RATE:BURST")
    try:
        per_second = round(float(rate) * 1e6)
    except OverflowError:
        raise usage("meter_set_rates", f"{rate!r} is no finite rate") from None
    except ValueError:
        if unit == "packets":
            raise usage("meter_set_rates", f"{rate!r} is not a number of packets a microsecond") from None
        per_second = round(parse_rate(rate, "rate") / 8)
    size = parse_size(burst, "burst") if unit == "bytes" else parse_number(burst, "burst", 0, 2**31 - 1)
    if not 0 <= per_second < 2**63:
        raise out_of_range("rate", rate, 0, f"{2**63 // 10**6} {unit} a microsecond")
    return per_second, size


# ---- clone sessions ----------------------------------------------------------------------------------------------


def _session(text: str) -> int:
    return parse_number(text, "clone session", 1, SESSIONS - 1)


async def mirroring_add(ctx: Context, *words: str) -> Step:
    """INSERT of a session with one port."""
    session, port = _session(words[0]), parse_number(words[1], "port", 1, 511)
    entry = P4CloneSessionEntry(session_id=session, replicas=(port,))
    return Step(
        f"clone session {session}: port {port}", {"session": session, "port": port}, (_change(ctx, None, entry),)
    )


async def mirroring_delete(ctx: Context, word: str) -> Step:
    """DELETE of a session."""
    session = _session(word)
    held = await _held(ctx, P4CloneSessionEntry(session_id=session))
    return Step(f"clone session {session}: deleted", {"session": session, "deleted": True}, (_change(ctx, held, None),))


async def mirroring_get(ctx: Context, word: str) -> Step:
    """The ports of a session."""
    session = _session(word)

    async def read() -> Data:
        found = await ctx.client.read_entities([P4CloneSessionEntry(session_id=session)])
        ports = [e.replicas_str() for e in found if isinstance(e, P4CloneSessionEntry)]
        return {"session": session, "ports": ports[0] if ports else None}

    return Step(read=read)
