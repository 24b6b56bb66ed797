# SPDX-License-Identifier: Apache-2.0
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
"""Results as they come in: each batch a folder of Parquet files that appears whole; merged into the run folder's tables at the end.

    parts/00003/{runs,flows,…}.parquet   finished runs, in the order in which they finished
    runs.parquet, flows.parquet, …       after `merge`: all runs, sorted; the parts are gone

Whatever interrupts it, every batch that was written is there, and a run counts as done when it is in `runs`.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Sequence
from pathlib import Path

from fairlane_lab.results import tables
from fairlane_lab.results.folder import read_lines
from fairlane_lab.results.rows import TABLES, RunRows, natural

BATCH_RUNS = 256
BATCH_S = 5.0
EVENTS = "events.jsonl"


class Store:
    """The results of one folder. One process writes at a time."""

    def __init__(self, folder: Path, points: Sequence[str] = ()) -> None:
        """`points`: the order in which points are sorted; others come after them."""
        self.folder = folder
        self._points = list(points)
        self._waiting: list[RunRows] = []
        self._flushed_s = time.monotonic()
        self._parts = folder / "parts"

    def add(self, rows: RunRows) -> None:
        """Take a finished run; written with the next batch."""
        self._waiting.append(rows)
        if len(self._waiting) >= BATCH_RUNS or time.monotonic() - self._flushed_s > BATCH_S:
            self.flush()

    def flush(self) -> None:
        """Write what waits, as one batch that appears whole."""
        self._flushed_s = time.monotonic()
        if not self._waiting:
            return
        number = 1 + max((int(part.name) for part in self._folders()[1:]), default=0)
        draft = self._parts / f".{number:05d}-{os.getpid()}"
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir(parents=True)
        try:
            for name in TABLES:
                if rows := [row for run in self._waiting for row in run[name]]:
                    tables.write(draft / f"{name}.parquet", tables.to_table(name, rows))
            tables.write_lines(draft / EVENTS, (event for run in self._waiting for event in run["events"]))
            draft.replace(self._parts / f"{number:05d}")
        finally:
            shutil.rmtree(draft, ignore_errors=True)
        self._waiting = []

    def finished_runs(self) -> set[tables.RunKey]:
        """(point, repeat) of every run that is on the disk. Raises RunError where a file is damaged."""
        return {key for folder in self._folders() for key in tables.keys_of(folder / "runs.parquet")}

    def merge(self) -> None:
        """Write what waits, and make one sorted table of each kind from all that there is, each run once. Raises RunError, OSError."""
        self.flush()
        seen: set[tables.RunKey] = set()
        sources: dict[Path, set[tables.RunKey]] = {}
        for folder in self._folders():
            sources[folder] = tables.keys_of(folder / "runs.parquet") - seen
            seen |= sources[folder]
        points = list(dict.fromkeys([*self._points, *sorted({point for point, _ in seen}, key=natural)]))
        place = {point: number for number, point in enumerate(points)}
        events = [
            event
            for folder, wanted in sources.items()
            for event in read_lines(folder / EVENTS)
            if (event["point"], event["repeat"]) in wanted
        ]
        tables.write_lines(
            self.folder / EVENTS, sorted(events, key=lambda event: (place[event["point"]], event["repeat"]))
        )
        for name in sorted(TABLES, key="runs".__eq__):  # runs last: it says what is done
            file = f"{name}.parquet"
            tables.merge(name, [(folder / file, keys) for folder, keys in sources.items()], points, self.folder / file)
        shutil.rmtree(self._parts, ignore_errors=True)

    def _folders(self) -> list[Path]:
        """The run folder, then its parts."""
        parts = self._parts.iterdir() if self._parts.is_dir() else ()
        return [self.folder, *sorted(part for part in parts if part.name.isdigit())]
