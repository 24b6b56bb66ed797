# SPDX-License-Identifier: Apache-2.0
"""Many lines in one connection: all are read and checked first, then written in batches, and taken back when one is refused."""

from __future__ import annotations

import difflib
import shlex
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.history.sites import LoopClient
from fairlane_controller.program.contract import Program
from fairlane_controller.program.registry import check_owned, find_program
from fairlane_controller.state.intent import announce
from fairlane_controller.switch.changeset import ChangeSet, Writing
from fairlane_controller.switch.client import Endpoint, SwitchClient
from fairlane_controller.switch.entities import EntityChange, table_of
from fairlane_controller.switch.values import bad_input
from fairlane_controller.units import counted
from fairlane_controller.verbs import cells, tables
from fairlane_controller.verbs.catalog import BY_NAME, ELSEWHERE
from fairlane_controller.verbs.context import Context, Data, Handles
from fairlane_controller.verbs.grammar import arguments

MAX_REPORTED_ERRORS = 8
SINGLE_READS = 16
"""A script of more lines asks for the entries of a table all together."""


def handler_of(verb: str) -> Callable[..., Awaitable[Any]]:
    """The function of a verb, which takes a Context and what `grammar.arguments` makes of the words; UNKNOWN_NAME with the
    nearest one, or with what to do instead."""
    if verb in BY_NAME:
        return getattr(tables, verb, None) or getattr(cells, verb)
    if verb in ELSEWHERE:
        raise bad_input(f"{verb} is none of these verbs: {ELSEWHERE[verb]}")
    near = difflib.get_close_matches(verb.lower(), list(BY_NAME), n=1, cutoff=0.5)
    hint = f"did you mean {near[0]!r}?" if near else f"valid: {', '.join(BY_NAME)}"
    raise FairlaneError(ErrorCode.UNKNOWN_NAME, f"unknown verb {verb!r}; {hint}")


@dataclass
class Line:
    """One line of a script, and what comes of it."""

    number: int
    words: Sequence[str]
    said: str = ""
    "For people, when it is done."
    data: Data = field(default_factory=dict[str, Any])
    "The same as plain data."
    changes: Sequence[EntityChange] = ()
    read: Callable[[], Awaitable[Data]] | None = None
    "Of a verb that reads: done when it is its turn."
    error: FairlaneError | None = None

    @property
    def verb(self) -> str:
        """Its first word."""
        return self.words[0]

    @property
    def writes(self) -> bool:
        """Whether it is a verb that writes."""
        return self.verb in BY_NAME and BY_NAME[self.verb].writes

    def to_json(self) -> Data:
        """Plain data of what came of it."""
        outcome = {"error": self.error.to_json()} if self.error else self.data
        return {"line": self.number, "verb": self.verb, **outcome}


def read_lines(text: Iterable[str]) -> list[Line]:
    """The lines that say something; `#` begins a comment at the start of a word. Raises BAD_INPUT with the line's number."""
    lines: list[Line] = []
    for number, raw in enumerate(text, 1):
        try:
            quoted = any(sign in raw for sign in "\"'\\#")
            words = shlex.split(raw, comments=True) if quoted else raw.split()
        except ValueError as ex:
            raise bad_input(f"line {number}: {str(ex).lower()}") from None
        if words:
            lines.append(Line(number, words))
    return lines


@dataclass
class Session:
    """The lines of one change of the history, on one switch: `await Session(endpoint).run(lines)`."""

    endpoint: Endpoint
    loop_folder: Path | None = None
    "Of the loop that writes."
    program: str = ""
    "What the topology names as its program."
    handles: Handles = field(default_factory=Handles)
    "Those of the lines before."
    report: Callable[[Line], None] = lambda _: None
    "Gets each line when it is known what came of it."
    single: bool = False
    "It is one line that a shell has given; errors name no line."
    dry_run: bool = False
    keep_going: bool = False
    """Do every line that can be done. Otherwise a line that cannot be is raised before anything is written, and what the switch
    refuses takes everything back that was written before it."""
    _writing: Writing = field(default_factory=Writing)

    def undo_requests(self) -> list[dict[str, Any]]:
        """What takes back what was written and stays: for the history."""
        taken = self._writing.taken
        return ChangeSet({self.endpoint.name: taken}).undo() if taken else []

    async def run(self, lines: Sequence[Line]) -> None:
        """Check all lines, then do them in their order. Raises what was wrong, unless the session keeps going."""
        folder = self.loop_folder
        async with AsyncExitStack() as clients:
            loop_client = folder and await clients.enter_async_context(LoopClient(self.endpoint, folder))
            client = loop_client or await clients.enter_async_context(SwitchClient(self.endpoint))
            await self._plan(client, lines)
            failed = [line for line in lines if line.error]
            if failed and not self.keep_going:
                raise _together(failed)
            for line in failed:
                self.report(line)
            planned = [line for line in lines if not line.error]
            if not self.dry_run and any(line.changes for line in planned) and not loop_client:
                client = await clients.enter_async_context(SwitchClient(self.endpoint, write=True))
            try:
                await self._do(client, planned)
            except FairlaneError as ex:
                raise await self._roll_back(ex) from None

    async def _plan(self, client: SwitchClient, lines: Sequence[Line]) -> None:
        """What each line is to do, or why it cannot be; nothing is written."""
        context = Context(client, self.handles, reads_tables=len(lines) > SINGLE_READS)
        program: Program | None = None
        if self.loop_folder is not None:
            program = find_program(client.table_names(), self.program)
        for line in lines:
            try:
                handler = handler_of(line.verb)
                taken = arguments(line.verb, line.words[1:], context.schema)
                if not line.writes:
                    line.read = partial(handler, context, *taken)
                    continue
                line.said, line.data, line.changes = await handler(context, *taken)
                check_owned(program, {table_of(one.entity, context.schema) for one in line.changes}, self.endpoint.name)
            except FairlaneError as ex:
                self._fail(line, ex)

    def _fail(self, line: Line, error: FairlaneError) -> FairlaneError:
        where = "" if self.single else f"line {line.number}: "
        line.error = line.error or FairlaneError(error.code, f"{where}{error.message}")
        return line.error

    async def _do(self, client: SwitchClient, lines: Sequence[Line]) -> None:
        waiting: list[Line] = []
        for line in lines:
            if line.read is None and not self.dry_run:
                waiting.append(line)
                continue
            await self._flush(client, waiting)
            waiting = []
            if line.read is None:
                line.said = f"would write {len(line.changes)}: {line.said}"
                line.data = {**line.data, "dry_run": True}
            else:
                try:
                    line.data = await line.read()
                except FairlaneError as ex:
                    problem = self._fail(line, ex)
                    if not self.keep_going:
                        raise problem from None
            self.report(line)
        await self._flush(client, waiting)

    async def _flush(self, client: SwitchClient, waiting: Sequence[Line]) -> None:
        """Write what waits; what takes it back is announced before: this process may go away."""
        written = [(line, change) for line in waiting for change in line.changes]
        if written:
            changes = [change for _, change in written]
            await announce(ChangeSet({self.endpoint.name: changes}).undo())
            refused = await self._writing.write(client, changes, keep_going=self.keep_going)
            for index, one in sorted(refused.items()):
                self._fail(written[index][0], FairlaneError(ErrorCode.REFUSED, f"{self.endpoint} refused it: {one}"))
        failed = [line for line in waiting if line.error]
        if failed and not self.keep_going:
            raise _together(failed)
        for line in waiting:
            self.report(line)

    async def _roll_back(self, problem: FairlaneError) -> FairlaneError:
        """The problem, after everything that was written has been taken back; what could not be stays, for the history."""
        count, why = await self._writing.take_back()
        left = len(self._writing.taken)
        if not count:
            return problem
        updates = f"the {counted(count, 'update')}"
        text = f"{updates} before it {'was' if count == 1 else 'were'} taken back"
        if left:
            which, reason = updates if left == count else f"{left} of {updates}", next(iter(why.values()), "")
            text = f"{which} before it could not be taken back ({reason}): `fairlane undo` tries it again"
        return FairlaneError(problem.code, f"{problem.message}; {text}")


def _together(failed: Sequence[Line]) -> FairlaneError:
    """Their errors in one, with the code of the first."""
    errors = [line.error for line in failed if line.error]
    texts = [error.message for error in errors[:MAX_REPORTED_ERRORS]]
    if len(errors) > len(texts):
        texts.append(f"and {len(errors) - len(texts)} more lines cannot be done")
    return FairlaneError(errors[0].code, "\n".join(texts))
