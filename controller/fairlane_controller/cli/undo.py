# SPDX-License-Identifier: Apache-2.0
"""`fairlane undo`: take the last change back, all or nothing; make it again; list the changes."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

import typer

from fairlane_controller.cli.dry import DryRunOption
from fairlane_controller.cli.output import console, print_json, print_table
from fairlane_controller.cli.targets import JsonOption, StateOption
from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.history import read_history, redo_last, undo_last
from fairlane_controller.history.journal import Record
from fairlane_controller.history.undo import Undone
from fairlane_controller.state.run_state import find_folder, read_run_state
from fairlane_controller.units import counted


def undo_command(
    show_list: Annotated[bool, typer.Option("--list", "-l", help="Show the changes, newest last.")] = False,
    redo: Annotated[bool, typer.Option("--redo", help="Make again what was undone last.")] = False,
    dry_run: DryRunOption = False,
    state: StateOption = None,
    as_json: JsonOption = False,
) -> None:
    """Take back the last change that was made by hand: all of it or nothing. Again: the one before."""
    folder = find_folder(state)
    if show_list:
        if redo or dry_run:
            raise FairlaneError(ErrorCode.BAD_INPUT, "--list stands alone")
        _list(read_history(folder), as_json)
        return
    run = read_run_state(folder)
    work = redo_last if redo else undo_last
    done = asyncio.run(work(folder, run, dry_run=dry_run))
    if as_json:
        print_json({"dry_run": dry_run, **_json(done)})
        return
    how = "would be made again" if redo else "would be taken back"
    if not dry_run:
        how = "made again" if redo else "taken back"
    console.print(f"change {done.target.id} {how}: {done.target.command}", markup=False, soft_wrap=True)
    if dry_run:
        for request in done.requests:
            console.print(f"  {_words(request)}", markup=False, soft_wrap=True)
    if done.target.note:
        console.print(done.target.note, markup=False, soft_wrap=True)
    for one in done.passed:
        console.print(f"passed over: change {one.id}, {one.command}: {one.note}", markup=False, soft_wrap=True)


def _json(done: Undone) -> dict[str, Any]:
    recorded = done.recorded.id if done.recorded else None
    return {
        "change": done.target.id,
        "command": done.target.command,
        "recorded": recorded,
        "passed_over": [{"change": one.id, "command": one.command} for one in done.passed],
        "requests": list(done.requests),
    }


def _list(records: list[Record], as_json: bool) -> None:
    if as_json:
        print_json(
            [{**one.model_dump(mode="json", exclude={"undo"}), "can_be_undone": bool(one.undo)} for one in records]
        )
        return
    rows = [(one.id, one.time[:19].replace("T", " "), _describe_record(one), _status(one)) for one in records]
    print_table("changes (UTC)", ("change", "time", "command", "status"), rows, empty="none was made yet")


def _describe_record(one: Record) -> str:
    match one.kind:
        case "change" | "elsewhere":
            return one.command
        case kind:
            return f"{kind} of {one.of}: {one.command}"


def _status(one: Record) -> str:
    if one.undone:
        return "made again" if one.kind == "undo" else "undone"
    return "" if one.undo else "cannot be undone"


def _words(request: dict[str, Any]) -> str:
    """One request for people: its parts but the long ones."""
    parts = [f"{key} {value}" for key, value in request.items() if key not in ("op", "config", "updates", "settings")]
    if "updates" in request:
        parts.append(f"{counted(len(request['updates']), 'update')} of table entries")
    return f"{request['op']}: {', '.join(parts)}"
