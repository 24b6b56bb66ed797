# SPDX-License-Identifier: Apache-2.0
"""`fairlane config diff`: what a configuration says beside what the switches hold."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from fairlane_controller.cli.options import JsonOption, StateOption
from fairlane_controller.cli.output import console, print_json
from fairlane_controller.config.apply import last_applied
from fairlane_controller.config.check import check
from fairlane_controller.config.compare import DIFFERENT, EXTRA, MISSING, Comparison, compare_on
from fairlane_controller.config.read import Loaded, read_file
from fairlane_controller.config.target import find_run
from fairlane_controller.state.run_state import RunState, find_folder

DIFFERENT_EXIT_CODE = 10
"""Something is not as the file says; docs/controller.md has the table."""
_MARKS = {MISSING: "+", DIFFERENT: "~", EXTRA: "-"}


def diff_command(
    file: Annotated[
        Path | None, typer.Argument(help="Configuration; default: what was applied last.", metavar="FILE")
    ] = None,
    state: StateOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compare a configuration with what the switches hold: entries that are missing, different or extra. Exit code 10 when there are any."""
    loaded = load(file, state)
    _, found = compare_file(loaded, state)
    print_differences(loaded, found, as_json)
    if not found.same:
        raise typer.Exit(DIFFERENT_EXIT_CODE)


def load(file: Path | None, state: str | None) -> Loaded:
    """The file, or what was applied last to the running topology."""
    return read_file(file, state) if file is not None else last_applied(find_folder(state))


def compare_file(loaded: Loaded, state: str | None) -> tuple[RunState, Comparison]:
    """The topology that a file is for, and how its switches differ from the file, which is checked before. Raises what is wrong."""
    run = find_run(loaded, state)
    check(loaded, run)
    return run, asyncio.run(compare_on(loaded.config, run))


def print_differences(loaded: Loaded, found: Comparison, as_json: bool) -> None:
    """Print what differs."""
    if as_json:
        print_json({"same": found.same, "differences": [row.to_json() for row in found.rows]})
        return
    name = loaded.source.name
    if found.same:
        console.print(f"{name}: the switches hold what it says", markup=False, soft_wrap=True)
        return
    console.print(f"{name}: {len(found.rows)} differences", markup=False, soft_wrap=True)
    for row in found.rows:
        console.print(f"{_MARKS[row.status]} {row.switch} {row.what} {row.place}: {row.status}", markup=False, soft_wrap=True)  # fmt: skip
        for who, text in (("file", row.wanted), ("now", row.held)):
            if text:
                console.print(f"    {who:4} {text}", markup=False, soft_wrap=True)
