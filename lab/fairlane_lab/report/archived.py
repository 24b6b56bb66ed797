# SPDX-License-Identifier: Apache-2.0
"""Whether archived runs would come out the same today: one run of each point is made again and compared, value by value."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from fairlane_lab.definition import Definition, Selection, expand
from fairlane_lab.definition.strict import Runtime
from fairlane_lab.problems import RunFolderError
from fairlane_lab.report.archive import is_stale, numbers_problem, open_archived, runs_file
from fairlane_lab.results import tables
from fairlane_lab.results.rows import make_rows
from fairlane_lab.results.summary import read_rows
from fairlane_lab.scenario import Scenario
from fairlane_lab.sweep.runners import Executor, Outcome

SAMPLE_S = 20.0
"""What making an experiment's sample again may take on one core, by what its runs took: 66 experiments take less than 15 minutes on two."""
TOLD = ("experiment", "runtime", "target")
"""Columns that name a run and are no result of it."""
GONE = ("bw_reaction_s", "t_res_reaction_s")
"""Metrics of archives that the lab measures no longer: the series `bw_bps` and `t_res_ms` have the reaction to a change."""


@dataclass(frozen=True)
class Archived:
    """An experiment's archived runs, and the sample that shows whether they hold."""

    definition: Definition
    summary: Mapping[str, Any]
    """As a run folder has it, judged by the experiment's file as it is now."""
    rows: Mapping[tuple[str, int], Mapping[str, Any]]
    sample: Sequence[Scenario]
    """One run of each point: of point i the repeat i modulo the repeats, so that every seed has its turn; of points evenly apart where all
    would take longer than `SAMPLE_S`."""

    def rerun(self, executor: Executor, on_outcome: Callable[[Outcome], None]) -> list[str]:
        """Run the sample; returns what differs, a line each: none where the archive is what would be run today."""
        differences: list[str] = []

        def compare(outcome: Outcome) -> None:
            differences.extend(self._differences(outcome))
            on_outcome(outcome)

        executor(self.sample, compare)
        return sorted(differences)

    def _differences(self, outcome: Outcome) -> list[str]:
        scenario = outcome.scenario
        where = f"{scenario.point}, run {scenario.repeat}"
        if outcome.result is None:
            return [f"{where}: {outcome.failure.error if outcome.failure else 'no result'}"]
        now = tables.archived_row(make_rows(scenario, outcome.result, "", "")["runs"][0])
        then = self.rows[scenario.point, scenario.repeat]
        for name, value in then.items():
            if name not in (*TOLD, *GONE) and value is not None and now.get(name) != value:
                return [f"{where}: {name} is {now.get(name)}, archived is {value}"]
        return []


def find_archived(data: Path, definition: Definition, runtime: str) -> Archived | None:
    """The archive's runs of an experiment; None without any. Raises RunFolderError for a damaged or changed archive, and where the
    experiment's file asks for other or more points, or runs them otherwise now."""
    run = open_archived(data, definition, runtime)
    if run is None:
        return None
    path = runs_file(data, definition, runtime)
    problem = numbers_problem(path)
    if not problem and is_stale(data, definition, run):
        problem = "the experiment's file runs other points, or runs them otherwise now: run it anew"
    if problem:
        raise RunFolderError(f"{path.name}: {problem}")
    rows = {(row["point"], row["repeat"]): row for row in read_rows(path)}
    repeats = 1 + max(repeat for _, repeat in rows)
    selection = Selection(runtime=cast("Runtime", runtime), seed=run.summary["seed"], repeats=repeats)
    places = {point: place for place, point in enumerate(dict.fromkeys(point for point, _ in rows))}
    scenarios = expand(definition, selection)
    if any(each.point not in places for each in scenarios):
        raise RunFolderError(f"{path.name}: the experiment's file has points that were not run: run it anew")
    sample = [each for each in scenarios if each.repeat == places[each.point] % repeats]
    took_s = (run.summary.get("speed", {}).get("wall_s_of_runs") or 0.0) / len(rows) * len(sample)
    sample = sample[:: max(1, math.ceil(took_s / SAMPLE_S))]
    return Archived(definition, run.summary, rows, sample)
