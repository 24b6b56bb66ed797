# SPDX-License-Identifier: Apache-2.0
"""Many lines in one connection: all are read and checked first, then written in batches, and taken back when one is refused."""

from __future__ import annotations

import difflib
import shlex
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

from finsy import GRPCStatusCode

from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.program.registry import check_owned, find_program
from fairlane_controller.state.ask import ask
from fairlane_controller.state.intent import announce
from fairlane_controller.switch.changeset import ChangeSet, Writing
from fairlane_controller.switch.client import Endpoint, SwitchClient
from fairlane_controller.switch.entities import EntityChange, table_of
from fairlane_controller.switch.faults import Refusal
from fairlane_controller.switch.updates import plain_updates
from fairlane_controller.units import counted
from fairlane_controller.verbs import cells, tables
from fairlane_controller.verbs.catalog import BY_NAME, ELSEWHERE
from fairlane_controller.verbs.context import Context, Data, Step
from fairlane_controller.verbs.words import arguments

MAX_REPORTED_ERRORS = 8

Handler = Callable[..., Awaitable[Step]]
"""Takes a Context and what `words.arguments` makes of the words."""


def handler_of(verb: str) -> Handler:
    """Who does a verb; UNKNOWN_NAME with the nearest one, or with what to do instead."""
    if verb in BY_NAME:
        return getattr(tables, verb, None) or getattr(cells, verb)
    if verb in ELSEWHERE:
        raise FairlaneError(ErrorCode.BAD_INPUT, f"{verb} is none of these verbs: {ELSEWHERE[verb]}")
    near = difflib.get_close_matches(verb.lower(), list(BY_NAME), n=1, cutoff=0.5)
    hint = f"did you mean {near[0]!r}?" if near else f"valid: {', '.join(BY_NAME)}"
    raise FairlaneError(ErrorCode.UNKNOWN_NAME, f"unknown verb {verb!r}; {hint}")


@dataclass(frozen=True)
class Line:
    """One line of a script, its words apart."""

    number: int
    words: tuple[str, ...]

    @property
    def verb(self) -> str:
        """Its first word."""
        return self.words[0]

    @property
    def text(self) -> str:
        """As it would be typed."""
        return " ".join(self.words)


def read_lines(text: Iterable[str]) -> list[Line]:
    """The lines that say something; `#` begins a comment at the start of a word. Raises BAD_INPUT with the line's number."""
    lines: list[Line] = []
    for number, raw in enumerate(text, 1):
        try:
            quoted = any(sign in raw for sign in "\"'\\#")
            words = tuple(shlex.split(raw, comments=True) if quoted else raw.split())
        except ValueError as ex:
            raise FairlaneError(ErrorCode.BAD_INPUT, f"line {number}: {str(ex).lower()}") from None
        if words:
            lines.append(Line(number, words))
    return lines


@dataclass
class Outcome:
    """What came of one line."""

    line: Line
    said: str = ""
    data: Data = field(default_factory=dict[str, Any])
    error: FairlaneError | None = None

    def to_json(self) -> Data:
        """Plain data."""
        base: Data = {"line": self.line.number, "verb": self.line.verb}
        return {**base, "error": self.error.to_json()} if self.error else {**base, **self.data}


@dataclass(frozen=True)
class Planned:
    """A line and the step that it is."""

    line: Line
    step: Step


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

    def __init__(self, endpoint: Endpoint, loop_folder: Path | None = None, *, single: bool = False) -> None:
        """`loop_folder`: of the loop that writes; `single`: one line that a shell has given; errors name no line."""
        self.endpoint = endpoint
        self._through_loop = loop_folder is not None
        self._client = SwitchClient(endpoint)
        self._writer = SwitchClient(endpoint, write=True) if loop_folder is None else LoopClient(endpoint, loop_folder)
        self._writes = False
        self._single = single
        self._context: Context | None = None
        self.begin()

    def begin(self) -> None:
        """A new change of the history: what was written before is another one's."""
        self._writing = Writing()

    async def __aenter__(self) -> Session:
        await self._client.__aenter__()
        try:
            self._context = Context(self._client)
        except FairlaneError:
            await self._client.close()
            raise
        return self

    async def __aexit__(
        self, _type: type[BaseException] | None, _value: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        await self._writer.close()
        await self._client.close()

    @property
    def context(self) -> Context:
        """What lines are checked against."""
        assert self._context is not None
        return self._context

    def undo_requests(self) -> list[dict[str, Any]]:
        """What takes back what was written and stays: for the history."""
        taken = self._writing.taken
        return ChangeSet({self.endpoint.name: taken}).undo() if taken else []

    # ---- checking ------------------------------------------------------------------------------------------------

    async def plan(self, lines: Sequence[Line]) -> tuple[list[Planned], list[Outcome]]:
        """The steps of all lines, and those that cannot be; nothing is written."""
        self.context.forget()
        planned: list[Planned] = []
        failed: list[Outcome] = []
        for line in lines:
            try:
                handler = handler_of(line.verb)
                step = await handler(self.context, *arguments(line.verb, line.words[1:], self.context.schema))
                if self._through_loop and step.changes:
                    written = {table_of(one.entity, self.context.schema) for one in step.changes}
                    check_owned(find_program(self._client.table_names()), written, self.endpoint.name)
                planned.append(Planned(line, step))
            except FairlaneError as ex:
                failed.append(Outcome(line, error=self._located(ex, line)))
        return planned, failed

    def _located(self, error: FairlaneError, line: Line) -> FairlaneError:
        if self._single:
            return error
        return FairlaneError(error.code, f"line {line.number}: {error.message}")

    # ---- doing -----------------------------------------------------------------------------------------------------

    async def run(
        self,
        lines: Sequence[Line],
        tell: Callable[[Outcome], None] = lambda _: None,
        *,
        dry_run: bool = False,
        keep_going: bool = False,
    ) -> list[Outcome]:
        """Check all lines, then do them in their order; `tell` gets each outcome when it is known.

        Without `keep_going` a line that cannot be is raised before anything is written, and what the switch refuses takes
        everything back that was written before it. With it every line that can be done is.
        """
        planned, failed = await self.plan(lines)
        if failed and not keep_going:
            raise _together([outcome.error for outcome in failed if outcome.error])
        outcomes: list[Outcome] = []

        def report_outcome(outcome: Outcome) -> None:
            outcomes.append(outcome)
            tell(outcome)

        for outcome in failed:
            report_outcome(outcome)
        if dry_run:
            for each in planned:
                report_outcome(await self._dry(each))
            return outcomes
        waiting: list[Planned] = []
        for each in planned:
            if each.step.read is None:
                waiting.append(each)
                continue
            await self._flush(waiting, report_outcome, keep_going)
            waiting = []
            try:
                report_outcome(Outcome(each.line, data=await each.step.read()))
            except FairlaneError as ex:
                problem = self._located(ex, each.line)
                if not keep_going:
                    raise await self._roll_back(problem) from None
                report_outcome(Outcome(each.line, error=problem))
        await self._flush(waiting, report_outcome, keep_going)
        return outcomes

    async def _dry(self, each: Planned) -> Outcome:
        if each.step.read is not None:
            return Outcome(each.line, data=await each.step.read())
        return Outcome(
            each.line, f"would write {len(each.step.changes)}: {each.step.said}", {**each.step.data, "dry_run": True}
        )

    async def _flush(self, waiting: Sequence[Planned], known: Callable[[Outcome], None], keep_going: bool) -> None:
        changes = [(each, change) for each in waiting for change in each.step.changes]
        try:
            refused = await self._write([change for _, change in changes], keep_going)
        except FairlaneError as ex:
            raise await self._roll_back(ex) from None
        errors: dict[int, FairlaneError] = {}
        for index, refusal in sorted(refused.items()):
            line = changes[index][0].line
            problem = FairlaneError(ErrorCode.REFUSED, f"{self.endpoint} refused it: {refusal}")
            errors.setdefault(line.number, self._located(problem, line))
        if errors and not keep_going:
            raise await self._roll_back(_together(list(errors.values())))
        for each in waiting:
            error = errors.get(each.line.number)
            known(Outcome(each.line, error=error) if error else Outcome(each.line, each.step.said, each.step.data))

    async def _write(self, changes: Sequence[EntityChange], keep_going: bool) -> dict[int, Refusal]:
        """What the switch refused, by index; what takes them back is announced before: this process may go away."""
        if not changes:
            return {}
        if not self._writes:
            await self._writer.__aenter__()
            self._writes = True
        await announce(ChangeSet({self.endpoint.name: changes}).undo())
        return await self._writing.write(self._writer, changes, keep_going=keep_going)

    async def _roll_back(self, problem: FairlaneError) -> FairlaneError:
        """The problem, after everything that was written has been taken back; what could not be stays, for the history."""
        count, why = await self._writing.take_back()
        if not count:
            return problem
        text = _describe_rollback(count, len(self._writing.taken), next(iter(why.values()), ""))
        return FairlaneError(problem.code, f"{problem.message}; {text}")


def _describe_rollback(count: int, left: int, why: str) -> str:
    if not left:
        return f"the {counted(count, 'update')} before it {'was' if count == 1 else 'were'} taken back"
    which = f"the {counted(count, 'update')}" if left == count else f"{left} of the {counted(count, 'update')}"
    return f"{which} before it could not be taken back ({why}): `fairlane undo` tries it again"


def _together(errors: Sequence[FairlaneError]) -> FairlaneError:
    """All of them in one, with the code of the first."""
    texts = [error.message for error in errors[:MAX_REPORTED_ERRORS]]
    more = len(errors) - len(texts)
    if more > 0:
        texts.append(f"and {more} more lines cannot be done")
    return FairlaneError(errors[0].code, "\n".join(texts))
