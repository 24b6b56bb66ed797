# SPDX-License-Identifier: Apache-2.0
"""The verbs of tables: each takes the words of a line (`words.py`) and gives the step that it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from finsy import P4CounterData, P4TableEntry
from finsy.p4schema import P4Table

from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.switch.client import SwitchClient
from fairlane_controller.switch.entities import entity_key, identity
from fairlane_controller.switch.names import resolve_name
from fairlane_controller.units import counted
from fairlane_controller.verbs.context import Context, Data, Step
from fairlane_controller.verbs.entries import (
    entry_row,
    entry_text,
    needs_priority,
    parse_action,
    parse_keys,
    parse_priority,
    short_table,
    split_arrow,
)
from fairlane_controller.verbs.words import usage

# ---- reads -------------------------------------------------------------------------------------------------------


def table_data(ctx: Context, table: P4Table) -> Data:
    """What the P4Info says of a table."""
    return {
        "table": short_table(ctx.schema, table),
        "name": table.name,
        "size": table.size,
        "keys": [
            {
                "key": field.alias,
                "match": getattr(field.match_type, "name", str(field.match_type)).lower(),
                "bits": field.bitwidth,
            }
            for field in table.match_fields
        ],
        "actions": [action_data(action) for action in table.actions],
        "priority": needs_priority(table),
        "const": table.is_const,
        "direct_counter": table.direct_counter.alias if table.direct_counter else None,
        "direct_meter": table.direct_meter.alias if table.direct_meter else None,
        "action_profile": table.action_profile.alias if table.action_profile else None,
    }


def action_data(action: Any) -> Data:
    """What the P4Info says of an action."""
    return {
        "action": action.alias,
        "name": action.name,
        "arguments": [{"argument": p.name, "bits": p.bitwidth} for p in action.params],
    }


def _now(data: Data) -> Step:
    async def read() -> Data:
        return data

    return Step(read=read)


async def show_tables(ctx: Context) -> Step:
    """All tables."""
    return _now({"tables": [table_data(ctx, table) for table in sorted(ctx.schema.tables, key=lambda t: t.name)]})


async def show_actions(ctx: Context, action: Any = None) -> Step:
    """All actions, or one."""
    chosen = sorted(ctx.schema.actions, key=lambda a: a.name) if action is None else [action]
    return _now({"actions": [action_data(one) for one in chosen]})


async def table_info(ctx: Context, table: P4Table) -> Step:
    """One table."""
    return _now({"tables": [table_data(ctx, table)]})


async def table_show_actions(_ctx: Context, table: P4Table) -> Step:
    """The actions of one table."""
    return _now({"actions": [action_data(action) for action in table.actions]})


async def table_num_entries(ctx: Context, table: P4Table) -> Step:
    """How many entries."""

    async def read() -> Data:
        return {
            "table": short_table(ctx.schema, table),
            "entries": len(await ctx.client.read_table(table.alias)),
            "size": table.size,
        }

    return Step(read=read)


async def table_dump(ctx: Context, table: P4Table) -> Step:
    """Entries and default."""

    async def read() -> Data:
        entries = await ctx.client.read_table(table.alias, counters=table.direct_counter is not None)
        rows = [entry_row(entry, ctx.schema) for entry in entries]
        default = await read_default(ctx.client, table)
        return {
            "table": short_table(ctx.schema, table),
            "keys": [field.alias for field in table.match_fields],
            "entries": sorted(rows, key=lambda row: (row["priority"] or 0,)),
            "default": None if default is None else entry_row(default, ctx.schema),
        }

    return Step(read=read)


async def read_default(client: SwitchClient, table: P4Table) -> P4TableEntry | None:
    """The default entry; None where the switch does not say."""
    pattern = P4TableEntry(table.alias, is_default_action=True)
    if table.direct_counter is not None:
        pattern.counter_data = P4CounterData()
    try:
        found = await client.read_entities([pattern])
    except FairlaneError as ex:
        if ex.code is not ErrorCode.REFUSED or table.direct_counter is None:
            raise
        found = await client.read_entities([P4TableEntry(table.alias, is_default_action=True)])
    return next((e for e in found if isinstance(e, P4TableEntry) and e.is_default_action), None)


# ---- writes ------------------------------------------------------------------------------------------------------


def _need_writable(table: P4Table) -> None:
    if table.is_const:
        raise FairlaneError(ErrorCode.BAD_INPUT, f"table {table.alias} is constant: the program alone fills it")


def _text(ctx: Context, entry: P4TableEntry) -> tuple[str, Data]:
    row = entry_row(entry, ctx.schema)
    return entry_text(row), row


def _entry(ctx: Context, table: P4Table, **parts: Any) -> P4TableEntry:
    """An entry as the switch would return it."""
    return ctx.client.canonical(P4TableEntry(table.alias, **parts))


def _arrow(verb: str, words: Sequence[str]) -> tuple[list[str], list[str]]:
    before, after = split_arrow(words)
    if after is not None:
        return before, after
    if words and words[-1] == "=":
        raise usage(
            verb,
            "the shell took the > of => for itself (and made a file of the next word): write '=>' in quotes, or to",
        )
    raise usage(verb, "there is no => between the match and the arguments (in a shell: '=>' in quotes, or to)")


def _arguments(table: P4Table, words: list[str]) -> tuple[list[str], int]:
    """Arguments and P4Runtime's priority of what stands behind the arrow."""
    if not needs_priority(table):
        return words, 0
    priority = parse_priority(words[-1] if words else None, table)
    return words[:-1], priority


async def table_add(ctx: Context, table: P4Table, action_name: str, *words: str) -> Step:
    """INSERT."""
    _need_writable(table)
    before, after = _arrow("table_add", words)
    action_name = resolve_name("action", action_name, [a.name for a in table.actions], f"table {table.alias}")
    match = parse_keys(table, before)
    arguments, priority = _arguments(table, after)
    action = parse_action(table, action_name, arguments)
    entry = _entry(ctx, table, match=match or None, action=action, priority=priority)
    text, row = _text(ctx, entry)
    held = await ctx.read_entry(entry)
    if held is not None:
        raise FairlaneError(
            ErrorCode.REFUSED,
            f"table {table.alias} holds this entry already: {_text(ctx, held)[0]}; table_modify changes it",
        )
    change = ctx.change(None, entry)
    handle = ctx.give_handle(table.name, entry)
    name = short_table(ctx.schema, table)
    return Step(
        f"{name}: added {text}, handle {handle}",
        {"table": name, "added": row, "handle": handle},
        (change,),
    )


async def table_modify(ctx: Context, table: P4Table, action_name: str, *words: str) -> Step:
    """MODIFY, of the entry with this match or handle."""
    _need_writable(table)
    rest = list(words)
    arrow = next((position for position, word in enumerate(rest) if word in ("=>", "to")), None)
    # One word before the arrow, or no arrow at all: that word may be a handle.
    named = ctx.find_by_handle(table.name, rest[0]) if arrow in (None, 1) else None
    if named is None and arrow is None and rest[0].isdecimal():
        raise _no_handle("table_modify", rest[0])
    if named is not None and arrow == 1 and _has_priority(table, action_name, rest[2:]):
        named = None  # behind a handle there are arguments only
    note = ""
    if named is not None:
        arguments = rest[2:] if arrow == 1 else rest[1:]
        key = identity(named)
        note = await _also_a_key(ctx, table, rest[0], key) if arrow == 1 else ""
    else:
        before, after = _arrow("table_modify", rest)
        arguments, priority = _arguments(table, after)
        key = _entry(ctx, table, match=parse_keys(table, before) or None, priority=priority)
    action = parse_action(table, action_name, arguments)
    held = await _require_entry(ctx, table, key)
    entry = ctx.client.canonical(replace(held, action=action, counter_data=None))
    text, row = _text(ctx, entry)
    name = short_table(ctx.schema, table)
    return Step(
        f"{name}: changed {text} (was {_text(ctx, held)[0].split(' => ')[1]}){_append_note(note)}",
        {"table": name, "changed": row, **_noted(note)},
        (ctx.change(held, entry),),
    )


def _no_handle(verb: str, word: str) -> FairlaneError:
    return usage(
        verb, f"no table_add of this script gave the handle {word}, and P4Runtime has none: name the entry by its match"
    )


def _has_priority(table: P4Table, action_name: str, words: list[str]) -> bool:
    """Whether the last of the words behind the arrow is a priority: there is one more than the action has arguments."""
    if not needs_priority(table):
        return False
    full = resolve_name("action", action_name, [a.name for a in table.actions], f"table {table.alias}")
    return len(words) == len(list(table.actions[full].params)) + 1


async def _also_a_key(ctx: Context, table: P4Table, word: str, named: P4TableEntry) -> str:
    """What is said of a lone number that is a handle of this script, and the key of another entry too; else nothing."""
    if len(table.match_fields) != 1 or needs_priority(table):
        return ""
    try:
        key = _entry(ctx, table, match=parse_keys(table, [word]) or None)
    except FairlaneError:  # this key cannot have such a value
        return ""
    if entity_key(key) == entity_key(named) or await ctx.read_entry(key) is None:
        return ""
    (field,) = table.match_fields
    return (
        f"{word} is the handle that table_add gave here; the other entry, with the key {word}, is {field.alias}={word}"
    )


def _append_note(note: str) -> str:
    return f"; {note}" if note else ""


def _noted(note: str) -> Data:
    return {"note": note} if note else {}


async def _require_entry(ctx: Context, table: P4Table, key: P4TableEntry) -> P4TableEntry:
    held = await ctx.read_entry(key)
    if held is None:
        count = len(await ctx.entries(table))
        text, row = _text(ctx, key)
        said = text.split(" => ", maxsplit=1)[0]
        priority = "" if row["priority"] is None else f" of priority {row['priority']}"
        raise FairlaneError(
            ErrorCode.REFUSED,
            f"table {table.alias} holds no entry {said}{priority} (it holds {count}): see table_dump {table.alias}",
        )
    if held.is_const:
        raise FairlaneError(
            ErrorCode.REFUSED, f"table {table.alias}: this entry is the program's own and cannot change"
        )
    return held


async def table_delete(ctx: Context, table: P4Table, *words: str) -> Step:
    """DELETE, of the entry with this match or handle."""
    _need_writable(table)
    rest = list(words)
    named = ctx.find_by_handle(table.name, rest[0]) if len(rest) == 1 else None
    note = ""
    if named is not None:
        key = identity(named)
        note = await _also_a_key(ctx, table, rest[0], key)
    else:
        expected = len(table.match_fields) + needs_priority(table)
        if len(rest) == 1 and expected > 1 and rest[0].isdecimal():
            raise _no_handle("table_delete", rest[0])
        priority = parse_priority(rest.pop() if len(rest) == expected else None, table) if needs_priority(table) else 0
        key = _entry(ctx, table, match=parse_keys(table, rest) or None, priority=priority)
    held = await _require_entry(ctx, table, key)
    said = f"{short_table(ctx.schema, table)}: deleted {_text(ctx, held)[0]}{_append_note(note)}"
    return _deleted(ctx, table, [held], said, note)


async def table_clear(ctx: Context, table: P4Table) -> Step:
    """DELETE of every entry that is not the program's own."""
    _need_writable(table)
    entries = [entry for entry in await ctx.entries(table) if not entry.is_const]
    return _deleted(ctx, table, entries, f"{short_table(ctx.schema, table)}: deleted {counted(len(entries), 'entry')}")


def _deleted(ctx: Context, table: P4Table, entries: list[P4TableEntry], said: str, note: str = "") -> Step:
    changes = tuple(ctx.change(entry, None) for entry in entries)
    for entry in entries:
        ctx.take_handle(table.name, entry)
    return Step(said, {"table": short_table(ctx.schema, table), "deleted": len(entries), **_noted(note)}, changes)


async def table_set_default(ctx: Context, table: P4Table, action_name: str, *words: str) -> Step:
    """MODIFY of the default."""
    action = parse_action(table, action_name, words[words[:1] in (("=>",), ("to",)) :], default=True)
    return await _default(ctx, table, _entry(ctx, table, action=action, is_default_action=True))


async def table_reset_default(ctx: Context, table: P4Table) -> Step:
    """MODIFY of the default to nothing: the program's own."""
    return await _default(ctx, table, _entry(ctx, table, is_default_action=True))


async def _default(ctx: Context, table: P4Table, entry: P4TableEntry) -> Step:
    if table.const_default_action is not None:
        raise FairlaneError(
            ErrorCode.BAD_INPUT,
            f"the default action of table {table.alias} is constant: {table.const_default_action.alias}",
        )
    held = await ctx.read_entry(entry)
    old = replace(identity(entry), action=held and held.action)
    name = short_table(ctx.schema, table)
    said, row = f"{name}: the default is the program's own again", None
    if entry.action is not None:
        text, row = _text(ctx, entry)
        said = f"{name}: {text}"
    return Step(said, {"table": name, "default": row}, (ctx.change(old, entry),))
