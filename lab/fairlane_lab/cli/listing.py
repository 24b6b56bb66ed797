# SPDX-License-Identifier: Apache-2.0
"""`fairlane lab list`: which experiments there are. It reads their files; a run, or `show`, checks one of them as a whole."""

from __future__ import annotations

from typing import Any

from rich.markup import escape

from fairlane_lab.cli.options import JsonOption, console, fail, make_table, print_json
from fairlane_lab.definition.extend import experiment_names, read_source
from fairlane_lab.paths import EXPERIMENTS
from fairlane_lab.problems import ExperimentError

_SHOWN = ("name", "title", "paper", "reproduces", "runtimes")


def list_experiments(as_json: JsonOption = False) -> None:
    """The experiments that there are: paper, and where they run."""
    rows: list[dict[str, Any]] = []
    broken: list[str] = []
    for name in experiment_names():
        try:
            document = read_source(EXPERIMENTS / f"{name}.toml").document
            rows.append({key: document[key] for key in _SHOWN})
        except ExperimentError as error:
            broken.append(str(error))
        except KeyError:  # it was not checked: `show` says all that is wrong
            broken.append(f"{name}: has mistakes: `fairlane lab show {name}` says which")
    if as_json:
        print_json({"experiments": rows, "broken": broken})
    else:
        _print(rows)
    if broken:
        fail("\n".join(broken))


def _print(rows: list[dict[str, Any]]) -> None:
    """One line an experiment, those of a paper together; what is of no paper comes last."""
    table = make_table("name", "what", "runs in", expand=True)
    for column in table.columns:
        column.no_wrap = True
    table.columns[1].overflow, table.columns[1].ratio = "ellipsis", 1
    paper = ""
    for row in sorted(rows, key=lambda row: (row["paper"].startswith("none"), row["paper"])):
        if row["paper"] != paper:
            paper = row["paper"]
            table.add_section()
            table.add_row("", f"[bold]{escape(paper.replace('none:', 'no paper:'))}[/bold]")
        table.add_row(row["name"], escape(row["title"]), ", ".join(row["runtimes"]))
    console.print(table)
    console.print("`fairlane lab show NAME` says more.", style="dim")
