# SPDX-License-Identifier: Apache-2.0
# pyright: reportUnknownMemberType=false
"""Pictures of points: bars, lines and fields of a metric's spread over the repeats, with the paper's values."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle
from matplotlib.ticker import MaxNLocator

from fairlane_lab.definition.plots import Bars, Heat, Lines
from fairlane_lab.report import labels
from fairlane_lab.report.canvas import PLAIN, Legend, finish, level, panels, set_log_x, without_data
from fairlane_lab.report.run_folder import Point, RunFolder, Spread, ordered
from fairlane_lab.report.splitting import split
from fairlane_lab.report.style import INK, MARKERS, PALETTE, Mark, colours, mark

# ---- bars: Grouped bars

_GROUP_WIDTH = 0.8
MOST_UPRIGHT_LABELS = 10


@dataclass(frozen=True)
class _Bar:
    place: float
    spread: Spread
    by: Any
    runtime: str
    paper: dict[str, float]


def draw_bars(plot: Bars, runs: Sequence[RunFolder], title: str) -> Figure:
    """Draw a `bars` plot of one run, or of several runtimes side by side. A rate on links of different speed is shown as a share of the link."""
    chosen = {run.runtime: run.select(plot.where) for run in runs}
    points = [point for found in chosen.values() for point in found]
    if plot.by == "group":
        found = (labels.split_metric(metric) for point in points for metric in point.metrics)
        there = ordered(group for metric, group in found if group and metric == plot.metric)
        bys = ordered([*(group for group in runs[0].groups if group in there), *there])
    else:
        bys = ordered(point.params.get(plot.by) for point in points)
    parts = split(list(chosen.values()), (plot.x, plot.by), plot.panel)
    problem = parts.problem if points and bys else "no point of the run matches this plot"
    if problem:
        return without_data(problem, title)
    columns = min(2, len(parts.values))
    figure, flat = panels(len(parts.values), columns, 3.3 if columns == 1 else 2.7)
    relative = plot.metric.endswith("_bps") and len({point.params.get("rate_bps") for point in points}) > 1
    name = labels.name_of(plot.metric)
    scale, label = (
        (100.0, f"{name.label} (% of the link's rate)") if relative else (name.scale, labels.axis_label(name))
    )
    colour_of, legend = colours(str(by) for by in bys), Legend()
    for by in bys:
        legend.patch(labels.value_label(plot.by, by), colour_of[str(by)])
    legend.runtimes([run.runtime for run in runs], bars=True)
    width = _GROUP_WIDTH / (len(bys) * len(runs))
    for index, (axis, value) in enumerate(zip(flat, parts.values, strict=True)):
        inside = {runtime: [point for point in found if parts.of(point) == value] for runtime, found in chosen.items()}
        xs = ordered(point.params.get(plot.x) for found in inside.values() for point in found)
        for bar in _bars(plot, runs, inside, xs, bys, relative, width):
            _draw_bar(axis, bar, width, scale, colour_of[str(bar.by)], mark(bar.runtime, len(runs)), legend)
        _name_groups(axis, plot, xs, columns)
        axis.set_title(parts.title(value))
        axis.set_ylabel("" if index % columns else label)
        axis.set_ylim(bottom=0)
    level(flat)
    return finish(figure, legend, title)


def _bars(
    plot: Bars,
    runs: Sequence[RunFolder],
    points: Mapping[str, Sequence[Point]],
    xs: list[Any],
    bys: list[Any],
    relative: bool,
    width: float,
) -> Iterator[_Bar]:
    """The bars of a panel: each is of one point."""
    for order, run in enumerate(runs):
        for point in points[run.runtime]:
            for index, by in enumerate(bys):
                metric = f"{plot.metric}[{by}]" if plot.by == "group" else plot.metric
                spread = point.get(metric) if plot.by == "group" or point.params.get(plot.by) == by else None
                if spread is None:
                    continue
                rate = float(point.params["rate_bps"]) if relative else 1.0
                told = run.paper_values(point, metric).items() if plot.paper else ()
                place = xs.index(point.params.get(plot.x)) - _GROUP_WIDTH / 2
                place += width * (index * len(runs) + order + 0.5)
                paper = {source: value / rate for source, value in told}
                yield _Bar(place, spread.scaled(1 / rate), by, run.runtime, paper)


def _name_groups(axis: Axes, plot: Bars, xs: list[Any], columns: int) -> None:
    shown = ["" if x is None else labels.value_label(plot.x, x) for x in xs]
    if len(xs) > MOST_UPRIGHT_LABELS / columns:
        axis.set_xticks(range(len(xs)), shown, rotation=40, ha="right", rotation_mode="anchor")
    else:
        letters = max(8, 110 // columns // len(xs))
        axis.set_xticks(range(len(xs)), [textwrap.fill(text, letters) for text in shown])
    axis.tick_params(axis="x", length=0)
    axis.grid(axis="x", visible=False)
    if plot.x != "case":
        axis.set_xlabel(labels.axis_label(labels.name_of(plot.x)))
    axis.set_xlim(-0.55, len(xs) - 0.45)


def _draw_bar(axis: Axes, bar: _Bar, width: float, scale: float, colour: str, style: Mark, legend: Legend) -> None:
    spread = bar.spread
    axis.bar(
        bar.place,
        spread.value * scale,
        width * 0.9,
        color=colour,
        hatch=style.hatch or None,
        edgecolor=colour if style.filled else "white",
        linewidth=0,
    )
    if spread.hi > spread.lo:
        ends = [[(spread.value - spread.lo) * scale], [(spread.hi - spread.value) * scale]]
        axis.errorbar(bar.place, spread.value * scale, yerr=ends, color=INK, elinewidth=1, capsize=2.5, capthick=1)
        legend.last(
            "lowest to highest" if spread.is_range else "95 % confidence",
            Line2D([], [], color=INK, ls="", marker="|", ms=9, mew=1),
        )
    for source, value in bar.paper.items():
        legend.paper(axis, [bar.place], [value * scale], source)


# ---- lines: Lines over a parameter


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
    parts = split(list(points.values()), (plot.x, plot.by), plot.panel)
    bys = ordered(point.params.get(plot.by) for point in everything) if plot.by else [None]
    sets = _metric_sets([plot.y] if isinstance(plot.y, str) else list(plot.y), together=plot.by is None)
    legend = Legend()
    problem = parts.problem if everything else "no point of the run matches this plot"
    if problem:
        return without_data(problem, title)
    cells, columns = _layout(parts.values, sets)
    several = len(cells) > columns
    figure, axes = panels(len(cells), columns, 2.35 if several else 3.4, sharex="col" if several else "none")
    chosen = colours([str(by) for by in bys] if plot.by else [line.label for line in _lines(plot, sets[0], bys)])
    for index, (axis, (value, metrics)) in enumerate(zip(axes, cells, strict=True)):
        inside = {runtime: [p for p in found if parts.of(p) == value] for runtime, found in points.items()}
        largest = max((s.value for p in everything for m in metrics if (s := p.get(m))), default=0.0)
        _panel(axis, plot, metrics, bys, inside, {run.runtime: run for run in runs}, chosen, legend, largest)
        axis.set_title(parts.title(value))
        if index + columns >= len(cells):
            axis.set_xlabel(labels.axis_label(labels.name_of(plot.x)))
            axis.tick_params(labelbottom=True)
    for number in range(len(sets)):
        level(axes[number :: len(sets)])
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


def _layout(values: Sequence[Any], sets: list[list[str]]) -> tuple[list[tuple[Any, list[str]]], int]:
    """Cells row by row, and the number of columns."""
    cells = [(panel, metrics) for panel in values for metrics in sets]
    if len(values) == 1:
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
    largest: float,
) -> None:
    values = [s.value for found in points.values() for p in found for m in metrics if (s := p.get(m))]
    name = labels.rate_name(labels.name_of(metrics[0]), largest)
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
        label = labels.axis_label(labels.rate_name(base, largest))
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
    """Number → spread in rising order, and word → spread (a threshold may be `auto`)."""
    found = {point.params[x]: spread for point in points if x in point.params and (spread := point.get(metric))}
    numbers = {float(place): spread for place, spread in found.items() if labels.is_number(place)}
    words = {str(place): spread for place, spread in found.items() if not labels.is_number(place)}
    return dict(sorted(numbers.items())), words


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
        set_log_x(axis)
    else:
        bins = 10 if axis.get_xlim()[1] > 2 else 4  # a rate's ticks have many digits
        axis.xaxis.set_major_locator(MaxNLocator(nbins=bins, integer=True, min_n_ticks=3))
    if plot.log_y:
        axis.set_yscale("log")
        axis.yaxis.set_major_formatter(PLAIN)
        return
    low, high = axis.get_ylim()
    if percent and min(values, default=0.0) > 0.9:
        axis.set_ylim(min(max(low, 85), 99), 101)
    elif min(values, default=0.0) >= 0:
        axis.set_ylim(0, 103 if percent and high > 97 else high)


# ---- heat: A metric over two parameters as a field of coloured cells with their values; cells for which the paper gives a value have a frame

COLOURS = "cividis"
"""Colour-blind safe and even in lightness (Nuñez, Anderton, Renslow 2018)."""


def draw_heat(plot: Heat, runs: Sequence[RunFolder], title: str) -> Figure:
    """Draw a `heat` plot: a field for each runtime and each value of `panel`, in one scale of colour."""
    chosen = {run.runtime: [p for p in run.select(plot.where) if p.get(plot.metric)] for run in runs}
    there = [run for run in runs if chosen[run.runtime]]
    points = [point for run in there for point in chosen[run.runtime]]
    parts = split(list(chosen.values()), (plot.x, plot.y), plot.panel)
    legend = Legend()
    problem = parts.problem if points else "no point of the run matches this plot"
    if problem:
        return without_data(problem, title)
    xs, ys = _sorted([p.params.get(plot.x) for p in points]), ordered(p.params.get(plot.y) for p in points)
    name = labels.name_of(plot.metric)
    values = [spread.value * name.scale for point in points if (spread := point.get(plot.metric))]
    scale = Normalize(min(values), max(values) if max(values) > min(values) else min(values) + 1)
    columns = min(2, len(parts.values))
    figure, axes = panels(len(there) * len(parts.values), columns, 0.36 * len(ys) + 0.75)
    cells = [(run, value) for run in there for value in parts.values]
    for index, (axis, (run, value)) in enumerate(zip(axes, cells, strict=True)):
        inside = [point for point in chosen[run.runtime] if parts.of(point) == value]
        _field(axis, plot, run, inside, xs, ys, scale, legend, columns)
        about = [parts.title(value)] if parts.names else []
        axis.set_title(", ".join(about + [mark(run.runtime).label] * (len(there) > 1)))
        if index >= len(cells) - columns:
            axis.set_xlabel(labels.axis_label(labels.name_of(plot.x)))
    return finish(figure, legend, f"{title}: {labels.axis_label(name)}" if title else "")


def _field(
    axis: Axes,
    plot: Heat,
    run: RunFolder,
    points: Sequence[Point],
    xs: list[object],
    ys: list[object],
    scale: Normalize,
    legend: Legend,
    columns: int,
) -> None:
    from matplotlib import colormaps

    name = labels.name_of(plot.metric)
    for point in points:
        spread = point.get(plot.metric)
        if spread is None:
            continue
        x, y = xs.index(point.params.get(plot.x)), ys.index(point.params.get(plot.y))
        shown = spread.value * name.scale
        axis.add_patch(
            Rectangle((x - 0.5, y - 0.5), 1, 1, facecolor=colormaps[COLOURS](scale(shown)), edgecolor="none")
        )
        text = f"{shown:.0f}" if abs(shown) >= 9.95 else labels.number(shown, 2)
        axis.text(
            x,
            y,
            text,
            ha="center",
            va="center",
            fontsize=8.5 if len(xs) <= 20 / columns else 6.5,
            color=_text_colour(float(scale(shown))),
        )
        if run.paper_values(point, plot.metric):
            axis.add_patch(
                Rectangle((x - 0.45, y - 0.45), 0.9, 0.9, fill=False, edgecolor=PALETTE[1], lw=2.2, zorder=4)
            )
            legend.last("the paper gives a value for this cell", Patch(fill=False, edgecolor=PALETTE[1], lw=2))
    axis.set_xlim(-0.5, len(xs) - 0.5)
    axis.set_ylim(len(ys) - 0.5, -0.5)
    names = [labels.value_label(plot.x, x) for x in xs]
    turned = columns > 1 and sum(map(len, names)) > 40
    axis.set_xticks(range(len(xs)), names, rotation=90 if turned else 0)
    axis.set_yticks(range(len(ys)), [labels.value_label(plot.y, y) for y in ys])
    axis.tick_params(length=0)
    axis.grid(visible=False)
    for spine in axis.spines.values():
        spine.set_visible(False)
    if plot.y != "case":
        axis.set_ylabel(labels.axis_label(labels.name_of(plot.y)))


def _text_colour(share: float) -> str:
    """Letters that read on the colour beneath: never black or white itself, which a dark page would turn round."""
    return "#fdfdfd" if share < 0.55 else "#111111"


def _sorted(values: list[object]) -> list[object]:
    found = ordered(values)
    if all(labels.is_number(value) for value in found):
        return sorted(found, key=lambda value: np.float64(value))  # type: ignore[arg-type]
    return found
