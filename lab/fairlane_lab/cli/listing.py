# SPDX-License-Identifier: Apache-2.0
"""`fairlane lab list`: which experiments there are. It reads their files and counts; a run, or `show`, checks one of them as a whole."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any, cast

from pydantic import TypeAdapter
from rich import box
from rich.markup import escape
from rich.table import Table

from fairlane_lab.cli.output import JsonOption, console, fail, print_json
from fairlane_lab.definition.extend import experiment_names, read_source
from fairlane_lab.definition.points import make_points
from fairlane_lab.definition.strict import Steps, Where, matches
from fairlane_lab.paths import EXPERIMENTS
from fairlane_lab.problems import ExperimentError

_WHERE = TypeAdapter(Where)
WIDE_COLUMNS = 120
"""Terminal width from which on the list says what each experiment reproduces."""


def list_experiments(as_json: JsonOption = False) -> None:
    """The experiments that there are: paper, where they run, how many points and runs, and how long a run is."""
    rows: list[dict[str, Any]] = []
    broken: list[str] = []
    for name in experiment_names():
        try:
            rows.append(_row(read_source(EXPERIMENTS / f"{name}.toml").document))
        except ExperimentError as error:
            broken.append(str(error))
        except (KeyError, TypeError, ValueError, AttributeError):  # it was not checked: `show` says all that is wrong
            broken.append(f"{name}: has mistakes: `fairlane lab show {name}` says which")
    if as_json:
        print_json({"experiments": rows, "broken": broken})
    else:
        console.print(list_table(rows, console.width))
        console.print(
            "A run is so long in its own time. `fairlane lab show NAME` tells more, and about how long all take; "
            "`fairlane lab run NAME` runs it.",
            style="dim",
        )
    if broken:
        fail("\n".join(broken))


def list_table(rows: Sequence[Mapping[str, Any]], width: int) -> Table:
    """One line an experiment, those of a paper together; what it reproduces where `width` columns have room for it."""
    wide = width >= WIDE_COLUMNS
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False, expand=True)
    table.add_column("name", no_wrap=True)
    table.add_column("what", no_wrap=True, overflow="ellipsis", ratio=3)
    if wide:
        table.add_column("reproduces", no_wrap=True, overflow="ellipsis", ratio=2)
    for head, least in (("points\nx runs", 7), ("of", 6)):
        table.add_column(head, justify="right", no_wrap=True, min_width=least)
    table.add_column("runs in", no_wrap=True, min_width=12)
    for paper, mine in itertools.groupby(
        sorted(rows, key=lambda row: _paper_order(row["paper"])), lambda row: row["paper"]
    ):
        table.add_section()
        table.add_row("", f"[bold]{escape(paper.replace('none:', 'no paper:'))}[/bold]")
        for row in mine:
            each = f"{'≤ ' if row['until_done'] else ''}{duration(row['duration_s'])}"
            said = [row["title"], row["reproduces"]] if wide else [row["title"]]
            table.add_row(
                row["name"], *map(escape, said), f"{row['points']} x {row['repeats']}", each, ", ".join(row["runtimes"])
            )
    return table


def _paper_order(paper: str) -> tuple[bool, str]:
    """Papers by their name; what is of no paper comes last."""
    return paper.startswith("none"), paper


def _row(document: Mapping[str, Any]) -> dict[str, Any]:
    """One experiment, of its file with all that it extends; points and runs are those of the first runtime that it names."""
    runtimes: list[str] = document["runtimes"]
    layer: dict[str, Any] = document.get("mininet" if runtimes[0] == "mininet" else "sim", {})
    axes: dict[str, Any] = document.get("sweep", {})
    sweep = {name: Steps.model_validate(axis) if isinstance(axis, dict) else axis for name, axis in axes.items()}
    swept = SimpleNamespace(params=document.get("params", {}), cases=document.get("cases", []), sweep=sweep)
    only = _WHERE.validate_python(layer.get("only", {}))
    points = [point.params for point in make_points(cast("Any", swept)) if matches(only, point.params)]
    at_first = {name: value for name, value in points[0].items() if name == "duration_s"}
    run = {"repeats": 1, **document["run"], **at_first, **layer}
    return {
        **{name: document[name] for name in ("name", "title", "paper", "reproduces", "runtimes")},
        "also": document.get("also", []),
        "points": len(points),
        "repeats": run["repeats"],
        "runs": len(points) * run["repeats"],
        "duration_s": float(run["duration_s"]),
        "until_done": bool(run.get("until_done", False)),
    }


def duration(seconds: float) -> str:
    """In the unit that suits it."""
    if seconds < 100:
        return f"{seconds:.0f} s" if seconds >= 1 else "< 1 s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"
