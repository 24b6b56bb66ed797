# SPDX-License-Identifier: Apache-2.0
"""The parts of a change: made all, in their order, or none.

A part is a step that can be made, and says as plain data what takes it back; the journal has that, and `plan_steps` makes steps of it again:
`{"op": "table_write", "switch", "updates": […]}` (updates as `switch/updates.py` has them; a ChangeSet, `switch/changeset.py`),
`{"op": "port_put", "switch", "port", "change": {…}}` (names of `PortChange`), `{"op": "loop_put", "loop": {…}}` and
`{"op": "put", "documents": {…}}`.
"""

from __future__ import annotations

import asyncio
import os
import pwd
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairlane_controller.errors import FairlaneError, unknown_name
from fairlane_controller.gnmi.ports import PortChange, find_port
from fairlane_controller.history.sites import Sites
from fairlane_controller.state.ask import ask
from fairlane_controller.state.events import write_event
from fairlane_controller.state.intent import announce, announced
from fairlane_controller.state.run_state import port_document
from fairlane_controller.state.store import Store
from fairlane_controller.switch.changeset import ChangeSet, apply, plan_plain
from fairlane_controller.switch.updates import Plain
from fairlane_controller.typed import typed

OPS = ("table_write", "port_put", "loop_put", "put")


@dataclass(frozen=True)
class PortStep:
    """A port's settings that P4Runtime has not got, before and after; the topology remembers them."""

    switch: str
    port: int
    before: PortChange
    after: PortChange

    def undo(self) -> list[Plain]:
        """What takes it back, as plain data."""
        if not self.before.values_by_name:
            return []
        return [{"op": "port_put", "switch": self.switch, "port": self.port, "change": self.before.values_by_name}]

    async def make(self, sites: Sites) -> None:
        """Set the port; raises what the switch answers, with the port as it was."""
        if self.after.values_by_name:
            async with sites.ports(self.switch) as ports:
                await ports.set_port(self.port, self.after)

    def report(self, folder: Path) -> None:
        """Write the event `changed`: who changed what of the port, from what to what."""
        before, after = self.before.values_by_name, self.after.values_by_name
        if before == after:
            return
        by, command = _user(), typed()
        was = f" (was {self.before.describe()})" if before else ""
        values = {"by": by, "command": command, "before": before, "after": after}
        why = f"{by} set {self.after.describe()}{was} by `{command}`"
        write_event(folder, "changed", switch=self.switch, port=self.port, **values, why=why)

    def documents(self, store: Store) -> dict[str, Any]:
        """What the run state says of the port from then on, over what the launcher wrote."""
        return port_document(store, self.switch, self.port, self.after.values_by_name)


def _user() -> str:
    """Who asks: the one who called sudo, else the owner of the process."""
    try:
        return os.environ.get("SUDO_USER") or pwd.getpwuid(os.getuid()).pw_name
    except KeyError:  # a user without an account
        return f"user {os.getuid()}"


@dataclass(frozen=True)
class LoopStep:
    """Options of the running loop, before and after."""

    before: Plain
    after: Plain

    def undo(self) -> list[Plain]:
        """What takes it back, as plain data."""
        return [{"op": "loop_put", "loop": self.before}]

    async def make(self, sites: Sites) -> None:
        """Raises what the loop answers; without one there is nothing to change."""
        if sites.loop_folder is not None:
            await ask(sites.loop_folder, {"op": "loop_put", "loop": self.after})


Step = ChangeSet | PortStep | LoopStep
Left = Sequence[tuple[Plain, FairlaneError]]
"""Steps that could not be taken back, each with why."""


class NotTakenBack(FairlaneError):
    """A part was refused, and another one that was made before could not be taken back: the journal has what does so."""

    def __init__(self, problem: FairlaneError, left: Left) -> None:
        """Args: problem: the refusal. left: what could not be taken back."""
        why = "; ".join(f"{_subject(step)} keeps what it was given, until `fairlane undo`: {one.message}" for step, one in left)  # fmt: skip
        super().__init__(problem.code, f"{problem.message}; {why}")
        self.undo = [step for step, _ in left]


def _subject(step: Plain) -> str:
    return ":".join(str(step[name]) for name in ("switch", "port") if name in step) or "the loop"


async def make(
    steps: Sequence[Step],
    sites: Sites,
    documents: Mapping[str, Any] | None = None,
    back: Mapping[str, Any] | None = None,
) -> None:
    """Announce the whole change, then make it: all of it, or nothing.

    Args:
        steps: in their order.
        sites: where they are made; without a folder nothing is remembered.
        documents: new documents of the state file by name, None to remove one; a port's are added.
        back: what an undo puts instead of what they were.

    Raises:
        FairlaneError: What refused a step.
    """
    put = dict(documents or {})
    ports = [step for step in steps if isinstance(step, PortStep) and sites.folder is not None]
    if ports:
        with Store(sites.folder) as store:
            for step in ports:
                put |= step.documents(store)
    await announce([one for step in reversed(steps) for one in step.undo()], put, back)
    done: list[Step] = []
    try:
        with announced():
            for step in steps:
                await _make(step, sites)
                done.append(step)
            if put and not any(isinstance(step, ChangeSet) and step.switches for step in steps):
                await sites.poke()
    except (FairlaneError, asyncio.CancelledError) as problem:
        _, left = await take_back([one for step in reversed(done) for one in step.undo()], sites)
        if left and isinstance(problem, FairlaneError):
            raise NotTakenBack(problem, left) from None
        raise
    for step in ports:
        if sites.folder is not None:
            step.report(sites.folder)


async def _make(step: Step, sites: Sites) -> None:
    if isinstance(step, ChangeSet):
        await apply(step, {name: await sites.writer(name) for name in step.switches})
    else:
        await step.make(sites)


async def plan_steps(plain: Sequence[Plain], sites: Sites) -> tuple[list[Step], dict[str, Any]]:
    """Steps of the journal as they are made now, and the documents that they put.

    Raises:
        FairlaneError: UNKNOWN_NAME for a step of another version, or what a switch answers.
    """
    steps: list[Step] = []
    documents: dict[str, Any] = {}
    updates: dict[str, list[Plain]] = {}

    async def end_updates() -> None:
        """Entities of several switches are changed together."""
        if updates:
            changes = {name: await plan_plain(await sites.reader(name), given) for name, given in updates.items()}
            steps.append(ChangeSet(changes))
            updates.clear()

    for one in plain:
        op = str(one.get("op"))
        if op not in OPS or one.get("settings"):
            raise unknown_name("request of a history", op, OPS)
        if op == "table_write":
            updates.setdefault(str(one["switch"]), []).extend(one["updates"])
            continue
        await end_updates()
        if op == "put":
            documents |= one["documents"]
        elif op == "port_put":
            change = PortChange.from_values(one["change"])
            steps.append(await port_step(sites, str(one["switch"]), int(one["port"]), change))
        elif sites.loop_folder is not None:
            steps.append(LoopStep(await ask(sites.loop_folder, {"op": "loop_options"}), one["loop"]))
    await end_updates()
    return steps, documents


async def port_step(sites: Sites, switch: str, port: int, change: PortChange) -> PortStep:
    """A change of a port, with what it has now. Raises UNKNOWN_NAME where there is no such port."""
    endpoint = sites.endpoint(switch)
    async with sites.ports(switch) as ports:
        before = change.inverse(find_port(await ports.ports(queues=bool(change.weights)), port, endpoint))
    return PortStep(switch, port, before, change)


async def take_back(undo: Sequence[Plain], sites: Sites) -> tuple[dict[str, Any], Left]:
    """Take back what is made, or may be half made, each step for itself; the documents to put, and what could not be taken back."""
    documents: dict[str, Any] = {}
    failed: list[tuple[Plain, FairlaneError]] = []
    with announced():
        for one in undo:
            try:
                steps, put = await plan_steps([one], sites)
                for step in steps:
                    await _make(step, sites)
                documents |= put
            except FairlaneError as problem:
                failed.append((one, problem))
    return documents, failed
