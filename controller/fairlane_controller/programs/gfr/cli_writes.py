# SPDX-License-Identifier: Apache-2.0
"""Changes of GFR's configuration on all switches: planned, and made whole or not at all."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

from fairlane_controller import history
from fairlane_controller.cli.dry import DryResult, tell_dry
from fairlane_controller.cli.output import print_json
from fairlane_controller.cli.targets import Targets, resolve
from fairlane_controller.cli.types import PortRef
from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.history.steps import make as make_steps
from fairlane_controller.programs.gfr.deploy import Plan, change_set, make_plan
from fairlane_controller.programs.gfr.edit import apply_edit, locate_problem, source_of
from fairlane_controller.programs.gfr.names import PROGRAM
from fairlane_controller.programs.gfr.paths import Place
from fairlane_controller.programs.gfr.store import GfrStore
from fairlane_controller.state.ask import ask
from fairlane_controller.switch.changeset import ChangeSet
from fairlane_controller.typed import typed
from fairlane_controller.units import counted


def gfr_topology(state: str | None, switch: list[str] | None = None, port: PortRef | None = None) -> Targets:
    """The running topology; WRONG_PROGRAM when it runs another program than gfr."""
    targets = resolve(state, switch, port)
    run = targets.need_run()
    if run.program != PROGRAM:
        raise FairlaneError(
            ErrorCode.WRONG_PROGRAM,
            f"the topology {run.name!r} runs the program {run.program!r}: VCs need one that was started with the program gfr",
        )
    return targets


def make(state: str | None, request: dict[str, Any], what: str, *, dry_run: bool, as_json: bool) -> None:
    """Make a change and tell it, or show what it would write."""
    if dry_run:
        tell_dry(asyncio.run(_dry(gfr_topology(state), request)), as_json)
        return
    tell(what, change(state, request), as_json)


def change(state: str | None, request: dict[str, Any]) -> dict[str, Any]:
    """One edit (`programs/gfr/edit.py`), all or nothing, recorded; returns entries written by switch, and `via` loop or direct."""
    run = gfr_topology(state).need_run()

    async def work() -> dict[str, Any]:
        async with history.changing(run.folder, typed(), run), history.Sites(run) as sites:
            plan, planned = await _plan(sites, request)
            await make_steps([planned], sites, plan.documents, plan.documents_back)
        via = "direct" if sites.loop_folder is None else "loop"
        return {"written": {name: len(changes) for name, changes in planned.entries.items()}, "via": via}

    return asyncio.run(work())


async def _plan(sites: history.Sites, request: dict[str, Any]) -> tuple[Plan, ChangeSet]:
    """What a request would put in force, and what differs from it; raises what is wrong with it."""
    run = sites.run
    assert run is not None
    state = GfrStore(run.folder).state
    config = apply_edit(state.config, request)
    try:
        plan = make_plan(config, state, time.time(), run, source_of(request))
    except FairlaneError as problem:
        raise locate_problem(problem, request, config.model_dump(mode="json")) from None
    active = await _read_active(sites.loop_folder)
    return plan, await change_set(plan, {name: await sites.reader(name) for name in plan.switches}, active)


async def _read_active(loop_folder: Path | None) -> dict[Place, list[str]] | None:
    """Names of the active VCs of each managed port, as a running loop has them; None without one: all of them are."""
    if loop_folder is None:
        return None
    status = await ask(loop_folder, {"op": "status"})
    return {(agent["switch"], port["port"]): port["active"] for agent in status for port in agent["ports"]}


async def _dry(targets: Targets, request: dict[str, Any]) -> list[DryResult]:
    async with history.Sites(targets.need_run()) as sites:
        _, planned = await _plan(sites, request)
        return [
            DryResult(name, planned.updates(name), (await sites.reader(name)).switch.p4info) for name in planned.entries
        ]


def tell(what: str, result: dict[str, Any], as_json: bool) -> None:
    """What a change has done."""
    if as_json:
        print_json(result)
        return
    parts = ", ".join(f"{switch}: {counted(count, 'entry')}" for switch, count in result["written"].items())
    print(f"{what} ({parts or 'no switch concerned'})")
