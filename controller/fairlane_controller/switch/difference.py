# SPDX-License-Identifier: Apache-2.0
"""What is to be written so that tables of a switch have wanted entries: each change with what is there before.

An entry that is there is changed by MODIFY, so that there is no instant without it; what is right already is not touched.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from finsy import P4TableEntry

from fairlane_controller.switch.client import SwitchClient, entry_key, same_entry, written
from fairlane_controller.switch.updates import Plain, plain_entry

Entries = dict[str, P4TableEntry]
"""Entries by `entry_key`."""


@dataclass(frozen=True)
class EntryChange:
    """One table entry before and after; None: it is not there."""

    before: P4TableEntry | None
    after: P4TableEntry | None

    @property
    def entry(self) -> P4TableEntry:
        """The one that there is."""
        entry = self.after or self.before
        assert entry is not None
        return entry

    @property
    def inverse(self) -> EntryChange:
        """What takes it back."""
        return EntryChange(self.after, self.before)

    @property
    def update(self) -> Any:
        """finsy's update; an entry that is there is modified, so that there is no instant without it."""
        if self.after is not None:
            entry = written(self.after)
            return ~entry if self.before is not None else +entry
        assert self.before is not None
        return -replace(written(self.before), action=None, meter_config=None, idle_timeout_ns=0, metadata=b"")

    def to_json(self) -> Plain:
        """The update as plain data (`switch/updates.py`)."""
        if self.after is not None:
            entry = written(self.after)
            return {"update": "modify" if self.before is not None else "insert", **plain_entry(entry)}
        assert self.before is not None
        plain = plain_entry(self.before)
        return {"update": "delete", **{key: plain[key] for key in ("table", "match", "priority") if key in plain}}


def difference(current: Entries, wanted: Entries, order: Sequence[str] = ()) -> list[EntryChange]:
    """What must be written so that a switch that has `current` has `wanted`.

    `order`: tables in the order in which entries are inserted and modified; they are deleted the other way round.
    """
    inserts = [entry for key, entry in wanted.items() if key not in current]
    modifies = [entry for key, entry in wanted.items() if key in current and not same_entry(current[key], entry)]
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


def entries_by_key(client: SwitchClient, entries: Iterable[P4TableEntry]) -> Entries:
    """Entries as the switch would return them; BAD_INPUT when its P4Info refuses one. The first of two equal ones counts."""
    found: Entries = {}
    for entry in entries:
        canonical = client.canonical(entry)
        found.setdefault(entry_key(canonical), canonical)
    return found


async def read_entries(client: SwitchClient, tables: Sequence[str]) -> Entries:
    """The entries of tables with their direct meters, constant ones left out."""
    found: Entries = {}
    for table in tables:
        for entry in await client.read_table(table, meters=client.has_meter(table)):
            if not entry.is_const:
                found[entry_key(entry)] = entry
    return found
