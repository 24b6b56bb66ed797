# SPDX-License-Identifier: Apache-2.0
"""The verbs of simple_switch_CLI as commands, and `fairlane p4 script|cli`: many of them."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, cast

import typer

from fairlane_controller import history
from fairlane_controller.cli.complete import complete_verb_words
from fairlane_controller.cli.options import DryRunOption, JsonOption, StateOption, SwitchOption
from fairlane_controller.cli.output import print_error, print_json, print_table, say
from fairlane_controller.cli.targets import Targets, resolve
from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.state.files import read_text
from fairlane_controller.typed import typed
from fairlane_controller.units import counted
from fairlane_controller.verbs.catalog import BY_NAME, CATALOG
from fairlane_controller.verbs.grammar import entry_text
from fairlane_controller.verbs.script import Line, Session, read_lines
from fairlane_controller.verbs.work import Handles

PROMPT = "fairlane> "
_OF_ONE = "a program's tables are"


def _run(targets: Targets, lines: Sequence[Line], command: str = "", **how: Any) -> None:
    """Do lines in one `Session` (its arguments: `how`), as one change of the history when one of them writes."""

    async def work() -> None:
        async with history.changing(targets.folder if writes else None, command or typed(), targets.run) as change:
            await session.run(lines)
            change.undo = session.undo

    endpoint = targets.one(_OF_ONE)
    writes = any(line.writes for line in lines) and not how["dry_run"]
    loop_folder = targets.loop_folder if writes else None
    session = Session(endpoint, loop_folder, targets.run.program if targets.run else "", **how)
    asyncio.run(work())


# ---- one verb a command ------------------------------------------------------------------------------------------------


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
        _run(resolve(state, switch), [line], dry_run=dry_run)
        if as_json:
            print_json(line.data)
        else:
            print_line(line)

    words_argument = typer.Argument(
        metavar=verb.arguments or "[none]", help=verb.summary, show_default=False, autocompletion=complete_verb_words
    )
    command.__annotations__["words"] = Annotated[list[str] | None, words_argument]
    command.__doc__ = f"{verb.summary}\n\nExample: `{f'fairlane p4 {verb.name} {verb.example}'.strip()}`"
    return command


# ---- many ----------------------------------------------------------------------------------------------------------------

KeepGoingOption = Annotated[
    bool,
    typer.Option("--keep-going", "-k", help="Do every line that can be done, as simple_switch_CLI; default all or nothing."),
]  # fmt: skip


def script_command(
    file: Annotated[Path, typer.Argument(help="Lines such as table_add …; - is standard input.", metavar="FILE")],
    keep_going: KeepGoingOption = False,
    dry_run: DryRunOption = False,
    state: StateOption = None,
    switch: SwitchOption = None,
    as_json: JsonOption = False,
) -> None:
    """Run a script of simple_switch_CLI's verbs in one connection: every line is checked before the first is written.

    What the switch refuses takes back what was written before it. `#` begins a comment. Exit code: the first error's.

    Example: `fairlane p4 script s1-commands.txt --switch s1`
    """
    text = list(sys.stdin) if str(file) == "-" else read_text(file).splitlines()
    _run_lines(text, resolve(state, switch), keep_going, dry_run, as_json)


def cli_command(
    line: Annotated[
        list[str] | None,
        typer.Option("--command", help="A line; repeatable. Then nothing is read.", metavar="LINE"),
    ] = None,
    keep_going: KeepGoingOption = False,
    dry_run: DryRunOption = False,
    state: StateOption = None,
    switch: SwitchOption = None,
    as_json: JsonOption = False,
) -> None:
    """As simple_switch_CLI: lines from a terminal with a prompt, each done at once, or from standard input as a script.

    Examples: `fairlane p4 cli -s s1`, `fairlane p4 cli < commands.txt`, `fairlane p4 cli --command show_tables --command "table_dump ipv4_lpm"`
    """
    targets = resolve(state, switch)
    if line or not sys.stdin.isatty():
        _run_lines(line or list(sys.stdin), targets, keep_going, dry_run, as_json)
    else:
        _prompt(targets, dry_run)


def _run_lines(text: Sequence[str], targets: Targets, keep_going: bool, dry_run: bool, as_json: bool) -> None:
    lines = read_lines(text)
    if not lines:
        raise FairlaneError(ErrorCode.BAD_INPUT, "there is no line to do")
    _run(targets, lines, dry_run=dry_run, keep_going=keep_going)
    failed = [line.error for line in lines if line.error is not None]
    if as_json:
        print_json([line.to_json() for line in lines])
    else:
        for line in lines:
            print_line(line)
        say(f"{len(lines) - len(failed)} of {counted(len(lines), 'line')} {'checked' if dry_run else 'done'}")
    if failed:
        raise typer.Exit(failed[0].exit_code)


def _prompt(targets: Targets, dry_run: bool) -> None:
    """Lines of a terminal, each a change of its own in a connection of its own; a mistake ends nothing, ^C ends it at once."""
    with contextlib.suppress(ImportError):  # a Python without it has no history of lines
        import readline  # noqa: F401  # pyright: ignore[reportUnusedImport]
    endpoint, handles = targets.one(_OF_ONE), Handles()
    say(f"{endpoint}: verbs of simple_switch_CLI; `help` lists them, ^D ends")
    while (text := _input()) not in ("quit", "exit"):
        words = text.split()
        if words[:1] == ["help"]:
            say(
                "\n".join(
                    f"{verb.usage}\n    {verb.summary}" for verb in CATALOG if verb.name in words[1:] or not words[1:]
                )
            )
        elif words:
            line = Line(0, words)
            try:
                _run(targets, [line], f"cli: {text}", handles=handles, dry_run=dry_run)
            except FairlaneError as ex:
                line.error = ex
            print_line(line)


def _input() -> str:
    """The next line; `quit` when there is none any more, or after ^C."""
    try:
        return input(PROMPT).strip()
    except (EOFError, KeyboardInterrupt):
        print()
        return "quit"


# ---- what people see -------------------------------------------------------------------------------------------------


def print_line(line: Line) -> None:
    """What one line did or read, or why it could not."""
    if line.error is not None:
        print_error(line.error, as_json=False)
        return
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
    return isinstance(value, list) and all(isinstance(one, dict) for one in cast("list[Any]", value))


def _text(value: Any) -> str:
    """A value in words: an entry as a line has it, an object of a list as `name (what else it has)`."""
    if isinstance(value, dict):
        data = cast("dict[str, Any]", value)
        return entry_text(data) if "match" in data else " ".join(f"{name}={one}" for name, one in data.items())
    if isinstance(value, list):
        return ", ".join(_item(one) for one in cast("list[Any]", value)) or "-"
    return "-" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _item(value: Any) -> str:
    if not isinstance(value, dict):
        return _text(value)
    first, *rest = [_text(one) for one in cast("dict[str, Any]", value).values()]
    return f"{first} ({', '.join(rest)})"
