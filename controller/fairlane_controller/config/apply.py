# SPDX-License-Identifier: Apache-2.0
"""A configuration into all switches, or into none: the difference only, as steps of the history, so that it can be undone."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
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
from fairlane_controller.history.sites import Sites
from fairlane_controller.history.steps import LoopStep, Step, make
from fairlane_controller.state.run_state import RunState
from fairlane_controller.state.store import STATE_FILE, Store
from fairlane_controller.switch.changeset import ChangeSet

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
    async with history.changing(run.folder, command, run), Sites(run) as sites:
        found = await compare(loaded.config, sites)
        note = {CONFIG: applied_document(remembered or loaded)}
        if found.same and not _changed(found.documents, run.folder):
            with Store(run.folder) as store:
                await asyncio.to_thread(store.put, _changed(note, run.folder))
            return _applied(found)
        steps = await steps_of(found, sites)
        await make(steps, sites, {**found.documents, **note}, found.documents_back)
    return _applied(found)


def _changed(documents: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Those that are not so already."""
    with Store(folder) as store:
        return {name: value for name, value in documents.items() if store.get(name) != value}


async def steps_of(found: Comparison, sites: Sites) -> list[Step]:
    """What is to be done, in its order."""
    steps: list[Step] = []
    for one in found.switches:
        for port, settings in one.ports.items():
            change = PortChange.from_values(change_of(settings))
            steps += (await plan_port(sites, one.switch, port, change)).steps
    changes = {one.switch: one.changes for one in found.switches if one.changes}
    steps.append(ChangeSet(changes, {one.switch: one.resets for one in found.switches if one.switch in changes}))
    return steps if found.loop is None else [*steps, LoopStep(*found.loop)]


def _applied(found: Comparison) -> Applied:
    written = {one.switch: len([u for u in one.updates if "table" in u]) for one in found.switches if one.updates}
    settings = sum(row.what == "settings" for row in found.rows)
    return Applied(written, settings, sum(len(one.ports) for one in found.switches), found.rows)


# ---- what was applied last -------------------------------------------------------------------------------------------


def applied_document(loaded: Loaded) -> dict[str, Any]:
    """What is remembered of a file."""
    return {"source": str(loaded.path or loaded.source.name), "config": loaded.config.plain()}


def read_applied(folder: Path) -> dict[str, Any] | None:
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
    note = read_applied(folder)
    if note is None:
        raise FairlaneError(ErrorCode.BAD_INPUT, f"no configuration was applied to {folder} yet: name a FILE")
    config: FairlaneConfig = parse(note["config"], Source(f"{folder / STATE_FILE}: {CONFIG}"))
    return Loaded(config, Source(f"what was applied last ({note['source']})"), Path(note["source"]))


def with_last_applied(loaded: Loaded, run: RunState) -> Loaded:
    """What was applied last, with the ports of `loaded` changed in it."""
    note = read_applied(run.folder)
    if note is None:
        return loaded
    ports: dict[tuple[str, int], dict[str, Any]] = {}
    for row in (*note["config"].get("ports", ()), *loaded.config.plain().get("ports", ())):
        place = row["switch"], row["port"]
        ports[place] = {**ports.get(place, {}), **row}
    config = parse({**note["config"], "ports": list(ports.values())}, loaded.source)
    return Loaded(config, loaded.source, Path(note["source"]))
