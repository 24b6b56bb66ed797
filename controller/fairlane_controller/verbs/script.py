# SPDX-License-Identifier: Apache-2.0
"""Many lines in one connection: all are planned first, then written in batches, and taken back when one is refused."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.history.sites import LoopClient
from fairlane_controller.history.steps import NotTakenBack
from fairlane_controller.program.registry import check_owned, find_program
from fairlane_controller.state.intent import announce
from fairlane_controller.switch.changeset import ChangeSet, Writing
from fairlane_controller.switch.client import Endpoint, SwitchClient
from fairlane_controller.switch.entities import EntityChange, table_of
from fairlane_controller.verbs import work
from fairlane_controller.verbs.catalog import BY_NAME
from fairlane_controller.verbs.grammar import arguments
from fairlane_controller.verbs.work import Context, Data, Handles

MAX_REPORTED_ERRORS = 8
_COMMENT = re.compile(r"(^|\s)#.*")


def handler_of(verb: str) -> Callable[..., Awaitable[Any]]:
    """The function of a verb, which takes a Context and what `grammar.arguments` makes of the words."""
    return getattr(work, verb)


@dataclass
class Line:
    """One line of a script, and what comes of it."""

    number: int
    "From 1; 0: a shell has given it, and errors name no line."
    words: Sequence[str]
    data: Data = field(default_factory=dict[str, Any])
    "What it has done or read, as plain data."
    changes: Sequence[EntityChange] = ()
    read: Callable[[], Awaitable[Data]] | None = None
    "Of a verb that reads: called when its turn comes."
    error: FairlaneError | None = None

    @property
    def verb(self) -> str:
        """Its first word."""
        return self.words[0]

    @property
    def writes(self) -> bool:
        """Whether it is a verb that writes."""
        return self.verb in BY_NAME and BY_NAME[self.verb].writes

    def fail(self, error: FairlaneError) -> None:
        """Give it its error, which names the line."""
        where = f"line {self.number}: " if self.number else ""
        self.error = self.error or FairlaneError(error.code, f"{where}{error.message}")

    def to_json(self) -> Data:
        """Plain data of what came of it."""
        outcome = {"error": self.error.to_json()} if self.error else self.data
        return {"line": self.number, "verb": self.verb, **outcome}


def read_lines(text: Iterable[str]) -> list[Line]:
    """The lines that have words; `#` begins a comment at the start of a word, and quotes around a word are left out."""
    words_of = (_COMMENT.sub("", raw).split() for raw in text)
    return [Line(number, [word.strip("'\"") for word in words]) for number, words in enumerate(words_of, 1) if words]


@dataclass
class Session:
    """The lines of one change of the history, on one switch: `await Session(endpoint).run(lines)`."""

    endpoint: Endpoint
    loop_folder: Path | None = None
    "Run-state folder of the loop that writes; None: this process writes."
    program: str = ""
    "The topology's name of its program."
    handles: Handles = field(default_factory=Handles)
    "Those of the lines before."
    dry_run: bool = False
    keep_going: bool = False
    """Do every line that can be done. Otherwise a line that cannot be is raised before anything is written, and what the switch
    refuses takes everything back that was written before it."""
    _writing: Writing = field(default_factory=Writing)

    @property
    def undo(self) -> list[Data]:
        """Steps that take back what was written, for the history."""
        return ChangeSet({self.endpoint.name: self._writing.taken}).undo()

    async def run(self, lines: Sequence[Line]) -> None:
        """Plan all lines, then do them in their order; each has what came of it.

        Raises:
            FairlaneError: What was wrong, unless the session keeps going.
        """
        writes = any(line.writes for line in lines) and not self.dry_run
        folder, endpoint = self.loop_folder, self.endpoint
        async with LoopClient(endpoint, folder) if folder else SwitchClient(endpoint, write=writes) as client:
            await self._plan(client, lines)
            self._check(lines)
            try:
                await self._do(client, [line for line in lines if not line.error])
            except FairlaneError as problem:
                raise await self._take_back(problem) from None

    async def _plan(self, client: SwitchClient, lines: Sequence[Line]) -> None:
        """What each line is to do, or why it cannot be; nothing is written."""
        context = Context(client, self.handles)
        program = find_program(client.table_names(), self.program) if self.loop_folder is not None else None
        for line in lines:
            try:
                taken = arguments(line.verb, line.words[1:], context.schema)
                doing = partial(handler_of(line.verb), context, *taken)
                if not line.writes:
                    line.read = doing
                    continue
                line.data, line.changes = await doing()
                check_owned(program, {table_of(one.entity, context.schema) for one in line.changes}, self.endpoint.name)
            except FairlaneError as ex:
                line.fail(ex)

    def _check(self, lines: Iterable[Line]) -> None:
        """Raise the errors of lines as one, with the code of the first, unless the session keeps going."""
        errors = [line.error for line in lines if line.error]
        if errors and not self.keep_going:
            texts = [error.message for error in errors[:MAX_REPORTED_ERRORS]]
            if len(errors) > len(texts):
                texts.append(f"and {len(errors) - len(texts)} more lines cannot be done")
            raise FairlaneError(errors[0].code, "\n".join(texts))

    async def _do(self, client: SwitchClient, lines: Sequence[Line]) -> None:
        waiting: list[Line] = []
        for line in lines:
            if line.read is None:
                waiting.append(line)
                continue
            await self._write(client, waiting)
            waiting = []
            try:
                line.data = await line.read()
            except FairlaneError as ex:
                line.fail(ex)
                self._check([line])
        await self._write(client, waiting)

    async def _write(self, client: SwitchClient, waiting: Sequence[Line]) -> None:
        """Write what waits; what takes it back is announced before, since this process may be killed."""
        written = [(line, change) for line in waiting for change in line.changes]
        if self.dry_run:
            for line in waiting:
                line.data |= {"dry_run": True}
        elif written:
            changes = [change for _, change in written]
            await announce(ChangeSet({self.endpoint.name: changes}).undo())
            refused = await self._writing.write(client, changes, keep_going=self.keep_going)
            for index, one in sorted(refused.items()):
                written[index][0].fail(FairlaneError(ErrorCode.REFUSED, f"{self.endpoint} refused it: {one}"))
            self._check(waiting)

    async def _take_back(self, problem: FairlaneError) -> FairlaneError:
        """The problem, after everything that was written has been taken back; what could not be stays for `fairlane undo`."""
        if problem.code is ErrorCode.NO_LOOP:  # what the loop has written is not known: the history takes it back
            return problem
        _, reasons = await self._writing.take_back()
        why = FairlaneError(problem.code, next(iter(reasons.values()), ""))
        return NotTakenBack(problem, [(step, why) for step in self.undo]) if self.undo else problem
