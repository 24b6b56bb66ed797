# SPDX-License-Identifier: Apache-2.0
"""A change that a command makes on switches: planned, then made all or nothing and recorded, or only shown."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from fairlane_controller.cli.dry import DryResult, print_dry
from fairlane_controller.cli.targets import Targets
from fairlane_controller.history.sites import Sites
from fairlane_controller.history.steps import make
from fairlane_controller.history.undo import changing
from fairlane_controller.switch.changeset import ChangeSet
from fairlane_controller.typed import typed


@dataclass(frozen=True)
class Planned:
    """What a command would change."""

    change: ChangeSet
    documents: Mapping[str, Any] = field(default_factory=dict[str, Any])
    "What is to be remembered,"
    documents_back: Mapping[str, Any] | None = None
    "and what an undo puts back instead of what was remembered before."
    notes: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])
    "By switch: what is to be remembered, in words."

    @property
    def written(self) -> dict[str, int]:
        """Entries that change, by switch."""
        return {name: len(changes) for name, changes in self.change.entries.items()}


P = TypeVar("P", bound=Planned)


def carry_out(
    targets: Targets, plan: Callable[[Sites], Awaitable[P]], *, dry_run: bool, as_json: bool
) -> tuple[P, str] | None:
    """Make what `plan` says, in all switches or in none, as one change of `fairlane undo`.

    Args:
        targets: the switches that the command means.
        plan: reads the switches and says what to change; raises what is wrong with it.
        dry_run: print what would be written, and write nothing.
        as_json: print that as JSON.

    Returns:
        What was made, and by whom: `loop` or `direct`; None where nothing was to be written.
    """

    async def show() -> list[DryResult]:
        async with Sites(targets.run, targets.endpoints) as sites:
            planned = await plan(sites)
            readers = {name: await sites.reader(name) for name in planned.change.entries}
            return [
                DryResult(name, planned.change.updates(name), reader.switch.p4info, notes=list(planned.notes.get(name, ())))
                for name, reader in readers.items()
            ]  # fmt: skip

    async def work() -> tuple[P, str]:
        async with (
            changing(targets.folder, typed(), targets.run),
            Sites(targets.run, targets.endpoints, writes=True) as sites,
        ):
            planned = await plan(sites)
            await make([planned.change], sites, planned.documents, planned.documents_back)
            return planned, "direct" if sites.loop_folder is None else "loop"

    if dry_run:
        print_dry(asyncio.run(show()), as_json)
        return None
    return asyncio.run(work())
