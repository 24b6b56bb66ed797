# SPDX-License-Identifier: Apache-2.0
"""One or two snapshots for a command that reads once; what makes the reading useless is raised."""

from __future__ import annotations

import asyncio
from typing import Any

from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.live.model import Snapshot
from fairlane_controller.live.source import LiveSource, LiveTargets
from fairlane_controller.program.reasons import meaning
from fairlane_controller.program.registry import wrong_program


async def take_two(targets: LiveTargets, interval_s: float) -> tuple[Snapshot, Snapshot | None]:
    """The snapshot now with rates over `interval_s`, and the one before it; without an interval one, without rates."""
    async with LiveSource(targets) as source:
        first = await source.snapshot()
        if interval_s <= 0:
            return first, None
        await asyncio.sleep(interval_s)
        return await source.snapshot(), first


def need_switches(snapshot: Snapshot) -> Snapshot:
    """The snapshot itself when every switch could be read; raises what is wrong with the first that could not."""
    for row in snapshot.switches:
        if row.error is not None:
            raise FairlaneError.from_json(dict(row.error))
        if row.program is None:
            text = f"switch {row.switch} at {row.grpc} has no program yet: load it with `fairlane config init`"
            raise FairlaneError(ErrorCode.NO_PIPELINE, text)
    return snapshot


def need_program(snapshot: Snapshot, name: str) -> Snapshot:
    """As `need_switches`; WRONG_PROGRAM too where a switch runs another program."""
    for row in need_switches(snapshot).switches:
        if row.program != name:
            other = snapshot.program_of(row.switch)
            raise wrong_program(name, () if other is None else (*other.tables, *other.dynamic_tables))
    return snapshot


def need_objects(snapshot: Snapshot) -> Snapshot:
    """As `need_switches`; WRONG_PROGRAM too where a program keeps nothing for single flows."""
    for row in need_switches(snapshot).switches:
        program = snapshot.program_of(row.switch)
        if program is None or all(kind.brief for kind in program.kinds):
            text = f"switch {row.switch} at {row.grpc} runs the program {row.program}, which has no flows: see `fairlane status`"
            raise FairlaneError(ErrorCode.WRONG_PROGRAM, text)
    return snapshot


def drop_lines(now: Snapshot, before: Snapshot | None = None) -> list[dict[str, Any]]:
    """One line a (switch, port, object, reason), those that drop most first: what it means, packets since the counters began, and how
    many a second since `before` (None: not known)."""
    earlier = _counts(before) if before is not None else {}
    # A switch that was away in the earlier snapshot had no counters there: that says nothing of its rate.
    read = {row.switch for row in before.switches if row.program is not None} if before is not None else set[str]()
    elapsed_s = now.time_s - before.time_s if before is not None else 0.0
    lines: list[dict[str, Any]] = []
    for key, packets in _counts(now).items():
        switch, port, whose, reason, by = key
        per_s = None
        if switch in read and elapsed_s > 0:
            per_s = round(max(0, packets - earlier.get(key, 0)) / elapsed_s, 3)
        why = meaning(now.program_of(switch), reason, by)
        lines.append({"switch": switch, "port": port, "object": whose, "reason": reason, "meaning": why, "packets": packets, "per_s": per_s, "by": by})  # fmt: skip
    return sorted(lines, key=lambda one: (-(one["per_s"] or 0.0), -one["packets"], one["switch"], one["port"] or 0, one["reason"]))  # fmt: skip


def _counts(snapshot: Snapshot) -> dict[tuple[str, int | None, str | None, str, str], int]:
    return {(row.switch, row.port, row.object, row.reason, row.by): row.packets for row in snapshot.drops}
