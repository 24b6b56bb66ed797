# SPDX-License-Identifier: Apache-2.0
"""The verbs of tables: a function each, of what `grammar.py` makes of its words. Reads return data, all others what they change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from finsy import P4CounterData, P4TableEntry
from finsy.p4schema import P4Table

from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.switch.client import SwitchClient
from fairlane_controller.switch.entities import entity_key, identity
from fairlane_controller.switch.values import bad_input
from fairlane_controller.units import counted
from fairlane_controller.verbs.context import Context, Data, Written
from fairlane_controller.verbs.entries import (
    ARROWS,
    action_text,
    entry_row,
    entry_text,
    find_action,
    match_kind,
    match_text,
    needs_priority,
    parse_action,
    parse_keys,
    parse_priority,
    split_arrow,
)
from fairlane_controller.verbs.grammar import usage

# ---- reads -------------------------------------------------------------------------------------------------------


def _table_data(table: P4Table) -> Data:
    """What the P4Info says of a table."""
    attached = {name: getattr(table, name) for name in ("direct_counter", "direct_meter", "action_profile")}
    return {
        "table": table.alias,
        "name": table.name,
        "size": table.size,
        "keys": [{"key": f.alias, "match": match_kind(f), "bits": f.bitwidth} for f in table.match_fields],
        **_action_data(table.actions),
        "priority": needs_priority(table),
        "const": table.is_const,
        **{name: one.alias if one else None for name, one in attached.items()},
    }


def _action_data(actions: Any) -> Data:
    """What the P4Info says of actions."""
    return {
        "actions": [
            {
                "action": action.alias,
                "name": action.name,
                "arguments": [{"argument": p.name, "bits": p.bitwidth} for p in action.params],
            }
            for action in actions
        ]
    }


def _by_name(thing: Any) -> str:
    return thing.name


async def show_tables(ctx: Context) -> Data:
    """All tables."""
    return {"tables": [_table_data(table) for table in sorted(ctx.schema.tables, key=_by_name)]}


async def show_actions(ctx: Context, action: Any = None) -> Data:
    """All actions, or one."""
    return _action_data([action] if action else sorted(ctx.schema.actions, key=_by_name))


async def table_info(_ctx: Context, table: P4Table) -> Data:
    """One table."""
    return {"tables": [_table_data(table)]}


async def table_show_actions(_ctx: Context, table: P4Table) -> Data:
    """The actions of one table."""
    return _action_data(table.actions)


async def table_num_entries(ctx: Context, table: P4Table) -> Data:
    """How many entries."""
    return {"table": table.alias, "entries": len(await ctx.client.read_table(table.alias)), "size": table.size}


async def table_dump(ctx: Context, table: P4Table) -> Data:
    """Entries and default."""
    entries = await ctx.client.read_table(table.alias, counters=table.direct_counter is not None)
    rows = [entry_row(entry, ctx.schema) for entry in entries]
    default = await _read_default(ctx.client, table)
    return {
        "table": table.alias,
        "keys": [field.alias for field in table.match_fields],
        "entries": sorted(rows, key=lambda row: row["priority"] or 0),
        "default": default and entry_row(default, ctx.schema),
    }


async def _read_default(client: SwitchClient, table: P4Table) -> P4TableEntry | None:
    """The default entry, with its direct counter where the switch has one; None where the switch does not say."""
    pattern = P4TableEntry(table.alias, is_default_action=True)
    counts = table.direct_counter is not None
    try:
        found = await client.read_entities([replace(pattern, counter_data=P4CounterData() if counts else None)])
    except FairlaneError as ex:
        if ex.code is not ErrorCode.REFUSED or not counts:
            raise
        found = await client.read_entities([pattern])
    return next((e for e in found if isinstance(e, P4TableEntry) and e.is_default_action), None)


# ---- writes ------------------------------------------------------------------------------------------------------


def _need_writable(table: P4Table) -> None:
    if table.is_const:
        raise bad_input(f"table {table.alias} is constant: the program alone fills it")


def _entry(ctx: Context, table: P4Table, **parts: Any) -> P4TableEntry:
    """An entry as the switch would return it."""
    return ctx.client.canonical(P4TableEntry(table.alias, **parts))


def _key(ctx: Context, table: P4Table, words: Sequence[str], priority: int = 0) -> P4TableEntry:
    """An entry without its action."""
    return _entry(ctx, table, match=parse_keys(table, words) or None, priority=priority)


def _need_arrow(verb: str, words: Sequence[str]) -> tuple[list[str], list[str]]:
    before, after = split_arrow(words)
    if after is not None:
        return before, after
    if words and words[-1] == "=":
        text = "the shell took the > of => for itself (and made a file of the next word): write '=>' in quotes, or to"
    else:
        text = "there is no => between the match and the arguments (in a shell: '=>' in quotes, or to)"
    raise usage(verb, text)


def _split_priority(table: P4Table, words: Sequence[str]) -> tuple[Sequence[str], str | None]:
    """The words, and the last one apart where that is a priority."""
    return (words[:-1], words[-1] if words else None) if needs_priority(table) else (words, None)


async def table_add(ctx: Context, table: P4Table, action_name: str, *words: str) -> Written:
    """INSERT."""
    _need_writable(table)
    before, after = _need_arrow("table_add", words)
    find_action(table, action_name)
    match = parse_keys(table, before) or None
    arguments, priority = _split_priority(table, after)
    rank = parse_priority(priority, table)
    action = parse_action(table, action_name, arguments)
    entry = _entry(ctx, table, match=match, action=action, priority=rank)
    row, there = entry_row(entry, ctx.schema), await ctx.read_entry(entry)
    if there is not None:
        text = f"table {table.alias} holds this entry already: {entry_text(entry_row(there, ctx.schema))}"
        raise FairlaneError(ErrorCode.REFUSED, f"{text}; table_modify changes it")
    handle = ctx.handles.give(entry)
    said = f"{table.alias}: added {entry_text(row)}, handle {handle}"
    return said, {"table": table.alias, "added": row, "handle": handle}, [ctx.change(None, entry)]


async def table_modify(ctx: Context, table: P4Table, action_name: str, *words: str) -> Written:
    """MODIFY, of the entry with this match or handle."""
    keys, after = split_arrow(words)
    # One word before the arrow, or no arrow at all: that word may be a handle. Behind a handle there are arguments only.
    with_priority = after and needs_priority(table) and len(after) > len(list(find_action(table, action_name).params))
    word = words[0] if after is None or (len(keys) == 1 and not with_priority) else ""
    named, priority = ctx.handles.find(table.alias, word), None
    if named is not None:
        keys, arguments = [word], words[1:] if after is None else after
    else:
        if after is None and word.isdecimal():
            raise _no_handle("table_modify", word)
        keys, after = _need_arrow("table_modify", words)
        arguments, priority = _split_priority(table, after)
    action = parse_action(table, action_name, arguments)
    there, note = await _find_entry(ctx, table, named, keys, priority)
    entry = ctx.client.canonical(replace(there, action=action, counter_data=None))
    row, was = (entry_row(one, ctx.schema) for one in (entry, there))
    said = f"{table.alias}: changed {entry_text(row)} (was {action_text(was)})"
    return _noted(note, (said, {"table": table.alias, "changed": row}, [ctx.change(there, entry)]))


async def table_delete(ctx: Context, table: P4Table, *words: str) -> Written:
    """DELETE, of the entry with this match or handle."""
    word, keys, priority = words[0] if len(words) == 1 else "", words, None
    named = ctx.handles.find(table.alias, word)
    if named is None:
        if word.isdecimal() and len(table.match_fields) + needs_priority(table) > 1:
            raise _no_handle("table_delete", word)
        keys, priority = _split_priority(table, words)
    there, note = await _find_entry(ctx, table, named, keys, priority)
    return _noted(note, _deleted(ctx, table, [there], entry_text(entry_row(there, ctx.schema))))


def _no_handle(verb: str, word: str) -> FairlaneError:
    return usage(
        verb, f"no table_add of this script gave the handle {word}, and P4Runtime has none: name the entry by its match"
    )


async def _find_entry(
    ctx: Context, table: P4Table, named: P4TableEntry | None, keys: Sequence[str], priority: str | None
) -> tuple[P4TableEntry, str]:
    """The entry that a handle names, or keys and priority, and what is to be noted about it; REFUSED when it cannot be written."""
    _need_writable(table)
    if named is not None:
        key, note = identity(named), await _also_a_key(ctx, table, keys[0], named)
    else:
        rank = parse_priority(priority, table)
        key, note = _key(ctx, table, keys, rank), ""
    there = await ctx.read_entry(key)
    if there is None:
        row, count = entry_row(key, ctx.schema), len(await ctx.entries(table.alias))
        ranked = "" if row["priority"] is None else f" of priority {row['priority']}"
        text = f" holds no entry {match_text(row)}{ranked} (it holds {count}): see table_dump {table.alias}"
    elif there.is_const:
        text = ": this entry is the program's own and cannot change"
    else:
        return there, note
    raise FairlaneError(ErrorCode.REFUSED, f"table {table.alias}{text}")


async def _also_a_key(ctx: Context, table: P4Table, word: str, named: P4TableEntry) -> str:
    """What is said of a lone number that is a handle of this script, and the key of another entry too; else nothing."""
    if len(table.match_fields) != 1 or needs_priority(table):
        return ""
    try:
        key = _key(ctx, table, [word])
    except FairlaneError:  # this key cannot have such a value
        return ""
    if entity_key(key) == entity_key(named) or await ctx.read_entry(key) is None:
        return ""
    (field,) = table.match_fields
    return (
        f"{word} is the handle that table_add gave here; the other entry, with the key {word}, is {field.alias}={word}"
    )


def _noted(note: str, written: Written) -> Written:
    said, data, changes = written
    return (f"{said}; {note}", {**data, "note": note}, changes) if note else written


async def table_clear(ctx: Context, table: P4Table) -> Written:
    """DELETE of every entry that is not the program's own."""
    _need_writable(table)
    entries = [entry for entry in await ctx.entries(table.alias) if not entry.is_const]
    return _deleted(ctx, table, entries, counted(len(entries), "entry"))


def _deleted(ctx: Context, table: P4Table, entries: list[P4TableEntry], what: str) -> Written:
    for entry in entries:
        ctx.handles.free(entry)
    changes = [ctx.change(entry, None) for entry in entries]
    return f"{table.alias}: deleted {what}", {"table": table.alias, "deleted": len(entries)}, changes


async def table_set_default(ctx: Context, table: P4Table, action_name: str, *words: str) -> Written:
    """MODIFY of the default."""
    arguments = words[1:] if words and words[0] in ARROWS else words
    action = parse_action(table, action_name, arguments, default=True)
    return await _default(ctx, table, _entry(ctx, table, action=action, is_default_action=True))


async def table_reset_default(ctx: Context, table: P4Table) -> Written:
    """MODIFY of the default to nothing: the program's own."""
    return await _default(ctx, table, _entry(ctx, table, is_default_action=True))


async def _default(ctx: Context, table: P4Table, entry: P4TableEntry) -> Written:
    if table.const_default_action is not None:
        raise bad_input(f"the default action of table {table.alias} is constant: {table.const_default_action.alias}")
    there = await ctx.read_entry(entry)
    row = entry_row(entry, ctx.schema) if entry.action else None
    said = entry_text(row) if row else "the default is the program's own again"
    change = ctx.change(there or identity(entry), entry)
    return f"{table.alias}: {said}", {"table": table.alias, "default": row}, [change]
