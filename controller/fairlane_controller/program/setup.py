# SPDX-License-Identifier: Apache-2.0
"""A program on one switch: a plan applied, a switch set up, its rows read. What is right already is not touched."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from fairlane_controller.program.contract import Plan, Program
from fairlane_controller.program.reading import BatchReading
from fairlane_controller.program.registry import check_program
from fairlane_controller.program.rows import Column, Reading, Row
from fairlane_controller.state.run_state import SwitchState
from fairlane_controller.switch.changeset import Applied, ChangeSet, apply_entries
from fairlane_controller.switch.client import SwitchClient
from fairlane_controller.switch.difference import difference, entries_by_key, missing, read_entries
from fairlane_controller.switch.entities import EntityChange
from fairlane_controller.switch.setup import SetupResult, route_entries
from fairlane_controller.switch.shared import COUNTER_DROPS, drops_index


async def apply_plan(client: SwitchClient, program: Program, plan: Plan, first: Sequence[EntityChange] = ()) -> Applied:
    """The entries that a plan wants of one switch, all or nothing, and before them the changes `first`. Raises WRONG_PROGRAM, REFUSED."""
    check_program(program, client.table_names())
    current = await read_entries(client, program.tables)
    wanted = plan.wanted(client.endpoint.name, current)
    return await apply_entries(client, program.tables, wanted.entries, wanted.resets, current, first)


async def change_set(program: Program, plan: Plan, clients: Mapping[str, SwitchClient]) -> ChangeSet:
    """What differs from a plan on switches, and what begins anew there. Raises WRONG_PROGRAM."""
    found: dict[str, list[EntityChange]] = {}
    resets: dict[str, Sequence[Any]] = {}
    for name, client in clients.items():
        check_program(program, client.table_names())
        current = await read_entries(client, program.tables)
        wanted = plan.wanted(name, current)
        found[name] = difference(current, entries_by_key(client, wanted.entries), program.tables)
        resets[name] = wanted.resets if found[name] else ()
    return ChangeSet(found, resets)


async def set_up_program(client: SwitchClient, program: Program, plan: Plan, state: SwitchState) -> SetupResult:
    """Routes and the plan into one switch, all or nothing."""
    check_program(program, client.table_names())
    changes = await missing(client, route_entries(client, state))
    applied = await apply_plan(client, program, plan, changes)
    ports = program.ports_of(state.name, applied.after)
    return SetupResult(state.name, len(state.routes), tuple(sorted(ports)), applied.written)


async def read_rows(client: SwitchClient, program: Program, state: SwitchState | None = None) -> list[Row]:
    """The rows of a program on a switch, with the values of its ports' counters. Raises WRONG_PROGRAM."""
    check_program(program, client.table_names())
    return await complete_rows(program, BatchReading(client), state)


async def complete_rows(program: Program, reading: Reading, state: SwitchState | None) -> list[Row]:
    """`Program.rows`, and the columns of ports that the core reads or computes."""
    rows = list(await program.rows(reading, state))
    ports = [row.port for row in rows if not row.kind and row.port is not None]
    columns = dict(
        zip(
            program.columns,
            await asyncio.gather(*(_values(reading, ports, one) for one in program.columns)),
            strict=True,
        )
    )
    found = {
        port: {column.name: values[port] for column, values in columns.items() if port in values} for port in ports
    }
    of_ports = [
        replace(row, values={**found[row.port], **row.values}) if not row.kind and row.port is not None else row
        for row in rows
    ]
    return [_with_ratios(program, reading, row) for row in of_ports]


async def _values(reading: Reading, ports: list[int], column: Column) -> dict[int, Any]:
    """A column by port, where the core reads it."""
    if column.counter:
        cells = await reading.counters(column.counter, ports)
    elif column.reason is not None:
        indices = {drops_index(port, column.reason): port for port in ports}
        cells = {indices[index]: cell for index, cell in (await reading.counters(COUNTER_DROPS, indices)).items()}
    else:
        values = await reading.registers(column.register, ports) if column.register else None
        return {port: value if column.scale == 1 else value * column.scale for port, value in (values or {}).items()}
    return {port: cell.byte_count if column.unit == "bytes" else cell.packet_count for port, cell in cells.items()}


def _with_ratios(program: Program, reading: Reading, row: Row) -> Row:
    """The columns of a port that are ratios of what two others grew by."""
    pairs = {column.name: column.ratio for column in program.columns if column.ratio is not None}
    if row.kind or not pairs:
        return row
    totals = {name for pair in pairs.values() for name in pair}
    grew = {name: reading.per_s(("ratio", row.port, name), row.values.get(name)) for name in sorted(totals)}
    ratios = {name: share(grew[over], grew[under]) for name, (over, under) in pairs.items()}
    return replace(row, values={**row.values, **ratios})


def share(over: float | None, under: float | None) -> float | None:
    """One over the other; None where one is not known, or nothing is under it."""
    return over / under if over is not None and under else None
