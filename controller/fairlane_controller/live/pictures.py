# SPDX-License-Identifier: Apache-2.0
"""One or two snapshots for a command that reads once; what makes the reading useless is raised."""

from __future__ import annotations

import asyncio

from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.live.model import Snapshot, SwitchRow
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


def need_switches(snapshot: Snapshot, program: str | None = None) -> Snapshot:
    """The snapshot itself when every switch could be read and runs `program`; raises what is wrong with the first that is not so."""
    for row in snapshot.switches:
        if row.error is not None:
            raise FairlaneError.from_json(dict(row.error))
        if row.program is None:
            raise FairlaneError(
                ErrorCode.NO_PIPELINE, f"{_where(row)} has no program yet: load it with `fairlane init`"
            )
        if program is not None and row.program != program:
            raise FairlaneError(ErrorCode.WRONG_PROGRAM, _wrong(row, program))
    return snapshot


def _where(row: SwitchRow) -> str:
    return f"switch {row.switch} at {row.grpc}"


def _wrong(row: SwitchRow, program: str) -> str:
    hints = {
        "qthresh": "flows and thresholds are of the program qthresh",
        "gfr": "VCs need a topology that was started with the program gfr",
    }
    instead = {"gfr": "see `fairlane vcs`", "qthresh": "see `fairlane flows`", "ena": "see `fairlane ena show`"}
    other = instead.get(str(row.program), "see `fairlane show_tables`")
    return f"{_where(row)} runs the program {row.program}: {hints[program]}; {other}"
