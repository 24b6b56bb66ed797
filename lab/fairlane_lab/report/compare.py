# SPDX-License-Identifier: Apache-2.0
"""Two runs side by side: sim against Mininet, before against after, seed against seed; point by point and metric by metric."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich import box
from rich.table import Table

from fairlane_lab.report import labels
from fairlane_lab.report.run_folder import RunFolder, Spread, open_run, ordered
from fairlane_lab.report.terminal import main_metrics
from fairlane_lab.results.summary_file import RunFolderError


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
        return not (self.only_a or self.only_b) and all(
            row.difference == 0 and row.a_lo == row.b_lo and row.a_hi == row.b_hi for row in self.rows
        )

    def as_json(self) -> dict[str, Any]:
        """For `--json`: flat rows and what could not be compared."""
        return {**asdict(self), "same": self.same}


def compare_runs(a: Path, b: Path) -> Comparison:
    """Compare two run folders. Raises RunFolderError when one is no run folder or they have no point in common."""
    first, second = open_run(a), open_run(b)
    theirs = {point.name: point for point in second.points}
    mine = [point.name for point in first.points]
    rows: list[Compared] = []
    for point in first.points:
        other = theirs.get(point.name)
        for metric, spread in point.metrics.items() if other else ():
            found = other.get(metric) if other else None
            if found is not None and math.isfinite(spread.value):
                rows.append(_compared(point.name, metric, spread, found))
    if not rows:
        raise RunFolderError(
            f"{a} ({first.experiment}) and {b} ({second.experiment}) have no point with a metric in common"
        )
    names = _names(first, second)
    main = ordered([*main_metrics(first), *main_metrics(second)])
    only_a = tuple(name for name in mine if name not in theirs)
    return Comparison(*names, tuple(rows), only_a, tuple(name for name in theirs if name not in mine), tuple(main))


def compare_table(comparison: Comparison, metrics: Sequence[str] | None = None, only_outside: bool = False) -> Table:
    """The comparison for the terminal: the main metrics, or the given ones; with `only_outside` what lies outside both ranges."""
    chosen = comparison.main if metrics is None else metrics
    rows = [row for row in comparison.rows if row.metric in chosen and (row.outside or not only_outside)]
    rows.sort(key=lambda row: list(chosen).index(row.metric))
    title = f"{comparison.a} (a) and {comparison.b} (b): medians, b against a; * outside both confidence ranges"
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 0, 0, 1), show_edge=False)
    table.add_column("metric, point", overflow="fold", min_width=24)
    for name in ("a", "a lo..hi", "b", "b lo..hi", "b - a\n%"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("")
    for metric in ordered(row.metric for row in rows):
        mine = [row for row in rows if row.metric == metric]
        name = labels.rate_name(labels.name_of(metric), max(max(row.a, row.b) for row in mine))
        table.add_section()
        table.add_row(f"[bold]{labels.axis_label(name)}[/bold]")
        for row in mine:
            table.add_row(
                f" {row.point}",
                labels.format_metric(metric, row.a, name),
                _range(metric, row.a_lo, row.a_hi, name),
                labels.format_metric(metric, row.b, name),
                _range(metric, row.b_lo, row.b_hi, name),
                "-" if row.difference is None else f"{row.difference * 100:+.1f}",
                "[red]*[/red]" if row.outside else "",
            )
    missing = [
        f"only in {side}: {', '.join(points)}"
        for side, points in (("a", comparison.only_a), ("b", comparison.only_b))
        if points
    ]
    table.caption = "; ".join(["every number is the same"] * comparison.same + missing) or None
    return table


def _compared(point: str, metric: str, a: Spread, b: Spread) -> Compared:
    difference = (b.value - a.value) / abs(a.value) if a.value else 0.0 if b.value == 0 else None
    outside = a.hi < b.lo or b.hi < a.lo
    return Compared(point, metric, a.value, a.lo, a.hi, b.value, b.lo, b.hi, difference, outside)


def _range(metric: str, low: float, high: float, name: Any) -> str:
    return (
        f"{labels.format_metric(metric, low, name)}..{labels.format_metric(metric, high, name)}" if low != high else ""
    )


def _names(a: RunFolder, b: RunFolder) -> tuple[str, str]:
    """What tells the two apart: experiment, else runtime, else seed, else git, else the folder."""
    told: list[tuple[str, str]] = [
        (a.experiment, b.experiment),
        (labels.value_label("runtime", a.runtime), labels.value_label("runtime", b.runtime)),
        (f"seed {a.summary.get('seed')}", f"seed {b.summary.get('seed')}"),
        (str(a.metadata.get("git", "")), str(b.metadata.get("git", ""))),
        (a.path.name, b.path.name),
    ]
    return next((pair for pair in told if pair[0] != pair[1]), told[-1])
