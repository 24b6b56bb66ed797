# SPDX-License-Identifier: Apache-2.0
"""What a line is checked against: the P4Info, what the switch will hold when its turn comes, and the handles given so far."""

from __future__ import annotations

import heapq
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from finsy import GRPCStatusCode, P4ClientError, P4Schema, P4TableEntry
from finsy.p4entity import P4Entity
from finsy.p4schema import P4Table
from finsy.proto import p4r

from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.switch.client import SwitchClient
from fairlane_controller.switch.faults import translate
from fairlane_controller.verbs.entries import Key, key_of

SINGLE_READS = 16
"""So many entries of a table are asked for one by one; after that the table is read as a whole."""

Data = dict[str, Any]


@dataclass(frozen=True)
class Change:
    """One update, and the one that takes it back (None: nothing can)."""

    update: p4r.Update
    undo: p4r.Update | None


@dataclass(frozen=True)
class Step:
    """What one line does: changes, or a read that waits for its turn."""

    said: str = ""
    "For people, when it is done."
    data: Data = field(default_factory=dict[str, Any])
    "The same as plain data."
    changes: tuple[Change, ...] = ()
    read: Callable[[SwitchClient], Awaitable[Data]] | None = None


async def read_entities(client: SwitchClient, patterns: Sequence[Any]) -> list[P4Entity]:
    """What the switch answers; nothing where it says NOT_FOUND. Raises FairlaneError."""
    try:
        answers = cast("AsyncIterator[P4Entity]", client.switch.read(patterns))
        return [entity async for entity in answers]
    except P4ClientError as ex:
        codes = {detail.canonical_code for detail in ex.details.values()} or {ex.code}
        if codes == {GRPCStatusCode.NOT_FOUND}:
            return []
        raise translate(ex, str(client.endpoint)) from None


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
        self._seen: dict[Key, p4r.TableEntry | None] = {}
        self._whole: set[int] = set()
        self._asked: dict[int, int] = {}

    def begin_handles(self) -> None:
        """No entry has a handle."""
        self.handles: dict[str, dict[int, p4r.TableEntry]] = {}
        "Given by `table_add` in this session, by table."
        self._free: dict[str, list[int]] = {}
        self._handle_of: dict[Key, int] = {}

    def forget(self) -> None:
        """The switch may hold something else from now on: ask it again. Handles stay."""
        self._seen.clear()
        self._whole.clear()
        self._asked.clear()

    async def read_entry(self, entry: p4r.TableEntry) -> p4r.TableEntry | None:
        """The entry of that key as it will be."""
        key = key_of(entry)
        if key in self._seen:
            return self._seen[key]
        table_id = entry.table_id
        if table_id in self._whole:
            return None
        asked = self._asked[table_id] = self._asked.get(table_id, 0) + 1
        if asked > SINGLE_READS and not entry.is_default_action:
            await self._read_whole(self.schema.tables[table_id])
            return self._seen.get(key)
        pattern = p4r.TableEntry(
            table_id=table_id,
            match=entry.match,
            priority=entry.priority,
            is_default_action=entry.is_default_action,
            meter_config=p4r.MeterConfig() if self._has_meter(table_id) and not entry.is_default_action else None,
        )
        found = await read_entities(self.client, [p4r.Entity(table_entry=pattern)])
        entries = [e.encode_entry(self.schema) for e in found if isinstance(e, P4TableEntry)]
        self._seen[key] = next((e for e in entries if key_of(e) == key), None)
        return self._seen[key]

    async def entries(self, table: P4Table) -> list[p4r.TableEntry]:
        """All entries of a table as they will be, without its default."""
        if table.id not in self._whole:
            await self._read_whole(table)
        return [e for key, e in self._seen.items() if e is not None and key[0] == table.id and not key[3]]

    async def _read_whole(self, table: P4Table) -> None:
        for entry in await self.client.read_table(table.alias, meters=self._has_meter(table.id)):
            raw = entry.encode_entry(self.schema)
            self._seen.setdefault(key_of(raw), raw)
        self._whole.add(table.id)

    def _has_meter(self, table_id: int) -> bool:
        return self.client.has_meter(self.schema.tables[table_id].alias)

    def put(self, entry: p4r.TableEntry) -> None:
        """From here on this entry is there."""
        self._seen[key_of(entry)] = entry

    def drop(self, entry: p4r.TableEntry) -> None:
        """From here on it is not."""
        self._seen[key_of(entry)] = None

    def give_handle(self, table: str, entry: p4r.TableEntry) -> int:
        """The lowest number that no entry added in this session has."""
        mine = self.handles.setdefault(table, {})
        free = self._free.setdefault(table, [])
        handle = heapq.heappop(free) if free else len(mine)
        mine[handle] = entry
        self._handle_of[key_of(entry)] = handle
        return handle

    def take_handle(self, table: str, entry: p4r.TableEntry) -> None:
        """The entry is gone: its handle is free again."""
        handle = self._handle_of.pop(key_of(entry), None)
        if handle is not None:
            del self.handles[table][handle]
            heapq.heappush(self._free.setdefault(table, []), handle)

    def find_by_handle(self, table: str, word: str) -> p4r.TableEntry | None:
        """The entry that `table_add` gave this handle, in this session."""
        return self.handles.get(table, {}).get(int(word)) if word.isdecimal() else None
