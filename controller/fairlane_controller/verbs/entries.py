# SPDX-License-Identifier: Apache-2.0
"""Table entries: from the words of a line, and as words again; priorities in simple_switch_CLI's sense."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from finsy import P4Schema, P4TableAction, P4TableEntry, P4TableMatch
from finsy.p4schema import P4ActionScope, P4MatchType, P4Table

from fairlane_controller.errors import ErrorCode, FairlaneError, out_of_range
from fairlane_controller.switch.names import resolve_name, short_names
from fairlane_controller.units import counted
from fairlane_controller.verbs.values import format_match, format_value, parse_match, parse_value

ARROWS = ("=>", "to")
"""Between match and arguments; `to` needs no quotes in a shell."""
PIVOT = 2**31 - 1
"""In simple_switch_CLI the lowest priority wins, in P4Runtime the highest: one is this minus the other, as BMv2's server has it."""


def table_of(schema: P4Schema, name: str) -> P4Table:
    """The table that `name` (or a unique suffix) means."""
    return schema.tables[resolve_name("table", name, [table.name for table in schema.tables])]


def short_table(schema: P4Schema, table: P4Table) -> str:
    """The shortest name that means this table."""
    return short_names(t.name for t in schema.tables)[table.name]


def needs_priority(table: P4Table) -> bool:
    """Whether an entry has a priority (P4Runtime 1.5 §9.1): some key is ternary, range or optional."""
    kinds = (P4MatchType.TERNARY, P4MatchType.RANGE, P4MatchType.OPTIONAL)
    return any(field.match_type in kinds for field in table.match_fields)


def split_arrow(words: Sequence[str]) -> tuple[list[str], list[str] | None]:
    """The words before and after the arrow; None when there is no arrow."""
    for position, word in enumerate(words):
        if word in ARROWS:
            return list(words[:position]), list(words[position + 1 :])
    return list(words), None


def parse_keys(table: P4Table, words: Sequence[str]) -> P4TableMatch:
    """The match of an entry from one word a key, in the order of the table. BAD_INPUT when their number is another."""
    fields = list(table.match_fields)
    if len(words) != len(fields):
        wanted = ", ".join(f"{f.alias} ({_kind(f.match_type)}, {f.bitwidth} bits)" for f in fields) or "no key"
        raise FairlaneError(
            ErrorCode.BAD_INPUT, f"table {table.alias} has {counted(len(fields), 'key')}, not {len(words)}: {wanted}"
        )
    found: dict[str, Any] = {}
    for field, word in zip(fields, words, strict=True):
        text = word
        name, equals, rest = word.partition("=")
        if equals and name in (field.alias, field.name):
            text = rest
        value = parse_match(text, field.match_type, field.bitwidth, f"key {field.alias}")
        if value is not None:
            found[field.alias] = value
    return P4TableMatch(found)


def _kind(kind: Any) -> str:
    return kind.name.lower() if isinstance(kind, P4MatchType) else str(kind)


def parse_action(table: P4Table, name: str, words: Sequence[str], *, default: bool = False) -> P4TableAction:
    """An action of the table with its arguments, in order or as `name=value`."""
    if table.action_profile is not None:
        raise FairlaneError(
            ErrorCode.BAD_INPUT,
            f"table {table.alias} takes its actions from the action profile {table.action_profile.alias}: "
            "members and groups are not among these verbs",
        )
    full = resolve_name("action", name, [action.name for action in table.actions], f"table {table.alias}")
    action = table.actions[full]
    wrong_scope = P4ActionScope.TABLE_ONLY if default else P4ActionScope.DEFAULT_ONLY
    if action.scope == wrong_scope:
        where = "an entry, not the default" if default else "the default action, not an entry"
        raise FairlaneError(ErrorCode.BAD_INPUT, f"action {action.alias} of table {table.alias} may only be in {where}")
    params = list(action.params)
    wanted = ", ".join(f"{p.name} ({p.bitwidth} bits)" for p in params) or "none"
    if len(words) != len(params):
        raise FairlaneError(
            ErrorCode.BAD_INPUT,
            f"action {action.alias} takes {counted(len(params), 'argument')}, not {len(words)}: {wanted}",
        )
    arguments: dict[str, Any] = {}
    for position, word in enumerate(words):
        name_of, equals, rest = word.partition("=")
        named = next((p for p in params if equals and p.name == name_of), None)
        param = named or params[position]
        if param.name in arguments:
            raise FairlaneError(ErrorCode.BAD_INPUT, f"action {action.alias}: argument {param.name} is given twice")
        try:
            arguments[param.name] = parse_value(rest if named else word, param.bitwidth, f"argument {param.name}")
        except FairlaneError as ex:
            raise FairlaneError(ex.code, f"{ex.message}; {action.alias} takes {wanted}") from None
    return P4TableAction(full, **arguments)


def parse_priority(text: str | None, table: P4Table) -> int:
    """P4Runtime's priority of simple_switch_CLI's `text`; 0 for a table that has none."""
    if not needs_priority(table):
        if text is not None:
            raise FairlaneError(ErrorCode.BAD_INPUT, f"table {table.alias} has no priorities, so {text!r} is too much")
        return 0
    if text is None or not text.isdecimal():
        raise FairlaneError(
            ErrorCode.BAD_INPUT,
            f"table {table.alias} needs a priority as the last word (a number, the lowest wins), not {text!r}",
        )
    if int(text) >= PIVOT:
        raise out_of_range("priority", text, 0, PIVOT - 1)
    return PIVOT - int(text)


def action_words(action: Any, schema: P4Schema, table: P4Table) -> tuple[str, dict[str, str]]:
    """Name and arguments of an entry's action, as a line has them."""
    if not isinstance(action, P4TableAction):
        return (str(action.format_str(table)) if action is not None else "NoAction"), {}
    known = next((a for a in table.actions if action.name in (a.alias, a.name)), None)
    if known is None:
        return action.format_str(schema), {}
    return known.alias, {
        param.name: format_value(_plain(action.args[param.name]), param.bitwidth, param.name) for param in known.params
    }


def _plain(value: Any) -> Any:
    return value if isinstance(value, (int, str)) else int(value)


def entry_row(entry: P4TableEntry, schema: P4Schema) -> dict[str, Any]:
    """An entry as plain data: `match` and `arguments` by name, `priority` (the lowest wins) and `p4runtime_priority`."""
    table = schema.tables[entry.table_id]
    match = entry.match or P4TableMatch()
    action, arguments = action_words(entry.action, schema, table)
    row: dict[str, Any] = {
        "match": {
            field.alias: format_match(match.get(field.alias), field.match_type, field.bitwidth, field.alias)
            for field in table.match_fields
        }
        if not entry.is_default_action
        else {},
        "priority": PIVOT - entry.priority if entry.priority else None,
        "p4runtime_priority": entry.priority or None,
        "action": action,
        "arguments": arguments,
    }
    if entry.counter_data is not None:
        row["packets"] = entry.counter_data.packet_count
        row["bytes"] = entry.counter_data.byte_count
    if entry.idle_timeout_ns:
        row["idle_timeout_s"] = entry.idle_timeout_ns / 1e9
    if entry.is_const:
        row["const"] = True
    return row


def entry_text(row: dict[str, Any]) -> str:
    """`10.0.1.0/24 => forward 1 08:00:…` of an `entry_row`; with `priority N` where it has one."""
    match = " ".join(row["match"].values())
    arguments = " ".join([row["action"], *row["arguments"].values()])
    priority = "" if row["priority"] is None else f" priority {row['priority']}"
    return f"{match or 'default'} => {arguments}{priority}"
