# SPDX-License-Identifier: Apache-2.0
"""The words of a line by the usage of its verb: how many, which table, counter, register or meter, which cell."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from finsy import P4Schema

from fairlane_controller.errors import ErrorCode, FairlaneError, out_of_range
from fairlane_controller.switch.names import resolve_name
from fairlane_controller.units import counted
from fairlane_controller.verbs.catalog import BY_NAME
from fairlane_controller.verbs.values import parse_value


def usage(verb: str, why: str) -> FairlaneError:
    """BAD_INPUT with how the verb is used."""
    return FairlaneError(ErrorCode.BAD_INPUT, f"{why}; usage: {BY_NAME[verb].usage}")


def arguments(verb: str, words: Sequence[str], schema: P4Schema) -> list[Any]:
    """What the verb's function takes: the P4Info's object for a name, a number for an index, all other words as they are.

    Raises BAD_INPUT, UNKNOWN_NAME or OUT_OF_RANGE.
    """
    taken = BY_NAME[verb].arguments
    kinds = taken.split("=>", maxsplit=1)[0].split()
    low = sum(not kind.startswith("[") and not kind.endswith("...") for kind in kinds)
    high = len(words) if "..." in taken else len(kinds)
    if not low <= len(words) <= high:
        raise usage(verb, f"{verb} does not take {counted(len(words), 'word')}")
    found: list[Any] = list(words)
    for place, (kind, word) in enumerate(zip(kinds, words, strict=False)):
        match kind.strip("[]"):
            case "TABLE" | "COUNTER" | "REGISTER" | "METER":
                found[place] = _find(kind.lower(), word, schema, indexed="INDEX" in kinds)
            case "ACTION" if place == 0:
                found[place] = _find("action", word, schema)
            case "INDEX" if hasattr(found[0], "size"):
                found[place] = parse_number(word, f"index of {found[0].alias}", 0, found[0].size - 1)
            case _:
                pass
    return found


def _find(kind: str, name: str, schema: P4Schema, *, indexed: bool = False) -> Any:
    things = list(getattr(schema, f"{kind}s"))
    if kind == "counter" and not indexed:
        things += schema.direct_counters
    known = {thing.name: thing for thing in things}
    return known[resolve_name(kind, name, known)]


def parse_number(text: str, what: str, low: int, high: int) -> int:
    """A number of 64 bits within a range."""
    value = parse_value(text, 64, what)
    assert isinstance(value, int)
    if not low <= value <= high:
        raise out_of_range(what, text, low, high)
    return value
