# SPDX-License-Identifier: Apache-2.0
"""Requests that every program's changes are taken back with: table entries with settings of policies, GFR's configuration."""

from __future__ import annotations

from typing import Any

from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.history.ops import Context, Request, register
from fairlane_controller.history.policies import write_with_settings
from fairlane_controller.loop.store import LoopStore
from fairlane_controller.programs.gfr.change import change_config
from fairlane_controller.programs.gfr.setup import is_gfr
from fairlane_controller.programs.gfr.store import GfrStore


async def apply_table_write(context: Context, request: Request) -> list[Request]:
    """`{"op": "table_write", "switch", "updates": […], "settings": {"3/0": {…}}}`, updates as `switch/updates.py` has them."""
    switch = str(request["switch"])
    if context.loop_runs:
        if is_gfr(context.run):
            raise FairlaneError(
                ErrorCode.LOOP_RUNNING,
                f"a control loop of GFR runs for {context.run.name!r} and keeps its entries: stop it first",
            )
        return list(await context.ask(request))
    async with context.writer(switch) as client:
        return [await write_with_settings(client, LoopStore(context.folder), request)]


async def apply_gfr(context: Context, request: Request) -> list[Request]:
    """`{"op": "gfr_apply", "config": {…}}`: the whole configuration, as the control socket has it."""
    before = gfr_before(GfrStore(context.folder))
    await change_config(context.run, {"source": "the history", **request})
    return [before]


def gfr_before(store: GfrStore) -> dict[str, Any]:
    """What brings back the configuration in force."""
    return {"op": "gfr_apply", "config": store.state.config.model_dump(mode="json"), "source": "the history"}


register("table_write", apply_table_write)
register("gfr_apply", apply_gfr)
