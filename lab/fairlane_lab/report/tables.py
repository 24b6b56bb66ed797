# SPDX-License-Identifier: Apache-2.0
"""Numbers of points as rows of text: paper and runtimes side by side for a page, runs for the terminal."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rich import box
from rich.table import Table

from fairlane_lab.definition.names import RUNTIMES, Name, find_name, split_metric
from fairlane_lab.report import labels
from fairlane_lab.report.run_folder import Point, RunFolder, ordered, points_of
from fairlane_lab.results.statistics import Spread

MAX_COLUMNS = 5
"""Where the experiment's file names no metrics."""
MAX_NAMED_COLUMNS = 7
HEAD_WIDTH = 10
"""Longer names of metrics are broken between words."""


@dataclass(frozen=True)
class Row:
    """One source of numbers of a point."""

    point: str
    source: str
    """`paper`, one of the paper's other sources, or a runtime."""
    runs: str
    """How many, of a runtime."""
    cells: tuple[str, ...]
    """A number for each metric; empty where there is none."""


@dataclass(frozen=True)
class Numbers:
    """The metrics, as their columns name them, and a row for each source of a point: the paper, its other sources, the runtimes."""

    metrics: Mapping[str, Name]
    rows: Sequence[Row]

    @property
    def heads(self) -> list[str]:
        """`goodput, reno (kbit/s)`."""
        return [f"{name.label} ({name.unit})" if name.unit else name.label for name in self.metrics.values()]


def numbers(
    points: Mapping[str, Mapping[str, Point]], paper: RunFolder, metrics: Sequence[str], intervals: bool
) -> Numbers:
    """The rows of some metrics.

    Args:
        points: Point's name -> the point in each runtime, or run, that has it.
        paper: The run whose definition has the paper's numbers.
        metrics: What to show; one that nobody has values of is left out.
        intervals: Whether the 95 % interval of the repeats' middle stands beside each number: `9.1 (8.9 to 9.6)`.

    """
    values: dict[tuple[str, str], dict[str, Spread]] = {}  # by point and source
    for metric in metrics:
        for name, found in points.items():
            for source, value in paper.paper_values(next(iter(found.values())), metric).items():
                values.setdefault((name, source or "paper"), {})[metric] = Spread(value, value, value)
            for runtime, point in found.items():
                if spread := point.get(metric):
                    values.setdefault((name, runtime), {})[metric] = spread
    there = {metric for spreads in values.values() for metric in spreads}
    largest = {metric: _largest(points, metric) for metric in metrics if metric in there}
    names = labels.rate_names(largest)
    runs = ordered(name for found in points.values() for name in found)
    runs.sort(key=lambda name: RUNTIMES.index(name) if name in RUNTIMES else len(RUNTIMES))
    sources = [*ordered(["paper", *(source for _, source in values if source not in runs)]), *runs]
    rows: list[Row] = []
    for name, found in points.items():
        for source in sources:
            spreads = values.get((name, source), {})
            count = found[source].runs if source in found else 1
            cells = tuple(_cell(spreads.get(metric), metric, names[metric], intervals, count) for metric in names)
            if any(cells) or (source in found and not intervals):
                runs = str(count) if source in found else ""
                rows.append(Row(name, labels.value_label("runtime", source), runs, cells))
    return Numbers(names, rows)


def _largest(points: Mapping[str, Mapping[str, Point]], metric: str) -> float:
    found = (point.get(metric) for runtimes in points.values() for point in runtimes.values())
    return max((spread.value for spread in found if spread), default=0.0)


def _cell(spread: Spread | None, metric: str, name: Name, interval: bool, count: int) -> str:
    """Without interval with one run or where both ends read alike; with the metric's own n where that is not the point's `count`."""
    if spread is None:
        return ""
    text, low, high = (
        "never" if value == math.inf else labels.format_metric(metric, value, name)
        for value in (spread.value, spread.lo, spread.hi)
    )
    if interval and spread.runs > 1 and low != high:
        text += f" ({low} to {high})"
    of = f"n = {spread.runs}" if interval and spread.runs != count else ""
    if spread.never:
        of = labels.never_text(spread.never, spread.runs) if interval else f"never {spread.never}/{spread.runs}"
    return ", ".join(filter(None, ("" if math.isinf(spread.value) else text, of)))


def main_metrics(run: RunFolder) -> list[str]:
    """The experiment's main metrics that were measured, at most seven; a choice of five where the file names none."""
    asked = list(run.definition.main_metrics)
    if not asked:
        groups = run.groups if 2 <= len(run.groups) <= 3 else []
        asked = [*(f"goodput_bps[{group}]" for group in groups), "utilisation", "fairness", "jain"]
    there = [metric for metric in asked if any(point.get(metric) for point in run.points)]
    return there[: MAX_NAMED_COLUMNS if run.definition.main_metrics else MAX_COLUMNS]


def result_table(runs: Sequence[RunFolder]) -> Table:
    """Runs as the terminal shows them: a point's numbers in each run, median or mean, and below them what the paper has.

    Where there are several runs, `*` marks numbers whose interval lies outside of the first run's.

    Raises RunFolderError when the definition of the first one cannot be read.
    """
    first, several = runs[0], len(runs) > 1
    named = dict(zip(_names(runs), runs, strict=True))
    points = points_of(named)
    shown = numbers(points, first, main_metrics(first), intervals=False)
    counts = sorted({point.runs for run in runs for point in run.points})
    count = "..".join(map(str, ordered(counts[:1] + counts[-1:])))
    middle = "one run each" if counts == [1] else f"{first.definition.statistic}s of {count} runs"
    table = Table(
        title=f"{first.definition.title or first.experiment} ({', '.join(named)}; {middle})",
        title_justify="left",
        box=box.SIMPLE_HEAD,
        padding=(0, 0, 0, int(len(shown.metrics) < MAX_NAMED_COLUMNS)),
        show_edge=False,
    )
    table.add_column("point", overflow="fold", min_width=12)
    for metric, name in shown.metrics.items():
        base, group = split_metric(metric)
        known = find_name(base)
        words = textwrap.wrap(name.label.split(" (")[0].split(",")[0], HEAD_WIDTH, break_long_words=False)
        head = (known and known.head) or "\n".join(words)
        table.add_column("\n".join(filter(None, [group, head, name.unit])), justify="right", no_wrap=True)
    section = point = ""
    place = {name: number for number, name in enumerate(points)}
    for row in sorted(shown.rows, key=lambda row: (place[row.point], row.source not in named)):
        above, _, own = row.point.rpartition("/")
        if above != section:
            section = above
            table.add_section()
            table.add_row(f"[bold]{above}[/bold]")
        title = f" {own}" if above else own
        if several and row.point != point:
            table.add_row(title)
        point, found = row.point, points[row.point]
        if row.source in named:
            apart = [_is_apart(found, row.source, next(iter(named)), metric) for metric in shown.metrics]
            cells = [f"{cell or '-'}{'*' * mark}" for cell, mark in zip(row.cells, apart, strict=True)]
            table.add_row(f"   {row.source}" if several else title, *cells)
        else:
            table.add_row(f"   {row.source}", *row.cells, style="dim")
    notes = ["not complete: some runs are missing"] * (not all(run.complete for run in runs))
    if several:
        same = all(run.summary["points"] == first.summary["points"] for run in runs)
        notes.append("every number is the same" if same else f"* outside of the interval of {next(iter(named))}")
    table.caption = "; ".join(notes) or None
    return table


def _is_apart(points: Mapping[str, Point], source: str, reference: str, metric: str) -> bool:
    """Whether the intervals of a metric in two runs do not meet; with one run each, whether its values differ."""
    one, other = (points[name].get(metric) if name in points else None for name in (source, reference))
    return bool(one and other and (one.hi < other.lo or other.hi < one.lo))


def _names(runs: Sequence[RunFolder]) -> Sequence[str]:
    """What tells runs apart: runtime, else experiment, else seed, else git, else the folder."""
    kinds = [
        [labels.value_label("runtime", run.runtime) for run in runs],
        [run.experiment for run in runs],
        [f"seed {run.seed}" for run in runs],
        [str(run.metadata.get("git", "")) for run in runs],
        [str(run.path) for run in runs],
    ]
    return next((names for names in kinds if len(set(names)) == len(runs)), kinds[-1])
