# SPDX-License-Identifier: Apache-2.0
"""One or two snapshots for a command that reads once; what makes the reading useless is raised."""

from __future__ import annotations

import asyncio

from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.live.model import Snapshot
from fairlane_controller.live.queues import QueueSourceOf
from fairlane_controller.live.source import LiveSource, LiveTargets


async def take_two(
    targets: LiveTargets, interval_s: float, queues_of: QueueSourceOf | None = None
) -> tuple[Snapshot, Snapshot | None]:
    """The snapshot now with rates over `interval_s`, and the one before it; without an interval one, without rates."""
    async with LiveSource(targets, queues_of=queues_of) as source:
        first = await source.snapshot()
        if interval_s <= 0:
            return first, None
        await asyncio.sleep(interval_s)
        return await source.snapshot(), first


def need_switches(snapshot: Snapshot, kind: str | None = None) -> Snapshot:
    """The snapshot itself when every switch could be read and its program has objects of a kind; raises what is wrong with the first that is not so."""
    for row in snapshot.switches:
        if row.error is not None:
            raise FairlaneError.from_json(dict(row.error))
        where = f"switch {row.switch} at {row.grpc}"
        if row.program is None:
            raise FairlaneError(ErrorCode.NO_PIPELINE, f"{where} has no program yet: load it with `fairlane init`")
        program = snapshot.program_of(row.switch)
        kinds = [one.name for one in program.kinds] if program is not None else []
        if kind is not None and kind not in kinds:
            there = f"; it has {', '.join(one.many for one in program.kinds)}" if program and kinds else ""
            text = f"{where} runs the program {row.program}, which has no {kind}{there}: see `fairlane status`"
            raise FairlaneError(ErrorCode.WRONG_PROGRAM, text)
    return snapshot
