# SPDX-License-Identifier: Apache-2.0
"""What each verb reads or changes, a function each: of what `grammar.arguments` makes of its words."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from finsy import (
    P4CloneSessionEntry,
    P4CounterData,
    P4CounterEntry,
    P4DirectCounterEntry,
    P4MeterConfig,
    P4MeterEntry,
    P4RegisterEntry,
    P4TableEntry,
)
from finsy.p4schema import P4Counter, P4DirectCounter, P4Meter, P4Register, P4Table

from fairlane_controller.errors import ErrorCode, bad_input
from fairlane_controller.switch.client import SwitchClient
from fairlane_controller.switch.entities import EntityChange, entity_key, entity_of, identity
from fairlane_controller.verbs.grammar import (
    ARROWS,
    entry_row,
    entry_text,
    match_kind,
    match_text,
    needs_priority,
    parse_action,
    parse_keys,
    split_priority,
    usage,
)

# ---- what a line is planned with ---------------------------------------------------------------------------------

SINGLE_READS = 8
"""Entries of a table that are read one by one, since it may have a million; for more it is read as a whole."""
Data = dict[str, Any]
Written = tuple[Data, Sequence[EntityChange]]
"""What a line writes: plain data, and the changes."""


class Context:
    """State of a script's plan. It writes nothing; later lines see what earlier ones will have done."""

    def __init__(self, client: SwitchClient) -> None:
        """Begin a plan with a client that is connected. Raises NO_PIPELINE where its switch has no program."""
        client.need_pipeline()
        self.client = client
        self.schema = client.switch.p4info
        self._tables: dict[str, dict[str, P4TableEntry | None]] = defaultdict(dict)
        self._read: set[str] = set()
        "Tables that were read as a whole."
        self.cells: dict[tuple[str, Any], Any] = {}
        "Cells of arrays that lines have changed, as they will be: by name of the array, and index or entry."

    async def _known(self, table: str) -> dict[str, P4TableEntry | None]:
        """The entries of a table as they will be, by key; it is read once."""
        known = self._tables[table]
        if table not in self._read:
            for entry in await self.client.read_table(table, meters=self.client.has_meter(table)):
                known.setdefault(entity_key(entry), entry)
            self._read.add(table)
        return known

    async def read_entry(self, entry: P4TableEntry) -> P4TableEntry | None:
        """The entry of that key as it will be."""
        key, table, default = entity_key(entry), entry.table_id, entry.is_default_action
        known = self._tables[table]
        if key not in known and (default or (table not in self._read and len(known) < SINGLE_READS)):
            pattern = identity(entry)
            if not default and self.client.has_meter(table):
                pattern.meter_config = P4MeterConfig(cir=0, cburst=0, pir=0, pburst=0)
            found: Any = await self.client.read_entities([pattern])
            known[key] = next((one for one in found if entity_key(one) == key), None)
        elif key not in known:
            await self._known(table)
        return known.get(key)

    async def entries(self, table: str) -> list[P4TableEntry]:
        """All entries of a table as they will be, without its default."""
        return [one for one in (await self._known(table)).values() if one and not one.is_default_action]

    def change(self, before: P4TableEntry | None, after: P4TableEntry | None) -> EntityChange:
        """The change that makes an entry `after`, which it is for all later lines."""
        change = EntityChange(before, after)
        entry = before or after
        assert entry is not None
        self._tables[entry.table_id][entity_key(entry)] = after
        return change


# ---- reads -------------------------------------------------------------------------------------------------------


def _table_data(table: P4Table) -> Data:
    """What the P4Info says of a table."""
    attached = {name: getattr(table, name) for name in ("direct_counter", "direct_meter", "action_profile")}
    return {
        "table": table.alias,
        "name": table.name,
        "size": table.size,
        "keys": [{"key": f.alias, "match": match_kind(f), "bits": f.bitwidth} for f in table.match_fields],
        "actions": [
            {
                "action": action.alias,
                "name": action.name,
                "arguments": [{"argument": p.name, "bits": p.bitwidth} for p in action.params],
            }
            for action in table.actions
        ],
        "priority": needs_priority(table),
        "const": table.is_const,
        **{name: one.alias if one else None for name, one in attached.items()},
    }


async def show_tables(ctx: Context, table: P4Table | None = None) -> Data:
    """All tables, or one."""
    tables = [table] if table else sorted(ctx.schema.tables, key=lambda one: one.name)
    return {"tables": [_table_data(one) for one in tables]}


table_info = show_tables


async def table_num_entries(ctx: Context, table: P4Table) -> Data:
    """The number of entries."""
    return {"table": table.alias, "entries": len(await ctx.client.read_table(table.alias)), "size": table.size}


async def table_dump(ctx: Context, table: P4Table) -> Data:
    """The entries by priority, and the default, with direct counters."""
    entries = await ctx.client.read_table(table.alias, counters=table.direct_counter is not None)
    rows = [entry_row(entry, ctx.schema) for entry in entries]
    default: Any = await ctx.client.read_entities([P4TableEntry(table.alias, is_default_action=True)])
    return {
        "table": table.alias,
        "entries": sorted(rows, key=lambda row: row["priority"] or 0),
        "default": next((entry_row(one, ctx.schema) for one in default if one.is_default_action), None),
    }


# ---- writes ------------------------------------------------------------------------------------------------------


def _entry(ctx: Context, table: P4Table, **parts: Any) -> P4TableEntry:
    """An entry as the switch would return it."""
    return ctx.client.canonical(P4TableEntry(table.alias, **parts))


def _split(words: Sequence[str], verb: str) -> tuple[Sequence[str], Sequence[str]]:
    """The words of the match, and those of the arguments."""
    at = next((position for position, word in enumerate(words) if word in ARROWS), None)
    if at is None:
        raise usage(verb, "there is no => between the match and the arguments (in a shell: '=>' in quotes, or to)")
    return words[:at], words[at + 1 :]


async def table_add(ctx: Context, table: P4Table, action_name: str, *words: str) -> Written:
    """INSERT; REFUSED where there is such an entry."""
    keys, after = _split(words, "table_add")
    match = parse_keys(table, keys) or None
    arguments, priority = split_priority(table, after)
    action = parse_action(table, action_name, arguments)
    entry = _entry(ctx, table, match=match, action=action, priority=priority)
    there = await ctx.read_entry(entry)
    if there is not None:
        text = f"table {table.alias} has this entry already: {entry_text(entry_row(there, ctx.schema))}"
        raise ErrorCode.REFUSED(f"{text}; table_modify changes it")
    return {"table": table.alias, "added": entry_row(entry, ctx.schema)}, [ctx.change(None, entry)]


async def table_modify(ctx: Context, table: P4Table, action_name: str, *words: str) -> Written:
    """MODIFY of the entry with this match."""
    keys, after = _split(words, "table_modify")
    arguments, priority = split_priority(table, after)
    action = parse_action(table, action_name, arguments)
    there = await _find_entry(ctx, table, keys, priority)
    entry = ctx.client.canonical(replace(there, action=action, counter_data=None))
    rows = [entry_row(one, ctx.schema) for one in (entry, there)]
    return {"table": table.alias, "changed": rows[0], "was": rows[1]}, [ctx.change(there, entry)]


async def table_delete(ctx: Context, table: P4Table, *words: str) -> Written:
    """DELETE of the entry with this match."""
    there = await _find_entry(ctx, table, *split_priority(table, words))
    return _deleted(ctx, table, [there], entry=entry_row(there, ctx.schema))


async def _find_entry(ctx: Context, table: P4Table, keys: Sequence[str], priority: int) -> P4TableEntry:
    """The entry of these keys and this priority; REFUSED when there is none."""
    key = _entry(ctx, table, match=parse_keys(table, keys) or None, priority=priority)
    there = await ctx.read_entry(key)
    if there is None:
        text = f"has no entry {match_text(entry_row(key, ctx.schema))}: see table_dump {table.alias}"
        raise ErrorCode.REFUSED(f"table {table.alias} {text}")
    return there


async def table_clear(ctx: Context, table: P4Table) -> Written:
    """DELETE of every entry that is not the program's own."""
    return _deleted(ctx, table, [entry for entry in await ctx.entries(table.alias) if not entry.is_const])


def _deleted(ctx: Context, table: P4Table, entries: list[P4TableEntry], **more: Data) -> Written:
    data = {"table": table.alias, "deleted": len(entries), **more}
    return data, [ctx.change(entry, None) for entry in entries]


async def table_set_default(ctx: Context, table: P4Table, action_name: str, *words: str) -> Written:
    """MODIFY of the default."""
    arguments = words[1:] if words and words[0] in ARROWS else words
    action = parse_action(table, action_name, arguments)
    return await _default(ctx, table, _entry(ctx, table, action=action, is_default_action=True))


async def table_reset_default(ctx: Context, table: P4Table) -> Written:
    """MODIFY of the default to nothing: the program's own."""
    return await _default(ctx, table, _entry(ctx, table, is_default_action=True))


async def _default(ctx: Context, table: P4Table, entry: P4TableEntry) -> Written:
    there = await ctx.read_entry(entry)
    row = entry_row(entry, ctx.schema) if entry.action else None
    return {"table": table.alias, "default": row}, [ctx.change(there or identity(entry), entry)]


# ---- counters, registers, meters, clone sessions ----------------------------------------------------------------

Array = P4Counter | P4DirectCounter | P4Register | P4Meter
_KINDS = {P4Counter: "counter", P4DirectCounter: "counter", P4Register: "register", P4Meter: "meter"}
_RATES = ("cir", "cburst", "pir", "pburst")


def _cell(array: Array, index: int | None = None) -> Any:
    """A cell of an array without its value; without an index all of them."""
    if isinstance(array, P4Counter):
        return P4CounterEntry(array.alias, index=index, data=None if index is None else P4CounterData())
    return (P4MeterEntry if isinstance(array, P4Meter) else P4RegisterEntry)(array.alias, index=index)


async def _cells(ctx: Context, array: Array, index: int | None = None) -> list[Any]:
    """The cells as they will be; of a direct counter those of its table's entries."""
    if isinstance(array, P4DirectCounter):
        entries = await ctx.client.read_table(ctx.schema.tables[array.direct_table_name].alias, counters=True)
        found = [P4DirectCounterEntry(table_entry=identity(one), data=one.counter_data) for one in entries]
    else:
        found: list[Any] = await ctx.client.read_entities([_cell(array, index)])
    return [ctx.cells.get((array.name, _place(ctx, one)), one) for one in found]


def _place(ctx: Context, cell: Any) -> Any:
    return next(iter(_row(ctx, cell).values()))


def _row(ctx: Context, cell: Any) -> Data:
    """A cell as plain data."""
    match cell:
        case P4RegisterEntry():
            return {"index": cell.index, "value": cell.data}
        case P4MeterEntry():
            return {"index": cell.index, **{name: getattr(cell.config, name, None) for name in _RATES}}
        case P4DirectCounterEntry(table_entry=P4TableEntry() as entry):
            key: Data = {"entry": match_text(entry_row(entry, ctx.schema))}
        case _:
            key = {"index": cell.index}
    return {**key, "packets": cell.packet_count, "bytes": cell.byte_count}


def _data(array: Array, **more: Any) -> Data:
    unit = {"unit": array.unit.name.lower()} if isinstance(array, P4Meter) else {}
    return {_KINDS[type(array)]: array.alias, **unit, **more}


async def _read(ctx: Context, array: Array, index: int | None = None) -> Data:
    """A cell, or all that have a value other than 0."""
    cells = await _cells(ctx, array, index)
    rows = [_row(ctx, cell) for cell in sorted(cells, key=partial(_place, ctx))]
    return _data(array, cells=[row for row in rows if index is not None or any(list(row.values())[1:])])


def _change(ctx: Context, before: Any, after: Any) -> EntityChange:
    return EntityChange(*(one and entity_of(one, ctx.schema) for one in (before, after)))


async def _write(ctx: Context, array: Array, index: int, **value: Any) -> Written:
    """Set a cell; one that the switch does not return has no value before."""
    cell = _cell(array, index)
    before = next(iter(await _cells(ctx, array, index)), cell)
    after = replace(cell, **value)
    return _data(array, **_row(ctx, after)), [_set(ctx, array, before, after)]


def _set(ctx: Context, array: Array, before: Any, after: Any) -> EntityChange:
    ctx.cells[array.name, _place(ctx, after)] = after
    return _change(ctx, before, after)


async def _reset(ctx: Context, array: Array) -> Written:
    """Set all cells to 0."""
    zero = 0 if isinstance(array, P4Register) else P4CounterData()
    cells = await _cells(ctx, array)
    changes = [_set(ctx, array, one, replace(one, data=zero)) for one in cells if one.data not in (None, zero)]
    return _data(array, written=len(changes)), changes


counter_read = register_read = meter_get_rates = _read
counter_reset = register_reset = _reset


async def counter_write(ctx: Context, counter: P4Counter, index: int, packets: int, size: int) -> Written:
    """Set a cell."""
    return await _write(ctx, counter, index, data=P4CounterData(packet_count=packets, byte_count=size))


async def register_write(ctx: Context, register: P4Register, index: int, value: int) -> Written:
    """Set a cell."""
    return await _write(ctx, register, index, data=value)


Rate = tuple[int, int]
"""Of a meter: units a second, and a burst in units."""


async def meter_set_rates(ctx: Context, meter: P4Meter, index: int, committed: Rate, peak: Rate) -> Written:
    """Set a cell."""
    if peak[0] < committed[0]:
        raise bad_input(f"{meter.alias}: the peak rate is below the committed rate")
    rates = dict(zip(_RATES, (*committed, *peak), strict=True))
    return await _write(ctx, meter, index, config=P4MeterConfig(**rates))


async def mirroring_add(ctx: Context, session: int, port: int) -> Written:
    """INSERT of a session with one port."""
    entry = P4CloneSessionEntry(session_id=session, replicas=(port,))
    return {"session": session, "port": port}, [_change(ctx, None, entry)]


async def mirroring_delete(ctx: Context, session: int) -> Written:
    """DELETE of a session."""
    pattern = P4CloneSessionEntry(session_id=session)
    before = next(iter(await ctx.client.read_entities([pattern])), pattern)
    return {"session": session, "deleted": True}, [_change(ctx, before, None)]


async def mirroring_get(ctx: Context, session: int) -> Data:
    """The ports of a session; None where there is no such session."""
    found: Any = await ctx.client.read_entities([P4CloneSessionEntry(session_id=session)])
    return {"session": session, "ports": found[0].replicas_str() if found else None}
