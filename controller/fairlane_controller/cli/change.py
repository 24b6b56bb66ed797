# SPDX-License-Identifier: Apache-2.0
"""A change that a command makes on switches: planned, then made all or nothing and recorded, or shown by `--dry-run`; `fairlane undo`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, TypeVar

import typer
from finsy import P4Schema

from fairlane_controller.cli.options import DryRunOption, JsonOption, StateOption
from fairlane_controller.cli.output import print_json, print_table, say
from fairlane_controller.cli.targets import Targets
from fairlane_controller.config.compare import CONFIG, SwitchDiff, values_text
from fairlane_controller.documents import is_table
from fairlane_controller.errors import FairlaneError, bad_input, short
from fairlane_controller.gnmi.ports import PortChange
from fairlane_controller.history.sites import Sites
from fairlane_controller.history.steps import make
from fairlane_controller.history.undo import Record, changing, next_undo, read_history, undo_last
from fairlane_controller.program.contract import NO_PROGRAM
from fairlane_controller.program.registry import find_program
from fairlane_controller.state.run_state import RunState, find_folder, read_run_state
from fairlane_controller.state.store import Store
from fairlane_controller.switch.changeset import ChangeSet
from fairlane_controller.switch.client import pipeline_of
from fairlane_controller.switch.updates import Plain, update_row
from fairlane_controller.typed import typed
from fairlane_controller.units import counted


@dataclass
class DryResult:
    """What one switch would be sent."""

    switch: str
    updates: list[Plain] = field(default_factory=list[Plain])
    schema: P4Schema | None = None
    loads: bool = False
    "The program would be loaded: every entry and counter lost."
    notes: list[str] = field(default_factory=list[str])
    "What would be set or remembered beside its entries, in words."


def journal_results(steps: Sequence[Plain], run: RunState) -> list[DryResult]:
    """What steps of the journal would write (`history/steps.py`); no switch is asked."""
    found: dict[str, DryResult] = {}
    store = Store(run.folder)
    for one in steps:
        name = str(one.get("switch", run.name))
        if name not in found:
            found[name] = DryResult(name, schema=_schema(run, name))
        result = found[name]
        match one["op"]:
            case "table_write":
                result.updates += one["updates"]
            case "port_put":
                result.notes.append(f"port {one['port']}: {PortChange.from_values(one['change']).describe()}")
            case "put":
                result.notes += [_document_note(key, store.get(key), new) for key, new in one["documents"].items()]
            case op:
                result.notes.append(f"{op}: {one.get('loop')}")
    return list(found.values())


def _document_note(key: str, old: Any, new: Any) -> str:
    """What changes of a document of the state file."""
    if key == CONFIG:
        return "what was applied last: {} becomes {}".format(
            *(one["source"] if one else "nothing" for one in (old, new))
        )
    was, becomes = (one if is_table(one) else {} for one in (old, new))
    names = [name for name in {**was, **becomes} if was.get(name) != becomes.get(name)]
    texts = (short(values_text({name: one.get(name) for name in names})) for one in (was, becomes))
    return f"{key}: {' becomes '.join(texts)}"


def _schema(run: RunState, switch: str) -> P4Schema | None:
    """The P4Info of a switch's program; None where there is no such file."""
    try:
        return P4Schema(pipeline_of(run.switch(switch)).p4info)
    except (FairlaneError, OSError):
        return None


def _units(schema: P4Schema | None) -> Mapping[str, str]:
    program = find_program(table.alias for table in schema.tables) if schema is not None else None
    return (program or NO_PROGRAM).units


def print_dry(results: Sequence[DryResult | SwitchDiff], as_json: bool, **more: Any) -> None:
    """Print what would be written; `more` is for JSON."""
    if as_json:
        updates = [{"switch": one.switch, **update} for one in results for update in one.updates]
        data: Plain = {"dry_run": True, **more, "updates": updates}
        data["loads_program"] = [one.switch for one in results if one.loads]
        data["notes"] = [{"switch": one.switch, "note": note} for one in results for note in one.notes]
        print_json(data)
        return
    notes = [f"{one.switch}: the program would be loaded, and its entries written; every entry and counter is lost" for one in results if one.loads]  # fmt: skip
    notes += [f"{one.switch}: {note}" for one in results for note in one.notes]
    rows: list[tuple[str, ...]] = []
    for one in results:
        units = _units(one.schema)  # finding the program lists the folders of all programs
        rows += [(one.switch, *update_row(update, one.schema, units)) for update in one.updates]
    if rows or not any(one.loads for one in results):
        print_table(
            f"dry run: {counted(len(rows), 'update')}, nothing is written",
            ("switch", "update", "table", "match", "action"),
            rows,
            empty="no table entry differs" if notes else "the switches have it already",
        )
    for note in notes:
        say(note)


# ---- a command that changes switches -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Planned:
    """What a command would change."""

    change: ChangeSet
    documents: Mapping[str, Any] = field(default_factory=dict[str, Any])
    "What is to be remembered,"
    documents_back: Mapping[str, Any] | None = None
    "and what an undo puts back instead of what was remembered before."
    notes: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])
    "By switch: what is to be remembered, in words."

    @property
    def written(self) -> dict[str, int]:
        """Entries that change, by switch."""
        return {name: len(changes) for name, changes in self.change.entries.items()}


P = TypeVar("P", bound=Planned)


def carry_out(
    targets: Targets, plan: Callable[[Sites], Awaitable[P]], *, dry_run: bool, as_json: bool
) -> tuple[P, str] | None:
    """Make what `plan` says, in all switches or in none, as one change of `fairlane undo`.

    Args:
        targets: the switches that the command means.
        plan: reads the switches and says what to change; raises what is wrong with it.
        dry_run: print what would be written, and write nothing.
        as_json: print that as JSON.

    Returns:
        What was made, and by whom: `loop` or `direct`; None where nothing was to be written.
    """

    async def show() -> list[DryResult]:
        async with Sites(targets.run, targets.endpoints) as sites:
            planned = await plan(sites)
            readers = {name: await sites.reader(name) for name in planned.change.entries}
            return [
                DryResult(name, planned.change.updates(name), reader.switch.p4info, notes=list(planned.notes.get(name, ())))
                for name, reader in readers.items()
            ]  # fmt: skip

    async def work() -> tuple[P, str]:
        async with (
            changing(targets.folder, typed(), targets.run),
            Sites(targets.run, targets.endpoints, writes=True) as sites,
        ):
            planned = await plan(sites)
            await make([planned.change], sites, planned.documents, planned.documents_back)
            return planned, "direct" if sites.loop_folder is None else "loop"

    if dry_run:
        print_dry(asyncio.run(show()), as_json)
        return None
    return asyncio.run(work())


# ---- fairlane undo -----------------------------------------------------------------------------------------------------


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
