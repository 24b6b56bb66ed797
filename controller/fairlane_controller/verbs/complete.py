# SPDX-License-Identifier: Apache-2.0
"""What may come next in a line of verbs: for the shell's completion and the prompt's. Names only, from the P4Info."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from finsy import P4Schema

from fairlane_controller.errors import FairlaneError
from fairlane_controller.switch.names import short_names
from fairlane_controller.verbs.catalog import BY_NAME
from fairlane_controller.verbs.entries import split_arrow, table_of


def _shorts(things: Iterable[Any]) -> list[str]:
    return sorted(short_names(thing.name for thing in things).values())


def next_words(schema: P4Schema, begun: Sequence[str]) -> list[str]:
    """The names that may follow the words of a line; none where a value is due."""
    if not begun:
        return list(BY_NAME)
    verb, words = begun[0], list(begun[1:])
    if verb not in BY_NAME:
        return []
    first: dict[str, Callable[[], list[str]]] = {
        "TABLE": lambda: _shorts(schema.tables),
        "[ACTION]": lambda: _shorts(schema.actions),
        "COUNTER": lambda: _shorts([*schema.counters, *schema.direct_counters]),
        "REGISTER": lambda: _shorts(schema.registers),
        "METER": lambda: _shorts(schema.meters),
    }
    kinds = BY_NAME[verb].arguments.split()
    if len(words) < len(kinds) and kinds[len(words)] in first:
        return first[kinds[len(words)]]()
    if not words or kinds[0] != "TABLE":
        return []
    try:
        table = table_of(schema, words[0])
    except FairlaneError:
        return []
    if len(words) == 1 and kinds[1:2] == ["ACTION"]:
        return sorted(action.alias for action in table.actions)
    before, after = split_arrow(words[2:])
    if kinds[1:2] == ["ACTION"] and "=>" in kinds and after is None and len(before) >= len(table.match_fields):
        return ["=>"]
    return []
