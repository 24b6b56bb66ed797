# SPDX-License-Identifier: Apache-2.0
# pyright: reportUnknownMemberType=false
"""From the `[[plots]]` of an experiment to pictures: files beside a run folder's tables, or SVG for a page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from fairlane_lab.definition.plots import Bars, Cdf, Heat, Lines, Plot, Series
from fairlane_lab.report.draw_points import draw_bars, draw_heat, draw_lines
from fairlane_lab.report.draw_samples import draw_cdf, draw_series
from fairlane_lab.report.run_folder import RunFolder, open_run
from fairlane_lab.report.style import RC, mark

PNG_DPI = 150


def make_plots(folder: Path) -> list[Path]:
    """Write `plots/<name>.svg` and `.png` into a run folder for each of its plots; returns the paths, the PNG of each first.

    Raises RunFolderError when the folder is no run folder of the lab.
    """
    run = open_run(folder)
    written: list[Path] = []
    target = folder / "plots"
    for plot in run.plots:
        target.mkdir(exist_ok=True)
        figure = draw(plot, [run], f"{plot.title} · {mark(run.runtime).label}")
        for suffix in (".png", ".svg"):
            path = target / f"{plot.name}{suffix}"
            with plt.rc_context({**RC, "svg.hashsalt": plot.name}):
                metadata = {"Date": None} if suffix == ".svg" else {"Software": None}
                figure.savefig(path, dpi=PNG_DPI, facecolor="white", metadata=metadata)
            written.append(path)
        plt.close(figure)
    return written


def draw(plot: Plot, runs: Sequence[RunFolder], title: str = "") -> Figure:
    """Draw one plot of one run, or of the same experiment in several runtimes. The caller closes the figure."""
    with plt.rc_context(RC):
        match plot:
            case Bars():
                return draw_bars(plot, runs, title)
            case Lines():
                return draw_lines(plot, runs, title)
            case Series():
                return draw_series(plot, runs, title)
            case Cdf():
                return draw_cdf(plot, runs, title)
            case Heat():
                return draw_heat(plot, runs, title)
