# SPDX-License-Identifier: Apache-2.0
"""A configuration into all switches, or into none: the difference only, as requests of the history, so that it can be undone."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fairlane_controller import history
from fairlane_controller.config.check import check
from fairlane_controller.config.compare import Comparison, compare
from fairlane_controller.config.model import FairlaneConfig
from fairlane_controller.config.port_change import plan_port
from fairlane_controller.config.ports import change_of
from fairlane_controller.config.read import Loaded, Source, parse
from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.gnmi.ports import PortChange
from fairlane_controller.history.ops import Context, Request, apply_all
from fairlane_controller.state.intent import announce
from fairlane_controller.state.run_state import RunState
from fairlane_controller.state.store import STATE_FILE, Store

CONFIG = "config"
"""The document of the configuration that was applied last."""


@dataclass(frozen=True)
class Applied:
    """What an application did."""

    written: dict[str, int]
    "Table entries written, by switch."
    settings: int = 0
    "Policies whose settings of the loop changed."
    ports: int = 0
    "Ports whose settings changed."
    rows: list[Any] = field(default_factory=lambda: list[Any]())

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return {"written": self.written, "settings": self.settings, "ports": self.ports}


async def apply(loaded: Loaded, run: RunState, command: str, remembered: Loaded | None = None) -> Applied:
    """Check, compare, write what differs: in all switches or in none; recorded in the history when something was written.

    `remembered` is what a switch that restarts gets back, where that is more than `loaded`. Raises BAD_FILE before anything is read, or what a switch refused, with everything as it was.
    """
    check(loaded, run)
    async with history.changing(run.folder, command) as made:
        found = await compare(loaded.config, run)
        undo = await apply_all(Context(run.folder, run), await requests_of(found, loaded, run, remembered))
        if not found.same:
            made.undo = undo
    return _applied(found)


async def requests_of(
    found: Comparison, loaded: Loaded, run: RunState, remembered: Loaded | None = None
) -> list[Request]:
    """What is to be done, in its order."""
    requests: list[Request] = []
    for one in found.switches:
        for port, settings in one.ports.items():
            change = PortChange.from_values(change_of(settings))
            requests += (await plan_port(Context(run.folder, run), one.switch, port, change)).requests
    plan = found.plan
    request = plan.request(loaded.source.name) if plan is not None else None
    if plan is not None and request is not None:
        if not plan.is_remembered or any(one.updates for one in found.switches):
            requests.append(request)
    else:
        for one in found.switches:
            if one.updates or one.settings:
                requests.append(
                    {"op": "table_write", "switch": one.switch, "updates": one.updates, "settings": one.settings}
                )
    if found.loop is not None:
        requests.append({"op": "loop_put", "loop": found.loop})
    note = note_of(remembered or loaded)
    if note != read_note(run.folder):
        requests.append({"op": "config_note", **note})
    return requests


def _applied(found: Comparison) -> Applied:
    written = {one.switch: len([u for u in one.updates if "table" in u]) for one in found.switches if one.updates}
    settings = sum(len(one.settings) for one in found.switches)
    return Applied(written, settings, sum(len(one.ports) for one in found.switches), found.rows)


# ---- what was applied last -------------------------------------------------------------------------------------------


def note_of(loaded: Loaded) -> dict[str, Any]:
    """What is remembered of a file."""
    return {"source": str(loaded.path or loaded.source.name), "config": loaded.config.plain()}


def read_note(folder: Path) -> dict[str, Any] | None:
    """What was applied last; None when nothing was. Raises BAD_FILE."""
    with Store(folder) as store:
        data = store.get(CONFIG)
    try:
        return None if data is None else {"source": str(data["source"]), "config": dict(data["config"])}
    except (ValueError, KeyError, TypeError) as ex:
        problem = f"{folder / STATE_FILE}: {CONFIG}: {type(ex).__name__}: {ex}; apply a configuration again"
        raise FairlaneError(ErrorCode.BAD_FILE, problem) from None


def last_applied(folder: Path) -> Loaded:
    """The configuration that was applied last; BAD_INPUT when none was."""
    note = read_note(folder)
    if note is None:
        raise FairlaneError(ErrorCode.BAD_INPUT, f"no configuration was applied to {folder} yet: name a FILE")
    config: FairlaneConfig = parse(note["config"], Source(f"{folder / STATE_FILE}: {CONFIG}"))
    return Loaded(config, Source(f"what was applied last ({note['source']})"), Path(note["source"]))


def with_last_applied(loaded: Loaded, run: RunState) -> Loaded:
    """What was applied last, with the ports of `loaded` changed in it."""
    note = read_note(run.folder)
    if note is None:
        return loaded
    ports: dict[tuple[str, int], dict[str, Any]] = {}
    for row in (*note["config"].get("ports", ()), *loaded.config.plain().get("ports", ())):
        place = row["switch"], row["port"]
        ports[place] = {**ports.get(place, {}), **row}
    config = parse({**note["config"], "ports": list(ports.values())}, loaded.source)
    return Loaded(config, loaded.source, Path(note["source"]))


async def put_note(context: Context, request: Request) -> list[Request]:
    """`{"op": "config_note", "source", "config"}`; both None: nothing was applied."""
    before = read_note(context.folder) or {"source": None, "config": None}
    await announce([{"op": "config_note", **before}])
    note = None if request["config"] is None else {"source": request["source"], "config": request["config"]}
    with Store(context.folder) as store:
        await asyncio.to_thread(store.put, {CONFIG: note})
    return [{"op": "config_note", **before}]


async def put_loop(context: Context, request: Request) -> list[Request]:
    """`{"op": "loop_put", "loop": {…}}`: options of the running loop; without one there is nothing to change."""
    if not context.loop_runs:
        return []
    await announce([{"op": "loop_put", "loop": await context.ask({"op": "loop_options"})}])
    return list(await context.ask(request))


history.register("config_note", put_note)
history.register("loop_put", put_loop)
