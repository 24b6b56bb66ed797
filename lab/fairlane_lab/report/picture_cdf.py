# SPDX-License-Identifier: Apache-2.0
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
"""Distributions of transfers or flows: the share that is at most x, a line for each value of a parameter, all repeats together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from fairlane_lab.definition.names import TRANSFER_METRICS
from fairlane_lab.definition.plots import Cdf
from fairlane_lab.report import labels
from fairlane_lab.report.canvas import PLAIN, Legend, empty, finish, grid
from fairlane_lab.report.picture_series import MAX_POINTS
from fairlane_lab.report.run_folder import RunFolder, ordered
from fairlane_lab.report.style import colours, mark


def draw_cdf(plot: Cdf, runs: Sequence[RunFolder], title: str) -> Figure:
    """Draw a `cdf` plot; the middle of each line is marked."""
    tables = {run.runtime: _values(plot, run) for run in runs}
    everything = pd.concat([table for table in tables.values() if not table.empty] or [pd.DataFrame()])
    panels = ordered(everything["panel"]) if plot.panel and not everything.empty else [None]
    columns = min(2, len(panels))
    rows = -(-len(panels) // columns)
    figure, axes = grid(rows, columns, 3.3 if rows == 1 else 2.5, sharex=True, sharey=True)
    legend = Legend()
    if everything.empty:
        empty(axes[0][0], "no finished transfer matches this plot")
        return finish(figure, legend, title)
    bys = ordered(everything["by"])
    chosen = colours(map(str, bys))
    name = TRANSFER_METRICS.get(plot.metric) if _of_transfers(plot) else None
    name = name or labels.name_of(plot.metric)
    for index in range(rows * columns):
        axis = axes[index // columns][index % columns]
        if index >= len(panels):
            axis.set_visible(False)
            continue
        for by in bys:
            for runtime, table in tables.items():
                if table.empty:
                    continue
                mine = table[table["by"] == by]
                if plot.panel:
                    mine = mine[mine["panel"] == panels[index]]
                values = np.sort(mine["value"].to_numpy(float)) * name.scale
                if not len(values):
                    continue
                style = mark(runtime, len(runs))
                shares = np.arange(1, len(values) + 1) / len(values) * 100
                step = max(1, len(values) // MAX_POINTS)
                kept = np.unique(np.append(np.arange(0, len(values), step), len(values) - 1))
                axis.plot(values[kept], shares[kept], color=chosen[str(by)], ls=style.linestyle, drawstyle="steps-post")
                middle = float(np.median(values))
                face = chosen[str(by)] if style.filled else "white"
                axis.plot([middle], [50], ls="", marker="o", color=chosen[str(by)], mfc=face, zorder=4)
                legend.line(labels.value_label(plot.by, by), chosen[str(by)])
        if plot.panel:
            axis.set_title(labels.value_label(plot.panel, panels[index]))
        if plot.log_x:
            axis.set_xscale("log")
            axis.xaxis.set_major_formatter(PLAIN)
        axis.set_ylim(0, 101)
        if index % columns == 0:
            axis.set_ylabel(f"{'transfers' if _of_transfers(plot) else 'flows'} (%)")
        if index + columns >= len(panels):
            axis.set_xlabel(labels.axis_label(name))
            axis.tick_params(labelbottom=True)
    legend.runtimes([run.runtime for run in runs if not tables[run.runtime].empty])
    return finish(figure, legend, title)


def _of_transfers(plot: Cdf) -> bool:
    return plot.metric in ("completion_s", "bytes")


def _values(plot: Cdf, run: RunFolder) -> pd.DataFrame:
    """Columns `value`, `by`, `panel` of every transfer (or flow) of the points that match."""
    table = run.transfers if _of_transfers(plot) else run.flows
    params = {point.name: point.params for point in run.select(plot.where)}
    if table.empty or plot.metric not in table:
        return pd.DataFrame()
    table = table[table["point"].isin(list(params))]

    def column(of: str) -> list[Any]:
        if of == "group":
            return list(table["group"])
        return [params[str(point)].get(of) for point in table["point"]]

    chosen: dict[str, list[Any]] = {"value": list(table[plot.metric]), "by": column(plot.by)}
    if plot.panel:
        chosen["panel"] = column(plot.panel)
    return pd.DataFrame(chosen).dropna(subset=["value"])
