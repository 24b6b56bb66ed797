# SPDX-License-Identifier: Apache-2.0
"""`fairlane lab list`: which experiments there are. It reads their files and counts; a run, or `show`, checks one of them as a whole."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, cast

from pydantic import TypeAdapter
from rich.markup import escape

from fairlane_lab.cli.output import JsonOption, console, fail, make_table, print_json
from fairlane_lab.definition.extend import experiment_names, read_source
from fairlane_lab.definition.points import make_points
from fairlane_lab.definition.references import resolve
from fairlane_lab.definition.strict import Steps, Where, matches
from fairlane_lab.paths import EXPERIMENTS
from fairlane_lab.problems import ExperimentError

_WHERE = TypeAdapter(Where)


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
        _print(rows)
    if broken:
        fail("\n".join(broken))


def _print(rows: list[dict[str, Any]]) -> None:
    """One line an experiment, those of a paper together; what is of no paper comes last."""
    table = make_table("name", "what", "points\nx runs", "of", "runs in", right="points\nx runs of", expand=True)
    for column, least in zip(table.columns, (0, 0, 7, 6, 12), strict=True):
        column.no_wrap, column.overflow, column.min_width = True, "ellipsis", least or None
    table.columns[0].overflow, table.columns[1].ratio = "fold", 1
    paper = ""
    for row in sorted(rows, key=lambda row: (row["paper"].startswith("none"), row["paper"])):
        if row["paper"] != paper:
            paper = row["paper"]
            table.add_section()
            table.add_row("", f"[bold]{escape(paper.replace('none:', 'no paper:'))}[/bold]")
        each = f"{'≤ ' if row['until_done'] else ''}{duration(row['duration_s'])}"
        runs = f"{row['points']} x {row['repeats']}"
        table.add_row(row["name"], escape(row["title"]), runs, each, ", ".join(row["runtimes"]))
    console.print(table)
    console.print(
        "A run is so long in its own time. `fairlane lab show NAME` tells more, and about how long all take; "
        "`fairlane lab run NAME` runs it.",
        style="dim",
    )


def _row(document: Mapping[str, Any]) -> dict[str, Any]:
    """One experiment, of its file with all that it extends; points and runs are those of the first runtime that it names."""
    runtimes: list[str] = document["runtimes"]
    layer: dict[str, Any] = document.get("mininet" if runtimes[0] == "mininet" else "sim", {})
    axes: dict[str, Any] = document.get("sweep", {})
    sweep = {name: Steps.model_validate(axis) if isinstance(axis, dict) else axis for name, axis in axes.items()}
    swept = SimpleNamespace(params=document.get("params", {}), cases=document.get("cases", []), sweep=sweep)
    only = _WHERE.validate_python(layer.get("only", {}))
    points = [point.params for point in make_points(cast("Any", swept)) if matches(only, point.params)]
    run = {"repeats": 1, **document["run"], **layer}
    first = {name: resolve(run[name], points[0], ("run", name), [], set()) for name in ("repeats", "duration_s")}
    return {
        **{name: document[name] for name in ("name", "title", "paper", "reproduces", "runtimes")},
        "also": document.get("also", []),
        "points": len(points),
        "repeats": first["repeats"],
        "runs": len(points) * first["repeats"],
        "duration_s": float(first["duration_s"]),
        "until_done": bool(run.get("until_done", False)),
    }


def duration(seconds: float) -> str:
    """In the unit that suits it."""
    if seconds < 100:
        return f"{seconds:.0f} s" if seconds >= 1 else "< 1 s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"
