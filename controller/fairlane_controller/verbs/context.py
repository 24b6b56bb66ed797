# SPDX-License-Identifier: Apache-2.0
"""What a line is checked against: the P4Info, what the switch will hold when its turn comes, and the handles given so far."""

from __future__ import annotations

import heapq
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from finsy import P4MeterConfig, P4Schema, P4TableEntry
from finsy.p4schema import P4Table

from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.switch.client import SwitchClient
from fairlane_controller.switch.entities import EntityChange, entity_key, identity

SINGLE_READS = 16
"""So many entries of a table are asked for one by one; after that the table is read as a whole."""

Data = dict[str, Any]


@dataclass(frozen=True)
class Step:
    """What one line does: changes, or a read that waits for its turn."""

    said: str = ""
    "For people, when it is done."
    data: Data = field(default_factory=dict[str, Any])
    "The same as plain data."
    changes: tuple[EntityChange, ...] = ()
    read: Callable[[], Awaitable[Data]] | None = None


class Context:
    """State of a script's check: it writes nothing, but later lines see what earlier ones will have done."""

    def __init__(self, client: SwitchClient) -> None:
        self.client = client
        if not client.has_pipeline:
            raise FairlaneError(
                ErrorCode.NO_PIPELINE, f"{client.endpoint} has no program yet: load it with `fairlane config init`"
            )
        self.schema: P4Schema = client.switch.p4info
        self.begin_handles()
        self._seen: dict[str, P4TableEntry | None] = {}
        self._whole: set[str] = set()
        self._asked: dict[str, int] = {}

    def begin_handles(self) -> None:
        """No entry has a handle."""
        self.handles: dict[str, dict[int, P4TableEntry]] = {}
        "Given by `table_add` in this session, by table."
        self._free: dict[str, list[int]] = {}
        self._handle_of: dict[str, int] = {}

    def forget(self) -> None:
        """The switch may hold something else from now on: ask it again. Handles stay."""
        self._seen.clear()
        self._whole.clear()
        self._asked.clear()

    async def read_entry(self, entry: P4TableEntry) -> P4TableEntry | None:
        """The entry of that key as it will be."""
        key, table = entity_key(entry), entry.table_id
        if key in self._seen:
            return self._seen[key]
        if table in self._whole:
            return None
        asked = self._asked[table] = self._asked.get(table, 0) + 1
        if asked > SINGLE_READS and not entry.is_default_action:
            await self._read_whole(table)
            return self._seen.get(key)
        pattern = identity(entry)
        if not entry.is_default_action and self.client.has_meter(table):
            pattern.meter_config = P4MeterConfig(cir=0, cburst=0, pir=0, pburst=0)
        found = await self.client.read_entities([pattern])
        entries = [one for one in found if isinstance(one, P4TableEntry)]
        self._seen[key] = next((one for one in entries if entity_key(one) == key), None)
        return self._seen[key]

    async def entries(self, table: P4Table) -> list[P4TableEntry]:
        """All entries of a table as they will be, without its default."""
        if table.alias not in self._whole:
            await self._read_whole(table.alias)
        held = [one for one in self._seen.values() if one is not None]
        return [one for one in held if one.table_id == table.alias and not one.is_default_action]

    async def _read_whole(self, table: str) -> None:
        for entry in await self.client.read_table(table, meters=self.client.has_meter(table)):
            self._seen.setdefault(entity_key(entry), entry)
        self._whole.add(table)

    def change(self, before: P4TableEntry | None, after: P4TableEntry | None) -> EntityChange:
        """From here on the entry is `after`; the change that makes it so."""
        entry = after or before
        assert entry is not None
        self._seen[entity_key(entry)] = after
        return EntityChange(before, after)

    def give_handle(self, table: str, entry: P4TableEntry) -> int:
        """The lowest number that no entry added in this session has."""
        mine = self.handles.setdefault(table, {})
        free = self._free.setdefault(table, [])
        handle = heapq.heappop(free) if free else len(mine)
        mine[handle] = entry
        self._handle_of[entity_key(entry)] = handle
        return handle

    def take_handle(self, table: str, entry: P4TableEntry) -> None:
        """The entry is gone: its handle is free again."""
        handle = self._handle_of.pop(entity_key(entry), None)
        if handle is not None:
            del self.handles[table][handle]
            heapq.heappush(self._free.setdefault(table, []), handle)

    def find_by_handle(self, table: str, word: str) -> P4TableEntry | None:
        """The entry that `table_add` gave this handle, in this session."""
        return self.handles.get(table, {}).get(int(word)) if word.isdecimal() else None
