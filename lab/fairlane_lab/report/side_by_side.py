# SPDX-License-Identifier: Apache-2.0
"""The table of an experiment with paper, sim and Mininet beside each other, as cells of text; no layout."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from fairlane_lab.definition.names import Name
from fairlane_lab.report import labels
from fairlane_lab.report.pairing import Pair
from fairlane_lab.report.run_folder import Point, Spread
from fairlane_lab.report.style import mark
from fairlane_lab.report.terminal import main_metrics

LONG = 16
"""Rows from which on a table shows the paper's points only, the rest on demand."""


@dataclass(frozen=True)
class Cell:
    """A number with the 95 % interval of the repeats' middle; both empty when it was not measured."""

    text: str = ""
    spread: str = ""


@dataclass(frozen=True)
class Column:
    """A metric and the sources that have values of it."""

    metric: str
    label: str
    unit: str
    sources: tuple[str, ...]
    """`paper`, the paper's other sources, `sim`, `mininet`."""
    heads: tuple[str, ...]
    """The sources as a reader sees them."""


@dataclass(frozen=True)
class Row:
    """A point."""

    point: str
    cells: tuple[Cell, ...]
    """One for each source of each column."""
    has_paper: bool
    runs: str
    """How many runs in each runtime: `10 / 3`."""


@dataclass(frozen=True)
class Table:
    """Paper, sim and Mininet side by side."""

    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    repeats: dict[str, int]
    """Runtime → runs of each of its points; empty when they differ."""

    @property
    def front(self) -> tuple[Row, ...]:
        """Rows to show at once."""
        if len(self.rows) <= LONG:
            return self.rows
        return tuple(row for row in self.rows if row.has_paper) or self.rows[:LONG]

    @property
    def is_cut(self) -> bool:
        """Whether there are rows that `front` leaves out."""
        return len(self.front) < len(self.rows)


def side_by_side(pair: Pair, metrics: list[str] | None = None) -> Table:
    """The table of an experiment's main metrics, or of the given ones."""
    chosen = metrics if metrics is not None else shown_metrics(pair)
    points = pair.points()
    columns: list[Column] = []
    names = labels.rate_names({metric: _largest(points, metric) for metric in chosen})
    for metric in chosen:
        sources = ordered_sources(pair, points, metric)
        if not sources:
            continue
        name = names[metric]
        heads = tuple(source if source == "paper" else mark(source).label for source in sources)
        columns.append(Column(metric, name.label, name.unit, sources, heads))
    rows = [
        Row(
            point,
            tuple(
                _cell(pair, found, column.metric, source, names[column.metric])
                for column in columns
                for source in column.sources
            ),
            any(pair.paper_values(found, column.metric) for column in columns),
            " / ".join(str(_runs(found[run.runtime])) if run.runtime in found else "-" for run in pair.runs),
        )
        for point, found in points
    ]
    return Table(tuple(columns), tuple(rows), _repeats(pair))


def shown_metrics(pair: Pair) -> list[str]:
    """The main metrics of the newest run, then what the paper has numbers of."""
    paper = (metric for entry in pair.newest.paper for metric in entry.values)
    measured = {metric for _, points in pair.points() for point in points.values() for metric in point.metrics}
    return list(dict.fromkeys([*main_metrics(pair.newest), *(metric for metric in paper if metric in measured)]))


def ordered_sources(pair: Pair, points: Iterable[tuple[str, dict[str, Point]]], metric: str) -> tuple[str, ...]:
    """Who has values of a metric: the paper, its other sources, then the runtimes."""
    found: dict[str, None] = {}
    for _, runtimes in points:
        for source in pair.paper_values(runtimes, metric):
            found[source or "paper"] = None
    runtimes = [run.runtime for run in pair.runs if any(point.get(metric) for point in run.points)]
    papers = sorted(found, key=lambda source: source != "paper")
    return (*papers, *runtimes)


def _cell(pair: Pair, points: dict[str, Point], metric: str, source: str, name: Name) -> Cell:
    if source in points:
        spread = points[source].get(metric)
        return (
            Cell(labels.format_metric(metric, spread.value, name), _interval(metric, spread, name))
            if spread
            else Cell()
        )
    value = pair.paper_values(points, metric).get("" if source == "paper" else source)
    return Cell() if value is None else Cell(labels.format_metric(metric, value, name))


def _interval(metric: str, spread: Spread, name: Name) -> str:
    """`8.9..9.6`; empty with one run or where both ends read alike."""
    low, high = (labels.format_metric(metric, value, name) for value in (spread.lo, spread.hi))
    return f"{low}..{high}" if spread.runs > 1 and low != high else ""


def _largest(points: Iterable[tuple[str, dict[str, Point]]], metric: str) -> float:
    return max((s.value for _, found in points for p in found.values() if (s := p.get(metric))), default=0.0)


def _repeats(pair: Pair) -> dict[str, int]:
    found = {run.runtime: {_runs(point) for point in run.points} for run in pair.runs}
    if any(len(counts) != 1 for counts in found.values()):
        return {}
    return {runtime: counts.pop() for runtime, counts in found.items()}


def _runs(point: Point) -> int:
    return max((spread.runs for spread in point.metrics.values()), default=0)
