# SPDX-License-Identifier: Apache-2.0
"""The table of an experiment with paper, sim and Mininet beside each other, as cells of text."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from fairlane_lab.definition.names import Name
from fairlane_lab.report import labels
from fairlane_lab.report.pairing import Pair
from fairlane_lab.report.run_folder import Point
from fairlane_lab.report.terminal import main_metrics


@dataclass(frozen=True)
class TableRow:
    """One source of numbers of a point."""

    point: str
    source: str
    """`paper`, one of the paper's other sources, or a runtime."""
    runs: str
    """How many, of a runtime."""
    cells: tuple[str, ...]
    """A number for each metric, with the 95 % interval of the repeats' middle; empty where it was not measured."""


@dataclass(frozen=True)
class Table:
    """Paper, sim, kernel and Mininet: heads of the metrics, a row for each source of a point."""

    heads: tuple[str, ...]
    rows: tuple[TableRow, ...]


def side_by_side(pair: Pair) -> Table:
    """The table of an experiment's main metrics and of what the paper has numbers of."""
    points = pair.points()
    chosen = shown_metrics(pair)
    names = labels.rate_names({metric: _largest(points, metric) for metric in chosen})
    sources = {metric: found for metric in chosen if (found := ordered_sources(pair, points, metric))}
    rows: list[TableRow] = []
    for point, found in points:
        for source in dict.fromkeys(source for each in sources.values() for source in each):
            cells = tuple(_cell(pair, found, metric, source, names[metric]) for metric in sources)
            if any(cells):
                runs = str(found[source].runs) if source in found else ""
                rows.append(
                    TableRow(point, source if source == "paper" else labels.value_label("runtime", source), runs, cells)
                )
    return Table(tuple(_head(names[metric]) for metric in sources), tuple(rows))


def _head(name: Name) -> str:
    return f"{name.label} ({name.unit})" if name.unit else name.label


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


def _cell(pair: Pair, points: dict[str, Point], metric: str, source: str, name: Name) -> str:
    """`9.1 (8.9 to 9.6)`; without interval with one run or where both ends read alike."""
    if source not in points:
        value = pair.paper_values(points, metric).get("" if source == "paper" else source)
        return "" if value is None else labels.format_metric(metric, value, name)
    spread = points[source].get(metric)
    if spread is None:
        return ""
    text, low, high = (labels.format_metric(metric, value, name) for value in (spread.value, spread.lo, spread.hi))
    return f"{text} ({low} to {high})" if spread.runs > 1 and low != high else text


def _largest(points: Iterable[tuple[str, dict[str, Point]]], metric: str) -> float:
    return max((s.value for _, found in points for p in found.values() if (s := p.get(metric))), default=0.0)
