# SPDX-License-Identifier: Apache-2.0
"""Many lines in one connection: all are read and checked first, then written in batches, and taken back when one is refused."""

from __future__ import annotations

import difflib
import shlex
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from finsy import GRPCStatusCode

from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.program.contract import Program
from fairlane_controller.program.registry import check_owned, find_program
from fairlane_controller.state.ask import ask
from fairlane_controller.state.intent import announce
from fairlane_controller.switch.changeset import ChangeSet, Writing
from fairlane_controller.switch.client import Endpoint, SwitchClient
from fairlane_controller.switch.entities import EntityChange, table_of
from fairlane_controller.switch.faults import Refusal
from fairlane_controller.switch.updates import plain_updates
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


class LoopClient(SwitchClient):
    """A reader whose writes a running loop makes, since that is the primary."""

    def __init__(self, endpoint: Endpoint, folder: Path) -> None:
        super().__init__(endpoint)
        self._folder = folder

    async def write_each_with_reasons(self, updates: Sequence[Any]) -> dict[int, Refusal]:
        """What the switch refused, by index."""
        plain = plain_updates(updates, self.switch.p4info)
        request = {"op": "table_write", "switch": self.endpoint.name, "each": True, "updates": plain}
        refused: dict[str, list[str]] = (await ask(self._folder, request))["refused"] if plain else {}
        return {int(index): Refusal(GRPCStatusCode[code], text) for index, (code, text) in refused.items()}


class Session:
    """`async with Session(endpoint) as session: await session.run(lines)`."""

    def __init__(
        self,
        endpoint: Endpoint,
        loop_folder: Path | None = None,
        *,
        program: str = "",
        handles: Handles | None = None,
        single: bool = False,
    ) -> None:
        """The lines of one change of the history.

        Args:
            endpoint: The switch.
            loop_folder: Of the loop that writes.
            program: What the topology names as its program.
            handles: Those of the lines before; None: there were none.
            single: It is one line that a shell has given; errors name no line.
        """
        self.endpoint = endpoint
        self._through_loop = loop_folder is not None
        self._client = SwitchClient(endpoint) if loop_folder is None else LoopClient(endpoint, loop_folder)
        self._writer: SwitchClient | None = self._client if self._through_loop else None
        self._named_program = program
        self._handles = handles or Handles()
        self._single = single
        self._writing = Writing()
        self._clients = AsyncExitStack()

    async def __aenter__(self) -> Session:
        await self._clients.enter_async_context(self._client)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._clients.aclose()

    def undo_requests(self) -> list[dict[str, Any]]:
        """What takes back what was written and stays: for the history."""
        taken = self._writing.taken
        return ChangeSet({self.endpoint.name: taken}).undo() if taken else []

    # ---- checking ------------------------------------------------------------------------------------------------

    @cached_property
    def _program(self) -> Program | None:
        """What the switch runs."""
        return find_program(self._client.table_names(), self._named_program)

    async def plan(self, lines: Sequence[Line]) -> None:
        """What each line is to do, or why it cannot be; nothing is written."""
        context = Context(self._client, self._handles, reads_tables=len(lines) > SINGLE_READS)
        for line in lines:
            try:
                handler = handler_of(line.verb)
                taken = arguments(line.verb, line.words[1:], context.schema)
                if not line.writes:
                    line.read = partial(handler, context, *taken)
                    continue
                line.said, line.data, line.changes = await handler(context, *taken)
                if self._through_loop:
                    written = {table_of(one.entity, context.schema) for one in line.changes}
                    check_owned(self._program, written, self.endpoint.name)
            except FairlaneError as ex:
                self._fail(line, ex)

    def _fail(self, line: Line, error: FairlaneError) -> FairlaneError:
        where = "" if self._single else f"line {line.number}: "
        line.error = line.error or FairlaneError(error.code, f"{where}{error.message}")
        return line.error

    # ---- doing -----------------------------------------------------------------------------------------------------

    async def run(
        self,
        lines: Sequence[Line],
        report: Callable[[Line], None] = lambda _: None,
        *,
        dry_run: bool = False,
        keep_going: bool = False,
    ) -> None:
        """Check all lines, then do them in their order; `report` gets each line when it is known what came of it.

        Without `keep_going` a line that cannot be is raised before anything is written, and what the switch refuses takes
        everything back that was written before it. With it every line that can be done is.
        """
        await self.plan(lines)
        failed = [line for line in lines if line.error]
        if failed and not keep_going:
            raise _together(failed)
        for line in failed:
            report(line)
        waiting: list[Line] = []
        for line in lines:
            if line.error:
                continue
            if line.read is None and not dry_run:
                waiting.append(line)
                continue
            await self._flush(waiting, report, keep_going)
            waiting = []
            if line.read is None:
                line.said = f"would write {len(line.changes)}: {line.said}"
                line.data = {**line.data, "dry_run": True}
            else:
                try:
                    line.data = await line.read()
                except FairlaneError as ex:
                    problem = self._fail(line, ex)
                    if not keep_going:
                        raise await self._roll_back(problem) from None
            report(line)
        await self._flush(waiting, report, keep_going)

    async def _flush(self, waiting: Sequence[Line], report: Callable[[Line], None], keep_going: bool) -> None:
        changes = [(line, change) for line in waiting for change in line.changes]
        try:
            refused = await self._write([change for _, change in changes], keep_going)
        except FairlaneError as ex:
            raise await self._roll_back(ex) from None
        for index, refusal in sorted(refused.items()):
            self._fail(changes[index][0], FairlaneError(ErrorCode.REFUSED, f"{self.endpoint} refused it: {refusal}"))
        failed = [line for line in waiting if line.error]
        if failed and not keep_going:
            raise await self._roll_back(_together(failed))
        for line in waiting:
            report(line)

    async def _write(self, changes: Sequence[EntityChange], keep_going: bool) -> dict[int, Refusal]:
        """What the switch refused, by index; what takes them back is announced before: this process may go away."""
        if not changes:
            return {}
        if self._writer is None:
            self._writer = await self._clients.enter_async_context(SwitchClient(self.endpoint, write=True))
        await announce(ChangeSet({self.endpoint.name: changes}).undo())
        return await self._writing.write(self._writer, changes, keep_going=keep_going)

    async def _roll_back(self, problem: FairlaneError) -> FairlaneError:
        """The problem, after everything that was written has been taken back; what could not be stays, for the history."""
        count, why = await self._writing.take_back()
        left = len(self._writing.taken)
        if not count:
            return problem
        updates = f"the {counted(count, 'update')}"
        if left:
            which = updates if left == count else f"{left} of {updates}"
            text = f"{which} before it could not be taken back ({next(iter(why.values()), '')}): `fairlane undo` tries it again"
        else:
            text = f"{updates} before it {'was' if count == 1 else 'were'} taken back"
        return FairlaneError(problem.code, f"{problem.message}; {text}")


def _together(failed: Sequence[Line]) -> FairlaneError:
    """Their errors in one, with the code of the first."""
    errors = [line.error for line in failed if line.error]
    texts = [error.message for error in errors[:MAX_REPORTED_ERRORS]]
    if len(errors) > len(texts):
        texts.append(f"and {len(errors) - len(texts)} more lines cannot be done")
    return FairlaneError(errors[0].code, "\n".join(texts))
