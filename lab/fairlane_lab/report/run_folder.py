# SPDX-License-Identifier: Apache-2.0
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
"""A run folder as the report reads it: the definition kept in it, its points with their spreads, its tables. Reads only."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd
from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, ValidationError

from fairlane_lab.definition.extend import Source, experiment_names
from fairlane_lab.definition.judging import PaperNumbers, Plot, drawn_repeats
from fairlane_lab.definition.loading import Definition, load, make_definition
from fairlane_lab.definition.names import split_quotient
from fairlane_lab.definition.strict import Runtime, Where, matches
from fairlane_lab.paths import results_root
from fairlane_lab.problems import RunFolderError, pydantic_problems
from fairlane_lab.recording import read_lines
from fairlane_lab.results.folder import SUMMARY, read_document
from fairlane_lab.results.statistics import Spread
from fairlane_lab.results.tables import EVENTS, read
from fairlane_lab.results.verdicts import Verdict

Plain = dict[str, Any]


class _Part(BaseModel):
    """Of a summary, which may say more than is looked at."""

    model_config = ConfigDict(frozen=True)


class Point(_Part):
    """One cell of an experiment: its parameters and its metrics over the repeats."""

    name: str = Field(alias="point")
    params: Plain
    values: dict[str, FiniteFloat] = Field(alias="metrics")
    """With the bounds of each middle, `METRIC_lo` and `METRIC_hi`; without what is infinite or not known."""
    ranges: dict[str, tuple[FiniteFloat, FiniteFloat]] = Field(default_factory=dict)
    runs: int = 1
    counts: dict[str, int] = Field(default_factory=dict)
    """Runs that measured it, where these are not all."""
    never: dict[str, int] = Field(default_factory=dict)
    """Runs in which it never came, where there are any."""

    @cached_property
    def metrics(self) -> dict[str, Spread]:
        """The spread of each."""
        found: dict[str, Spread] = {}
        for name in dict.fromkeys([*self.values, *self.never]):
            if not name.endswith(("_lo", "_hi")):
                value, never = self.values.get(name, math.inf), self.never.get(name, 0)
                low = self.values.get(f"{name}_lo", -math.inf if never and math.isfinite(value) else value)
                high = self.values.get(f"{name}_hi", math.inf if never else value)
                ends = self.ranges.get(name, (math.nan, math.nan))
                found[name] = Spread(value, low, high, *ends, self.counts.get(name, self.runs), never)
        return found

    def get(self, metric: str) -> Spread | None:
        """The spread of a metric or of a quotient `a / b` (b may be a parameter); None where it was not measured."""
        above, below = split_quotient(metric)
        if below:
            left, right = self.get(above), self.get(below)
            by = right.value if right else self.params.get(below)
            if left is None or not isinstance(by, int | float) or by == 0 or not math.isfinite(left.value + by):
                return None
            return left.scaled(1 / by) if right is None else left.over(right)
        return self.metrics.get(metric)


class _Flow(_Part):
    name: str = ""
    group: str = ""


class _Definition(_Part):
    """The experiment's file as it was: what the report looks at."""

    title: str = ""
    statistic: str = "median"
    main_metrics: list[str] = Field(default_factory=list[str])
    flows: list[_Flow] = Field(default_factory=list[_Flow])
    plots: list[Plot] = Field(default_factory=list[Plot])
    paper_numbers: list[PaperNumbers] = Field(default_factory=list[PaperNumbers])
    changes: list[Plain] = Field(default_factory=list[Plain])


class RunFolder(_Part):
    """One run folder with its `summary.json` read; tables are read when they are first asked for."""

    path: Path
    prefix: str = ""
    """Of its tables' files, where several runs are in one folder: an archive."""
    summary: Plain
    """All of it, as it is."""
    experiment: str
    runtime: Runtime
    definition: _Definition
    points: list[Point]
    """In the order of the definition."""
    verdicts: list[Verdict] = Field(default_factory=list[Verdict])
    seed: int = 1
    complete: bool = True
    """Whether every run that was asked for is in the folder."""
    metadata: Plain = Field(default_factory=dict)
    """Git, kernel, versions, machine."""
    about: Plain = Field(default_factory=dict)
    speed: Plain = Field(default_factory=dict)

    @property
    def count_text(self) -> str:
        """`20` where each point has so many runs, else `75 runs` of all points."""
        counts = {point.runs for point in self.points}
        return str(counts.pop()) if len(counts) == 1 else f"{sum(point.runs for point in self.points)} runs"

    @property
    def minutes(self) -> str:
        """What its runs took together; `-` where it is not known."""
        return minutes(self.summary)

    @property
    def started(self) -> str:
        """When it began, ISO 8601 in UTC; empty when unknown."""
        return str(self.metadata.get("started", ""))

    @property
    def copy_of_file(self) -> Path | None:
        """Its copy of the experiment's file; None where it has none."""
        return copy_of(self.path, self.prefix, self.metadata)

    @property
    def kernel(self) -> str:
        """The kernel whose TCP the hosts had: the machine's, or the one in virtual time; the simulator has none of its own and shows the machine's."""
        linux = self.about.get("linux", {})
        one = linux.get("various", [linux])[0]  # of several points: their flows differ, not their kernel
        return str(one.get("package") or self.metadata.get("kernel", ""))

    @property
    def warmup_s(self) -> float | None:
        """Seconds that are not counted; None when it differs from point to point."""
        given = {point.params.get("warmup_s") for point in self.points}
        return given.pop() if len(given) == 1 else None

    @cached_property
    def groups(self) -> list[str]:
        """Groups of flows, in the definition's order."""
        named = [flow.group or flow.name for flow in self.definition.flows]
        measured = [str(group) for group in self.flows["group"]] if "group" in self.flows else []
        there = set(measured) or set(named)
        return [group for group in dict.fromkeys([*named, *measured]) if group in there]

    @cached_property
    def table(self) -> pd.DataFrame:
        """One row a point: its parameters, each metric over the repeats, and the bounds of its middle, `METRIC_lo` and `METRIC_hi`."""
        return pd.DataFrame([{**point.params, **point.values} for point in self.points])

    @cached_property
    def runs(self) -> pd.DataFrame:
        """One row a run."""
        return self._table("runs")

    @cached_property
    def flows(self) -> pd.DataFrame:
        """One row a flow of a run."""
        return self._table("flows")

    @cached_property
    def transfers(self) -> pd.DataFrame:
        """One row a finished transfer; without rows when the experiment has none."""
        return self._table("transfers")

    @property
    def events(self) -> list[dict[str, Any]]:
        """The controller's events of all runs."""
        return list(read_lines(self.path / f"{self.prefix}{EVENTS}"))

    @cached_property
    def series(self) -> pd.DataFrame:
        """One row a sample in the order of time, of the repeats that are drawn; without rows when no series were asked for."""
        table = self._table("series", [("repeat", "in", {0} | drawn_repeats(self.definition.plots))])
        return table.sort_values("t_s", kind="stable", ignore_index=True) if len(table) else table

    def select(self, where: Where) -> list[Point]:
        """Points whose parameters satisfy `where` (which may also name the runtime)."""
        return [point for point in self.points if matches(where, {**point.params, "runtime": self.runtime})]

    def paper_values(self, point: Point, metric: str) -> dict[str, float]:
        """Source → the paper's value of a metric for a point; the source is empty for the experiment's own paper."""
        return {
            entry.source: value
            for entry in self.definition.paper_numbers
            if matches(entry.where, {**point.params, "runtime": self.runtime})
            and (value := entry.values.get(metric)) is not None
        }

    def _table(self, stem: str, filters: Any = None) -> pd.DataFrame:
        """Raises RunError for a damaged one."""
        table = read(self.path / f"{self.prefix}{stem}.parquet", filters=filters)
        return pd.DataFrame() if table is None else table.to_pandas()


def open_run(folder: Path) -> RunFolder:
    """Open a run folder. Raises RunFolderError when there is no readable summary, or none of an experiment of the lab."""
    return run_of(folder, read_document(folder, SUMMARY))


def run_of(folder: Path, summary: Mapping[str, Any], prefix: str = "") -> RunFolder:
    """The run of a summary; `prefix` as of `RunFolder`. Raises RunFolderError for one that is of no experiment of the lab."""
    try:
        return RunFolder.model_validate({**summary, "path": folder, "prefix": prefix, "summary": dict(summary)})
    except ValidationError as error:
        problems = "; ".join(map(str, pydantic_problems(error, RunFolder)[:8]))
        raise RunFolderError(f"{folder / SUMMARY}: not of `fairlane lab run`: {problems}") from None


def minutes(summary: Mapping[str, Any]) -> str:
    """Processor time that the runs of a summary took together; of older ones the time `by the clock`; `-` where it is not known."""
    speed = summary.get("speed", {})
    cpu_s, wall_s = speed.get("cpu_s_of_runs"), speed.get("wall_s_of_runs")
    return f"{cpu_s / 60:.1f}" if cpu_s is not None else f"{wall_s / 60:.1f} by the clock" if wall_s else "-"


@dataclass(frozen=True)
class Measured:
    """An experiment as its file is now, and at most one run of it in each runtime, sim first."""

    definition: Definition
    runs: tuple[RunFolder, ...]

    @property
    def name(self) -> str:
        """The experiment's."""
        return self.definition.experiment.name

    @property
    def newest(self) -> RunFolder:
        """The run whose plots and paper's numbers are used."""
        return max(self.runs, key=lambda run: run.started)

    def points(self) -> dict[str, dict[str, Point]]:
        """`points_of` its runs, by their runtimes."""
        return points_of({run.runtime: run for run in self.runs})


def points_of(runs: Mapping[str, RunFolder]) -> dict[str, dict[str, Point]]:
    """Every point's name in the definition's order, with the point in each run that has it, by the run's name."""
    found: dict[str, dict[str, Point]] = {}
    for name, run in sorted(runs.items(), key=lambda each: -len(each[1].points)):
        for point in run.points:
            found.setdefault(point.name, {})[name] = point
    return found


def copy_of(folder: Path, prefix: str, metadata: Mapping[str, Any]) -> Path | None:
    """Where the copy of an experiment's file lies beside its runs."""
    name = metadata.get("campaign", {}).get("file")
    return folder / f"{prefix}{name}" if name else None


def definition_of(name: str, kept: Mapping[str, Any] | None, copy: Path | None = None) -> Definition | None:
    """An experiment of the tree as its file is now, another as a run `kept` it; None without either. Raises ExperimentError where it is not valid.

    `copy`: the run's copy of the file, beside which its own program lies.
    """
    if name in experiment_names():
        return load(name)
    if kept is None:
        return None
    document = {key: value for key, value in kept.items() if key != "origin"}
    return make_definition(Source(document, (copy or Path(kept["origin"]),)))


def newest_folders(root: Path | None = None) -> list[Path]:
    """The newest run folder of each experiment in each runtime below `root` (default: the tree's `results/`)."""
    newest: dict[tuple[str, str], RunFolder] = {}
    for path in sorted((root or results_root()).glob("*/*/summary.json")):
        with contextlib.suppress(RunFolderError):  # of another program
            if not path.parent.is_symlink():
                run = open_run(path.parent)
                key = run.experiment, run.runtime
                newest[key] = max(newest.get(key, run), run, key=lambda each: each.started)
    return [newest[key].path for key in sorted(newest)]


def ordered(values: Iterable[Any]) -> list[Any]:
    """Values without doubles in the order in which they came."""
    return list(dict.fromkeys(values))
