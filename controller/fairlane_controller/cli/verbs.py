# SPDX-License-Identifier: Apache-2.0
"""The verbs of simple_switch_CLI as commands, and `fairlane p4 script`: many of them."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from fairlane_controller.cli.change import Planned, carry_out
from fairlane_controller.cli.options import DryRunOption, JsonOption, StateOption, SwitchOption
from fairlane_controller.cli.output import print_json, print_table, say
from fairlane_controller.cli.targets import Targets, resolve
from fairlane_controller.documents import is_array, is_table
from fairlane_controller.errors import FairlaneError, bad_input
from fairlane_controller.history.sites import Sites
from fairlane_controller.state.files import read_text
from fairlane_controller.units import counted
from fairlane_controller.verbs.catalog import BY_NAME
from fairlane_controller.verbs.grammar import entry_text
from fairlane_controller.verbs.script import Line, plan_lines, read_lines, read_values


def _run(targets: Targets, lines: Sequence[Line], *, dry_run: bool, as_json: bool) -> bool:
    """Do lines: those that write as one change of the history, then those that read; False after a dry run."""
    targets.one()
    writes = any(line.writes for line in lines)

    async def plan(sites: Sites) -> Planned:
        return Planned(await plan_lines(sites, lines))

    async def read() -> None:
        async with Sites(targets.run, targets.endpoints) as sites:
            if not writes:
                await plan(sites)
            await read_values(sites, lines)

    if writes and carry_out(targets, plan, dry_run=dry_run, as_json=as_json) is None:
        return False
    if not all(line.writes for line in lines):
        try:
            asyncio.run(read())
        except FairlaneError as ex:
            raise ex.code(f"{ex.message}; the lines that write are done") if writes else ex from None
    return True


def __getattr__(name: str) -> Callable[..., None]:
    """The command of a verb, as `cli/p4.py` names it."""
    if name not in BY_NAME:
        raise AttributeError(name)
    verb = BY_NAME[name]

    def command(
        words: list[str] | None = None,
        state: StateOption = None,
        switch: SwitchOption = None,
        dry_run: DryRunOption = False,
        as_json: JsonOption = False,
    ) -> None:
        line = Line(0, (verb.name, *(words or ())))
        if _run(resolve(state, switch), [line], dry_run=dry_run, as_json=as_json):
            print_json(line.data) if as_json else print_line(line)

    words_argument = typer.Argument(metavar=verb.arguments or "[none]", help=verb.summary, show_default=False)
    command.__annotations__["words"] = Annotated[list[str] | None, words_argument]
    command.__doc__ = f"{verb.summary}\n\nExample: `{f'fairlane p4 {verb.name} {verb.example}'.strip()}`"
    return command


def script_command(
    file: Annotated[Path, typer.Argument(help="Lines such as table_add …; - is standard input.", metavar="FILE")],
    dry_run: DryRunOption = False,
    state: StateOption = None,
    switch: SwitchOption = None,
    as_json: JsonOption = False,
) -> None:
    """Run a script of simple_switch_CLI's verbs as one change, all or nothing: every line is checked before the first is written.

    Lines that read come after those that write. `#` begins a comment.

    Example: `fairlane p4 script s1-commands.txt --switch s1`
    """
    lines = read_lines(list(sys.stdin) if str(file) == "-" else read_text(file).splitlines())
    if not lines:
        raise bad_input(f"{file}: there is no line to do")
    if not _run(resolve(state, switch), lines, dry_run=dry_run, as_json=as_json):
        return
    if as_json:
        print_json([{"line": line.number, "verb": line.verb, **line.data} for line in lines])
        return
    for line in lines:
        print_line(line)
    say(f"{counted(len(lines), 'line')} done")


# ---- what people see -------------------------------------------------------------------------------------------------


def print_line(line: Line) -> None:
    """What one line did or read."""
    rows: dict[str, list[dict[str, Any]]] = {name: value for name, value in line.data.items() if _is_rows(value)}
    first, *rest = [f"{name} {_text(value)}" for name, value in line.data.items() if name not in rows] or [line.verb]
    title = f"{first}: {', '.join(rest)}" if rest else first
    for found in rows.values():
        columns = [
            name
            for name in (found[0] if found else ())
            if any(_text(row.get(name)) not in ("-", "false") for row in found)
        ]
        print_table(title, columns, [[_text(row.get(name)) for name in columns] for row in found], wrap=True)
    if not rows:
        say(title)


def _is_rows(value: Any) -> bool:
    return is_array(value) and all(map(is_table, value))


def _text(value: Any) -> str:
    """A value in words: an entry as a line has it, an object of a list as `name (what else it has)`."""
    if is_table(value):
        return entry_text(value) if "match" in value else " ".join(f"{name}={one}" for name, one in value.items())
    if is_array(value):
        return ", ".join(map(_item, value)) or "-"
    return "-" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _item(value: Any) -> str:
    if not is_table(value):
        return _text(value)
    first, *rest = map(_text, value.values())
    return f"{first} ({', '.join(rest)})"
