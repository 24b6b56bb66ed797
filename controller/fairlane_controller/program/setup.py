# SPDX-License-Identifier: Apache-2.0
"""A program on one switch: a plan applied, a switch set up, its rows read. What is right already is not touched."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from finsy import P4CounterData, P4TableEntry

from fairlane_controller.program.contract import Plan, Program
from fairlane_controller.program.registry import check_program
from fairlane_controller.program.rows import Reading, Row
from fairlane_controller.state.run_state import SwitchState
from fairlane_controller.switch.changeset import apply_entries
from fairlane_controller.switch.client import SwitchClient
from fairlane_controller.switch.difference import read_entries
from fairlane_controller.switch.setup import SetupResult, route_entries
from fairlane_controller.switch.shared import COUNTER_DROPS, drops_index


async def apply_plan(client: SwitchClient, program: Program, plan: Plan) -> int:
    """The entries that a plan wants of one switch, all or nothing; returns how many changed. Raises WRONG_PROGRAM, REFUSED."""
    check_program(program, client.table_names())
    wanted = plan.wanted(client.endpoint.name, await read_entries(client, program.tables))
    return await apply_entries(client, program.tables, wanted.entries, wanted.resets)


async def set_up_program(client: SwitchClient, program: Program, plan: Plan, state: SwitchState) -> SetupResult:
    """Routes and the plan into one switch."""
    check_program(program, client.table_names())
    written = await client.put_entries(route_entries(client, state))
    applied = await apply_plan(client, program, plan)
    ports = program.ports_of(state.name, await read_entries(client, program.tables))
    return SetupResult(state.name, len(state.routes), tuple(sorted(ports)), written + applied)


class SwitchReading:
    """`Reading` of a switch by single requests; it has no reading before, so no rates."""

    def __init__(self, client: SwitchClient) -> None:
        self._client = client

    @property
    def switch(self) -> str:
        """Name of the switch."""
        return self._client.endpoint.name

    async def table(self, name: str, *, counters: bool = False) -> list[P4TableEntry]:
        """The entries of a table."""
        return await self._client.read_table(name, counters=counters)

    async def counters(self, name: str, indices: Iterable[int]) -> Mapping[int, P4CounterData]:
        """Cells of an indexed counter."""
        return await self._client.read_counters(name, indices)

    def per_s(self, key: object, total: float) -> float | None:
        """Not known."""
        del key, total


async def read_rows(client: SwitchClient, program: Program, state: SwitchState | None = None) -> list[Row]:
    """The rows of a program on a switch, with the values of its ports' counters. Raises WRONG_PROGRAM."""
    check_program(program, client.table_names())
    return await complete_rows(program, SwitchReading(client), state)


async def complete_rows(program: Program, reading: Reading, state: SwitchState | None) -> list[Row]:
    """`Program.rows`, and the columns of ports that the core reads."""
    rows = list(await program.rows(reading, state))
    ports = [row.port for row in rows if not row.kind]
    found: dict[int, dict[str, Any]] = {port: {} for port in ports}
    for column in program.columns:
        if column.counter:
            cells = await reading.counters(column.counter, ports)
        elif column.reason is not None:
            indices = {drops_index(port, column.reason): port for port in ports}
            read = await reading.counters(COUNTER_DROPS, indices)
            cells = {indices[index]: cell for index, cell in read.items()}
        else:
            continue
        for port, cell in cells.items():
            found[port][column.name] = cell.byte_count if column.unit == "bytes" else cell.packet_count
    return [row if row.kind else replace(row, values={**found[row.port], **row.values}) for row in rows]
