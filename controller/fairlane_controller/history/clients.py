# SPDX-License-Identifier: Apache-2.0
"""A writing client that keeps, for every batch, the updates that take it back: for set-ups that write in many places."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fairlane_controller.history.ops import Request
from fairlane_controller.switch.changeset import ChangeSet, entry_changes
from fairlane_controller.switch.client import Endpoint, PipelineFiles, SwitchClient
from fairlane_controller.switch.difference import read_entries
from fairlane_controller.switch.dry import DryClient
from fairlane_controller.switch.updates import Plain, plain_updates


class UndoableClient(SwitchClient):
    """`SwitchClient` whose `undo_updates` take back what it has written, in their order."""

    def __init__(self, endpoint: Endpoint, **options: Any) -> None:
        super().__init__(endpoint, **options)
        self.undo_updates: list[Plain] = []
        self.loads = False
        "Whether the program is loaded anew: then there is nothing to go back to."

    async def write(self, updates: Sequence[Any]) -> None:
        """As `SwitchClient.write`, after reading what it replaces."""
        entries = [one for one in plain_updates(updates, self.switch.p4info) if "table" in one]
        current = await read_entries(self, sorted({str(one["table"]) for one in entries}))
        await super().write(updates)
        change = ChangeSet({self.endpoint.name: entry_changes(self, current, entries)})
        self.undo_updates = [*change.inverse.updates(self.endpoint.name), *self.undo_updates]


async def will_load(endpoint: Endpoint, pipeline: PipelineFiles, *, force: bool, timeout_s: float) -> bool:
    """Whether a client with these files would load the program: another one runs, or none, or it is forced."""
    client = DryClient(endpoint, pipeline=pipeline, force_pipeline=force, timeout_s=timeout_s)
    async with client:
        return client.loads


def undo_of(clients: Sequence[UndoableClient]) -> tuple[list[Request], str]:
    """The requests that undo a set-up, and what cannot be undone in words: a program that was loaded is not unloaded."""
    loaded = [client.endpoint.name for client in clients if client.loads]
    if loaded:
        return [], (
            f"the program was loaded on {', '.join(loaded)}, and the entries and counters of the one before are gone: "
            "start the topology with the other program and run `fairlane config init`"
        )
    undo = [
        {"op": "table_write", "switch": client.endpoint.name, "updates": client.undo_updates}
        for client in clients
        if client.undo_updates
    ]
    return undo, ""
