# SPDX-License-Identifier: Apache-2.0
"""Requests of the control socket that change what switches have: by hand, or back."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import Any

from fairlane_controller.errors import unknown_name
from fairlane_controller.history.journal import Change, record
from fairlane_controller.history.policies import write_with_settings
from fairlane_controller.loop.agent import SwitchAgent
from fairlane_controller.loop.schema import checked
from fairlane_controller.loop.session import Log
from fairlane_controller.loop.store import LoopStore
from fairlane_controller.programs.qthresh import changes
from fairlane_controller.state.store import Documents, Store

Request = dict[str, Any]
MAX_LOGGED = 20
"""Updates of one request that an event holds."""


async def change_policies(
    agents: Mapping[str, SwitchAgent], store: LoopStore, request: Request
) -> list[dict[str, Any]]:
    """`policies`: a change on several switches, all or none; returns the policies then in force.

    With `command` it is recorded in the journal, in the transaction of the settings: also when who asked has gone.
    """
    asked = checked({**request["change"], "switch": "any", "port": 1})
    asked = {**asked, "port": request.get("port"), "every": request.get("every")}
    for name in request.get("switches") or ():
        if name not in agents:
            raise unknown_name("switch", name, agents)
    chosen = {name: agent for name, agent in sorted(agents.items()) if name in (request.get("switches") or agents)}
    async with AsyncExitStack() as stack:
        for agent in chosen.values():
            await stack.enter_async_context(agent.writes)
        clients = {name: agent.connected() for name, agent in chosen.items()}
        current = dict(zip(clients, await asyncio.gather(*map(changes.read_ports, clients.values())), strict=True))
        plan = changes.plan_policies(current, store, asked, lambda name: chosen[name].endpoint)
        command = request.get("command")

        def write(file: Store, documents: Documents) -> None:
            if command:
                record(file, command, Change(undo=plan.undo), documents=documents)
            else:
                file.put(documents)

        await changes.make(plan, clients, store, write)
        del asked["every"]
        results: list[dict[str, Any]] = []
        for name, new in plan.policies:
            told = {**asked, "switch": name, "port": new.port}
            results.append({"switch": name, **await chosen[name].adopt(new, current[name].limits, told)})
        return results


async def take_back(agent: SwitchAgent, store: LoopStore, log: Log, request: Request) -> list[Request]:
    """`table_write` (docs/design-control.md): all or nothing; returns the requests that undo it."""
    undo = await agent.exclusively(lambda client: write_with_settings(client, store, request))
    log.write("changed", switch=agent.endpoint.name, request=_brief(request), why=_why(request))
    return [undo]


def _brief(request: Request) -> Request:
    """A request as the event log keeps it: of many updates only how many there are."""
    updates = request.get("updates", ())
    return {**request, "updates": len(updates)} if len(updates) > MAX_LOGGED else request


def _why(request: Request) -> str:
    """What was asked for, in words."""
    counts = Counter(f"{one['update']} {one['table']}" for one in request["updates"])
    entries = ", ".join(f"{count} x {what}" for what, count in counts.items()) or "no entry"
    settings = ", ".join(request.get("settings") or ())
    return f"asked for by {request['op']}: {entries}" + (f"; settings of port/class {settings}" if settings else "")
