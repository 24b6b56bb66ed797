# SPDX-License-Identifier: Apache-2.0
"""A configuration into all switches that it concerns, or into none: checked, numbered, applied one by one, then remembered.

state = GfrState()                                    # or GfrStore(folder).state
plan = make_plan(config, state, now_s, run, "gfr.toml")
await deploy(plan, client_of)                         # client_of("s1") is an open SwitchClient
state = plan.state
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any

from finsy import P4CounterData, P4CounterEntry, P4TableEntry

from fairlane_controller.program.registry import check_program
from fairlane_controller.programs.gfr import names as program
from fairlane_controller.programs.gfr.allocation import Seat, allocate
from fairlane_controller.programs.gfr.check import check_config
from fairlane_controller.programs.gfr.config import GfrConfig
from fairlane_controller.programs.gfr.entries import Active, switch_entries
from fairlane_controller.programs.gfr.store import GFR_DOCUMENT, GfrState, GfrStore
from fairlane_controller.state.run_state import RunState
from fairlane_controller.state.store import STATE_FILE
from fairlane_controller.switch.changeset import ChangeSet, apply
from fairlane_controller.switch.client import SwitchClient
from fairlane_controller.switch.difference import difference, entries_by_key, read_entries
from fairlane_controller.switch.entities import EntityChange


@dataclass(frozen=True)
class Plan:
    """A checked configuration with all its numbers; `state` is what is in force once every switch has it."""

    state: GfrState
    switches: tuple[str, ...]
    "The switches that have, or had, entries of it."
    reused: tuple[Seat, ...] = ()
    run: RunState | None = field(default=None, repr=False)

    def entries(self, switch: str, active: Active | None = None) -> list[P4TableEntry]:
        """What a switch should hold; `active` None: every VC is."""
        return switch_entries(self.state.config, self.state.allocation, switch, self.run, active)

    def resets(self, switch: str) -> list[Any]:
        """Updates that let the verdicts of slots that had another VC begin anew."""
        return [
            ~P4CounterEntry(
                program.COUNTER_VERDICTS, index=seat.slot * program.VERDICTS_A_SLOT + cell, data=P4CounterData()
            )
            for seat in self.reused
            if seat.switch == switch
            for cell in range(program.VERDICTS_A_SLOT)
        ]


def make_plan(config: GfrConfig, before: GfrState, now_s: float, run: RunState | None, source: str) -> Plan:
    """Check a configuration and number its VCs; raises BAD_FILE with `source` in its text, or OUT_OF_RANGE. Writes nothing."""
    check_config(config, source, run)
    allocation, reused = allocate(config, before.allocation, now_s, run)
    switches = tuple(sorted({*config.switches, *before.config.switches}))
    if run is not None:
        there = {switch.name for switch in run.switches}
        switches = tuple(name for name in switches if name in there)
    return Plan(GfrState(config=config, allocation=allocation), switches, reused, run)


def plan_in_force(state: GfrState, run: RunState) -> Plan:
    """The plan of what is remembered; raises BAD_FILE when the topology cannot have it any more."""
    return make_plan(state.config, state, time.time(), run, f"{run.folder / STATE_FILE}: {GFR_DOCUMENT}")


async def plan_changes(client: SwitchClient, plan: Plan, active: Active | None = None) -> list[EntityChange]:
    """What differs on one switch."""
    check_program(program.PROGRAM, client.table_names())
    wanted = entries_by_key(client, plan.entries(client.endpoint.name, active))
    return difference(await read_entries(client, program.TABLES), wanted, program.TABLES)


async def apply_plan(client: SwitchClient, plan: Plan, active: Active | None = None) -> int:
    """The plan into one switch, all or nothing; returns how many entries changed."""
    return len((await deploy_to(plan, [client], None, active))[client.endpoint.name])


async def deploy(
    plan: Plan,
    client_of: Callable[[str], SwitchClient],
    store: GfrStore | None = None,
    active: Active | None = None,
) -> dict[str, list[EntityChange]]:
    """The plan into all its switches and then into the store; when one refuses, all have again what they had.

    `client_of` makes a writing client of a switch's name that is not connected yet. Every one is reached before the first is
    changed. Returns the changes by switch.
    """
    async with AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(client_of(name)) for name in plan.switches]
        return await deploy_to(plan, clients, store, active)


async def deploy_to(
    plan: Plan, clients: list[SwitchClient], store: GfrStore | None = None, active: Active | None = None
) -> dict[str, list[EntityChange]]:
    """As `deploy`, with clients that are connected. The caller has announced what takes it back: the configuration before."""
    by_name = {client.endpoint.name: client for client in clients}
    changes = {name: await plan_changes(client, plan, active) for name, client in by_name.items()}

    async def commit() -> None:
        if store is not None:
            await asyncio.to_thread(store.put, plan.state)

    await apply(ChangeSet(changes, {name: plan.resets(name) for name in by_name}), by_name, commit, ())
    return changes
