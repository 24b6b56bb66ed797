# SPDX-License-Identifier: Apache-2.0
"""What becomes of the benchmarks' numbers: rows of one form, a folder under `results/bench/`, and a table."""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from fairlane_lab.results.statistics import Statistic, aggregate
from rich.console import Console
from testbed import ROOT

RESULTS = ROOT / "results" / "bench"
INTERVAL_RUNS = 6
"""With fewer runs their range holds the median with less than 95 % confidence (binomial)."""


def git_revision() -> str:
    """Commit of the tree, with a plus where it was changed; empty outside git and without it."""
    words = ["git", "-C", str(ROOT), "describe", "--always", "--abbrev=40", "--dirty=+"]
    try:
        return subprocess.run(words, capture_output=True, text=True, timeout=30).stdout.strip()
    except FileNotFoundError:
        return ""


def processor() -> str:
    """Name of the processor."""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def save(summary: dict[str, Any], results: Path = RESULTS) -> Path:
    """Write the summary into a new folder and point `latest` to it; returns the file."""
    folder = results / datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H-%M-%SZ")
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "summary.json"
    file.write_text(json.dumps(summary, indent=1, ensure_ascii=False) + "\n")
    new = results / f"latest.{os.getpid()}"
    new.symlink_to(folder.name)
    new.replace(results / "latest")
    return file


def row(
    group: str,
    name: str,
    measured: float | Sequence[float],
    unit: str,
    *,
    at_least: float | None = None,
    at_most: float | None = None,
    below: float | None = None,
    statistic: Statistic = "median",
) -> dict[str, Any]:
    """A line of the table, under the heading `group`: a number, or the middle of several rounds with its 95 % interval.

    It has an interval from `INTERVAL_RUNS` rounds on.
    """
    values = list(measured) if isinstance(measured, Sequence) else [measured]
    of = aggregate(values, statistic)
    aims = {">=": at_least, "<=": at_most, "<": below}
    reached = (
        at_least is None or of.value >= at_least,
        at_most is None or of.value <= at_most,
        below is None or of.value < below,
    )
    return {
        "group": group,
        "name": name,
        "value": of.value,
        "unit": unit,
        "aim": " ".join(f"{sign} {number(aim)}" for sign, aim in aims.items() if aim is not None),
        "ok": all(reached),
        "n": of.runs,
        "low": of.lo if of.runs >= INTERVAL_RUNS else None,
        "high": of.hi if of.runs >= INTERVAL_RUNS else None,
    }


def ratios(ours: Sequence[float], theirs: Sequence[float]) -> list[float]:
    """Of two samples, round by round."""
    return [one / other for one, other in zip(ours, theirs, strict=True)]


Part = Callable[[], tuple[list[dict[str, Any]], dict[str, Any]]]
"""A part of a benchmark: rows, and raw numbers."""


def measure(parts: Mapping[str, Part], only: str = "") -> dict[str, Any]:
    """Measure all parts, or `only` one: `{"rows": [what `row` makes...], "raw": {...}}`."""
    rows: list[dict[str, Any]] = []
    raw: dict[str, Any] = {}
    for name, part in parts.items():
        if only in ("", name):
            part_rows, part_raw = part()
            rows += part_rows
            raw |= part_raw
    return {"rows": rows, "raw": raw}


def print_measured(what: str, bench: Callable[[float, int, str], dict[str, Any]], parts: Sequence[str]) -> None:
    """The command line of a benchmark with parts that needs root: prints its result as JSON."""
    parser = argparse.ArgumentParser(description=f"Measures {what}; prints JSON.")
    parser.add_argument("--seconds", type=float, default=3.0, help="length of each measurement")
    parser.add_argument("--rounds", type=int, default=6, help="rounds of the comparison")
    parser.add_argument("--only", choices=parts, default="", help="one part only")
    arguments = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit(f"bench/{Path(sys.argv[0]).name}: network namespaces need root")
    result = bench(arguments.seconds, arguments.rounds, arguments.only)
    print(json.dumps(result, indent=1, ensure_ascii=False))


def number(value: float) -> str:
    """A number as the table shows it: four digits, or all that stand before the point."""
    return f"{value:,.4g}" if abs(value) < 1000 else f"{value:,.0f}"


COLUMNS = ("measured", "value", "95 % interval", "n", "unit", "aim", "verdict")
TO_THE_RIGHT = ("value", "95 % interval", "n")


def show(rows: list[dict[str, Any]], console: Console) -> None:
    """The table, aims beside what was measured: one line a row, whatever the console's width, and a heading for each group."""
    groups: dict[str, list[list[str]]] = {}
    for line in rows:
        groups.setdefault(line["group"], []).append(_cells(line))
    every = [list(COLUMNS), *(cells for group in groups.values() for cells in group)]
    widths = [max(map(len, column)) for column in zip(*every, strict=True)]

    def print_line(cells: list[str], style: str | None = None) -> None:
        columns = zip(COLUMNS, cells, widths, strict=True)
        text = "  ".join(
            cell.rjust(width) if name in TO_THE_RIGHT else cell.ljust(width) for name, cell, width in columns
        )
        console.print(text.rstrip(), style=style, soft_wrap=True, highlight=False, markup=False)

    console.print("fairlane on this machine, all in one run", style="bold")
    print_line(list(COLUMNS), "bold")
    for heading, group in groups.items():
        console.print(f"\n{heading}", style="bold", soft_wrap=True, highlight=False, markup=False)
        for cells in group:
            print_line(cells, {"reached": "green", "missed": "red"}.get(cells[-1]))


def _cells(line: dict[str, Any]) -> list[str]:
    interval = "" if line["low"] is None else f"{number(line['low'])} to {number(line['high'])}"
    verdict = "" if not line["aim"] else "reached" if line["ok"] else "missed"
    return [line["name"], number(line["value"]), interval, str(line["n"]), line["unit"], line["aim"], verdict]
