# SPDX-License-Identifier: Apache-2.0
"""What a line is planned with: the P4Info, the entries that the switch will have when its turn comes, and the handles so far."""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from finsy import P4TableEntry

from fairlane_controller.switch.client import SwitchClient
from fairlane_controller.switch.entities import EntityChange, entity_key, identity

Data = dict[str, Any]
Written = tuple[Data, Sequence[EntityChange]]
"""What a line writes: plain data, and the changes."""


class Handles:
    """The numbers that `table_add` gave to entries, as BMv2 gives them: of a table, the lowest that no entry has."""

    def __init__(self) -> None:
        self._entries: dict[str, dict[int, P4TableEntry]] = defaultdict(dict)
        self._free: dict[str, list[int]] = defaultdict(list)
        self._number_of: dict[str, int] = {}

    def give(self, entry: P4TableEntry) -> int:
        """Give an entry its handle."""
        used, free = self._entries[entry.table_id], self._free[entry.table_id]
        handle = heapq.heappop(free) if free else len(used)
        used[handle] = entry
        self._number_of[entity_key(entry)] = handle
        return handle

    def free(self, entry: P4TableEntry) -> None:
        """Free the handle of an entry that is deleted; it may have had none."""
        handle = self._number_of.pop(entity_key(entry), None)
        if handle is not None:
            del self._entries[entry.table_id][handle]
            heapq.heappush(self._free[entry.table_id], handle)

    def find(self, table: str, words: Sequence[str]) -> P4TableEntry | None:
        """The entry of a table (its short name) whose handle is the only word; None where there is no such one."""
        return self._entries[table].get(int(words[0])) if len(words) == 1 and words[0].isdecimal() else None


class Context:
    """State of a script's plan. It writes nothing; later lines see what earlier ones will have done."""

    def __init__(self, client: SwitchClient, handles: Handles | None = None) -> None:
        """Begin a plan.

        Args:
            client: a client that is connected. Raises NO_PIPELINE where its switch has no program.
            handles: those of lines before.
        """
        client.need_pipeline()
        self.client = client
        self.schema = client.switch.p4info
        self.handles = handles or Handles()
        self._tables: dict[str, dict[str, P4TableEntry | None]] = {}

    async def _known(self, table: str) -> dict[str, P4TableEntry | None]:
        """The entries of a table as they will be, by key; it is read once."""
        if table not in self._tables:
            found = await self.client.read_table(table, meters=self.client.has_meter(table))
            self._tables[table] = {entity_key(entry): entry for entry in found}
        return self._tables[table]

    async def read_entry(self, entry: P4TableEntry) -> P4TableEntry | None:
        """The entry of that key as it will be."""
        key, known = entity_key(entry), await self._known(entry.table_id)
        if entry.is_default_action and key not in known:
            found: Any = await self.client.read_entities([identity(entry)])
            known[key] = next((one for one in found if entity_key(one) == key), None)
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
