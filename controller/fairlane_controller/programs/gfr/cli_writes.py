# SPDX-License-Identifier: Apache-2.0
"""Changes of GFR's configuration: through the running loop where there is one, else straight to all switches."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from fairlane_controller import history
from fairlane_controller.cli.dry import DryResult, dry_result, tell_dry
from fairlane_controller.cli.output import print_json
from fairlane_controller.cli.targets import Targets, resolve
from fairlane_controller.cli.types import PortRef
from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.programs.gfr.change import change_config, config_before, plan_of
from fairlane_controller.programs.gfr.deploy import apply_plan
from fairlane_controller.programs.gfr.names import PROGRAM
from fairlane_controller.programs.gfr.paths import Place
from fairlane_controller.programs.gfr.store import GfrStore
from fairlane_controller.state.ask import ask
from fairlane_controller.state.run_state import RunState
from fairlane_controller.switch.dry import DryClient
from fairlane_controller.switch.setup import endpoint_of
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
        async with history.changing(run.folder, typed()) as made:
            before = config_before(GfrStore(run.folder))
            await made.announce([before], whole=True)
            done = await change_config(run, request)
            made.undo = [before]
        return done

    return asyncio.run(work())


async def _read_active(loop_folder: Path | None) -> dict[Place, list[str]] | None:
    """Names of the active VCs of each managed port, as a running loop holds them; None without one: all of them are."""
    if loop_folder is None:
        return None
    status = await ask(loop_folder, {"op": "status"})
    return {(agent["switch"], port["port"]): port["active"] for agent in status for port in agent["ports"]}


async def _dry(targets: Targets, request: dict[str, Any]) -> list[DryResult]:
    run: RunState = targets.need_run()
    plan = plan_of(run, GfrStore(run.folder), request)
    active = await _read_active(targets.loop_folder)

    async def try_switch(name: str) -> DryResult:
        async with DryClient(endpoint_of(run.switch(name))) as client:
            await apply_plan(client, plan, active)
            return dry_result(client)

    return list(await asyncio.gather(*(try_switch(name) for name in plan.switches)))


def tell(what: str, result: dict[str, Any], as_json: bool) -> None:
    """What a change has done."""
    if as_json:
        print_json(result)
        return
    parts = ", ".join(f"{switch}: {counted(count, 'entry')}" for switch, count in result["written"].items())
    print(f"{what} ({parts or 'no switch concerned'})")
