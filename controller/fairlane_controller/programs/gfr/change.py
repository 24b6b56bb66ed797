# SPDX-License-Identifier: Apache-2.0
"""One change of GFR's configuration: through the running loop where there is one, else straight to all switches, all or nothing."""

from __future__ import annotations

import time
from typing import Any

from fairlane_controller.errors import FairlaneError
from fairlane_controller.history.ops import Context
from fairlane_controller.programs.gfr.deploy import Plan, deploy, make_plan
from fairlane_controller.programs.gfr.edit import apply_edit, locate_problem, source_of
from fairlane_controller.programs.gfr.store import GfrStore
from fairlane_controller.state.ask import ask, loop_runs
from fairlane_controller.state.intent import announce
from fairlane_controller.state.run_state import RunState
from fairlane_controller.switch.client import SwitchClient
from fairlane_controller.switch.setup import endpoint_of

Request = dict[str, Any]


def plan_of(run: RunState, store: GfrStore, request: Request) -> Plan:
    """What a request (`programs/gfr/edit.py`) would put in force; raises what is wrong with it. Writes nothing."""
    config = apply_edit(store.state.config, request)
    try:
        return make_plan(config, store.state, time.time(), run, source_of(request))
    except FairlaneError as problem:
        raise locate_problem(problem, request, config.model_dump(mode="json")) from None


def config_before(store: GfrStore) -> Request:
    """What brings back the configuration in force."""
    return {"op": "gfr_apply", "config": store.state.config.model_dump(mode="json"), "source": "the history"}


async def apply_config(context: Context, request: Request) -> list[Request]:
    """`{"op": "gfr_apply", "config": {…}}` of the history: the whole configuration, as the control socket has it."""
    before = config_before(GfrStore(context.folder))
    await announce([before])
    await change_config(context.run, {"source": "the history", **request})
    return [before]


async def change_config(run: RunState, request: Request) -> Request:
    """One edit; returns entries written by switch, and `via` loop or direct. A refusal leaves every switch as it was.

    The caller holds the lock of changes (`history.changing`)."""
    if loop_runs(run.folder):
        return {**await ask(run.folder, request), "via": "loop"}
    store = GfrStore(run.folder)
    plan = plan_of(run, store, request)

    def client_of(name: str) -> SwitchClient:
        return SwitchClient(endpoint_of(run.switch(name)), write=True)

    done = await deploy(plan, client_of, store)
    return {"written": {name: len(changes) for name, changes in done.items()}, "via": "direct"}
