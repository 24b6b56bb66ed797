# SPDX-License-Identifier: Apache-2.0
"""The lines of a script as one change: all are planned before the first is written. Lines that read come after those that write."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from fairlane_controller.errors import FairlaneError
from fairlane_controller.history.sites import Sites
from fairlane_controller.program.registry import check_owned, find_program
from fairlane_controller.switch.changeset import ChangeSet
from fairlane_controller.switch.entities import EntityChange, table_of
from fairlane_controller.verbs import work
from fairlane_controller.verbs.catalog import BY_NAME
from fairlane_controller.verbs.grammar import arguments
from fairlane_controller.verbs.work import Context, Data

MAX_REPORTED_ERRORS = 8
_COMMENT = re.compile(r"(^|\s)#.*")


@dataclass
class Line:
    """One line of a script, and what comes of it."""

    number: int
    "From 1; 0: a shell has given it, and errors name no line."
    words: Sequence[str]
    data: Data = field(default_factory=dict[str, Any])
    "What it has done or read, as plain data."

    @property
    def verb(self) -> str:
        """Its first word."""
        return self.words[0]

    @property
    def handler(self) -> Any:
        """The function of its verb, which takes a Context and what `grammar.arguments` makes of the other words."""
        return getattr(work, self.verb)

    @property
    def writes(self) -> bool:
        """Whether it is a verb that writes."""
        return self.verb in BY_NAME and BY_NAME[self.verb].writes

    def error(self, problem: FairlaneError) -> FairlaneError:
        """The problem, with the line's number."""
        return problem.code(f"line {self.number}: {problem.message}") if self.number else problem


def read_lines(text: Iterable[str]) -> list[Line]:
    """The lines that have words; `#` begins a comment at the start of a word, and quotes around a word are left out."""
    words_of = (_COMMENT.sub("", raw).split() for raw in text)
    return [Line(number, [word.strip("'\"") for word in words]) for number, words in enumerate(words_of, 1) if words]


async def plan_lines(sites: Sites, lines: Iterable[Line]) -> ChangeSet:
    """Check all lines, and plan what those that write change on the only switch of `sites`; they have their data then.

    Raises:
        FairlaneError: What is wrong with the lines, as one error with the code of the first.
    """
    (switch,) = sites.endpoints
    client = await sites.reader(switch)
    context = Context(client)
    named = sites.run.program if sites.run is not None else ""
    program = find_program(client.table_names(), named) if sites.loop_folder is not None else None
    changes: list[EntityChange] = []
    labels: list[str] = []
    errors: list[FairlaneError] = []
    for line in lines:
        try:
            taken = arguments(line.verb, line.words[1:], context.schema)
            if line.writes:
                line.data, made = await line.handler(context, *taken)
                check_owned(program, {table_of(one.entity, context.schema) for one in made}, switch)
                changes += made
                labels += [f"line {line.number}" if line.number else line.verb] * len(made)
        except FairlaneError as ex:
            errors.append(line.error(ex))
    if errors:
        texts = [error.message for error in errors[:MAX_REPORTED_ERRORS]]
        if len(errors) > len(texts):
            texts.append(f"and {len(errors) - len(texts)} more lines cannot be done")
        raise errors[0].code("\n".join(texts))
    return ChangeSet({switch: changes}, labels={switch: labels})


async def read_values(sites: Sites, lines: Iterable[Line]) -> None:
    """Give the lines that read their data. Raises what the switch answers, with the line."""
    (switch,) = sites.endpoints
    context = Context(await sites.reader(switch))
    for line in lines:
        if not line.writes:
            try:
                line.data = await line.handler(context, *arguments(line.verb, line.words[1:], context.schema))
            except FairlaneError as ex:
                raise line.error(ex) from None
