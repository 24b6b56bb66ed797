# SPDX-License-Identifier: Apache-2.0
# pyright: reportUnknownMemberType=false
"""Lines over a parameter: medians with their confidence bands (error bars in Mininet), the paper's values as diamonds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from fairlane_lab.definition.plots import Lines
from fairlane_lab.report import labels
from fairlane_lab.report.canvas import PLAIN, Legend, empty, finish, grid
from fairlane_lab.report.run_folder import Point, RunFolder, Spread, ordered
from fairlane_lab.report.style import MARKERS, PALETTE, Mark, colours, mark


@dataclass(frozen=True)
class _Line:
    """What one line shows: its metric, and the value of `by` (None: all points)."""

    metric: str
    by: Any
    label: str
    """Empty where there is nothing to tell apart."""


def draw_lines(plot: Lines, runs: Sequence[RunFolder], title: str) -> Figure:
    """Draw a `lines` plot. Metrics of one unit share a panel when nothing else tells lines apart; each value of `panel` has its own."""
    points = {run.runtime: run.select(plot.where) for run in runs}
    everything = [point for found in points.values() for point in found]
    panels = ordered(point.params.get(plot.panel) for point in everything) if plot.panel else [None]
    bys = ordered(point.params.get(plot.by) for point in everything) if plot.by else [None]
    sets = _metric_sets([plot.y] if isinstance(plot.y, str) else list(plot.y), together=plot.by is None)
    cells, columns = _layout(panels, sets)
    rows = -(-len(cells) // columns)
    figure, axes = grid(rows, columns, 3.4 if rows == 1 else 2.35, sharex="col" if rows > 1 else "none")
    legend = Legend()
    if not everything:
        empty(axes[0][0], "no point of the run matches this plot")
        return finish(figure, legend, title)
    chosen = colours([str(by) for by in bys] if plot.by else [line.label for line in _lines(plot, sets[0], bys)])
    for index in range(rows * columns):
        axis = axes[index // columns][index % columns]
        if index >= len(cells):
            axis.set_visible(False)
            continue
        panel, metrics = cells[index]
        inside = {
            runtime: [point for point in found if plot.panel is None or point.params.get(plot.panel) == panel]
            for runtime, found in points.items()
        }
        _panel(axis, plot, metrics, bys, inside, {run.runtime: run for run in runs}, chosen, legend)
        if plot.panel:
            axis.set_title(labels.setting_label(plot.panel, panel))
        if index + columns >= len(cells):
            axis.set_xlabel(labels.axis_label(labels.name_of(plot.x)))
            axis.tick_params(labelbottom=True)
    legend.runtimes([run.runtime for run in runs if points[run.runtime]])
    return finish(figure, legend, title)


def _metric_sets(metrics: list[str], together: bool) -> list[list[str]]:
    """Metrics that share a panel: those of the same unit."""
    if not together:
        return [[metric] for metric in metrics]
    sets: dict[str, list[str]] = {}
    for metric in metrics:
        name = labels.name_of(metric)
        sets.setdefault(name.unit or labels.split_metric(metric)[0], []).append(metric)
    return list(sets.values())


def _layout(panels: list[Any], sets: list[list[str]]) -> tuple[list[tuple[Any, list[str]]], int]:
    """Cells row by row, and the number of columns."""
    cells = [(panel, metrics) for panel in panels for metrics in sets]
    if len(panels) == 1:
        return cells, 1
    return cells, len(sets) if 2 <= len(sets) <= 3 else 2


def _lines(plot: Lines, metrics: list[str], bys: list[Any]) -> list[_Line]:
    if plot.by is not None:
        return [_Line(metric, by, labels.value_label(plot.by, by)) for metric in metrics for by in bys]
    if len(metrics) == 1:
        return [_Line(metrics[0], None, "")]
    bases = {labels.split_metric(metric)[0] for metric in metrics}
    return [
        _Line(metric, None, labels.split_metric(metric)[1] if len(bases) == 1 else labels.name_of(metric).label)
        for metric in metrics
    ]


def _panel(
    axis: Axes,
    plot: Lines,
    metrics: list[str],
    bys: list[Any],
    points: dict[str, list[Point]],
    runs: dict[str, RunFolder],
    chosen: dict[str, str],
    legend: Legend,
) -> None:
    values = [s.value for found in points.values() for p in found for m in metrics if (s := p.get(m))]
    name = labels.rate_name(labels.name_of(metrics[0]), max(values, default=0.0))
    lines = _lines(plot, metrics, bys)
    for order, line in enumerate(lines):
        colour = chosen.get(str(line.by) if plot.by else line.label, PALETTE[0])
        shape = MARKERS[order % len(bys if plot.by else lines) % len(MARKERS)]
        for runtime, found in points.items():
            mine = [point for point in found if plot.by is None or point.params.get(plot.by) == line.by]
            _line(axis, plot, line, mine, mark(runtime, len(points)), name.scale, colour, shape, legend)
            if plot.paper:
                _paper(axis, plot, line, mine, runs[runtime], name.scale, colour, legend)
    _scales(axis, plot, values, name.unit == "%")
    label = labels.axis_label(name)
    if len(metrics) > 1 and any(line.label == labels.name_of(line.metric).label for line in lines):
        label = f"({name.unit})" if name.unit else ""
        label = label.strip("()")
    elif len(metrics) > 1:
        base = labels.name_of(labels.split_metric(metrics[0])[0])
        label = labels.axis_label(labels.rate_name(base, max(values, default=0.0)))
    axis.set_ylabel(label)


def _line(
    axis: Axes,
    plot: Lines,
    line: _Line,
    points: list[Point],
    style: Mark,
    scale: float,
    colour: str,
    shape: str,
    legend: Legend,
) -> None:
    at, words = _along(points, plot.x, line.metric)
    face = colour if style.filled else "white"
    if at:
        xs = list(at)
        middle = [at[x].value * scale for x in xs]
        low, high = [at[x].lo * scale for x in xs], [at[x].hi * scale for x in xs]
        size = 5 if len(xs) <= 12 else 3.2
        axis.plot(xs, middle, color=colour, ls=style.linestyle, marker=shape, ms=size, mfc=face, mec=colour, zorder=3)
        if plot.band and high != low and style.filled:
            axis.fill_between(xs, low, high, color=colour, alpha=0.16, lw=0)
        elif plot.band and high != low:
            ends = [
                [value - bound for value, bound in zip(middle, low, strict=True)],
                [bound - value for value, bound in zip(middle, high, strict=True)],
            ]
            axis.errorbar(xs, middle, yerr=ends, ls="", color=colour, elinewidth=1, capsize=2)
        if line.label:
            legend.line(line.label, colour, shape)
    for word, spread in words.items():
        axis.axhline(
            spread.value * scale, color=colour, ls=(0, (1, 1.5)) if style.filled else (0, (3, 1, 1, 1)), lw=1.4
        )
        if plot.band and spread.hi > spread.lo:
            axis.axhspan(spread.lo * scale, spread.hi * scale, color=colour, alpha=0.1, lw=0)
        text = labels.setting_label(plot.x, word)
        legend.line(f"{line.label}, {text}" if line.label else text, colour, "", (0, (1, 1.5)))


def _along(points: list[Point], x: str, metric: str) -> tuple[dict[float, Spread], dict[str, Spread]]:
    """Number → spread in rising order, and word → spread (a threshold may be `auto`); several points at one place: their middle and outer bounds."""
    found: dict[Any, list[Spread]] = {}
    for point in points:
        spread = point.get(metric)
        if spread is not None and x in point.params:
            found.setdefault(point.params[x], []).append(spread)
    merged = {place: _merged(spreads) for place, spreads in found.items()}
    numbers = {float(place): spread for place, spread in merged.items() if labels.is_number(place)}
    words = {str(place): spread for place, spread in merged.items() if not labels.is_number(place)}
    return dict(sorted(numbers.items())), words


def _merged(spreads: list[Spread]) -> Spread:
    values = sorted(spread.value for spread in spreads)
    middle = len(values) // 2
    value = values[middle] if len(values) % 2 else (values[middle - 1] + values[middle]) / 2
    return Spread(value, min(s.lo for s in spreads), max(s.hi for s in spreads), sum(s.runs for s in spreads))


def _paper(
    axis: Axes, plot: Lines, line: _Line, points: list[Point], run: RunFolder, scale: float, colour: str, legend: Legend
) -> None:
    by_source: dict[str, dict[float, float]] = {}
    for point in points:
        x = point.params.get(plot.x)
        if labels.is_number(x):
            for source, value in run.paper_values(point, line.metric).items():
                by_source.setdefault(source, {})[float(x)] = value * scale
    for source, places in by_source.items():
        legend.paper(axis, list(places), list(places.values()), source, colour)


def _scales(axis: Axes, plot: Lines, values: list[float], percent: bool) -> None:
    if plot.log_x:
        axis.set_xscale("log")
        axis.xaxis.set_major_formatter(PLAIN)
    else:
        bins = 10 if axis.get_xlim()[1] > 2 else 4  # a rate's ticks have many digits
        axis.xaxis.set_major_locator(MaxNLocator(nbins=bins, integer=True, min_n_ticks=3))
    if plot.log_y:
        axis.set_yscale("log")
        axis.yaxis.set_major_formatter(PLAIN)
        return
    low, high = axis.get_ylim()
    if percent and min(values, default=0.0) > 0.9:
        axis.set_ylim(max(low, 85), min(high, 101))
    elif min(values, default=0.0) >= 0:
        axis.set_ylim(0, 103 if percent and high > 97 else high)
