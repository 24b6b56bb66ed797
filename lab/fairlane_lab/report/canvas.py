# SPDX-License-Identifier: Apache-2.0
# pyright: reportUnknownMemberType=false
"""The frame of every picture: a grid of axes under a title and a legend that never covers data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, NullFormatter

from fairlane_lab.report.style import INK, MUTED, PALE, PAPER_MARKERS, RC, WIDTH_IN, mark

_TITLE_IN, _LEGEND_IN = 0.34, 0.23
_LETTER_IN, _HANDLE_IN = 0.074, 0.52


def _plain(value: float, _place: int | None) -> str:
    return f"{value:g}"


PLAIN = FuncFormatter(_plain)
"""Numbers of a logarithmic axis as people write them: 0.1, 1, 10."""
_TICKS_MAX = 8
FLAT = 3.0
"""Panels whose y axes differ by more than this factor do not share one."""


def set_log_x(axis: Axes) -> None:
    """A logarithmic x axis; its ticks are the values that were drawn, or the decades where these are many."""
    axis.set_xscale("log")
    drawn = sorted({float(x) for line in axis.get_lines() for x in np.asarray(line.get_xdata())})
    if 0 < len(drawn) <= _TICKS_MAX:
        axis.set_xticks(drawn)
        axis.xaxis.set_minor_formatter(NullFormatter())
    axis.xaxis.set_major_formatter(PLAIN)


@dataclass
class Legend:
    """Entries of a picture's legend in the order in which they were first drawn; the same label appears once."""

    entries: dict[str, Artist] = field(default_factory=dict[str, Artist])
    behind: dict[str, Artist] = field(default_factory=dict[str, Artist])
    """Entries that stand behind all others: what the paper says, what a mark means."""

    def last(self, label: str, artist: Artist) -> None:
        """An entry that stands behind the others."""
        self.behind.setdefault(label, artist)

    def line(self, label: str, colour: str, marker: str = "", linestyle: Any = "-", filled: bool = True) -> None:
        """A line, with its marker if it has one."""
        face = colour if filled else "white"
        self.entries.setdefault(
            label,
            Line2D([], [], color=colour, marker=marker, ls=linestyle, markerfacecolor=face, markeredgecolor=colour),
        )

    def patch(self, label: str, colour: str, hatch: str = "") -> None:
        """A bar or a band."""
        self.entries.setdefault(label, Patch(facecolor=colour, hatch=hatch, edgecolor="white" if hatch else colour))

    def paper(self, axis: Axes, xs: list[float], ys: list[float], source: str, face: str = "white") -> None:
        """Draw numbers of a paper as diamonds, those of its other sources as other marks, and name them."""
        label = source or "paper"
        style: dict[str, Any] = {"ls": "", "ms": 6.5, "mec": INK, "mew": 1.3}
        shape = "D" if not source else PAPER_MARKERS[sum(map(ord, source)) % len(PAPER_MARKERS)]
        axis.plot(xs, ys, marker=shape, mfc=face, zorder=5, **style)
        self.last(label, Line2D([], [], marker=shape, mfc="white", **style))

    def runtimes(self, runtimes: list[str], bars: bool = False) -> None:
        """What tells the runtimes apart, when there are several."""
        for runtime in runtimes if len(runtimes) > 1 else ():
            style = mark(runtime)
            if bars:
                self.patch(style.label, PALE, style.hatch)
            else:
                self.line(style.label, MUTED, "o", style.linestyle, style.filled)


def grid(rows: int, columns: int, row_in: float, **options: Any) -> tuple[Figure, list[list[Axes]]]:
    """A figure 8 inches wide with `rows` by `columns` axes of `row_in` inches each; options as of `Figure.subplots`."""
    with plt.rc_context(RC):
        figure = plt.figure(figsize=(WIDTH_IN, rows * row_in), layout="constrained")
        axes = figure.subplots(rows, columns, squeeze=False, **options)
    return figure, [[axes[row][column] for column in range(columns)] for row in range(rows)]


def panels(count: int, columns: int, row_in: float, **options: Any) -> tuple[Figure, list[Axes]]:
    """A figure with `count` axes, row by row; what is left of the last row is not shown."""
    figure, axes = grid(-(-count // columns), columns, row_in, **options)
    flat = [axis for row in axes for axis in row]
    for axis in flat[count:]:
        axis.set_visible(False)
    return figure, flat[:count]


def level(axes: Sequence[Axes]) -> None:
    """Give panels of one quantity the same y axis. Where one of them would be flat on it, each has its own, and its label says so."""
    limits = [axis.get_ylim() for axis in axes]
    spans = [high - low for low, high in limits]
    if min(spans) * FLAT < max(spans) and not any(axis.get_yscale() == "log" for axis in axes):
        for axis in axes:
            axis.set_ylabel(f"{axis.get_ylabel()}\nown scale".lstrip())
        return
    for axis in axes:
        axis.set_ylim(min(low for low, _ in limits), max(high for _, high in limits))


def finish(figure: Figure, legend: Legend, title: str) -> Figure:
    """Make room on top for the title (none when empty) and the legend, and put them there."""
    entries = {**legend.entries, **legend.behind}
    labels = list(entries)
    columns = _legend_columns(labels)
    rows = -(-len(labels) // columns)
    title_in = _TITLE_IN if title else 0.0
    head_in = title_in + (rows * _LEGEND_IN + 0.08 if rows else 0.0) + 0.04
    body_in = figure.get_figheight()
    height_in = body_in + head_in
    figure.set_figheight(height_in)
    engine = figure.get_layout_engine()
    if engine is not None:
        engine.set(rect=(0, 0, 1, body_in / height_in))  # type: ignore[call-arg]
    with plt.rc_context(RC):
        if title:
            figure.text(
                0.01, 1 - 0.08 / height_in, title, ha="left", va="top", fontsize=11.5, fontweight="bold", color=INK
            )
        if rows:
            figure.legend(
                list(entries.values()),
                labels,
                loc="upper left",
                bbox_to_anchor=(0.0, 1 - title_in / height_in),
                ncols=columns,
                borderaxespad=0.3,
                handlelength=1.9,
                columnspacing=1.4,
            )
    return figure


def _legend_columns(labels: list[str]) -> int:
    """As many columns as fit: a column is as wide as its longest label."""
    for columns in range(len(labels), 1, -1):
        rows = -(-len(labels) // columns)
        widths = [max(len(label) for label in labels[i : i + rows]) for i in range(0, len(labels), rows)]
        if sum(widths) * _LETTER_IN + len(widths) * _HANDLE_IN < WIDTH_IN - 0.2:
            return len(widths)
    return 1


def without_data(problem: str, title: str) -> Figure:
    """A picture that says why there is nothing in it."""
    figure, ((axis,),) = grid(1, 1, 3.3)
    empty(axis, problem)
    return finish(figure, Legend(), title)


def empty(axis: Axes, text: str) -> None:
    """Say in a panel why there is nothing in it."""
    axis.text(0.5, 0.5, text, ha="center", va="center", transform=axis.transAxes, color=MUTED, fontsize=9)
    # Not set_xticks([]): panels may share their axes with this one.
    axis.tick_params(bottom=False, left=False, labelbottom=False, labelleft=False)
    axis.grid(visible=False)
