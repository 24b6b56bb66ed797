# SPDX-License-Identifier: Apache-2.0
"""Which run folders belong together: an experiment with its newest run in each runtime."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from fairlane_lab.definition.judging import Note
from fairlane_lab.definition.names import RUNTIMES
from fairlane_lab.paths import results_root
from fairlane_lab.report.run_folder import Point, RunFolder, open_run
from fairlane_lab.results.summary_file import RunFolderError


@dataclass(frozen=True)
class Pair:
    """An experiment's runs that are set side by side: at most one of each runtime, sim first."""

    runs: tuple[RunFolder, ...]
    older: int = 0
    """Folders that were given but are older runs in the same runtime."""
    later_notes: tuple[Note, ...] | None = None
    """Notes that were written after the runs; None: those of the newest run."""

    @property
    def experiment(self) -> str:
        """The experiment's name."""
        return self.runs[0].experiment

    @property
    def newest(self) -> RunFolder:
        """The run whose definition (plots, notes, paper's numbers) is used: the newest."""
        return max(self.runs, key=lambda run: run.started)

    @property
    def notes(self) -> Sequence[Note]:
        """Where differences come from, as far as it is known."""
        return self.newest.notes if self.later_notes is None else self.later_notes

    def points(self) -> list[tuple[str, dict[str, Point]]]:
        """Every point's name in the definition's order, with the point in each runtime that has it."""
        found: dict[str, dict[str, Point]] = {}
        for run in sorted(self.runs, key=lambda run: -len(run.points)):
            for point in run.points:
                found.setdefault(point.name, {})[run.runtime] = point
        return list(found.items())

    def paper_values(self, points: dict[str, Point], metric: str) -> dict[str, float]:
        """Source → the paper's value of a metric for a point."""
        return self.newest.paper_values(next(iter(points.values())), metric)


NotesOf = Callable[[str], "tuple[Note, ...] | None"]
"""Experiment → its notes as they are now; None when it is not known."""


def pair_up(folders: Sequence[Path], notes_of: NotesOf = lambda _name: None) -> list[Pair]:
    """Experiments in the order in which they first appear. A cause may be found after a run: `notes_of` has the notes of today.

    Raises RunFolderError for a folder that is none, or when there are no folders.
    """
    if not folders:
        raise RunFolderError(
            "no run folders to report on: run an experiment first, such as `fairlane lab run NAME` (`fairlane lab list` has the names)"
        )
    found: dict[str, dict[str, list[RunFolder]]] = {}
    for run in (open_run(folder) for folder in folders):
        found.setdefault(run.experiment, {}).setdefault(run.runtime, []).append(run)
    pairs: list[Pair] = []
    for name, runtimes in found.items():
        chosen = [max(runs, key=lambda run: run.started) for runs in runtimes.values()]
        chosen.sort(key=lambda run: RUNTIMES.index(run.runtime) if run.runtime in RUNTIMES else len(RUNTIMES))
        pairs.append(Pair(tuple(chosen), sum(len(runs) - 1 for runs in runtimes.values()), notes_of(name)))
    return pairs


def newest_folders(root: Path | None = None) -> list[Path]:
    """The newest run folder of each experiment in each runtime below `root` (default: the tree's `results/`)."""
    newest: dict[tuple[str, str], RunFolder] = {}
    for path in sorted((root or results_root()).glob("*/*/summary.json")):
        if path.parent.is_symlink():
            continue
        try:
            run = open_run(path.parent)
        except RunFolderError:
            continue  # of another program
        key = (run.experiment, run.runtime)
        if key not in newest or newest[key].started <= run.started:
            newest[key] = run
    return [run.path for _, run in sorted(newest.items())]
