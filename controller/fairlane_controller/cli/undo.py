# SPDX-License-Identifier: Apache-2.0
"""`fairlane undo`: take the last change back, all or nothing; list the changes."""

from __future__ import annotations

import asyncio
from typing import Annotated

import typer

from fairlane_controller.cli.change import journal_results, print_dry
from fairlane_controller.cli.options import DryRunOption, JsonOption, StateOption
from fairlane_controller.cli.output import print_json, print_table, say
from fairlane_controller.errors import bad_input
from fairlane_controller.history import Record, read_history, undo_last
from fairlane_controller.history.undo import next_undo
from fairlane_controller.state.run_state import find_folder, read_run_state


def undo_command(
    show_list: Annotated[bool, typer.Option("--list", help="Show the changes, newest last.")] = False,
    dry_run: DryRunOption = False,
    state: StateOption = None,
    as_json: JsonOption = False,
) -> None:
    """Take back the last change that was made by hand: all of it or nothing. Again: the one before."""
    folder = find_folder(state)
    records = read_history(folder)
    if show_list:
        if dry_run:
            raise bad_input("--list stands alone")
        _list(records, as_json)
        return
    run = read_run_state(folder)
    target, number = (next_undo(records), None) if dry_run else asyncio.run(undo_last(folder, run))
    about = {"change": target.id, "command": target.command}
    if not as_json:
        say(f"change {target.id} {'would be ' if dry_run else ''}taken back: {target.command}")
        if target.note:
            say(target.note)
    elif not dry_run:
        print_json({"dry_run": False, **about, "recorded": number, "requests": list(target.undo)})
    if dry_run:
        print_dry(journal_results(target.undo, run), as_json, **about)


def _list(records: list[Record], as_json: bool) -> None:
    if as_json:
        print_json(
            [{**one.model_dump(mode="json", exclude={"undo"}), "can_be_undone": bool(one.undo)} for one in records]
        )
        return
    rows = [(one.id, one.time[:19].replace("T", " "), _command(one), _status(one)) for one in records]
    print_table("changes (UTC)", ("change", "time", "command", "status"), rows, empty="none was made yet")


def _command(one: Record) -> str:
    return one.command if one.of is None else f"undo of {one.of}: {one.command}"


def _status(one: Record) -> str:
    if one.undone:
        return "undone"
    return "" if one.undo or one.of is not None else "cannot be undone"
