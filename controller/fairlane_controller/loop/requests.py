# SPDX-License-Identifier: Apache-2.0
"""Requests of the control socket that take changes back, or write single entries: each answers with what takes it back in turn."""

from __future__ import annotations

from typing import Any

from fairlane_controller.history.policies import policy_before, put_policy, write_with_settings
from fairlane_controller.loop.agent import SwitchAgent
from fairlane_controller.loop.session import Log
from fairlane_controller.loop.store import LoopStore
from fairlane_controller.switch.client import SwitchClient

Request = dict[str, Any]


async def take_back(agent: SwitchAgent, store: LoopStore, log: Log, request: Request) -> list[Request]:
    """`policy_put` or `table_write` (docs/design-control.md): all or nothing; returns the requests that undo it."""
    port, traffic_class = int(request.get("port", 0)), int(request.get("class", 0))

    async def change(client: SwitchClient) -> list[Request]:
        if request["op"] == "policy_put":
            before = await policy_before(client, store, port, traffic_class)
            await put_policy(client, store, request)
            return [before]
        return [await write_with_settings(client, store, request)]

    undo = await agent.exclusively(change)
    what = "1 policy" if request["op"] == "policy_put" else f"{len(request['updates'])} table entries"
    log.write(
        "changed",
        switch=agent.endpoint.name,
        request=request,
        why=f"asked for by {request['op']}: {what} as somebody says, or as before",
    )
    return undo
