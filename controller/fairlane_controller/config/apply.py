# SPDX-License-Identifier: Apache-2.0
"""A configuration into all switches, or into none: the difference only, as steps of the history, so that it can be undone."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fairlane_controller.config.compare import CONFIG, Row, compare, read_applied
from fairlane_controller.config.read import Loaded, Source, check, parse
from fairlane_controller.config.show import port_in_force
from fairlane_controller.errors import bad_input
from fairlane_controller.history.sites import Sites
from fairlane_controller.history.steps import make
from fairlane_controller.history.undo import changing
from fairlane_controller.program.contract import Place
from fairlane_controller.program.registry import load_program
from fairlane_controller.state.run_state import RunState
from fairlane_controller.state.store import STATE_FILE, Store

Plain = dict[str, Any]


@dataclass(frozen=True)
class Applied:
    """What an application did."""

    written: dict[str, int]
    "Table entries written, by switch."
    settings: int = 0
    "Policies whose settings of the loop changed."
    ports: int = 0
    "Ports whose settings changed."
    rows: list[Row] = field(default_factory=list[Row])
    "What differed."

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return {"written": self.written, "settings": self.settings, "ports": self.ports}


async def apply(loaded: Loaded, run: RunState, command: str) -> Applied:
    """Check, compare, write what differs: in all switches or in none; recorded in the history when something was written.

    Args:
        loaded: the configuration.
        run: the topology that it is for.
        command: as the history has it.

    Raises:
        FairlaneError: BAD_FILE before anything is read, or what a switch refused, with everything as it was.
    """
    check(loaded, run)
    async with changing(run.folder, command, run), Sites(run) as sites:
        return await _write(loaded, loaded, run, sites)


async def apply_to_port(run: RunState, place: Place, given: Plain, command: str) -> tuple[Applied, Plain]:
    """Change single settings of one port. Two changes at once come one after the other, so neither loses what the other sets.

    Args:
        run: the topology.
        place: the switch and the port.
        given: settings by their names.
        command: as the history has it.

    Returns:
        What was done, and the row as it is now.

    Raises:
        FairlaneError: BAD_INPUT, or what a switch refused, with everything as it was.
    """
    async with changing(run.folder, command, run), Sites(run) as sites:
        loaded, row = await changed_port(run, place, given)
        check(loaded, run)
        return await _write(loaded, _with_last_applied(loaded, run), run, sites), row


async def changed_port(run: RunState, place: Place, given: Plain) -> tuple[Loaded, Plain]:
    """A configuration that changes single settings of one port, and the port's row in it. Raises BAD_FILE.

    The list of a program that has a `document` is whole, so its other ports follow as they are.

    Args:
        run: the topology that it is for.
        place: the switch and the port.
        given: settings by their names.
    """
    program, source = load_program(run.program), Source("config set")
    row = {**await port_in_force(run, *place), **given}
    known: list[Plain] = program.remembered(run).plain()["ports"] if program.document else []
    rows = [row, *(one for one in known if (one["switch"], one["port"]) != place)]
    data = {"program": run.program, "topology": {"name": run.folder.name}, "ports": rows}
    return Loaded(parse(data, source), source), row


async def _write(loaded: Loaded, remembered: Loaded, run: RunState, sites: Sites) -> Applied:
    """Write what differs. `remembered` is what a switch that restarts gets back, where that is more than `loaded`."""
    note = {CONFIG: {"source": str(remembered.path or remembered.source.name), "config": remembered.config.plain()}}
    found = await compare(loaded.config, sites)
    documents = {**found.documents, **note}
    with Store(run.folder) as store:
        changed = [name for name, value in documents.items() if store.get(name) != value]
        if found.same and changed == [CONFIG]:  # no change that anybody would undo
            await asyncio.to_thread(store.put, note)
            changed = []
    if changed or not found.same:
        await make(found.steps, sites, documents, found.documents_back)
    written = {one.switch: len(one.changes) for one in found.switches if one.changes}
    settings = sum(row.what == "settings" for row in found.rows)
    return Applied(written, settings, sum(len(one.ports) for one in found.switches), found.rows)


# ---- what was applied last -------------------------------------------------------------------------------------------


def last_applied(folder: Path) -> Loaded:
    """The configuration that was applied last; BAD_INPUT when none was."""
    note = read_applied(folder)
    if note is None:
        raise bad_input(f"no configuration was applied to {folder} yet: name a FILE")
    config = parse(note["config"], Source(f"{folder / STATE_FILE}: {CONFIG}"))
    return Loaded(config, Source(f"what was applied last ({note['source']})"), Path(note["source"]))


def _with_last_applied(loaded: Loaded, run: RunState) -> Loaded:
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
