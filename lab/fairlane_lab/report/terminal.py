# SPDX-License-Identifier: Apache-2.0
"""The result table for the terminal: points as rows, main metrics as columns, the paper's value in brackets; 80 columns wide. And where each run
drew its own link, the runs that are farthest from what is expected."""

from __future__ import annotations

import itertools
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table

from fairlane_lab.definition.names import Name, find_name
from fairlane_lab.report import labels
from fairlane_lab.report.run_folder import Point, RunFolder, Spread
from fairlane_lab.results.summary import read_rows

MAX_COLUMNS = 5
"""With more, which the experiment's file has to name, other numbers stand in rows below a point's."""
MAX_WIDE_COLUMNS = 7
HEAD_WIDTH = 10
"""Longer names of metrics are broken between words."""
WIDEST = 1000
POINT_WIDTH = 12
"""The names of the points get that much at least."""
WORST = 10
"""Of what most runs have to reach, so many of the worst runs are shown."""


def result_table(summary: Mapping[str, Any], folder: Path = Path(), width: int = 80) -> Table:
    """The table of a `summary.json`: what the experiment takes for the repeats, median or mean; the ranges of the runs where `width` has room for them.

    Raises RunFolderError when the definition in it cannot be read.
    """
    run = RunFolder(folder, summary)
    table = _table(run)
    wanted = Measurement.get(Console(), Console().options.update(width=WIDEST), table).maximum
    return table if wanted <= width else _table(run, f"their ranges need {wanted} columns")


def _table(run: RunFolder, instead_of_ranges: str = "") -> Table:
    metrics = main_metrics(run)
    runs = sorted({point.runs for point in run.points})
    count = (
        "one run each"
        if runs == [1]
        else f"{run.definition.get('statistic', 'median')}s of {'..'.join(map(str, sorted({runs[0], runs[-1]})))} runs"
        if runs
        else ""
    )
    wide = len(run.main_metrics) > MAX_COLUMNS
    has_paper = any(run.paper_values(point, metric) for point in run.points for metric in metrics)
    parts = (count, "in brackets: the paper" if has_paper and not wide else "", instead_of_ranges if wide else "")
    caption = "; ".join(part for part in parts if part)
    title = f"{run.definition.get('title', run.experiment)} ({labels.value_label('runtime', run.runtime)}; {caption})"
    table = Table(
        title=title, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 0, 0, 0 if wide else 1), show_edge=False
    )
    table.add_column("point", overflow="fold", min_width=POINT_WIDTH)
    names = labels.rate_names({metric: _largest(run, metric) for metric in metrics})
    for metric in metrics:
        base, group = labels.split_metric(metric)
        words = names[metric].label.split(" (")[0].split(",")[0]
        known = find_name(base)
        head = (known and known.head) or "\n".join(textwrap.wrap(words, HEAD_WIDTH, break_long_words=False))
        table.add_column(
            "\n".join(part for part in (group, head, names[metric].unit) if part), justify="right", no_wrap=True
        )
    section = ""
    for point in run.points:
        above, _, own = point.name.rpartition("/")
        if above != section:
            section = above
            table.add_section()
            table.add_row(f"[bold]{above}[/bold]")
        indent = " " if above else ""
        table.add_row(f"{indent}{own}", *(_cell(run, point, metric, names[metric], not wide) for metric in metrics))
        for label, cells in _rows_below(run, point, names, not instead_of_ranges) if wide else ():
            table.add_row(f"{indent}  {label}", *cells, style="dim")
    if not run.complete:
        table.caption = "not complete: some runs are missing"
    return table


def worst_tables(summary: Mapping[str, Any], folder: Path) -> Iterator[Table]:
    """For each expectation of most runs those that are farthest from its bound, with what was drawn for them."""
    run = RunFolder(folder, summary)
    drawn = list(itertools.chain(*((name, *how["split"]) for name, how in run.definition.get("drawn", {}).items())))
    for asked in run.definition.get("expect", ()) if drawn else ():
        points = [point.name for point in run.select(asked["where"])]
        if asked["statistic"] != "most" or not points:
            continue
        metric = asked["metric"]
        rows = [
            row for row in read_rows(run.path / "runs.parquet") if row["point"] in points and row[metric] is not None
        ]
        rows.sort(key=lambda row: row[metric], reverse=asked["min"] is None)
        names = {name: labels.name_of(name) for name in (*drawn, metric)}
        title = f"farthest from: {asked['text']}"
        table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False)
        table.add_column("run", justify="right")
        for name in names.values():
            head = (*textwrap.wrap(name.label, POINT_WIDTH), *textwrap.wrap(name.unit, POINT_WIDTH))
            table.add_column("\n".join(head), justify="right")
        for row in rows[:WORST]:
            cells = [labels.number(row[name] * about.scale) for name, about in names.items() if name != metric]
            table.add_row(str(row["repeat"]), *cells, labels.format_metric(metric, row[metric]))
        yield table


def main_metrics(run: RunFolder) -> list[str]:
    """The experiment's main metrics that were measured, at most seven; a choice of five where the file names none."""
    asked = list(run.main_metrics)
    if not asked:
        groups = run.groups if 2 <= len(run.groups) <= 3 else []
        asked = [*(f"goodput_bps[{group}]" for group in groups), "utilisation", "fairness", "jain"]
    there = [metric for metric in asked if any(point.get(metric) for point in run.points)]
    return there[: MAX_WIDE_COLUMNS if run.main_metrics else MAX_COLUMNS]


def _largest(run: RunFolder, metric: str) -> float:
    return max((spread.value for point in run.points if (spread := point.get(metric))), default=0.0)


def _rows_below(
    run: RunFolder, point: Point, names: Mapping[str, Name], ranges: bool
) -> Iterator[tuple[str, list[str]]]:
    """What each source of numbers says of a point, and the range of the runs."""
    spreads = {metric: point.get(metric) for metric in names}
    if ranges and any(spread and spread.runs > 1 for spread in spreads.values()):
        yield (
            "range",
            [spread_text(metric, spread, names[metric]) if spread else "" for metric, spread in spreads.items()],
        )
    theirs = {metric: run.paper_values(point, metric) for metric in names}
    for source in dict.fromkeys(source for values in theirs.values() for source in values):
        cells = [(metric, values.get(source)) for metric, values in theirs.items()]
        yield source or "paper", ["" if v is None else labels.format_metric(m, v, names[m]) for m, v in cells]


def spread_text(metric: str, spread: Spread, name: Name) -> str:
    """`8.9..9.6`, empty with one run or without a spread."""
    low, high = (labels.format_metric(metric, value, name, 3) for value in (spread.bottom, spread.top))
    return f"{low}..{high}" if spread.runs > 1 and low != high else ""


def _cell(run: RunFolder, point: Point, metric: str, name: Name, in_brackets: bool) -> str:
    spread = point.get(metric)
    text = labels.format_metric(metric, spread.value if spread else None, name)
    own = run.paper_values(point, metric).get("") if in_brackets else None
    return f"{text} [dim]({labels.format_metric(metric, own, name)})[/dim]" if own is not None else text
