# SPDX-License-Identifier: Apache-2.0
"""A configuration into all switches that it concerns, or into none: checked, numbered, applied one by one, then remembered.

state = GfrState()                                    # or GfrStore(folder).state
plan = make_plan(config, state, now_s, run, "gfr.toml")
await deploy(plan, client_of)                         # client_of("s1") is an open SwitchClient
state = plan.state
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any

from finsy import P4CounterData, P4CounterEntry, P4TableEntry

from fairlane_controller.errors import FairlaneError
from fairlane_controller.program.registry import check_program
from fairlane_controller.programs.gfr import names as program
from fairlane_controller.programs.gfr.allocation import Seat, allocate
from fairlane_controller.programs.gfr.check import check_config
from fairlane_controller.programs.gfr.config import GfrConfig
from fairlane_controller.programs.gfr.entries import Active, switch_entries
from fairlane_controller.programs.gfr.store import GfrState, GfrStore
from fairlane_controller.state.run_state import RunState
from fairlane_controller.switch.client import SwitchClient
from fairlane_controller.switch.difference import Applied, apply_entries, restore_entries


@dataclass(frozen=True)
class Plan:
    """A checked configuration with all its numbers; `state` is what is in force once every switch has it."""

    state: GfrState
    switches: tuple[str, ...]
    "That hold, or held, something of it."
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
    made = allocate(config, before.allocation, now_s, run)
    switches = tuple(sorted({*config.switches, *before.config.switches}))
    if run is not None:
        there = {switch.name for switch in run.switches}
        switches = tuple(name for name in switches if name in there)
    return Plan(GfrState(config=config, allocation=made.allocation), switches, made.reused, run)


async def apply_plan(client: SwitchClient, plan: Plan, active: Active | None = None) -> Applied:
    """The plan into one switch, all or nothing."""
    name = client.endpoint.name
    check_program(program.PROGRAM, client.table_names())
    return await apply_entries(client, program.TABLES, plan.entries(name, active), plan.resets(name))


async def deploy(
    plan: Plan,
    client_of: Callable[[str], SwitchClient],
    store: GfrStore | None = None,
    active: Active | None = None,
) -> dict[str, Applied]:
    """The plan into all its switches and then into the store; when one refuses, all have again what they had.

    `client_of` makes a writing client of a switch's name that is not connected yet. Every one is reached before the first is changed.
    """
    async with AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(client_of(name)) for name in plan.switches]
        return await deploy_to(plan, clients, store, active)


async def deploy_to(
    plan: Plan, clients: list[SwitchClient], store: GfrStore | None = None, active: Active | None = None
) -> dict[str, Applied]:
    """As `deploy`, with clients that are connected."""
    done: list[tuple[SwitchClient, Applied]] = []
    try:
        for client in clients:
            done.append((client, await apply_plan(client, plan, active)))
        if store is not None:
            store.put(plan.state)
    except FairlaneError as problem:
        for client, applied in reversed(done):
            if applied.before is not None:
                await restore_entries(client, program.TABLES, applied.before, problem)
        raise
    return {client.endpoint.name: applied for client, applied in done}
