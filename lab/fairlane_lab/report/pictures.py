# SPDX-License-Identifier: Apache-2.0
# pyright: reportUnknownMemberType=false
"""From the `[[plots]]` of an experiment to pictures: files beside a run folder's tables, or SVG for a page."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from pathlib import Path

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from fairlane_lab.definition.plots import Bars, Cdf, Heat, Lines, Plot, Series
from fairlane_lab.report.draw_points import draw_bars, draw_heat, draw_lines
from fairlane_lab.report.draw_samples import draw_cdf, draw_series
from fairlane_lab.report.run_folder import RunFolder, open_run
from fairlane_lab.report.style import GRID, INK, MUTED, PALE, PALETTE, RC, mark

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


_PAGE_COLOURS = {
    INK: "var(--ink)",
    MUTED: "var(--muted)",
    PALE: "var(--pale)",
    GRID: "var(--grid)",
    "#ffffff": "var(--card)",
    "white": "var(--card)",
    **{colour: f"var(--c{index})" for index, colour in enumerate(PALETTE)},
}


def to_inline_svg(figure: Figure, prefix: str, label: str) -> str:
    """A figure as an `<svg>` element for a page: its ids begin with `prefix`, its colours follow the page's. Closes the figure."""
    buffer = io.StringIO()
    with plt.rc_context({**RC, "svg.hashsalt": prefix}):
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    plt.close(figure)
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r"<style[^>]*>.*?</style>", "", text, flags=re.DOTALL)
    text = re.sub(r'\bid="([^"]+)"', rf'id="{prefix}-\1"', text)
    text = re.sub(r'href="#([^"]+)"', rf'href="#{prefix}-\1"', text)
    text = re.sub(r"url\(#([^)]+)\)", rf"url(#{prefix}-\1)", text)
    text = re.sub(r'\bfill="(#[0-9a-f]{6}|white)"', r'style="fill: \1"', text)
    for colour, variable in _PAGE_COLOURS.items():
        text = re.sub(rf"(?<=: ){colour}\b", variable, text)
    text = re.sub(r"font: ([^;\"]*?)'DejaVu Sans'[^;\"]*", r"font: \1var(--sans)", text)
    opening = re.compile(r"<svg[^>]*>")
    found = opening.match(text)
    box = re.search(r'viewBox="([^"]+)"', found[0] if found else "")
    view = box[1] if box else "0 0 576 288"
    escaped = label.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;")
    head = f'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" viewBox="{view}" role="img" aria-label="{escaped}">'
    return opening.sub(head, text, count=1).strip()
