# SPDX-License-Identifier: Apache-2.0
"""Snapshots for commands: one, two, or one a period; what makes a reading useless is raised."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Generator, Sequence

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


async def take_two(targets: LiveTargets, interval_s: float) -> Snapshot:
    """Read switches.

    Args:
        targets: The switches.
        interval_s: Seconds that rates are over; 0: one snapshot, without rates.

    Returns:
        The snapshot now.
    """
    is_last = interval_s <= 0
    async with contextlib.aclosing(snapshots(targets, interval_s)) as taken:
        async for snapshot in taken:
            if is_last:
                return snapshot
            is_last = True
    raise AssertionError("snapshots do not end by themselves")


def unread(snapshot: Snapshot, program: str | None = None) -> list[FairlaneError]:
    """What is wrong with each switch that could not be read; NO_PIPELINE where it has no program, WRONG_PROGRAM where not `program`."""
    found: list[FairlaneError] = []
    for row in snapshot.switches:
        if row.error is not None:
            found.append(FairlaneError.from_json(row.error))
        elif row.program is None:
            found.append(no_pipeline(f"switch {row.switch} at {row.grpc}"))
        elif program not in (None, row.program):
            other = snapshot.program_of(row.switch)
            found.append(wrong_program(program, (*other.tables, *other.dynamic_tables)))
    return found


@contextlib.contextmanager
def answering(problems: Sequence[FairlaneError], switches: int) -> Generator[None]:
    """Around what shows the rows of the switches that could be read; without any of them the block does not run.

    Args:
        problems: What is wrong with each of the others.
        switches: How many there are in all.

    Raises:
        FairlaneError: After the block; as `need_none`.
    """
    if len(problems) == switches:
        need_none(problems)
    yield
    need_none(problems)


def need_none(problems: Sequence[FairlaneError]) -> None:
    """Raises the problems as one FairlaneError, with the code of the first."""
    if problems:
        raise problems[0].code("; ".join(one.message for one in problems))


def need_switches(snapshot: Snapshot) -> Snapshot:
    """The snapshot itself when every switch could be read. Raises what is wrong with those that could not."""
    need_none(unread(snapshot))
    return snapshot
