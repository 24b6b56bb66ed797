# SPDX-License-Identifier: Apache-2.0
"""The verbs of tables: each takes the words of a line and gives the step that it is."""

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
from fairlane_controller.verbs.catalog import BY_NAME
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
    table_of,
)

Words = Sequence[str]


def usage(verb: str, why: str) -> FairlaneError:
    """BAD_INPUT with how the verb is used."""
    return FairlaneError(ErrorCode.BAD_INPUT, f"{why}; usage: {BY_NAME[verb].usage}")


def need(verb: str, words: Words, low: int, high: int | None = None) -> None:
    """BAD_INPUT unless there are `low` to `high` words (None: no end)."""
    if len(words) < low or (high is not None and len(words) > high):
        raise usage(verb, f"{verb} does not take {counted(len(words), 'word')}")


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
    async def read(_client: SwitchClient) -> Data:
        return data

    return Step(read=read)


async def show_tables(ctx: Context, words: Words) -> Step:
    """All tables."""
    need("show_tables", words, 0, 0)
    return _now({"tables": [table_data(ctx, table) for table in sorted(ctx.schema.tables, key=lambda t: t.name)]})


async def show_actions(ctx: Context, words: Words) -> Step:
    """All actions, or one."""
    need("show_actions", words, 0, 1)
    chosen = sorted(ctx.schema.actions, key=lambda a: a.name)
    if words:
        full = resolve_name("action", words[0], [a.name for a in chosen])
        chosen = [a for a in chosen if a.name == full]
    return _now({"actions": [action_data(action) for action in chosen]})


async def table_info(ctx: Context, words: Words) -> Step:
    """One table."""
    need("table_info", words, 1, 1)
    return _now({"tables": [table_data(ctx, table_of(ctx.schema, words[0]))]})


async def table_show_actions(ctx: Context, words: Words) -> Step:
    """The actions of one table."""
    need("table_show_actions", words, 1, 1)
    return _now({"actions": [action_data(action) for action in table_of(ctx.schema, words[0]).actions]})


async def table_num_entries(ctx: Context, words: Words) -> Step:
    """How many entries."""
    need("table_num_entries", words, 1, 1)
    table = table_of(ctx.schema, words[0])

    async def read(client: SwitchClient) -> Data:
        return {
            "table": short_table(ctx.schema, table),
            "entries": len(await client.read_table(table.alias)),
            "size": table.size,
        }

    return Step(read=read)


async def table_dump(ctx: Context, words: Words) -> Step:
    """Entries and default."""
    need("table_dump", words, 1, 1)
    table = table_of(ctx.schema, words[0])

    async def read(client: SwitchClient) -> Data:
        entries = await client.read_table(table.alias, counters=table.direct_counter is not None)
        rows = [entry_row(entry, ctx.schema) for entry in entries]
        default = await read_default(client, table)
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


def _writable(ctx: Context, name: str) -> P4Table:
    table = table_of(ctx.schema, name)
    if table.is_const:
        raise FairlaneError(ErrorCode.BAD_INPUT, f"table {table.alias} is constant: the program alone fills it")
    return table


def _text(ctx: Context, entry: P4TableEntry) -> tuple[str, Data]:
    row = entry_row(entry, ctx.schema)
    return entry_text(row), row


def _entry(ctx: Context, table: P4Table, **parts: Any) -> P4TableEntry:
    """An entry as the switch would return it."""
    return ctx.client.canonical(P4TableEntry(table.alias, **parts))


def _arrow(verb: str, words: Words) -> tuple[list[str], list[str]]:
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


async def table_add(ctx: Context, words: Words) -> Step:
    """INSERT."""
    need("table_add", words, 2)
    table = _writable(ctx, words[0])
    before, after = _arrow("table_add", words[2:])
    action_name = resolve_name("action", words[1], [a.name for a in table.actions], f"table {table.alias}")
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


async def table_modify(ctx: Context, words: Words) -> Step:
    """MODIFY, of the entry with this match or handle."""
    need("table_modify", words, 3)
    table = _writable(ctx, words[0])
    rest = list(words[2:])
    arrow = next((position for position, word in enumerate(rest) if word in ("=>", "to")), None)
    # One word before the arrow, or no arrow at all: that word may be a handle.
    named = ctx.find_by_handle(table.name, rest[0]) if arrow in (None, 1) else None
    if named is None and arrow is None and rest[0].isdecimal():
        raise _no_handle("table_modify", rest[0])
    if named is not None and arrow == 1 and _has_priority(table, words[1], rest[2:]):
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
    action = parse_action(table, words[1], arguments)
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


async def table_delete(ctx: Context, words: Words) -> Step:
    """DELETE, of the entry with this match or handle."""
    need("table_delete", words, 2)
    table = _writable(ctx, words[0])
    rest = list(words[1:])
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


async def table_clear(ctx: Context, words: Words) -> Step:
    """DELETE of every entry that is not the program's own."""
    need("table_clear", words, 1, 1)
    table = _writable(ctx, words[0])
    entries = [entry for entry in await ctx.entries(table) if not entry.is_const]
    return _deleted(ctx, table, entries, f"{short_table(ctx.schema, table)}: deleted {counted(len(entries), 'entry')}")


def _deleted(ctx: Context, table: P4Table, entries: list[P4TableEntry], said: str, note: str = "") -> Step:
    changes = tuple(ctx.change(entry, None) for entry in entries)
    for entry in entries:
        ctx.take_handle(table.name, entry)
    return Step(said, {"table": short_table(ctx.schema, table), "deleted": len(entries), **_noted(note)}, changes)


async def table_set_default(ctx: Context, words: Words) -> Step:
    """MODIFY of the default."""
    need("table_set_default", words, 2)
    table = table_of(ctx.schema, words[0])
    rest = [word for position, word in enumerate(words[2:]) if not (position == 0 and word in ("=>", "to"))]
    action = parse_action(table, words[1], rest, default=True)
    return await _default(ctx, table, _entry(ctx, table, action=action, is_default_action=True))


async def table_reset_default(ctx: Context, words: Words) -> Step:
    """MODIFY of the default to nothing: the program's own."""
    need("table_reset_default", words, 1, 1)
    table = table_of(ctx.schema, words[0])
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
