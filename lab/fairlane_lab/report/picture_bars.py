# SPDX-License-Identifier: Apache-2.0
# pyright: reportUnknownMemberType=false
"""Grouped bars: a group for each value of a parameter, a bar for each runtime and group of flows, the paper's values as marks."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from fairlane_lab.definition.plots import Bars
from fairlane_lab.report import labels
from fairlane_lab.report.canvas import Legend, empty, finish, grid
from fairlane_lab.report.run_folder import Point, RunFolder, Spread, ordered
from fairlane_lab.report.style import INK, Mark, colours, mark

_GROUP_WIDTH = 0.8


@dataclass(frozen=True)
class _Bar:
    place: float
    spread: Spread
    colour: str
    runtime: str
    paper: dict[str, float]


def draw_bars(plot: Bars, runs: Sequence[RunFolder], title: str) -> Figure:
    """Draw a `bars` plot of one run, or of several runtimes side by side. A rate on links of different speed is shown as a share of the link."""
    points = [(run, point) for run in runs for point in run.select(plot.where)]
    xs = ordered(point.params.get(plot.x) for _, point in points)
    bys = runs[0].groups if plot.by == "group" else ordered(point.params.get(plot.by) for _, point in points)
    if plot.by == "group":
        bys = [by for by in bys if any(point.get(f"{plot.metric}[{by}]") for _, point in points)]
    figure, axes = grid(1, 1, 3.3)
    axis = axes[0][0]
    if not points or not bys:
        empty(axis, "no point of the run matches this plot")
        return finish(figure, Legend(), title)
    relative = plot.metric.endswith("_bps") and len({point.params.get("rate_bps") for _, point in points}) > 1
    chosen = colours(str(by) for by in bys)
    width = _GROUP_WIDTH / (len(bys) * len(runs))
    bars: list[_Bar] = []
    for column, x in enumerate(xs):
        for index, by in enumerate(bys):
            for order, run in enumerate(runs):
                metric = f"{plot.metric}[{by}]" if plot.by == "group" else plot.metric
                found = [
                    point
                    for owner, point in points
                    if owner is run
                    and point.params.get(plot.x) == x
                    and (plot.by == "group" or point.params.get(plot.by) == by)
                ]
                bar = _bar(run, found, metric, relative)
                if bar:
                    place = column - _GROUP_WIDTH / 2 + width * (index * len(runs) + order + 0.5)
                    bars.append(_Bar(place, bar[0], chosen[str(by)], run.runtime, bar[1] if plot.paper else {}))
    name = labels.name_of(plot.metric)
    scale, label = (
        (100.0, f"{name.label} (% of the link's rate)") if relative else (name.scale, labels.axis_label(name))
    )
    legend = Legend()
    for by in bys:
        legend.patch(labels.value_label(plot.by, by), chosen[str(by)])
    legend.runtimes([run.runtime for run in runs], bars=True)
    for bar in bars:
        _draw(axis, bar, width, scale, mark(bar.runtime, len(runs)), legend)
    axis.set_xticks(range(len(xs)), [textwrap.fill(labels.value_label(plot.x, x), max(8, 110 // len(xs))) for x in xs])
    axis.tick_params(axis="x", length=0)
    axis.grid(axis="x", visible=False)
    if plot.x != "case":
        axis.set_xlabel(labels.axis_label(labels.name_of(plot.x)))
    axis.set_ylabel(label)
    axis.set_ylim(bottom=0)
    axis.set_xlim(-0.55, len(xs) - 0.45)
    return finish(figure, legend, title)


def _bar(
    run: RunFolder, points: Sequence[Point], metric: str, relative: bool
) -> tuple[Spread, dict[str, float]] | None:
    found = [(point, spread) for point in points if (spread := point.get(metric))]
    if not found:
        return None
    point, spread = found[0]
    if len(found) > 1:
        values = sorted(entry.value for _, entry in found)
        spread = Spread(values[len(values) // 2], min(e.lo for _, e in found), max(e.hi for _, e in found), spread.runs)
    rate = float(point.params["rate_bps"]) if relative else 1.0
    paper = {source: value / rate for source, value in run.paper_values(point, metric).items()}
    return spread.scaled(1 / rate), paper


def _draw(axis: Axes, bar: _Bar, width: float, scale: float, style: Mark, legend: Legend) -> None:
    spread = bar.spread
    axis.bar(
        bar.place,
        spread.value * scale,
        width * 0.9,
        color=bar.colour,
        hatch=None if style.filled else "////",
        edgecolor=bar.colour if style.filled else "white",
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
