# SPDX-License-Identifier: Apache-2.0
"""What becomes of the benchmarks' numbers: rows of one form, and a table."""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from fairlane_lab.results.statistics import Statistic, aggregate
from rich.console import Console

Name = TypeVar("Name")
Value = TypeVar("Value")
INTERVAL_RUNS = 6
"""With fewer runs their range holds the median with less than 95 % confidence (binomial)."""


def processor() -> str:
    """Name of the processor."""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


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


@dataclass
class Run:
    """A run of the benchmarks: each part measures as it says, and adds what it has found."""

    seconds: float = 3.0
    """Length of each measurement."""
    rounds: int = 6
    """Of a comparison."""
    rows: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    """What `row` makes."""
    raw: dict[str, Any] = field(default_factory=dict[str, Any])
    """All numbers, by name."""

    def row(self, group: str, name: str, measured: float | Sequence[float], unit: str, **judged: Any) -> None:
        """Add a line of the table; the arguments are those of the function `row`."""
        self.rows.append(row(group, name, measured, unit, **judged))

    def in_turns(self, measures: Mapping[Name, Callable[[], Value]]) -> dict[Name, list[Value]]:
        """Measure each once in every round, one after the other."""
        samples: dict[Name, list[Value]] = {name: [] for name in measures}
        for _ in range(self.rounds):
            for name, measure in measures.items():
                samples[name].append(measure())
        return samples


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
