# SPDX-License-Identifier: Apache-2.0
"""Snapshots for commands: one, two, or one a period; what makes a reading useless is raised."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator

from fairlane_controller.errors import FairlaneError
from fairlane_controller.live.model import Snapshot
from fairlane_controller.live.source import LiveSource, LiveTargets
from fairlane_controller.program.registry import wrong_program
from fairlane_controller.switch.faults import no_pipeline


async def snapshots(
    targets: LiveTargets, period_s: float, ended: asyncio.Event | None = None
) -> AsyncGenerator[Snapshot]:
    """Snapshots at a period, the first at once and without rates.

    Args:
        targets: The switches.
        period_s: Seconds.
        ended: Set by the command's signals; then there are no more.
    """
    loop, ended = asyncio.get_running_loop(), ended or asyncio.Event()
    due_s = loop.time()
    async with LiveSource(targets) as source:
        while not ended.is_set():
            yield await source.snapshot()
            due_s += period_s
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(ended.wait(), max(0.0, due_s - loop.time()))


async def take_two(targets: LiveTargets, interval_s: float) -> tuple[Snapshot, Snapshot | None]:
    """Read switches.

    Args:
        targets: The switches.
        interval_s: Seconds that rates are over; 0: one snapshot, without rates.

    Returns:
        The snapshot now, and the one before it.
    """
    before: Snapshot | None = None
    async with contextlib.aclosing(snapshots(targets, interval_s)) as taken:
        async for snapshot in taken:
            if before is not None or interval_s <= 0:
                return snapshot, before
            before = snapshot
    raise AssertionError("snapshots do not end by themselves")


def need_switches(snapshot: Snapshot) -> Snapshot:
    """The snapshot itself when every switch could be read.

    Raises:
        FairlaneError: What is wrong with the first that could not; NO_PIPELINE where it has no program.
    """
    for row in snapshot.switches:
        if row.error is not None:
            raise FairlaneError.from_json(dict(row.error))
        if row.program is None:
            raise no_pipeline(f"switch {row.switch} at {row.grpc}")
    return snapshot


def need_program(snapshot: Snapshot, name: str) -> Snapshot:
    """As `need_switches`; WRONG_PROGRAM too where a switch runs another program than `name`."""
    for row in need_switches(snapshot).switches:
        if row.program != name:
            other = snapshot.program_of(row.switch)
            raise wrong_program(name, () if other is None else (*other.tables, *other.dynamic_tables))
    return snapshot
