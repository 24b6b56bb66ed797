# SPDX-License-Identifier: Apache-2.0
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportMissingTypeStubs=false, reportUnknownParameterType=false
"""Results as they come in: each batch a folder of Parquet files that appears whole; merged into the run folder's tables at the end.

    parts/00003/{runs,flows,…}.parquet   finished runs, in the order in which they finished
    runs.parquet, flows.parquet, …       after `merge`: all runs, sorted; the parts are gone

Whatever interrupts it, every batch that was written is there, and a run counts as done when it is in `runs`. What cannot be read
(a disk that was full, a power cut) is set aside, `parts/damaged-00003` or `damaged/`: its runs are missing, and made again.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

from fairlane_lab.definition.names import PARAMETERS
from fairlane_lab.results import tables
from fairlane_lab.results.rows import RunRows, natural

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
        place = self._order({str(run.runs[0]["point"]) for run in self._waiting})
        self._waiting.sort(
            key=lambda run: (place[run.runs[0]["point"]], run.runs[0]["repeat"])
        )  # as `merge` wants them
        with self._new_part() as draft:
            for name in tables.TABLES:
                rows = [row for run in self._waiting for row in getattr(run, name)]
                if rows:
                    tables.write(draft / f"{name}.parquet", tables.to_table(name, rows))
            tables.write_lines(draft / EVENTS, (event for run in self._waiting for event in run.events))
        self._waiting = []

    def set_damaged_aside(self, *, whole: bool = False) -> list[str]:
        """Take out of the way what cannot be read, and say each: of tables other than `runs` the ends are looked at, with `whole` every row."""
        said: list[str] = []
        for folder in (self.folder, *self._part_folders()):
            for name in tables.TABLES:
                path = folder / f"{name}.parquet"
                if (problem := tables.find_damage(path, whole or name == "runs")) is not None:
                    said.append(f"{path} is damaged ({problem}): its runs are missing, and made again")
                    self._set_aside(folder)
                    break
        return said

    def _set_aside(self, folder: Path) -> None:
        if folder != self.folder:
            aside = folder.with_name(f"damaged-{folder.name}")
            shutil.rmtree(aside, ignore_errors=True)
            folder.rename(aside)
            return
        (folder / "damaged").mkdir(exist_ok=True)
        for path in [*(folder / f"{name}.parquet" for name in tables.TABLES), folder / EVENTS]:
            if path.exists():
                path.replace(folder / "damaged" / path.name)

    def finished_runs(self) -> set[tuple[str, int]]:
        """(point, repeat) of every run that is on the disk."""
        found: set[tuple[str, int]] = set()
        for folder in (self.folder, *self._part_folders()):
            found |= tables.keys_of(folder / "runs.parquet")
        return found

    def merge(self) -> None:
        """Write what waits, and make one sorted table of each kind from all that there is, each run once."""
        self.flush()
        seen: set[tables.RunKey] = set()
        sources: list[tuple[Path, set[tables.RunKey]]] = []
        for folder in (self.folder, *self._part_folders()):
            new = tables.keys_of(folder / "runs.parquet") - seen
            seen |= new
            sources.append((folder, new))
        order = self._order({point for point, _ in seen})
        tables.merge_lines([(folder / EVENTS, wanted) for folder, wanted in sources], order, self.folder / EVENTS)
        for name in (*(name for name in tables.TABLES if name != "runs"), "runs"):  # runs last: it says what is done
            file = f"{name}.parquet"
            files = [(folder / file, wanted) for folder, wanted in sources]
            tables.merge_runs(name, files, order, self.folder / file, tuple(PARAMETERS))
        shutil.rmtree(self._parts, ignore_errors=True)

    @contextmanager
    def _new_part(self) -> Generator[Path]:
        """A folder that becomes the next part, whole, when the block ends without an error."""
        number = 1 + max((int(part.name) for part in self._part_folders()), default=0)
        draft = self._parts / f".{number:05d}-{os.getpid()}"
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir(parents=True)
        try:
            yield draft
        except BaseException:
            shutil.rmtree(draft, ignore_errors=True)
            raise
        draft.replace(self._parts / f"{number:05d}")

    def _order(self, points: set[str]) -> dict[str, int]:
        known = [point for point in self._points if point in points]
        others = sorted(points - set(known), key=natural)
        return {point: place for place, point in enumerate([*known, *others])}

    def _part_folders(self) -> list[Path]:
        if not self._parts.is_dir():
            return []
        return sorted(each for each in self._parts.iterdir() if each.name.isdigit())
