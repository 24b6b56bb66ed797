# SPDX-License-Identifier: Apache-2.0
"""Writes of the command line: through the running loop where there is one, else as the primary for this one write.

Each is recorded in the history with what takes it back; `--dry-run` makes the same checks and writes nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

from fairlane_controller import history
from fairlane_controller.cli.dry import DryResult, dry_result
from fairlane_controller.cli.targets import Targets
from fairlane_controller.cli.typed import typed
from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.history.policies import policy_before, put_policy
from fairlane_controller.loop.control import ask
from fairlane_controller.loop.store import LoopStore
from fairlane_controller.programs.qthresh import changes
from fairlane_controller.programs.qthresh.control import policy_json
from fairlane_controller.programs.qthresh.policies import Policy, Scheme, read_limits
from fairlane_controller.state.store import release_room
from fairlane_controller.switch.client import Endpoint, SwitchClient
from fairlane_controller.switch.dry import DryClient


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
    """`change` for every place that the command means, one after the other, all or none; recorded as one change."""

    async def work() -> list[dict[str, Any]]:
        results: list[dict[str, Any]] = []
        async with history.changing(targets.folder, typed()) as made:
            for endpoint, number in await places(targets, port, every=every):
                asked = {**request, "port": number}
                try:
                    before = await _before(targets, endpoint, asked)
                    await made.begin([before, *made.undo])
                    done = await change(targets, endpoint, asked)
                except FairlaneError:
                    await _take_back(targets, made.undo)
                    raise
                made.undo.insert(0, before)
                results.append({"switch": endpoint.name, **done})
        return results

    return asyncio.run(work())


async def _before(targets: Targets, endpoint: Endpoint, request: dict[str, Any]) -> dict[str, Any]:
    """What brings back the policy that a request is about to change."""
    async with SwitchClient(endpoint) as client:
        return await policy_before(client, LoopStore(targets.folder), int(request["port"]), int(request["class"]))


async def _take_back(targets: Targets, undo: list[dict[str, Any]]) -> None:
    """A later place refused: the ones before it have again what they had, as far as they answer."""
    release_room()
    endpoints = {endpoint.name: endpoint for endpoint in targets.endpoints}
    folder = targets.loop_folder
    for request in undo:
        with contextlib.suppress(FairlaneError):  # the refusal itself is what is told
            if folder is not None:
                await ask(folder, request)
                continue
            async with SwitchClient(endpoints[request["switch"]], write=True) as client:
                await put_policy(client, LoopStore(targets.folder), request)


# ---- dry run ---------------------------------------------------------------------------------------------------------


def dry_all(targets: Targets, port: int | None, request: dict[str, Any], *, every: bool) -> list[DryResult]:
    """What `change_all` would write, with the same checks."""

    async def one(endpoint: Endpoint, number: int) -> DryResult:
        store, key = LoopStore(targets.folder, dry_run=True), (endpoint.name, number, int(request["class"]))
        before = store.policy(*key)
        async with DryClient(endpoint) as client:
            await _apply(client, store, {**request, "port": number})
            after = store.policy(*key)
            old, new = before.model_dump(mode="json"), after.model_dump(mode="json")
            changed = [f"{name} {old[name]} becomes {new[name]}" for name in new if old[name] != new[name]]
            where = f"port {number} class {request['class']}"
            return dry_result(client, [f"{where}: {', '.join(changed)}"] if changed else [])

    async def work() -> list[DryResult]:
        return [await one(endpoint, number) for endpoint, number in await places(targets, port, every=every)]

    return asyncio.run(work())
