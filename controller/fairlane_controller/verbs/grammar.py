# SPDX-License-Identifier: Apache-2.0
"""The words of a line by the kinds of its verb's arguments (`catalog.py`), and the words that may come next."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from finsy import P4Schema
from finsy.p4schema import P4BitsType, P4DirectCounter, P4Meter, P4MeterUnit, P4Register

from fairlane_controller.errors import FairlaneError, out_of_range, unknown_name
from fairlane_controller.switch.values import bad_input, parse_number, parse_value
from fairlane_controller.units import counted, parse_rate, parse_size
from fairlane_controller.verbs.catalog import BY_NAME
from fairlane_controller.verbs.entries import find_object, split_arrow

_OBJECTS = {
    "TABLE": ("tables",),
    "ACTION": ("actions",),
    "COUNTER": ("counters", "direct_counters"),
    "REGISTER": ("registers",),
    "METER": ("meters",),
}
"""Kinds of a first word that names an object of the P4Info, and the fields of P4Schema that have those."""


def usage(verb: str, why: str) -> FairlaneError:
    """BAD_INPUT with how the verb is used."""
    return bad_input(f"{why}; usage: {BY_NAME[verb].usage}")


def _objects(kind: str, schema: P4Schema) -> list[Any]:
    return [one for field in _OBJECTS.get(kind, ()) for one in getattr(schema, field)]


# ---- kinds of arguments: each takes the object that the first word names, and the word -------------------------------


def _index(thing: Any, word: str) -> int:
    if isinstance(thing, P4DirectCounter):
        raise bad_input(f"{thing.alias} is the direct counter of a table: it has no index")
    return parse_number(word, f"index of {thing.alias}", 0, thing.size - 1)


def _cell(register: P4Register, word: str) -> int:
    if not isinstance(register.type_spec, P4BitsType):
        raise bad_input(f"register {register.alias} has no plain numbers: it cannot be written here")
    return parse_value(word, register.type_spec.bitwidth, f"value of {register.alias}")


def meter_unit(meter: P4Meter) -> str:
    """What a meter counts: `packets` or `bytes`."""
    return "packets" if meter.unit == P4MeterUnit.PACKETS else "bytes"


def parse_meter_rate(word: str, unit: str) -> tuple[int, int]:
    """Units a second and a burst in units, of `0.25:15000` (units a microsecond) or, for bytes, `2Mbit:15KB`."""
    rate, _, burst = word.partition(":")
    try:
        per_second = float(rate) * 1e6
    except ValueError:
        if unit == "packets":
            raise bad_input(f"{word!r} is not RATE:BURST, with packets a microsecond as RATE") from None
        per_second = parse_rate(rate, "rate") / 8
    if not (math.isfinite(per_second) and 0 <= per_second < 2**63):
        raise out_of_range("rate", rate, 0, f"{2**63 // 10**6} {unit} a microsecond")
    size = parse_size(burst, "burst") if unit == "bytes" else parse_number(burst, "burst", 0, 2**31 - 1)
    return round(per_second), size


def _meter_rate(meter: P4Meter, word: str) -> tuple[int, int]:
    return parse_meter_rate(word, meter_unit(meter))


def _number(what: str, low: int, high: int) -> Callable[[Any, str], int]:
    return lambda _, word: parse_number(word, what, low, high)


_KINDS: dict[str, Callable[[Any, str], Any]] = {
    "INDEX": _index,
    "VALUE": _cell,
    "PACKETS": _number("packets", 0, 2**63 - 1),
    "BYTES": _number("bytes", 0, 2**63 - 1),
    "CIR:CBS": _meter_rate,
    "PIR:PBS": _meter_rate,
    "SESSION": _number("clone session", 1, 32_767),  # as on BMv2
    "PORT": _number("port", 1, 511),
}


def arguments(verb: str, words: Sequence[str], schema: P4Schema) -> list[Any]:
    """What the verb's function takes.

    Returns:
        The P4Info's object for a name, the value of a word that has a kind, any other word as it is.

    Raises:
        FairlaneError: UNKNOWN_NAME for the verb or an object; BAD_INPUT or OUT_OF_RANGE for a word, or their number.
    """
    if verb not in BY_NAME:
        raise unknown_name("verb", verb, BY_NAME)
    taken = BY_NAME[verb].arguments
    kinds = taken.partition("=>")[0].split()
    low = sum(not kind.startswith("[") and not kind.endswith("...") for kind in kinds)
    high = len(words) if "..." in taken else len(kinds)
    if not low <= len(words) <= high:
        raise usage(verb, f"{verb} does not take {counted(len(words), 'word')}")
    found: list[Any] = list(words)
    for place, (kind, word) in enumerate(zip((kind.strip("[]") for kind in kinds), words, strict=False)):
        if place == 0 and kind in _OBJECTS:
            things = schema.counters if verb == "counter_write" else _objects(kind, schema)
            found[0] = find_object(kind.lower(), word, things)
        elif kind in _KINDS:
            found[place] = _KINDS[kind](found[0], word)
    return found


def next_words(schema: P4Schema, begun: Sequence[str]) -> list[str]:
    """The names that may follow the words of a line, for the shell's completion; none where a value is due."""
    if not begun:
        return list(BY_NAME)
    verb, *words = begun
    kinds = [kind.strip("[]") for kind in BY_NAME[verb].arguments.split()] if verb in BY_NAME else []
    if not words:
        return sorted(one.alias for one in _objects(next(iter(kinds), ""), schema))
    table = next((one for one in schema.tables if words[0] in (one.alias, one.name)), None)
    if table is None or kinds[1:2] != ["ACTION"]:
        return []
    if len(words) == 1:
        return sorted(action.alias for action in table.actions)
    before, after = split_arrow(words[2:])
    return ["=>"] if "=>" in kinds and after is None and len(before) >= len(table.match_fields) else []
