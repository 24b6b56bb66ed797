# SPDX-License-Identifier: Apache-2.0
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportMissingTypeStubs=false, reportUnknownParameterType=false
"""Results as they come in: each batch a folder of Parquet files that appears whole; merged into the run folder's tables at the end.

    parts/00003/{runs,flows,…}.parquet   finished runs, in the order in which they finished
    runs.parquet, flows.parquet, …       after `merge`: all runs, sorted; the parts are gone

Whatever interrupts it, every batch that was written is there, and a run counts as done when it is in `runs`.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from fairlane_lab.definition.names import PARAMETERS
from fairlane_lab.results import tables
from fairlane_lab.results.folder import read_lines
from fairlane_lab.results.rows import Row, RunRows, natural

BATCH_RUNS = 256
BATCH_S = 5.0


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
        self._parts.mkdir(parents=True, exist_ok=True)
        number = 1 + max((int(part.name) for part in self._part_folders()), default=0)
        draft = self._parts / f".{number:05d}-{os.getpid()}"
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir()
        place = self._order({str(run.runs[0]["point"]) for run in self._waiting})
        self._waiting.sort(
            key=lambda run: (place[run.runs[0]["point"]], run.runs[0]["repeat"])
        )  # as `merge` wants them
        for name in tables.TABLES:
            rows = [row for run in self._waiting for row in getattr(run, name)]
            if rows:
                tables.write(draft / f"{name}.parquet", tables.to_table(name, rows))
        events = [event for run in self._waiting for event in run.events]
        if events:
            tables.write_lines(draft / "events.jsonl", events)
        draft.replace(self._parts / f"{number:05d}")
        self._waiting = []

    def finished_runs(self) -> set[tuple[str, int]]:
        """(point, repeat) of every run that is on the disk."""
        found: set[tuple[str, int]] = set()
        for folder in (self.folder, *self._part_folders()):
            found |= tables.keys_of(folder / "runs.parquet")
        return found

    def merge(self) -> None:
        """Write what waits, and make one sorted table of each kind from all that there is."""
        self.flush()
        seen = tables.keys_of(self.folder / "runs.parquet")
        parts: list[tuple[Path, set[tuple[str, int]]]] = []
        kept = [(self.folder, set(seen))]
        for part in self._part_folders():
            new = tables.keys_of(part / "runs.parquet") - seen
            seen |= new
            parts.append((part, new))
        order = self._order({point for point, _ in seen})
        for name in (*(name for name in tables.TABLES if name != "runs"), "runs"):  # runs last: it says what is done
            if name == "runs":
                self._merge_events([*kept, *parts], order)
            file = f"{name}.parquet"
            sources = [(folder / file, wanted) for folder, wanted in (*kept, *parts)]
            tables.merge_runs(name, sources, order, self.folder / file, tuple(PARAMETERS))
        shutil.rmtree(self._parts, ignore_errors=True)

    def _merge_events(self, sources: Sequence[tuple[Path, set[tuple[str, int]]]], order: Mapping[str, int]) -> None:
        events: list[Row] = []
        for folder, wanted in sources:
            lines = read_lines(folder / "events.jsonl")
            events += [event for event in lines if (event["point"], event["repeat"]) in wanted]
        events.sort(key=lambda event: (order[event["point"]], event["repeat"]))  # stable: a run's events stay in order
        tables.write_lines(self.folder / "events.jsonl", events)

    def _order(self, points: set[str]) -> dict[str, int]:
        known = [point for point in self._points if point in points]
        others = sorted(points - set(known), key=natural)
        return {point: place for place, point in enumerate([*known, *others])}

    def _part_folders(self) -> list[Path]:
        if not self._parts.is_dir():
            return []
        return sorted(each for each in self._parts.iterdir() if each.name.isdigit())
