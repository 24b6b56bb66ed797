# SPDX-License-Identifier: Apache-2.0
"""Reading a switch again and again with few requests: what the last reading asked for is read at once, and so is what is asked for at
once; registers only where the target reads them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Hashable, Iterable, Mapping
from pathlib import Path
from typing import Any

from finsy import GRPCStatusCode, P4ClientError, P4CounterData, P4CounterEntry, P4RegisterEntry, P4TableEntry
from finsy.p4entity import P4Entity

from fairlane_controller.switch.client import SwitchClient
from fairlane_controller.switch.faults import translate

CELLS_A_READ = 4096
_Key = tuple[type[P4Entity], str, int]
"""(kind of entity, name, index; -1 for a table)."""


class BatchReading:
    """`program.rows.Reading` through one client; `begin` opens the next reading."""

    def __init__(
        self,
        client: SwitchClient,
        folder: Path | None = None,
        per_s: Callable[[Hashable, float | None], float | None] = lambda _key, _total: None,
    ) -> None:
        self._client = client
        self.folder = folder
        self.loop: Mapping[str, Any] | None = None
        self.memory: dict[str, Any] = {}
        self.per_s = per_s
        self.reads_registers = True
        "Until the target says otherwise (BMv2)."
        self.progress = 0
        "Grows with each piece of an answer: a long table is no silent switch."
        self._asked: dict[_Key, P4Entity] = {}
        self._read: dict[_Key, Any] = {}
        self._kept: dict[str, tuple[float, list[P4TableEntry]]] = {}
        self._next: dict[_Key, P4Entity] = {}
        "What the next request asks for."
        self._requesting: asyncio.Task[None] | None = None
        "The request that is about to be sent."

    @property
    def switch(self) -> str:
        """Name of the switch."""
        return self._client.endpoint.name

    async def begin(self) -> None:
        """A new reading: everything that the one before asked for, with one request (each 4,096 cells one more). Raises FairlaneError."""
        again, self._asked, self._read = self._asked, {}, {}
        await self._request(again)

    async def table(
        self, name: str, *, counters: bool = False, idle: bool = False, max_age_s: float = 0.0
    ) -> list[P4TableEntry]:
        """The entries of a table."""
        read_s, kept = self._kept.get(name, (-1e9, []))
        if time.monotonic() - read_s < max_age_s:
            return kept
        data, key = P4CounterData() if counters else None, (P4TableEntry, name, -1)
        pattern = P4TableEntry(name, counter_data=data, time_since_last_hit=0 if idle else None)
        await self._need({key: pattern}, again=not max_age_s)
        if max_age_s:
            self._kept[name] = time.monotonic(), self._read[key]
        return self._read[key]

    async def counters(self, name: str, indices: Iterable[int]) -> dict[int, P4CounterData]:
        """Cells of an indexed counter."""
        return await self._cells(P4CounterEntry, name, indices)

    async def registers(self, name: str, indices: Iterable[int]) -> dict[int, int] | None:
        """Cells of a register; None where the target does not read registers."""
        cells = await self._cells(P4RegisterEntry, name, indices) if self.reads_registers else {}
        return cells if self.reads_registers else None

    async def _cells(self, kind: Any, name: str, indices: Iterable[int]) -> dict[int, Any]:
        keys: dict[int, _Key] = {index: (kind, name, index) for index in indices}
        await self._need(
            {
                key: kind(name, index=index)
                for index, key in keys.items()
                if not (key in self._asked and key in self._read)
            }
        )
        return {index: self._read[key] for index, key in keys.items() if key in self._read}

    async def _need(self, wanted: Mapping[_Key, P4Entity], *, again: bool = True) -> None:
        if again:
            self._asked.update(wanted)
        new = {key: entity for key, entity in wanted.items() if key not in self._read}
        if not new:
            return
        self._next.update(new)
        if self._requesting is None or self._requesting.done():
            self._requesting = asyncio.get_running_loop().create_task(self._request_next())
        await self._requesting

    async def _request_next(self) -> None:
        """One request for all who ask in the same turn of the event loop."""
        await asyncio.sleep(0)
        wanted, self._next, self._requesting = self._next, {}, None
        await self._request(wanted)

    async def _request(self, wanted: Mapping[_Key, P4Entity]) -> None:
        if not self.reads_registers:
            wanted = {key: entity for key, entity in wanted.items() if key[0] is not P4RegisterEntry}
        read: dict[_Key, Any] = {
            key: [] if key[2] < 0 else P4CounterData() if key[0] is P4CounterEntry else 0 for key in wanted
        }
        entities = list(wanted.values())
        try:
            for start in range(0, len(entities), CELLS_A_READ):
                for entity in await self._client.read_all(entities[start : start + CELLS_A_READ], self._on_progress):
                    _take(entity, read)
        except P4ClientError as ex:
            has_registers = any(key[0] is P4RegisterEntry for key in wanted)
            if ex.code != GRPCStatusCode.UNIMPLEMENTED or not has_registers:
                raise translate(ex, str(self._client.endpoint)) from None
            self.reads_registers = False
            await self._request(wanted)
            return
        self._read |= read

    def _on_progress(self) -> None:
        self.progress += 1


def _take(entity: Any, read: dict[_Key, Any]) -> None:
    """Put what was answered where it belongs."""
    if isinstance(entity, P4TableEntry):
        read.setdefault((P4TableEntry, entity.table_id, -1), []).append(entity)
    elif isinstance(entity, P4CounterEntry):
        read[(P4CounterEntry, str(entity.counter_id), int(entity.index or 0))] = entity.data or P4CounterData()
    elif isinstance(entity, P4RegisterEntry):
        read[(P4RegisterEntry, str(entity.register_id), int(entity.index or 0))] = int(entity.data or 0)  # type: ignore[arg-type]
