# SPDX-License-Identifier: Apache-2.0
"""A program on one switch: a plan applied, a switch set up, its rows read. What is right already is not touched."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from fairlane_controller.program.contract import Plan, Program
from fairlane_controller.program.registry import check_program
from fairlane_controller.program.rows import Column, Row
from fairlane_controller.state.run_state import SwitchState
from fairlane_controller.switch.changeset import ChangeSet, apply, difference, entries_by_key, missing, read_entries
from fairlane_controller.switch.client import SwitchClient, route_entries
from fairlane_controller.switch.entities import EntityChange
from fairlane_controller.switch.reading import BatchReading
from fairlane_controller.switch.shared import COUNTER_DROPS, drops_index


async def change_set(program: Program, plan: Plan, clients: Mapping[str, SwitchClient]) -> ChangeSet:
    """Compare switches with a plan.

    Args:
        program: The program of the plan.
        plan: What the switches are to have.
        clients: Connections by the names of their switches.

    Returns:
        What must be written on each switch.

    Raises:
        FairlaneError: WRONG_PROGRAM.
    """
    changes: dict[str, list[EntityChange]] = {}
    resets: dict[str, Sequence[Any]] = {}
    for name, client in clients.items():
        check_program(program, client.table_names())
        current = await read_entries(client, program.tables)
        wanted = plan.wanted(name, current)
        changes[name] = difference(current, entries_by_key(client, wanted.entries), program.tables)
        resets[name] = wanted.resets if changes[name] else ()
    return ChangeSet(changes, resets)


async def apply_plan(client: SwitchClient, program: Program, plan: Plan) -> int:
    """Write the entries that a plan wants of one switch, all or nothing.

    Args:
        client: The connection to the switch.
        program: The program of the plan.
        plan: What the switch is to have.

    Returns:
        How many entries were written.

    Raises:
        FairlaneError: WRONG_PROGRAM, or REFUSED by the switch.
    """
    clients = {client.endpoint.name: client}
    change = await change_set(program, plan, clients)
    await apply(change, clients)
    return len(change.entries[client.endpoint.name])


async def set_up_changes(client: SwitchClient, program: Program, plan: Plan, state: SwitchState) -> ChangeSet:
    """Compare a switch with its routes and a plan.

    Args:
        client: The connection to the switch.
        program: The program of the plan.
        plan: What the switch is to have.
        state: The switch in the run state, with its routes.

    Returns:
        What must be written.

    Raises:
        FairlaneError: WRONG_PROGRAM.
    """
    found = await change_set(program, plan, {state.name: client})
    routes = await missing(client, route_entries(client, state))
    return ChangeSet({state.name: [*routes, *found.entries[state.name]]}, found.resets)


async def set_up_program(client: SwitchClient, program: Program, plan: Plan, state: SwitchState) -> dict[str, Any]:
    """Write routes and a plan into one switch, all or nothing.

    Args:
        client: The connection to the switch.
        program: The program of the plan.
        plan: What the switch is to have.
        state: The switch in the run state, with its routes.

    Returns:
        `switch`, its number of `routes`, the `managed_ports`, and how many entries were `written`: 0 when it had all.

    Raises:
        FairlaneError: WRONG_PROGRAM, or REFUSED by the switch.
    """
    change = await set_up_changes(client, program, plan, state)
    await apply(change, {state.name: client})
    ports = program.ports_of(state.name, await read_entries(client, program.tables))
    written = len(change.entries[state.name])
    return {"switch": state.name, "routes": len(state.routes), "managed_ports": sorted(ports), "written": written}


async def read_rows(client: SwitchClient, program: Program) -> list[Row]:
    """Read the rows of a program once.

    Args:
        client: The connection to the switch.
        program: Its program.

    Returns:
        The rows, with the columns that the core reads.

    Raises:
        FairlaneError: WRONG_PROGRAM.
    """
    check_program(program, client.table_names())
    return await complete_rows(program, BatchReading(client), None)


async def complete_rows(program: Program, reading: BatchReading, state: SwitchState | None) -> list[Row]:
    """The rows of a program, and in those of ports the columns that the core reads or computes.

    Args:
        program: The program of the switch.
        reading: The reading of the switch.
        state: The switch in the run state, where it is known.

    Returns:
        The rows; a value of the program's own replaces the core's.
    """
    rows = await program.rows(reading, state)
    ports = [row.port for row in rows if not row.kind and row.port is not None]
    found = await asyncio.gather(*(_read_column(reading, ports, column) for column in program.columns))
    columns = [(column.name, values) for column, values in zip(program.columns, found, strict=True)]
    ratios = {column.name: column.ratio for column in program.columns if column.ratio}

    def complete(row: Row) -> Row:
        if row.kind or row.port is None:
            return row
        values = {name: read[row.port] for name, read in columns if row.port in read} | dict(row.values)
        totals = {name for pair in ratios.values() for name in pair}
        grew = {name: reading.per_s(("ratio", row.port, name), values.get(name)) for name in totals}
        values |= {name: share(grew[over], grew[under]) for name, (over, under) in ratios.items()}
        return replace(row, values=values)

    return [complete(row) for row in rows]


async def _read_column(reading: BatchReading, ports: Iterable[int], column: Column) -> dict[int, Any]:
    """A column by port, where the core reads it."""
    if column.register:
        cells = await reading.registers(column.register, ports) or {}
        return {port: cell if column.scale == 1 else cell * column.scale for port, cell in cells.items()}
    if not column.counter and column.reason is None:
        return {}
    indices = {port: port if column.reason is None else drops_index(port, column.reason) for port in ports}
    counted = await reading.counters(column.counter or COUNTER_DROPS, indices.values())
    field = "byte_count" if column.unit == "bytes" else "packet_count"
    return {port: getattr(counted[index], field) for port, index in indices.items()}


def share(over: float | None, under: float | None) -> float | None:
    """A ratio of two values that may be unknown.

    Args:
        over: The numerator.
        under: The denominator.

    Returns:
        One divided by the other; None where one is None, or the denominator is 0.
    """
    return over / under if over is not None and under else None
