# SPDX-License-Identifier: Apache-2.0
"""`fairlane lab list`: which experiments there are. It reads their files and counts; a run, or `show`, checks one of them as a whole."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, cast

from pydantic import TypeAdapter
from rich.markup import escape

from fairlane_lab.cli.options import JsonOption, console, fail, make_table, print_json
from fairlane_lab.definition.extend import experiment_names, read_source
from fairlane_lab.definition.points import make_points
from fairlane_lab.definition.strict import Steps, Where, matches
from fairlane_lab.paths import EXPERIMENTS
from fairlane_lab.problems import ExperimentError

_WHERE = TypeAdapter(Where)


def list_experiments(as_json: JsonOption = False) -> None:
    """The experiments that there are: paper, where they run, how many points."""
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
    table = make_table("name", "what", "points", "runs in", right="points", expand=True)
    for column in table.columns:
        column.no_wrap = True
    table.columns[1].overflow, table.columns[1].ratio = "ellipsis", 1
    paper = ""
    for row in sorted(rows, key=lambda row: (row["paper"].startswith("none"), row["paper"])):
        if row["paper"] != paper:
            paper = row["paper"]
            table.add_section()
            table.add_row("", f"[bold]{escape(paper.replace('none:', 'no paper:'))}[/bold]")
        table.add_row(row["name"], escape(row["title"]), str(row["points"]), ", ".join(row["runtimes"]))
    console.print(table)
    console.print("`fairlane lab show NAME` says more, and about how long all runs take.", style="dim")


def _row(document: Mapping[str, Any]) -> dict[str, Any]:
    """One experiment, of its file with all that it extends; points are those of the first runtime that it names."""
    runtimes: list[str] = document["runtimes"]
    layer: dict[str, Any] = document.get("mininet" if runtimes[0] == "mininet" else "sim", {})
    axes: dict[str, Any] = document.get("sweep", {})
    sweep = {name: Steps.model_validate(axis) if isinstance(axis, dict) else axis for name, axis in axes.items()}
    swept = SimpleNamespace(params=document.get("params", {}), cases=document.get("cases", []), sweep=sweep)
    only = _WHERE.validate_python(layer.get("only", {}))
    points = sum(matches(only, point.params) for point in make_points(cast("Any", swept)))
    return {**{name: document[name] for name in ("name", "title", "paper", "reproduces", "runtimes")}, "points": points}
