# SPDX-License-Identifier: Apache-2.0
"""Changes of GFR's configuration: through the running loop where there is one, else straight to all switches."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from fairlane_controller.cli.output import print_json
from fairlane_controller.cli.targets import Targets, resolve
from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.gfr.deploy import deploy, make_plan
from fairlane_controller.gfr.edit import apply_edit, in_words, source_of
from fairlane_controller.gfr.lock import change_lock
from fairlane_controller.gfr.setup import is_gfr
from fairlane_controller.gfr.store import GfrStore
from fairlane_controller.loop.control import ask, loop_runs
from fairlane_controller.state.run_state import RunState
from fairlane_controller.switch.client import SwitchClient
from fairlane_controller.switch.setup import endpoint_of


def gfr_topology(state: str | None) -> Targets:
    """The running topology; WRONG_PROGRAM when it runs another program than gfr."""
    targets = resolve(state, None)
    run = targets.need_run()
    if not is_gfr(run):
        raise FairlaneError(
            ErrorCode.WRONG_PROGRAM,
            f"the topology {run.name!r} runs the program {run.program!r}: VCs need one that was started with the program gfr",
        )
    return targets


def change(state: str | None, request: dict[str, Any]) -> dict[str, Any]:
    """One edit (`gfr/edit.py`), all or nothing; returns entries written by switch, and `via` loop or direct."""
    targets = gfr_topology(state)
    folder = targets.loop_folder
    if folder is not None:
        return {**asyncio.run(ask(folder, request)), "via": "loop"}
    return asyncio.run(_direct(targets.need_run(), request))


async def _direct(run: RunState, request: dict[str, Any]) -> dict[str, Any]:
    async with change_lock(run.folder):
        if loop_runs(run.folder):  # it has begun while this waited
            return {**await ask(run.folder, request), "via": "loop"}
        store = GfrStore(run.folder)
        config = apply_edit(store.state.config, request)
        try:
            plan = make_plan(config, store.state, time.time(), run, source_of(request))
        except FairlaneError as problem:
            raise in_words(problem, request, config.model_dump(mode="json")) from None

        def client_of(name: str) -> SwitchClient:
            return SwitchClient(endpoint_of(run.switch(name)), write=True)

        done = await deploy(plan, client_of, store)
    return {"written": {name: applied.written for name, applied in done.items()}, "via": "direct"}


def tell(what: str, result: dict[str, Any], as_json: bool) -> None:
    """What a change has done."""
    if as_json:
        print_json(result)
        return
    parts = ", ".join(f"{switch}: {count} entries" for switch, count in result["written"].items())
    print(f"{what} ({parts or 'no switch concerned'})")
