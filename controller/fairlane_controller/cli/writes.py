# SPDX-License-Identifier: Apache-2.0
"""Writes of the command line: through the running loop where there is one, else as the primary for this one write."""

from __future__ import annotations

import asyncio
from typing import Any

from fairlane_controller.cli.targets import Targets
from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.loop import changes
from fairlane_controller.loop.agent import policy_json
from fairlane_controller.loop.control import ask
from fairlane_controller.loop.store import LoopStore
from fairlane_controller.switch.client import Endpoint, SwitchClient
from fairlane_controller.switch.policies import Policy, Scheme, read_limits


async def managed_ports(endpoint: Endpoint) -> list[int]:
    """The managed ports of a switch, sorted."""
    async with SwitchClient(endpoint) as client:
        return sorted(await read_limits(client))


async def places(targets: Targets, port: int | None, *, every: bool) -> list[tuple[Endpoint, int]]:
    """The (switch, port) pairs that a command means.

    With a port: that port of the only switch. Without: all managed ports when `every`, else the only one there is.
    """
    if port is not None:
        if len(targets.endpoints) == 1:
            return [(targets.endpoints[0], port)]
        managed = [(e, p) for e, p in await _all_managed(targets) if p == port]
        if len(managed) == 1 or (every and managed):
            return managed
        names = ", ".join(e.name for e in targets.endpoints)
        raise FairlaneError(ErrorCode.BAD_INPUT, f"port {port} of which switch ({names})? Name it with --switch")
    found = await _all_managed(targets)
    if every or len(found) == 1:
        if not found:
            raise FairlaneError(ErrorCode.UNKNOWN_NAME, "no switch has a managed port: run `fairlane init` first")
        return found
    if not found:
        raise FairlaneError(ErrorCode.UNKNOWN_NAME, "no switch has a managed port: run `fairlane init` first")
    listed = ", ".join(f"{e.name} port {p}" for e, p in found)
    raise FairlaneError(ErrorCode.BAD_INPUT, f"several ports are managed ({listed}): choose with --switch and --port")


async def _all_managed(targets: Targets) -> list[tuple[Endpoint, int]]:
    lists = await asyncio.gather(*(managed_ports(e) for e in targets.endpoints))
    return [(e, p) for e, ports in zip(targets.endpoints, lists, strict=True) for p in ports]


async def change(targets: Targets, endpoint: Endpoint, request: dict[str, Any]) -> dict[str, Any]:
    """Apply one request (`loop/control.py`) and return the policy then in force, with `via` loop or direct."""
    folder = targets.loop_folder
    if folder is not None:
        return {**await ask(folder, {**request, "switch": endpoint.name}), "via": "loop"}
    store = LoopStore(targets.folder)
    async with SwitchClient(endpoint, write=True) as client:
        policy = await _apply(client, store, request)
    return {**policy_json(policy), "via": "direct", "remembered": store.persistent}


async def _apply(client: SwitchClient, store: LoopStore, request: dict[str, Any]) -> Policy:
    port, traffic_class = int(request["port"]), int(request["class"])
    match request["op"]:
        case "threshold_set":
            return await changes.set_threshold(
                client, store, port, traffic_class, packets=request["packets"], weight=request["weight"]
            )
        case "threshold_auto":
            return await changes.set_auto(
                client,
                store,
                port,
                traffic_class,
                k=request["k"],
                weight=request["weight"],
                self_tuning=request["self_tuning"],
            )
        case _:
            return await changes.set_scheme(client, store, port, traffic_class, Scheme(request["scheme"]))


def change_all(targets: Targets, port: int | None, request: dict[str, Any], *, every: bool) -> list[dict[str, Any]]:
    """`change` for every place that the command means, one after the other."""

    async def work() -> list[dict[str, Any]]:
        results: list[dict[str, Any]] = []
        for endpoint, number in await places(targets, port, every=every):
            results.append({"switch": endpoint.name, **await change(targets, endpoint, {**request, "port": number})})
        return results

    return asyncio.run(work())
