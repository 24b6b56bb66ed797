# SPDX-License-Identifier: Apache-2.0
"""What is to be written so that tables of a switch have wanted entries: each change with what is there before.

An entry that is there is changed by MODIFY, so that there is no instant without it; what is right already is not touched.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from finsy import P4TableEntry

from fairlane_controller.switch.client import SwitchClient, entry_key
from fairlane_controller.switch.updates import Plain, plain_entry

Entries = dict[str, P4TableEntry]
"""Entries by `entry_key`."""


@dataclass(frozen=True)
class EntryChange:
    """One table entry before and after; None: it is not there."""

    before: P4TableEntry | None
    after: P4TableEntry | None

    @property
    def inverse(self) -> EntryChange:
        """What takes it back."""
        return EntryChange(self.after, self.before)

    @property
    def update(self) -> Any:
        """finsy's update; an entry that is there is modified, so that there is no instant without it."""
        if self.after is not None:
            entry = replace(self.after, counter_data=None, time_since_last_hit=None)
            return ~entry if self.before is not None else +entry
        assert self.before is not None
        match = replace(self.before, action=None, meter_config=None, counter_data=None, time_since_last_hit=None)
        return -replace(match, idle_timeout_ns=0, metadata=b"")

    def to_json(self) -> Plain:
        """The update as plain data (`switch/updates.py`)."""
        if self.after is not None:
            entry = replace(self.after, counter_data=None, time_since_last_hit=None)
            return {"update": "modify" if self.before is not None else "insert", **plain_entry(entry)}
        assert self.before is not None
        plain = plain_entry(self.before)
        return {"update": "delete", **{key: plain[key] for key in ("table", "match", "priority") if key in plain}}


def difference(current: Entries, wanted: Entries, order: Sequence[str] = ()) -> list[EntryChange]:
    """What must be written so that a switch that has `current` has `wanted`.

    `order`: tables in the order in which entries are inserted and modified; they are deleted the other way round.
    """
    inserts = [entry for key, entry in wanted.items() if key not in current]
    modifies = [entry for key, entry in wanted.items() if key in current and not _same(current[key], entry)]
    deletes = sort_entries((entry for key, entry in current.items() if key not in wanted), order[::-1])
    written = sort_entries([*inserts, *modifies], order)
    return [
        *(EntryChange(current.get(entry_key(entry)), entry) for entry in written),
        *(EntryChange(entry, None) for entry in deletes),
    ]


def sort_entries(entries: Iterable[P4TableEntry], tables: Sequence[str]) -> list[P4TableEntry]:
    """The entries table by table."""
    ranks = {table: place for place, table in enumerate(tables)}
    return sorted(entries, key=lambda entry: ranks.get(entry.table_id, 0))


def _same(one: P4TableEntry, other: P4TableEntry) -> bool:
    return one.action == other.action and one.meter_config == other.meter_config


def entries_by_key(client: SwitchClient, entries: Iterable[P4TableEntry]) -> Entries:
    """Entries as the switch would return them; BAD_INPUT when its P4Info refuses one. The first of two equal ones counts."""
    found: Entries = {}
    for entry in entries:
        canonical = client.canonical(entry)
        found.setdefault(entry_key(canonical), canonical)
    return found


def has_meter(client: SwitchClient, table: str) -> bool:
    """Whether a table's entries have direct meters."""
    schema = client.switch.p4info
    number = schema.tables[client.check_table(table)].id
    return any(meter.direct_table_id == number for meter in schema.direct_meters)


async def read_entries(client: SwitchClient, tables: Sequence[str]) -> Entries:
    """The entries of tables with their direct meters, constant ones left out."""
    found: Entries = {}
    for table in tables:
        for entry in await client.read_table(table, meters=has_meter(client, table)):
            if not entry.is_const:
                found[entry_key(entry)] = entry
    return found
