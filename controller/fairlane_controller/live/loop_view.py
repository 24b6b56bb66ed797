# SPDX-License-Identifier: Apache-2.0
"""What the control loop of a topology says: its state of every switch and what it measures, by its control socket."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.live.model import LoopRow
from fairlane_controller.state.ask import ask

ANSWER_TIMEOUT_S = 1.0


@dataclass(frozen=True)
class LoopSample:
    """One answer."""

    rows: tuple[LoopRow, ...] | None = None
    "None: no loop runs."
    error: FairlaneError | None = None
    measured: dict[tuple[str, int], dict[str, Any]] = field(default_factory=dict[tuple[str, int], dict[str, Any]])


async def read_loop(folder: Path | None) -> LoopSample:
    """Ask the loop of a run-state folder; what is wrong with it is in the answer, nothing is raised for it."""
    if folder is None:
        return LoopSample()
    status, measured = await asyncio.gather(_ask(folder, "status"), _ask(folder, "measure"))
    if isinstance(status, FairlaneError):
        return LoopSample() if status.code is ErrorCode.NO_LOOP else LoopSample(error=status)
    rows = tuple(_row(entry) for entry in status)
    if isinstance(measured, FairlaneError):  # not every loop has some
        return LoopSample(rows)
    by_port = {
        (str(m["switch"]), int(m["port"])): {key: value for key, value in m.items() if key not in ("switch", "port")}
        for m in measured
    }
    return LoopSample(rows, None, by_port)


async def _ask(folder: Path, op: str) -> list[dict[str, Any]] | FairlaneError:
    try:
        return await ask(folder, {"op": op}, ANSWER_TIMEOUT_S)
    except FairlaneError as ex:
        return ex
    except ValueError as ex:
        return FairlaneError(ErrorCode.INTERNAL, f"the control loop's answer to {op!r} is no JSON: {ex}")


def _row(entry: dict[str, Any]) -> LoopRow:
    return LoopRow(
        switch=str(entry["switch"]),
        connected=bool(entry.get("connected")),
        error=entry.get("error"),
        flows=entry.get("flows"),
        flows_missed=entry.get("flows_missed"),
        details=entry,
    )
