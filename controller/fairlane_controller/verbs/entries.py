# SPDX-License-Identifier: Apache-2.0
"""Table entries: from the words of a line, and as words again; priorities in simple_switch_CLI's sense."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from finsy import P4Schema, P4TableAction, P4TableEntry, P4TableMatch
from finsy.p4schema import P4MatchType, P4Table

from fairlane_controller.switch.names import resolve_name
from fairlane_controller.switch.values import (
    bad_input,
    format_match,
    format_value,
    parse_match,
    parse_number,
    parse_value,
)
from fairlane_controller.units import counted

ARROWS = ("=>", "to")
"""Between match and arguments; `to` needs no quotes in a shell."""
PIVOT = 2**31 - 1
"""In simple_switch_CLI the lowest priority wins, in P4Runtime the highest: one is this minus the other, as BMv2's server has it."""


def find_object(kind: str, name: str, objects: Iterable[Any], where: str = "") -> Any:
    """The object of the P4Info that `name` (or a unique suffix) means; UNKNOWN_NAME."""
    known = {one.name: one for one in objects}
    return known[resolve_name(kind, name, known, where)]


def find_action(table: P4Table, name: str) -> Any:
    """The action of a table; UNKNOWN_NAME."""
    return find_object("action", name, table.actions, f"table {table.alias}")


def needs_priority(table: P4Table) -> bool:
    """Whether an entry has a priority (P4Runtime 1.5 §9.1): some key is ternary, range or optional."""
    kinds = (P4MatchType.TERNARY, P4MatchType.RANGE, P4MatchType.OPTIONAL)
    return any(field.match_type in kinds for field in table.match_fields)


def match_kind(field: Any) -> str:
    """`exact`, `lpm`, …."""
    return getattr(field.match_type, "name", str(field.match_type)).lower()


def split_arrow(words: Sequence[str]) -> tuple[Sequence[str], Sequence[str] | None]:
    """The words before and after the arrow; None when there is no arrow."""
    at = next((position for position, word in enumerate(words) if word in ARROWS), None)
    return (words, None) if at is None else (words[:at], words[at + 1 :])


def parse_keys(table: P4Table, words: Sequence[str]) -> P4TableMatch:
    """The match of an entry from one word a key, in the order of the table. BAD_INPUT when their number is another."""
    fields = list(table.match_fields)
    if len(words) != len(fields):
        wanted = ", ".join(f"{f.alias} ({match_kind(f)}, {f.bitwidth} bits)" for f in fields) or "no key"
        raise bad_input(f"table {table.alias} has {counted(len(fields), 'key')}, not {len(words)}: {wanted}")
    found = P4TableMatch()
    for field, word in zip(fields, words, strict=True):
        name, equals, rest = word.partition("=")
        text = rest if equals and name in (field.alias, field.name) else word
        value = parse_match(text, field.match_type, field.bitwidth, f"key {field.alias}")
        if value is not None:
            found[field.alias] = value
    return found


def parse_action(table: P4Table, name: str, words: Sequence[str]) -> P4TableAction:
    """An action of the table with its arguments, in order or as `name=value`.

    Raises:
        FairlaneError: UNKNOWN_NAME for the action; BAD_INPUT or OUT_OF_RANGE for its arguments.
    """
    action = find_action(table, name)
    params = {param.name: param.bitwidth for param in action.params}
    if len(words) != len(params):
        wanted = ", ".join(f"{name} ({bits} bits)" for name, bits in params.items()) or "none"
        raise bad_input(f"action {action.alias} takes {counted(len(params), 'argument')}, not {len(words)}: {wanted}")
    arguments: dict[str, Any] = {}
    for own, word in zip(params, words, strict=True):
        named, equals, rest = word.partition("=")
        name, text = (named, rest) if equals and named in params else (own, word)
        if name in arguments:
            raise bad_input(f"action {action.alias}: argument {name} is given twice")
        arguments[name] = parse_value(text, params[name], f"{action.alias}: argument {name}")
    return P4TableAction(action.name, **arguments)


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
