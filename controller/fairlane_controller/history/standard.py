# SPDX-License-Identifier: Apache-2.0
"""Requests that every program's changes are taken back with: policies, table entries, GFR's configuration."""

from __future__ import annotations

from typing import Any

from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.history.ops import Context, Request, register
from fairlane_controller.history.policies import policy_before, put_policy, write_with_settings
from fairlane_controller.loop.store import LoopStore
from fairlane_controller.programs.gfr.change import change_config
from fairlane_controller.programs.gfr.setup import is_gfr
from fairlane_controller.programs.gfr.store import GfrStore


async def apply_policy_put(context: Context, request: Request) -> list[Request]:
    """`{"op": "policy_put", "switch", "port", "class", "policy": {"scheme", "qthresh_packets", "weight"} | None, "settings": {…}}`."""
    switch, port, traffic_class = str(request["switch"]), int(request["port"]), int(request["class"])
    if context.loop_runs:
        return list(await context.ask(request))
    store = LoopStore(context.folder)
    async with context.writer(switch) as client:
        before = await policy_before(client, store, port, traffic_class)
        await put_policy(client, store, request)
    return [before]


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


register("policy_put", apply_policy_put)
register("table_write", apply_table_write)
register("gfr_apply", apply_gfr)
