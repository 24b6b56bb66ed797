# SPDX-License-Identifier: Apache-2.0
"""The words of a line by the usage of its verb (`catalog.py`): how many, of which type each is, and which may come next."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from finsy import P4Schema
from finsy.p4schema import P4BitsType, P4DirectCounter, P4Meter, P4MeterUnit, P4Register

from fairlane_controller.errors import FairlaneError, out_of_range
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
"""A first word that names an object of the P4Info, and where P4Schema has those."""


def usage(verb: str, why: str) -> FairlaneError:
    """BAD_INPUT with how the verb is used."""
    return bad_input(f"{why}; usage: {BY_NAME[verb].usage}")


def _objects(kind: str, schema: P4Schema) -> list[Any]:
    return [one for field in _OBJECTS.get(kind, ()) for one in getattr(schema, field)]


# ---- types of arguments: each takes the object that the first word names, and the word -------------------------------


def _index(thing: Any, word: str) -> int:
    if isinstance(thing, P4DirectCounter):
        text = f"{thing.alias} is the direct counter of table {thing.direct_table_name.rpartition('.')[2]}"
        raise bad_input(f"{text}: it has no index; without one all entries are shown")
    return parse_number(word, f"index of {thing.alias}", 0, thing.size - 1)


def register_bits(register: P4Register, done: str) -> int:
    """Bits of a number in a register; BAD_INPUT when it holds anything else."""
    if not isinstance(register.type_spec, P4BitsType):
        raise bad_input(f"register {register.alias} holds no plain numbers: it cannot be {done} here")
    return register.type_spec.bitwidth


def _cell(register: P4Register, word: str) -> int:
    return parse_value(word, register_bits(register, "written"), f"value of {register.alias}")


def meter_unit(meter: P4Meter) -> str:
    """What it counts."""
    return "packets" if meter.unit == P4MeterUnit.PACKETS else "bytes"


def parse_meter_rate(word: str, unit: str) -> tuple[int, int]:
    """Units a second and a burst in units, of `0.25:15000` (units a microsecond) or `2Mbit:15KB`."""
    rate, colon, burst = word.partition(":")
    if not colon:
        raise usage("meter_set_rates", f"{word!r} is not RATE:BURST")
    try:
        per_second = round(float(rate) * 1e6)
    except OverflowError:
        raise usage("meter_set_rates", f"{rate!r} is no finite rate") from None
    except ValueError:
        if unit == "packets":
            raise usage("meter_set_rates", f"{rate!r} is not a number of packets a microsecond") from None
        per_second = round(parse_rate(rate, "rate") / 8)
    size = parse_size(burst, "burst") if unit == "bytes" else parse_number(burst, "burst", 0, 2**31 - 1)
    if not 0 <= per_second < 2**63:
        raise out_of_range("rate", rate, 0, f"{2**63 // 10**6} {unit} a microsecond")
    return per_second, size


def _meter_rate(meter: P4Meter, word: str) -> tuple[int, int]:
    return parse_meter_rate(word, meter_unit(meter))


def _number(what: str, low: int, high: int) -> Callable[[Any, str], int]:
    return lambda _, word: parse_number(word, what, low, high)


_TYPES: dict[str, Callable[[Any, str], Any]] = {
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
    """What the verb's function takes: the P4Info's object for a name, values for what has a type, all other words as they are.

    Raises BAD_INPUT, UNKNOWN_NAME or OUT_OF_RANGE.
    """
    taken = BY_NAME[verb].arguments
    kinds = taken.split("=>", maxsplit=1)[0].split()
    low = sum(not kind.startswith("[") and not kind.endswith("...") for kind in kinds)
    high = len(words) if "..." in taken else len(kinds)
    if not low <= len(words) <= high:
        raise usage(verb, f"{verb} does not take {counted(len(words), 'word')}")
    found: list[Any] = list(words)
    for place, (kind, word) in enumerate(zip((kind.strip("[]") for kind in kinds), words, strict=False)):
        if place == 0 and kind in _OBJECTS:
            things = schema.counters if "INDEX" in kinds and kind == "COUNTER" else _objects(kind, schema)
            found[0] = find_object(kind.lower(), word, things)
        elif kind in _TYPES:
            found[place] = _TYPES[kind](found[0], word)
    return found


def next_words(schema: P4Schema, begun: Sequence[str]) -> list[str]:
    """The names that may follow the words of a line, for the shell's completion and the prompt's; none where a value is due."""
    if not begun:
        return list(BY_NAME)
    verb, *words = begun
    kinds = [kind.strip("[]") for kind in BY_NAME[verb].arguments.split()] if verb in BY_NAME else []
    if not words:
        return sorted(one.alias for one in _objects(next(iter(kinds), ""), schema))
    if kinds[1:2] != ["ACTION"]:
        return []
    try:
        table = find_object("table", words[0], schema.tables)
    except FairlaneError:
        return []
    if len(words) == 1:
        return sorted(action.alias for action in table.actions)
    before, after = split_arrow(words[2:])
    return ["=>"] if "=>" in kinds and after is None and len(before) >= len(table.match_fields) else []
