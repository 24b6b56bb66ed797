# SPDX-License-Identifier: Apache-2.0
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
"""Plots of a dumbbell run folder, made from its `cells/*.json`, later and again.

One picture a measure; a row of panels per link, drop-tail on the left, Qthresh on the right (paper 000, Fig. 2 and Fig. 9).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
from fairlane_controller.documents import parse_json

from fairlane_lab.paper import LINKS
from fairlane_lab.results.summary_file import read_summary

SCHEMES = ("drop_tail", "qthresh")
SCHEME_TITLES = {"drop_tail": "drop-tail, 50 packets", "qthresh": "Qthresh, threshold by the controller"}
COLOURS = {"reno": "#c44e52", "vegas": "#2f6fab"}
MEASURES = {
    "goodput": ("Goodput over time", "kbit/s", 1e-3),
    "cwnd": ("Congestion window over time", "segments", 1.0),
    "queue": ("Packets waiting in the bottleneck queue, per flow", "packets", 1.0),
}


def load_cells(folder: Path) -> list[dict[str, Any]]:
    """All cells of a run folder, in the order in which they ran."""
    cells = [parse_json(path.read_text()) for path in sorted((folder / "cells").glob("*.json"))]
    return sorted(cells, key=lambda cell: cell["order"])


def make_plots(folder: Path) -> list[Path]:
    """Write one PNG per measure that was sampled into the run folder; returns the paths. Raises FileNotFoundError when the folder holds no cells."""
    cells = load_cells(folder)
    if not cells:
        raise FileNotFoundError(f"{folder}: no cells/*.json, so there is nothing to plot")
    run = {cell["link"] for cell in cells}
    links = [link.link for link in LINKS if link.link in run]
    there = [measure for measure in MEASURES if any(flow[measure] for cell in cells for flow in cell["flows"].values())]
    paths = [_plot_measure(folder, cells, links, measure) for measure in there]
    paths.append(_plot_summary(folder, links))
    return paths


def _first_run(cells: list[dict[str, Any]], link: str, scheme: str) -> dict[str, Any] | None:
    return next((cell for cell in cells if cell["link"] == link and cell["scheme"] == scheme), None)


def _plot_measure(folder: Path, cells: list[dict[str, Any]], links: list[str], measure: str) -> Path:
    title, unit, scale = MEASURES[measure]
    figure, axes = plt.subplots(
        len(links),
        2,
        figsize=(11, 2.3 * len(links) + 0.8),
        sharex=True,
        sharey="row" if measure == "goodput" else "none",
        squeeze=False,
    )
    for row, link in enumerate(links):
        for column, scheme in enumerate(SCHEMES):
            axis = axes[row][column]
            cell = _first_run(cells, link, scheme)
            for flow, colour in COLOURS.items():
                series = cell["flows"][flow][measure] if cell else []
                if series:
                    style = {"drawstyle": "steps-post"} if measure != "goodput" else {}
                    axis.plot(
                        [t for t, _ in series],
                        [value * scale for _, value in series],
                        color=colour,
                        lw=1.0,
                        label=flow.capitalize(),
                        **style,
                    )
            if cell and measure == "queue" and cell.get("qthresh"):
                axis.axhline(
                    cell["qthresh"], color="0.4", lw=0.8, ls="--", label=f"Qthresh = {cell['qthresh']:g} at the end"
                )
            axis.grid(alpha=0.25)
            axis.set_ylim(bottom=0)
            if row == 0:
                axis.set_title(SCHEME_TITLES[scheme], fontsize=10)
            if row == len(links) - 1:
                axis.set_xlabel("time / s")
            if column == 0:
                axis.set_ylabel(f"{link}\n{unit}")
            handles, _ = axis.get_legend_handles_labels()
            if handles and (row == 0 or measure == "queue"):
                axis.legend(fontsize=8, loc="upper right")
    figure.suptitle(title)
    figure.tight_layout()
    path = folder / f"{measure}.png"
    figure.savefig(path, dpi=110)
    plt.close(figure)
    return path


def _plot_summary(folder: Path, links: list[str]) -> Path:
    summary = read_summary(folder)
    figure, axes = plt.subplots(1, 2, figsize=(11, 3.8), sharey=True)
    for axis, scheme in zip(axes, SCHEMES, strict=True):
        rows = {row["link"]: row for row in summary["rows"] if row["scheme"] == scheme}
        paper = {row["link"]: row for row in summary["paper"] if row["scheme"] == scheme}
        for offset, (flow, colour) in enumerate(COLOURS.items()):
            share = [rows[link][f"{flow}_kbps"] * 1e5 / rows[link]["rate_bps"] if link in rows else 0 for link in links]
            theirs = [paper[link][f"{flow}_kbps"] * 1e5 / paper[link]["rate_bps"] for link in links]
            places = [index + (offset - 0.5) * 0.36 for index in range(len(links))]
            axis.bar(places, share, 0.34, color=colour, label=f"{flow.capitalize()}, measured")
            axis.plot(
                places, theirs, ls="", marker="_", ms=22, mew=2, color="black", label="paper" if offset == 0 else None
            )
        axis.set_xticks(
            range(len(links)),
            [f"{link}\nfairness {rows[link]['fairness']:.0%}" if link in rows else link for link in links],
        )
        axis.set_title(SCHEME_TITLES[scheme], fontsize=10)
        axis.grid(axis="y", alpha=0.25)
        axis.set_ylim(0, 100)
    axes[0].set_ylabel("share of the link / %")
    axes[1].legend(fontsize=8, loc="upper right")
    figure.suptitle("TCP Reno and TCP Vegas on one bottleneck (median of the runs)")
    figure.tight_layout()
    path = folder / "shares.png"
    figure.savefig(path, dpi=110)
    plt.close(figure)
    return path
