# SPDX-License-Identifier: Apache-2.0
"""Changes of policies by the command line: by the running loop where there is one, else as the primary for this one write.

Either way the switches are read once, written once, and settings and journal kept in one transaction; `--dry-run` makes the same
checks and writes nothing.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import Any

from fairlane_controller import history
from fairlane_controller.cli.dry import DryResult, dry_result
from fairlane_controller.cli.targets import Targets
from fairlane_controller.history.journal import record
from fairlane_controller.programs.qthresh import changes
from fairlane_controller.programs.qthresh.control import answer_json
from fairlane_controller.programs.qthresh.store import LoopStore
from fairlane_controller.state.ask import ask
from fairlane_controller.state.store import Documents, Store
from fairlane_controller.switch.client import SwitchClient
from fairlane_controller.switch.dry import DryClient
from fairlane_controller.typed import typed


def change_all(targets: Targets, port: int | None, request: dict[str, Any], *, every: bool) -> list[dict[str, Any]]:
    """One request (`requests.py`) at every place that the command means, all or none, recorded as one change.

    Returns the policies then in force, each with `via` loop or direct. Without a port it means all managed ports when `every`, else
    the only one there is.
    """

    async def work() -> list[dict[str, Any]]:
        async with history.changing(targets.folder, typed()) as made:
            folder = targets.loop_folder
            if folder is None:
                return await _directly(targets, {**request, "port": port, "every": every}, made)
            names = [endpoint.name for endpoint in targets.endpoints]
            asked = {"op": "policies", "change": request, "switches": names, "port": port, "every": every}
            return [{**one, "via": "loop"} for one in await ask(folder, asked)]

    return asyncio.run(work())


async def _directly(targets: Targets, request: dict[str, Any], made: history.Change) -> list[dict[str, Any]]:
    """As the primary; where several switches could be meant, they are read by readers and only those concerned are written."""
    store = LoopStore(targets.folder)
    endpoints = {endpoint.name: endpoint for endpoint in targets.endpoints}
    async with AsyncExitStack() as stack:
        writers: dict[str, SwitchClient] = {}
        clients = {name: SwitchClient(one, write=len(endpoints) == 1) for name, one in endpoints.items()}
        await asyncio.gather(*(stack.enter_async_context(client) for client in clients.values()))
        current = await changes.read_ports(clients, targets.run)
        plan = changes.plan_policies(current, store, request, lambda name: endpoints[name])
        for name in plan.change.entries:
            several = len(endpoints) > 1
            writers[name] = await stack.enter_async_context(SwitchClient(endpoints[name], write=True)) if several else clients[name]  # fmt: skip

        def write(file: Store, documents: Documents) -> None:
            if made.folder is None:
                file.put(documents)
            else:
                record(file, history.Change(made.command, undo=plan.undo), documents)

        await changes.make(plan, writers, store, write)
    return [
        {"switch": name, **answer_json(policy, current[name].state), "via": "direct", "remembered": store.persistent}
        for name, policy in plan.policies
    ]


def dry_all(targets: Targets, port: int | None, request: dict[str, Any], *, every: bool) -> list[DryResult]:
    """What `change_all` would write, with the same checks."""

    async def work() -> list[DryResult]:
        store = LoopStore(targets.folder, dry_run=True)
        clients = {endpoint.name: DryClient(endpoint) for endpoint in targets.endpoints}
        async with AsyncExitStack() as stack:
            for client in clients.values():
                await stack.enter_async_context(client)
            current = await changes.read_ports(clients, targets.run)
            asked = {**request, "port": port, "every": every}
            plan = changes.plan_policies(current, store, asked, lambda name: clients[name].endpoint)
            await changes.make(plan, clients, store)
            return [dry_result(clients[name], _describe_setting_changes(plan, name)) for name in plan.change.entries]

    return asyncio.run(work())


def _describe_setting_changes(plan: changes.PolicyPlan, switch: str) -> list[str]:
    """A sentence for each setting that the plan would change."""
    told: list[str] = []
    for key, after in plan.settings.items():
        old, new = plan.before[key].model_dump(mode="json"), after.model_dump(mode="json")
        texts = [f"{name} {old[name]} becomes {new[name]}" for name in new if old[name] != new[name]]
        if key[0] == switch and texts:
            told.append(f"port {key[1]} class {key[2]}: {', '.join(texts)}")
    return told
