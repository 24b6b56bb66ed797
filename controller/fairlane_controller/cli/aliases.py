# SPDX-License-Identifier: Apache-2.0
"""The verbs of simple_switch_CLI as commands, and `fairlane p4 script|cli`: many of them in one connection."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import Callable, Coroutine, Generator, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from fairlane_controller import history
from fairlane_controller.cli.complete import complete_verb_words
from fairlane_controller.cli.options import DryRunOption, JsonOption, StateOption, SwitchOption
from fairlane_controller.cli.output import console, print_error, print_json
from fairlane_controller.cli.targets import Targets, resolve
from fairlane_controller.cli.verb_output import print_outcome
from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.state.files import read_text
from fairlane_controller.typed import typed
from fairlane_controller.units import counted
from fairlane_controller.verbs.catalog import BY_NAME, CATALOG, Verb
from fairlane_controller.verbs.script import Line, Outcome, Session, read_lines

MAX_SCRIPT_BYTES = 64 * 1024 * 1024
PROMPT = "fairlane> "


async def _run(
    targets: Targets,
    lines: Sequence[Line],
    tell: Callable[[Outcome], None],
    *,
    single: bool = False,
    dry_run: bool = False,
    keep_going: bool = False,
) -> list[Outcome]:
    """All lines in one session; recorded as one change when something was written."""
    endpoint = targets.one("a program's tables are")
    writes = any(line.verb in BY_NAME and BY_NAME[line.verb].writes for line in lines) and not dry_run
    async with Session(endpoint, targets.loop_folder if writes else None, single=single) as session:
        if not writes:
            return await session.run(lines, tell, dry_run=dry_run, keep_going=keep_going)
        async with history.changing(targets.folder, typed()) as change:
            with _recorded(change, session) as problems:
                return await session.run(lines, tell, keep_going=keep_going)
        raise problems[0]


@contextlib.contextmanager
def _recorded(change: history.Change, session: Session) -> Generator[list[FairlaneError], None, None]:
    """What a session wrote is kept by the history, even when an error ended it and it could not be taken back; the error is collected."""
    problems: list[FairlaneError] = []
    try:
        yield problems
    except FairlaneError as ex:
        if ex.code is ErrorCode.NO_LOOP:  # it has ended, and what it wrote of the last batch is not known
            raise
        problems.append(ex)
    change.undo = session.undo_requests()


# ---- one verb a command ------------------------------------------------------------------------------------------------


def _command_of(verb: Verb) -> Callable[..., None]:
    metavar = verb.arguments or "[none]"

    def work(
        words: list[str] | None, state: str | None, switch: list[str] | None, as_json: bool, dry_run: bool
    ) -> None:
        line = Line(1, (verb.name, *(words or ())))
        (outcome,) = asyncio.run(_run(resolve(state, switch), [line], lambda _: None, single=True, dry_run=dry_run))
        if as_json:
            print_json({**outcome.data, "dry_run": True} if dry_run else outcome.data)
        else:
            print_outcome(outcome)

    words_argument = typer.Argument(
        metavar=metavar, help=verb.summary, show_default=False, autocompletion=complete_verb_words
    )

    def write_command(
        words: Annotated[list[str] | None, words_argument] = None,
        state: StateOption = None,
        switch: SwitchOption = None,
        dry_run: DryRunOption = False,
        as_json: JsonOption = False,
    ) -> None:
        work(words, state, switch, as_json, dry_run)

    def read_command(
        words: Annotated[list[str] | None, words_argument] = None,
        state: StateOption = None,
        switch: SwitchOption = None,
        as_json: JsonOption = False,
    ) -> None:
        work(words, state, switch, as_json, False)

    command = write_command if verb.writes else read_command
    example = f"fairlane p4 {verb.name} {verb.example}".strip()
    command.__doc__ = f"{verb.summary}\n\nExample: `{example}`"
    if verb.writes:
        command.__doc__ += "\n\nWith a running control loop the loop writes. `fairlane undo` takes it back."
    # typer reads the annotations by evaluating them where the function was defined: give it the objects.
    hints: dict[str, Any] = {
        "words": Annotated[list[str] | None, words_argument],
        "state": StateOption,
        "switch": SwitchOption,
        "dry_run": DryRunOption,
        "as_json": JsonOption,
        "return": None,
    }
    command.__annotations__ = {name: hint for name, hint in hints.items() if name in command.__annotations__}
    return command


def __getattr__(name: str) -> Any:
    """The command of a verb, as `cli/main.py` names it."""
    if name in BY_NAME:
        return _command_of(BY_NAME[name])
    raise AttributeError(name)


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
    _run_lines(read_lines(_text_of(file)), resolve(state, switch), keep_going, dry_run, as_json)


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
        _run_lines(read_lines(line or sys.stdin), targets, keep_going, dry_run, as_json)
        return
    _prompt(targets, dry_run)


def _text_of(file: Path) -> list[str]:
    if str(file) == "-":
        return sys.stdin.read(MAX_SCRIPT_BYTES).splitlines()
    try:
        if file.stat().st_size > MAX_SCRIPT_BYTES:
            raise FairlaneError(ErrorCode.BAD_FILE, f"{file}: larger than {MAX_SCRIPT_BYTES} bytes")
    except OSError as ex:
        raise FairlaneError(ErrorCode.BAD_FILE, f"cannot read {file}: {ex.strerror}") from None
    return read_text(file).splitlines()


def _run_lines(lines: list[Line], targets: Targets, keep_going: bool, dry_run: bool, as_json: bool) -> None:
    if not lines:
        raise FairlaneError(ErrorCode.BAD_INPUT, "there is no line to do")

    def tell(outcome: Outcome) -> None:
        if as_json:
            return
        if outcome.error is not None:
            print_error(outcome.error, as_json=False)
        else:
            print_outcome(outcome)

    outcomes = asyncio.run(_run(targets, lines, tell, dry_run=dry_run, keep_going=keep_going))
    if as_json:
        print_json([outcome.to_json() for outcome in outcomes])
    failed = [outcome.error for outcome in outcomes if outcome.error is not None]
    if not as_json:
        how = "checked" if dry_run else "done"
        console.print(f"{len(outcomes) - len(failed)} of {counted(len(lines), 'line')} {how}", markup=False)
    if failed:
        raise typer.Exit(failed[0].exit_code)


def _prompt(targets: Targets, dry_run: bool) -> None:
    """Lines of a terminal; a mistake ends nothing. The terminal is read in this thread, between the lines, so that ^C ends it at once."""
    endpoint = targets.one("a program's tables are")
    session = Session(endpoint, targets.loop_folder, single=True)
    with _event_loop() as do:
        do(session.__aenter__())
        try:
            console.print(f"{endpoint}: verbs of simple_switch_CLI; `help` lists them, ^D ends", markup=False)
            complete = _completer(session)
            while (text := _input(complete)) is not None and text.strip() not in ("quit", "exit"):
                if text.split()[:1] == ["help"]:
                    _help(text.split()[1:])
                    continue
                try:
                    do(_prompted(targets, session, text, dry_run))
                except FairlaneError as ex:
                    print_error(ex, as_json=False)
        finally:
            do(session.__aexit__(None, None, None))


@contextlib.contextmanager
def _event_loop() -> Generator[Callable[[Coroutine[Any, Any, Any]], Any], None, None]:
    """One event loop for several calls, with pauses between them; ^C ends the call that it interrupts."""
    loop = asyncio.new_event_loop()

    def do(work: Coroutine[Any, Any, Any]) -> Any:
        task = loop.create_task(work)
        try:
            return loop.run_until_complete(task)
        except KeyboardInterrupt:
            task.cancel()
            loop.run_until_complete(asyncio.gather(task, return_exceptions=True))
            raise

    try:
        yield do
    finally:
        left = asyncio.all_tasks(loop)
        for task in left:
            task.cancel()
        if left:
            loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()


async def _prompted(targets: Targets, session: Session, text: str, dry_run: bool) -> None:
    """One line of the prompt: a change of its own in the history."""
    lines = read_lines([text])
    if not lines:
        return
    async with history.changing(targets.folder, f"cli: {text.strip()}") as change:
        session.begin()
        with _recorded(change, session) as problems:
            await session.run(lines, print_outcome, dry_run=dry_run)
    if problems:
        raise problems[0]


def _help(words: Sequence[str]) -> None:
    for verb in CATALOG:
        if not words or verb.name in words:
            console.print(f"{verb.usage}\n    {verb.summary}", markup=False)


def _completer(session: Session) -> Callable[[str, int], str | None]:
    def complete(text: str, state: int) -> str | None:
        import readline

        begun = readline.get_line_buffer()[: readline.get_begidx()].split()
        names = verb_word_candidates(session, begun)
        found = [name for name in names if name.startswith(text)]
        return f"{found[state]} " if state < len(found) else None

    return complete


def verb_word_candidates(session: Session, begun: Sequence[str]) -> list[str]:
    """What may stand behind the words `begun`."""
    from fairlane_controller.verbs.complete import next_words

    return next_words(session.context.schema, begun)


def _input(complete: Callable[[str, int], str | None]) -> str | None:
    """The next line; None when there is none any more, or ^C."""
    with contextlib.suppress(ImportError):  # a Python without it: no history, no completion
        import readline

        readline.set_completer(complete)
        readline.set_completer_delims(" \t")
        readline.parse_and_bind("tab: complete")
    try:
        return input(PROMPT)
    except (EOFError, KeyboardInterrupt):
        print()
        return None
