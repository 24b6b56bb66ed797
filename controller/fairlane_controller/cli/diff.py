# SPDX-License-Identifier: Apache-2.0
"""`fairlane config diff`: what a configuration says beside what the switches have."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from fairlane_controller.cli.options import JsonOption, StateOption
from fairlane_controller.cli.output import print_json, say
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
    """Compare a configuration with what the switches have: entries that are missing, different or extra. Exit code 10 when there are any."""
    loaded = read_file(file, state) if file is not None else last_applied(find_folder(state))
    _, found = compare_file(loaded, state)
    if as_json:
        print_json({"same": found.same, "differences": [row.to_json() for row in found.rows]})
    else:
        print_differences(loaded.source.name, found)
    if not found.same:
        raise typer.Exit(DIFFERENT_EXIT_CODE)


def compare_file(loaded: Loaded, state: str | None) -> tuple[RunState, Comparison]:
    """The topology that a file is for, and how its switches differ from the file, which is checked before. Raises what is wrong."""
    run = find_run(loaded, state)
    check(loaded, run)
    return run, asyncio.run(compare_on(loaded.config, run))


def print_differences(name: str, found: Comparison) -> None:
    """Print what differs from the configuration `name`."""
    say(f"{name}: the switches hold what it says" if found.same else f"{name}: {len(found.rows)} differences")
    for row in found.rows:
        say(f"{_MARKS[row.status]} {row.switch} {row.what} {row.place}: {row.status}")
        for who, text in (("file", row.wanted), ("now", row.held)):
            if text:
                say(f"    {who:4} {text}")
