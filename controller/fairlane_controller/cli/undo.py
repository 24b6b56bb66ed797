# SPDX-License-Identifier: Apache-2.0
"""`fairlane undo`: take the last change back, all or nothing; make it again; list the changes."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

import typer
from finsy import P4Schema

from fairlane_controller.cli.options import DryRunOption, JsonOption, StateOption
from fairlane_controller.cli.output import console, print_json, print_table
from fairlane_controller.config.apply import CONFIG
from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.gnmi.ports import PortChange
from fairlane_controller.history import read_history, redo_last, undo_last
from fairlane_controller.history.journal import Record
from fairlane_controller.history.undo import Undone
from fairlane_controller.program.registry import load_program
from fairlane_controller.state.run_state import RunState, find_folder, read_run_state
from fairlane_controller.switch.setup import pipeline_of
from fairlane_controller.switch.updates import update_row

MAX_SENTENCES = 20
"""Updates of one step that a dry run tells."""
MAX_CHARS = 200
"""Of a document that a dry run shows."""


def undo_command(
    show_list: Annotated[bool, typer.Option("--list", help="Show the changes, newest last.")] = False,
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
        for request in done.target.undo:
            for sentence in _sentences(request, run):
                console.print(f"  {sentence}", markup=False, soft_wrap=True)
    if done.target.note:
        console.print(done.target.note, markup=False, soft_wrap=True)
    for one in done.passed:
        console.print(f"passed over: change {one.id}, {one.command}: {one.note}", markup=False, soft_wrap=True)


def _json(done: Undone) -> dict[str, Any]:
    return {
        "change": done.target.id,
        "command": done.target.command,
        "recorded": done.number,
        "passed_over": [{"change": one.id, "command": one.command} for one in done.passed],
        "requests": list(done.target.undo),
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


def _sentences(request: dict[str, Any], run: RunState) -> list[str]:
    """What a request does, for people."""
    switch = str(request.get("switch", ""))
    match request["op"]:
        case "table_write":
            schema, units = _schema(run, switch), load_program(run.program).units
            said = [_update_sentence(switch, *update_row(one, schema, units)) for one in request["updates"]]
            if len(said) > MAX_SENTENCES:
                said[MAX_SENTENCES:] = [f"{switch}: and {len(said) - MAX_SENTENCES} more updates of this kind"]
            return said
        case "port_put":
            return [f"{switch}:{request['port']} is set to: {PortChange.from_values(request['change']).describe()}"]
        case "loop_put":
            return [f"the loop's options become: {_values(request['loop'])}"]
        case "put":
            documents: dict[str, Any] = request["documents"]
            return [_document_sentence(name, value) for name, value in documents.items()]
        case op:
            return [f"{op}: a request of an earlier version, which this one cannot make"]


def _document_sentence(name: str, value: Any) -> str:
    """What is remembered from then on."""
    if name == CONFIG:
        return f"what counts as applied last becomes {value['source']}" if value else "no configuration counts as applied any more"  # fmt: skip
    kind, _, place = name.partition("/")
    what = f"what is remembered of {kind}{' ' * bool(place)}{place}"
    text = _values(value)
    return f"{what} becomes what it was before" if len(text) > MAX_CHARS else f"{what} becomes: {text}"


def _values(given: Any) -> str:
    data: dict[str, Any] = given or {}
    return ", ".join(f"{name} {value}" for name, value in data.items()) or "the defaults"


def _update_sentence(switch: str, kind: str, table: str, match: str, action: str) -> str:
    where = f"{switch}: {table} {match}".rstrip()
    match kind:
        case "insert":
            return f"{where} is added: {action}"
        case "delete":
            return f"{where} is removed"
        case _:
            return f"{where} becomes {action}"


def _schema(run: RunState, switch: str) -> P4Schema | None:
    """The program's P4Info; None where the file has gone."""
    try:
        return P4Schema(pipeline_of(run.switch(switch)).p4info)
    except (FairlaneError, OSError):
        return None
