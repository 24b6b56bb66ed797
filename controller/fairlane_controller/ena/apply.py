# SPDX-License-Identifier: Apache-2.0
"""A switch that runs `ena.p4` to what its run state says: routes, and which ports are the far side of a satellite link."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from fairlane_controller.errors import out_of_range
from fairlane_controller.state.run_state import RunState, SwitchState
from fairlane_controller.switch import ena_program
from fairlane_controller.switch.client import SwitchClient, entry_key
from fairlane_controller.switch.program import CPU_PORT
from fairlane_controller.switch.setup import SetupResult, route_entries


def is_ena(run: RunState) -> bool:
    """Whether a topology runs `ena.p4`."""
    return run.program == ena_program.PROGRAM


async def set_up_ena(client: SwitchClient, state: SwitchState) -> SetupResult:
    """Routes and far-side ports into one switch; what is right already is not touched. Raises WRONG_PROGRAM, REFUSED."""
    wrong = ena_program.check_tables(set(client.table_names()))
    if wrong:
        raise wrong
    ports = tuple(port.port for port in state.ports if port.far_side)
    written = await client.put_entries(route_entries(client, state))
    written += await set_far_side(client, ports)
    return SetupResult(state.name, len(state.routes), ports, written)


async def set_far_side(client: SwitchClient, ports: Iterable[int]) -> int:
    """Make exactly these ports far sides, in one batch; how many entries changed. Raises OUT_OF_RANGE, REFUSED."""
    ports = list(ports)
    for port in ports:
        if not 1 <= port < CPU_PORT:
            raise out_of_range("port", port, 1, CPU_PORT - 1)
    wanted = [client.canonical(entry) for port in ports for entry in ena_program.far_side_entries(port)]
    held = {entry_key(entry): entry for table in ena_program.TABLES for entry in await client.read_table(table)}
    keys = {entry_key(entry) for entry in wanted}
    updates = [-replace(entry, action=None) for key, entry in held.items() if key not in keys]
    updates += [+entry for entry in wanted if entry_key(entry) not in held]
    await client.write(updates)
    return len(updates)


async def far_side_ports(client: SwitchClient) -> list[int]:
    """The ports that are far sides now: those in either table. Raises WRONG_PROGRAM."""
    wrong = ena_program.check_tables(set(client.table_names()))
    if wrong:
        raise wrong
    fields = ena_program.FIELDS
    entries = {table: await client.read_table(table) for table in ena_program.TABLES}
    return sorted({int(entry[fields[table]]) for table, found in entries.items() for entry in found})
