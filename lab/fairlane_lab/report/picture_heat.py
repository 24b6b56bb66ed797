# SPDX-License-Identifier: Apache-2.0
# pyright: reportUnknownMemberType=false
"""A metric over two parameters as a field of coloured cells with their values; cells for which the paper gives a value have a frame."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from fairlane_lab.definition.plots import Heat
from fairlane_lab.report import labels
from fairlane_lab.report.canvas import Legend, empty, finish, grid
from fairlane_lab.report.run_folder import Point, RunFolder, ordered
from fairlane_lab.report.style import PALETTE, mark

COLOURS = "cividis"
"""Colour-blind safe and even in lightness (Nuñez, Anderton, Renslow 2018)."""


def draw_heat(plot: Heat, runs: Sequence[RunFolder], title: str) -> Figure:
    """Draw a `heat` plot; runtimes one above the other, in one scale of colour."""
    chosen = {run.runtime: [p for p in run.select(plot.where) if p.get(plot.metric)] for run in runs}
    there = [run for run in runs if chosen[run.runtime]]
    points = [point for run in there for point in chosen[run.runtime]]
    legend = Legend()
    if not points:
        figure, axes = grid(1, 1, 2.0)
        empty(axes[0][0], "no point of the run matches this plot")
        return finish(figure, legend, title)
    xs, ys = _sorted([p.params.get(plot.x) for p in points]), ordered(p.params.get(plot.y) for p in points)
    name = labels.name_of(plot.metric)
    values = [spread.value * name.scale for point in points if (spread := point.get(plot.metric))]
    scale = Normalize(min(values), max(values) if max(values) > min(values) else min(values) + 1)
    figure, axes = grid(len(there), 1, 0.36 * len(ys) + 0.75)
    for row, run in enumerate(there):
        axis = axes[row][0]
        _field(axis, plot, run, chosen[run.runtime], xs, ys, scale, legend)
        if len(there) > 1:
            axis.set_title(mark(run.runtime).label)
        if row == len(there) - 1:
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
            fontsize=8.5 if len(xs) <= 20 else 6.5,
            color=_over(float(scale(shown))),
        )
        if run.paper_values(point, plot.metric):
            axis.add_patch(
                Rectangle((x - 0.45, y - 0.45), 0.9, 0.9, fill=False, edgecolor=PALETTE[1], lw=2.2, zorder=4)
            )
            legend.last("the paper gives a value for this cell", Patch(fill=False, edgecolor=PALETTE[1], lw=2))
    axis.set_xlim(-0.5, len(xs) - 0.5)
    axis.set_ylim(len(ys) - 0.5, -0.5)
    axis.set_xticks(range(len(xs)), [labels.value_label(plot.x, x) for x in xs])
    axis.set_yticks(range(len(ys)), [labels.value_label(plot.y, y) for y in ys])
    axis.tick_params(length=0)
    axis.grid(visible=False)
    for spine in axis.spines.values():
        spine.set_visible(False)
    if plot.y != "case":
        axis.set_ylabel(labels.axis_label(labels.name_of(plot.y)))


def _over(share: float) -> str:
    """Letters that read on the colour beneath: never black or white itself, which a dark page would turn round."""
    return "#fdfdfd" if share < 0.55 else "#111111"


def _sorted(values: list[object]) -> list[object]:
    found = ordered(values)
    if all(labels.is_number(value) for value in found):
        return sorted(found, key=lambda value: np.float64(value))  # type: ignore[arg-type]
    return found
