# SPDX-License-Identifier: Apache-2.0
"""Requests of the control socket that take changes back, or write single entries: each answers with what takes it back in turn."""

from __future__ import annotations

from collections import Counter
from typing import Any

from fairlane_controller.history.policies import policy_before, put_policy, write_with_settings
from fairlane_controller.loop.agent import SwitchAgent
from fairlane_controller.loop.session import Log
from fairlane_controller.loop.store import LoopStore
from fairlane_controller.switch.client import SwitchClient

Request = dict[str, Any]
MAX_LOGGED = 20
"""Updates of one request that an event holds."""


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
    log.write("changed", switch=agent.endpoint.name, request=_brief(request), why=_why(request))
    return undo


def _brief(request: Request) -> Request:
    """A request as the event log keeps it: of many updates only how many there are."""
    updates = request.get("updates", ())
    return {**request, "updates": len(updates)} if len(updates) > MAX_LOGGED else request


def _why(request: Request) -> str:
    """What was asked for, in words."""
    if request["op"] == "policy_put":
        policy = request["policy"]
        now = "none" if policy is None else str(policy["scheme"])
        if policy is not None and policy["qthresh_packets"] is not None:
            now += f" with {policy['qthresh_packets']} packets, weight {policy['weight']:g}"
        return f"asked for by {request['op']}: the policy of port {request['port']} class {request['class']} is {now}"
    counts = Counter(f"{one['update']} {one['table']}" for one in request["updates"])
    entries = ", ".join(f"{count} x {what}" for what, count in counts.items()) or "no entry"
    settings = ", ".join(request.get("settings") or ())
    return f"asked for by {request['op']}: {entries}" + (f"; settings of port/class {settings}" if settings else "")
