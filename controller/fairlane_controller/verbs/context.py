# SPDX-License-Identifier: Apache-2.0
"""What a line is checked against: the P4Info, what the switch will have when its turn comes, and the handles given so far."""

from __future__ import annotations

import heapq
import itertools
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from finsy import P4MeterConfig, P4TableEntry

from fairlane_controller.switch.client import SwitchClient
from fairlane_controller.switch.entities import EntityChange, entity_key, identity

Data = dict[str, Any]
Written = tuple[str, Data, Sequence[EntityChange]]
"""What a line writes: for people when it is done, the same as plain data, the changes."""


class Handles:
    """The numbers that `table_add` gave to entries, as BMv2 gives them: of a table, the lowest that no entry has."""

    def __init__(self) -> None:
        self._entries: dict[tuple[str, int], P4TableEntry] = {}
        self._number_of: dict[str, int] = {}
        self._free: dict[str, list[int]] = defaultdict(list)
        self._next: dict[str, Iterator[int]] = defaultdict(itertools.count)

    def give(self, entry: P4TableEntry) -> int:
        """The entry's handle from now on."""
        free = self._free[entry.table_id]
        handle = heapq.heappop(free) if free else next(self._next[entry.table_id])
        self._entries[entry.table_id, handle] = entry
        self._number_of[entity_key(entry)] = handle
        return handle

    def free(self, entry: P4TableEntry) -> None:
        """The entry is gone; it may have had no handle."""
        handle = self._number_of.pop(entity_key(entry), None)
        if handle is not None:
            del self._entries[entry.table_id, handle]
            heapq.heappush(self._free[entry.table_id], handle)

    def find(self, table: str, word: str) -> P4TableEntry | None:
        """The entry of a table (its short name) that has this handle."""
        return self._entries.get((table, int(word))) if word.isdecimal() else None


class Context:
    """State of a script's check: it writes nothing, but later lines see what earlier ones will have done."""

    def __init__(self, client: SwitchClient, handles: Handles | None = None, *, reads_tables: bool = False) -> None:
        """`reads_tables`: entries are asked for by the table, not one by one."""
        client.need_pipeline()
        self.client = client
        self.schema = client.switch.p4info
        self.handles = handles or Handles()
        self._reads_tables = reads_tables
        self._known: dict[str, P4TableEntry | None] = {}
        self._whole: set[str] = set()

    async def read_entry(self, entry: P4TableEntry) -> P4TableEntry | None:
        """The entry of that key as it will be."""
        key, table, default = entity_key(entry), entry.table_id, entry.is_default_action
        if key not in self._known and self._reads_tables and not default:
            await self._read_table(table)
        elif key not in self._known and (default or table not in self._whole):
            pattern = identity(entry)
            if not default and self.client.has_meter(table):
                pattern.meter_config = P4MeterConfig(cir=0, cburst=0, pir=0, pburst=0)
            found = await self.client.read_entities([pattern])
            entries = [one for one in found if isinstance(one, P4TableEntry) and entity_key(one) == key]
            self._known[key] = entries[0] if entries else None
        return self._known.get(key)

    async def entries(self, table: str) -> list[P4TableEntry]:
        """All entries of a table as they will be, without its default."""
        await self._read_table(table)
        return [one for one in self._known.values() if one and one.table_id == table and not one.is_default_action]

    async def _read_table(self, table: str) -> None:
        if table not in self._whole:
            for entry in await self.client.read_table(table, meters=self.client.has_meter(table)):
                self._known.setdefault(entity_key(entry), entry)
            self._whole.add(table)

    def change(self, before: P4TableEntry | None, after: P4TableEntry | None) -> EntityChange:
        """From here on the entry is `after`; the change that makes it so."""
        change = EntityChange(before, after)
        self._known[entity_key(change.entity)] = after
        return change
