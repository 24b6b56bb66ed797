# SPDX-License-Identifier: Apache-2.0
"""Numbers of points as rows of text: paper and runtimes side by side for a page, one run for the terminal; and two runs compared."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich import box
from rich.table import Table

from fairlane_lab.definition.names import RUNTIMES, Name, find_name
from fairlane_lab.report import labels
from fairlane_lab.report.run_folder import Point, RunFolder, Spread, open_run, ordered
from fairlane_lab.results.summary_file import RunFolderError

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
        points: Point's name -> the point in each runtime that has it.
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
    order = ["paper", *ordered(source for _, source in values if source not in RUNTIMES), *RUNTIMES]
    sources = sorted({source for _, source in values}, key=order.index)
    rows: list[Row] = []
    for name, found in points.items():
        for source in sources:
            spreads = values.get((name, source), {})
            cells = tuple(_cell(spreads.get(metric), metric, names[metric], intervals) for metric in names)
            if any(cells) or (source in found and not intervals):
                runs = str(found[source].runs) if source in found else ""
                rows.append(Row(name, labels.value_label("runtime", source), runs, cells))
    return Numbers(names, rows)


def _largest(points: Mapping[str, Mapping[str, Point]], metric: str) -> float:
    found = (point.get(metric) for runtimes in points.values() for point in runtimes.values())
    return max((spread.value for spread in found if spread), default=0.0)


def _cell(spread: Spread | None, metric: str, name: Name, interval: bool) -> str:
    """Without interval with one run or where both ends read alike."""
    if spread is None:
        return ""
    text, low, high = (labels.format_metric(metric, value, name) for value in (spread.value, spread.lo, spread.hi))
    return f"{text} ({low} to {high})" if interval and spread.runs > 1 and low != high else text


def main_metrics(run: RunFolder) -> list[str]:
    """The experiment's main metrics that were measured, at most seven; a choice of five where the file names none."""
    asked = list(run.main_metrics)
    if not asked:
        groups = run.groups if 2 <= len(run.groups) <= 3 else []
        asked = [*(f"goodput_bps[{group}]" for group in groups), "utilisation", "fairness", "jain"]
    there = [metric for metric in asked if any(point.get(metric) for point in run.points)]
    return there[: MAX_NAMED_COLUMNS if run.main_metrics else MAX_COLUMNS]


def _rich_table(title: str, padding: int = 1) -> Table:
    return Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 0, 0, padding), show_edge=False)


def result_table(summary: Mapping[str, Any], folder: Path = Path()) -> Table:
    """The table of a `summary.json` for the terminal: what the experiment takes for the repeats, median or mean, and in rows below what the paper has.

    Raises RunFolderError when the definition in it cannot be read.
    """
    run = RunFolder(folder, summary)
    points = {point.name: {run.runtime: point} for point in run.points}
    shown = numbers(points, run, main_metrics(run), intervals=False)
    runs = sorted({point.runs for point in run.points})
    statistic = run.definition.get("statistic", "median")
    count = (
        "one run each" if runs == [1] else f"{statistic}s of {'..'.join(map(str, ordered(runs[:1] + runs[-1:])))} runs"
    )
    runtime = labels.value_label("runtime", run.runtime)
    table = _rich_table(
        f"{run.definition.get('title', run.experiment)} ({runtime}; {count})", len(shown.metrics) < MAX_NAMED_COLUMNS
    )
    table.add_column("point", overflow="fold", min_width=12)
    for metric, name in shown.metrics.items():
        base, group = labels.split_metric(metric)
        known = find_name(base)
        words = textwrap.wrap(name.label.split(" (")[0].split(",")[0], HEAD_WIDTH, break_long_words=False)
        head = (known and known.head) or "\n".join(words)
        table.add_column("\n".join(filter(None, [group, head, name.unit])), justify="right", no_wrap=True)
    section = ""
    place = list(points).index
    for row in sorted(shown.rows, key=lambda row: (place(row.point), row.source != runtime)):
        above, _, own = row.point.rpartition("/")
        if above != section:
            section = above
            table.add_section()
            table.add_row(f"[bold]{above}[/bold]")
        if row.source == runtime:
            table.add_row(f" {own}" if above else own, *(cell or "-" for cell in row.cells))
        else:
            table.add_row(f"   {row.source}", *row.cells, style="dim")
    table.caption = None if run.complete else "not complete: some runs are missing"
    return table


# ---- two runs: sim against Mininet, before against after, seed against seed


@dataclass(frozen=True)
class Compared:
    """One metric at one point in both runs, in the metric's own unit."""

    point: str
    metric: str
    a: float
    a_lo: float
    a_hi: float
    b: float
    b_lo: float
    b_hi: float
    difference: float | None
    """(b - a) / |a|; None when a is 0 and b is not."""
    outside: bool
    """The confidence ranges do not meet; with one run each, the values differ."""


@dataclass(frozen=True)
class Comparison:
    """All metrics of all points that both runs have."""

    a: str
    b: str
    """What the runs are called: what tells them apart, such as `sim` and `Mininet`."""
    rows: tuple[Compared, ...]
    only_a: tuple[str, ...]
    only_b: tuple[str, ...]
    """Points of one run that the other has not."""
    main: tuple[str, ...]
    """The experiment's main metrics."""

    @property
    def same(self) -> bool:
        """Whether every number is the same and no point is missing, as a seed promises."""
        equal = ((row.a, row.a_lo, row.a_hi) == (row.b, row.b_lo, row.b_hi) for row in self.rows)
        return not (self.only_a or self.only_b) and all(equal)

    def as_json(self) -> dict[str, Any]:
        """For `--json`: flat rows and what could not be compared."""
        return {**asdict(self), "same": self.same}


def compare_runs(a: Path, b: Path) -> Comparison:
    """Compare two run folders. Raises RunFolderError when one is no run folder or they have no point in common."""
    first, second = open_run(a), open_run(b)
    mine, theirs = ({point.name: point for point in run.points} for run in (first, second))
    rows = [
        _compared(name, metric, one, other)
        for name, point in mine.items()
        for metric in (point.metrics if name in theirs else ())
        if (one := point.get(metric)) and (other := theirs[name].get(metric))
    ]
    if not rows:
        names = f"{a} ({first.experiment}) and {b} ({second.experiment})"
        raise RunFolderError(f"{names} have no point with a metric in common")
    only_a, only_b = (tuple(n for n in one if n not in other) for one, other in ((mine, theirs), (theirs, mine)))
    main = ordered([*main_metrics(first), *main_metrics(second)])
    return Comparison(*_names(first, second), tuple(rows), only_a, only_b, tuple(main))


def _compared(point: str, metric: str, a: Spread, b: Spread) -> Compared:
    difference = (b.value - a.value) / abs(a.value) if a.value else 0.0 if b.value == 0 else None
    outside = a.hi < b.lo or b.hi < a.lo
    return Compared(point, metric, a.value, a.lo, a.hi, b.value, b.lo, b.hi, difference, outside)


def _names(a: RunFolder, b: RunFolder) -> tuple[str, str]:
    """What tells the two apart: experiment, else runtime, else seed, else git, else the folder."""

    def names_of(run: RunFolder) -> Iterable[str]:
        seed, git = run.summary.get("seed"), str(run.metadata.get("git", ""))
        return run.experiment, labels.value_label("runtime", run.runtime), f"seed {seed}", git, run.path.name

    pairs = list(zip(names_of(a), names_of(b), strict=True))
    return next((pair for pair in pairs if pair[0] != pair[1]), pairs[-1])


def compare_table(comparison: Comparison, metrics: Sequence[str] | None = None, only_outside: bool = False) -> Table:
    """The comparison for the terminal: the main metrics, or the given ones; with `only_outside` what lies outside both ranges."""
    table = _rich_table(
        f"{comparison.a} (a) and {comparison.b} (b): medians, b against a; * outside both confidence ranges"
    )
    table.add_column("metric, point", overflow="fold", min_width=24)
    for head in ("a", "a lo..hi", "b", "b lo..hi", "b - a\n%", ""):
        table.add_column(head, justify="right", no_wrap=True)
    for metric in comparison.main if metrics is None else metrics:
        rows = [row for row in comparison.rows if row.metric == metric and (row.outside or not only_outside)]
        if not rows:
            continue
        name = labels.rate_name(labels.name_of(metric), max(max(row.a, row.b) for row in rows))
        table.add_section()
        table.add_row(f"[bold]{labels.axis_label(name)}[/bold]")
        for row in rows:
            values = (row.a, row.a_lo, row.a_hi, row.b, row.b_lo, row.b_hi)
            a, a_lo, a_hi, b, b_lo, b_hi = (labels.format_metric(metric, value, name) for value in values)
            difference = "-" if row.difference is None else f"{row.difference * 100:+.1f}"
            a_range, b_range = (f"{lo}..{hi}" if lo != hi else "" for lo, hi in ((a_lo, a_hi), (b_lo, b_hi)))
            table.add_row(f" {row.point}", a, a_range, b, b_range, difference, "[red]*[/red]" if row.outside else "")
    sides = (("a", comparison.only_a), ("b", comparison.only_b))
    missing = [f"only in {side}: {', '.join(points)}" for side, points in sides if points]
    table.caption = "; ".join(["every number is the same"] * comparison.same + missing) or None
    return table
