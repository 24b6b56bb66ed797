# SPDX-License-Identifier: Apache-2.0
"""The words of a line: by the kinds of its verb's arguments (`catalog.py`), and as a table entry and back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from finsy import P4Schema, P4TableAction, P4TableEntry, P4TableMatch
from finsy.p4schema import P4BitsType, P4DirectCounter, P4MatchType, P4Meter, P4Register, P4Table

from fairlane_controller.errors import ErrorCode, FairlaneError, bad_input, unknown_name
from fairlane_controller.switch.values import format_match, format_value, parse_match, parse_number, parse_value
from fairlane_controller.units import counted
from fairlane_controller.verbs.catalog import BY_NAME

_OBJECTS = {
    "TABLE": ("tables",),
    "COUNTER": ("counters", "direct_counters"),
    "REGISTER": ("registers",),
    "METER": ("meters",),
}
"""Kinds of a first word that names an object of the P4Info, and the fields of P4Schema that have those."""


def usage(verb: str, why: str) -> FairlaneError:
    """BAD_INPUT with how the verb is used."""
    return bad_input(f"{why}; usage: {BY_NAME[verb].usage}")


# ---- kinds of arguments: each takes the object that the first word names, and the word -------------------------------


def _index(thing: Any, word: str) -> int:
    if isinstance(thing, P4DirectCounter):
        raise bad_input(f"{thing.alias} is the direct counter of a table: it has no index")
    return parse_number(word, f"index of {thing.alias}", 0, thing.size - 1)


def _cell(register: P4Register, word: str) -> int:
    if not isinstance(register.type_spec, P4BitsType):
        raise bad_input(f"register {register.alias} has no plain numbers: it cannot be written here")
    return parse_value(word, register.type_spec.bitwidth, f"value of {register.alias}")


def _rate_and_burst(meter: P4Meter, word: str) -> tuple[int, int]:
    """Units a second and a burst in units, of simple_switch_CLI's RATE:BURST, whose rate is units a microsecond."""
    rate, _, burst = word.partition(":")
    try:
        per_second = float(rate) * 1e6
    except ValueError:
        per_second = -1
    if not 0 <= per_second < 2**63:
        raise bad_input(f"{meter.alias}: {word!r} is not RATE:BURST, e.g. 0.25:15000 (units a microsecond, units)")
    return round(per_second), parse_number(burst, "burst", 0, 2**31 - 1)


def _number(what: str, low: int, high: int) -> Callable[[Any, str], int]:
    return lambda _, word: parse_number(word, what, low, high)


_KINDS: dict[str, Callable[[Any, str], Any]] = {
    "INDEX": _index,
    "VALUE": _cell,
    "PACKETS": _number("packets", 0, 2**63 - 1),
    "BYTES": _number("bytes", 0, 2**63 - 1),
    "CIR:CBURST": _rate_and_burst,
    "PIR:PBURST": _rate_and_burst,
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
            objects = [one for field in _OBJECTS[kind] for one in getattr(schema, field)]
            found[0] = find_object(kind.lower(), word, objects)
        elif kind in _KINDS:
            found[place] = _KINDS[kind](found[0], word)
    return found


# ---- table entries, with priorities in simple_switch_CLI's sense ---------------------------------------------------------

ARROWS = ("=>", "to")
"""Between match and arguments; `to` needs no quotes in a shell."""
PIVOT = 2**31 - 1
"""In simple_switch_CLI the lowest priority wins, in P4Runtime the highest: one is this minus the other, as BMv2's server has it."""


def find_object(kind: str, name: str, objects: Iterable[Any], where: str = "") -> Any:
    """The object of the P4Info that `name` (or a unique suffix) means; UNKNOWN_NAME."""
    known = {one.name: one for one in objects}
    return known[resolve_name(kind, name, known, where)]


def needs_priority(table: P4Table) -> bool:
    """Whether an entry has a priority (P4Runtime 1.5 §9.1): some key is ternary, range or optional."""
    kinds = (P4MatchType.TERNARY, P4MatchType.RANGE, P4MatchType.OPTIONAL)
    return any(field.match_type in kinds for field in table.match_fields)


def match_kind(field: Any) -> str:
    """`exact`, `lpm`, …."""
    return getattr(field.match_type, "name", str(field.match_type)).lower()


def parse_keys(table: P4Table, words: Sequence[str]) -> P4TableMatch:
    """The match of an entry from one word a key, in the order of the table. BAD_INPUT when their number is another."""
    fields = list(table.match_fields)
    if len(words) != len(fields):
        wanted = ", ".join(f"{f.alias} ({match_kind(f)}, {f.bitwidth} bits)" for f in fields) or "no key"
        raise bad_input(f"table {table.alias} has {counted(len(fields), 'key')}, not {len(words)}: {wanted}")
    found = P4TableMatch()
    for field, word in zip(fields, words, strict=True):
        value = parse_match(word, field.match_type, field.bitwidth, f"key {field.alias}")
        if value is not None:
            found[field.alias] = value
    return found


def parse_action(table: P4Table, name: str, words: Sequence[str]) -> P4TableAction:
    """An action of the table with its arguments, in order.

    Raises:
        FairlaneError: UNKNOWN_NAME for the action; BAD_INPUT or OUT_OF_RANGE for its arguments.
    """
    action = find_object("action", name, table.actions, f"table {table.alias}")
    params = {param.name: param.bitwidth for param in action.params}
    if len(words) != len(params):
        wanted = ", ".join(f"{name} ({bits} bits)" for name, bits in params.items()) or "none"
        raise bad_input(f"action {action.alias} takes {counted(len(params), 'argument')}, not {len(words)}: {wanted}")
    values = {
        name: parse_value(word, bits, f"{action.alias}: argument {name}")
        for (name, bits), word in zip(params.items(), words, strict=True)
    }
    return P4TableAction(action.name, **values)


def split_priority(table: P4Table, words: Sequence[str]) -> tuple[Sequence[str], int]:
    """The words without the priority, which ends them where the table has priorities, and that as P4Runtime has it; 0 for none."""
    if not needs_priority(table):
        return words, 0
    last = words[-1] if words else ""
    if not last.isdecimal():
        need = "needs a priority as the last word (a number, the lowest wins)"
        raise bad_input(f"table {table.alias} {need}, not {last!r}")
    return words[:-1], PIVOT - parse_number(last, "priority", 0, PIVOT - 1)


def _action_words(action: Any, schema: P4Schema, table: P4Table) -> tuple[str, dict[str, str]]:
    """Name and arguments of an entry's action, as a line has them."""
    if action is None:
        return "NoAction", {}
    known = next((a for a in table.actions if getattr(action, "name", "") in (a.alias, a.name)), None)
    if known is None:
        return action.format_str(schema if isinstance(action, P4TableAction) else table), {}
    return known.alias, {p.name: format_value(action.args[p.name], p.bitwidth, p.name) for p in known.params}


def entry_row(entry: P4TableEntry, schema: P4Schema) -> dict[str, Any]:
    """An entry as plain data: `match` and `arguments` by name, and its `priority` (the lowest wins)."""
    table = schema.tables[entry.table_id]
    match = entry.match or P4TableMatch()
    action, arguments = _action_words(entry.action, schema, table)
    row: dict[str, Any] = {
        "match": {
            field.alias: format_match(match.get(field.alias), field.match_type, field.bitwidth, field.alias)
            for field in table.match_fields
            if not entry.is_default_action
        },
        "priority": PIVOT - entry.priority if entry.priority else None,
        "action": action,
        "arguments": arguments,
    }
    if entry.counter_data is not None:
        row |= {"packets": entry.counter_data.packet_count, "bytes": entry.counter_data.byte_count}
    if entry.idle_timeout_ns:
        row["idle_timeout_s"] = entry.idle_timeout_ns / 1e9
    if entry.is_const:
        row["const"] = True
    return row


def match_text(row: dict[str, Any]) -> str:
    """`10.0.1.0/24` of an `entry_row`, with `priority N` where it has one."""
    priority = [] if row["priority"] is None else [f"priority {row['priority']}"]
    return " ".join([*row["match"].values(), *priority]) or "default"


def entry_text(row: dict[str, Any]) -> str:
    """`10.0.1.0/24 => forward 1 08:00:…` of an `entry_row`."""
    return " ".join([match_text(row), "=>", row["action"], *row["arguments"].values()])


def resolve_name(kind: str, name: str, names: Iterable[str], where: str = "") -> str:
    """The full name that `name` stands for: itself, or the only one that ends with `.name`.

    Args:
        kind: what it names (`table`), for the error.
        name: as it was given.
        names: all full names.
        where: of what the names are (`table t`), for the error.

    Raises:
        FairlaneError: UNKNOWN_NAME: with the candidates when several end so, else with the nearest valid name.
    """
    everything = list(names)
    found = [name] if name in everything else [full for full in everything if full.endswith(f".{name}")]
    if len(found) == 1:
        return found[0]
    of = f" of {where}" if where else ""
    if found:
        text = f"{kind} {name!r}{of} is ambiguous: {', '.join(sorted(found))}; write more of its name"
        raise ErrorCode.UNKNOWN_NAME(text)
    raise unknown_name(f"{kind}{of}", name, {full.rpartition(".")[2] for full in everything})
