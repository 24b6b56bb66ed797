# SPDX-License-Identifier: Apache-2.0
"""Repeated readings of a switch with few requests: what the last reading asked for is read at once, and so is what is asked for at
the same time; registers only where the target reads them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Iterable, Mapping
from pathlib import Path
from typing import Any, cast

from finsy import GRPCStatusCode, P4ClientError, P4CounterData, P4CounterEntry, P4RegisterEntry, P4TableEntry
from finsy.p4entity import P4Entity

from fairlane_controller.switch.client import SwitchClient
from fairlane_controller.switch.faults import translate

_Key = tuple[type[P4Entity], str, int]
"""(kind of entity, name, index; -1 for a table)."""
_KINDS: dict[type[Any], tuple[str, Any]] = {
    P4TableEntry: ("table_id", list),
    P4CounterEntry: ("counter_id", P4CounterData),
    P4RegisterEntry: ("register_id", int),
}
"""The field with the name of an entity, and what makes the value of one that is not there."""


class BatchReading:
    """Readings of one switch, as `Program.rows` gets them. What was asked for in the reading before is read by `begin`: ask for the
    same cells each time, and a reading is one request. What is asked for at the same time (`asyncio.gather`) is one request too."""

    def __init__(
        self,
        client: SwitchClient,
        per_s: Callable[[Hashable, float | None], float | None] = lambda _key, _total: None,
    ) -> None:
        """Read nothing yet.

        Args:
            client: The connection to the switch.
            per_s: How fast a total grows, by its key and its value (`RateBook.per_s`).
        """
        self._client = client
        self.folder: Path | None = None
        "The run-state folder, for documents of the program; None: there is none."
        self.loop: Mapping[str, Any] | None = None
        "What the control loop's status reports of this switch; None without a loop."
        self.memory: dict[str, Any] = {}
        "What the program stores until the next reading of this connection."
        self.per_s = per_s
        "`per_s(key, total)`: how fast a total grows since the reading before; None in the first reading, and after a reset."
        self.progress = 0
        "Grows with each piece of an answer: a long table is no silent switch."
        self._reads_registers = True
        "Until the target refuses it (BMv2)."
        self._asked: dict[_Key, P4Entity] = {}
        self._read: dict[_Key, Any] = {}
        self._next: dict[_Key, P4Entity] = {}
        "What the next request asks for."
        self._requesting: asyncio.Task[None] | None = None
        "The request that is about to be sent."

    @property
    def switch(self) -> str:
        """Name of the switch."""
        return self._client.endpoint.name

    async def begin(self) -> None:
        """Begin a new reading: read all that the one before asked for, with one request (one more for each 4,096 cells).

        Raises:
            FairlaneError: The switch does not answer.
        """
        asked, self._asked, self._read = self._asked, {}, {}
        await self._request(asked)

    async def table(self, name: str, *, counters: bool = False, idle: bool = False) -> list[P4TableEntry]:
        """Read a table.

        Args:
            name: The table.
            counters: Whether to read its direct counters.
            idle: Whether to read the time since each entry's last hit.

        Returns:
            The entries.
        """
        data, key = P4CounterData() if counters else None, (P4TableEntry, name, -1)
        await self._need({key: P4TableEntry(name, counter_data=data, time_since_last_hit=0 if idle else None)})
        return self._read[key]

    async def counters(self, name: str, indices: Iterable[int]) -> Mapping[int, P4CounterData]:
        """Read cells of an indexed counter.

        Args:
            name: The counter.
            indices: Its cells.

        Returns:
            The cells by their indices.
        """
        return await self._cells(P4CounterEntry, name, indices)

    async def registers(self, name: str, indices: Iterable[int]) -> Mapping[int, int] | None:
        """Read cells of a register.

        Args:
            name: The register.
            indices: Its cells.

        Returns:
            The cells by their indices; None where the target reads no registers (BMv2).
        """
        cells = await self._cells(P4RegisterEntry, name, indices) if self._reads_registers else {}
        return cells if self._reads_registers else None

    async def _cells(self, kind: Any, name: str, indices: Iterable[int]) -> dict[int, Any]:
        wanted: dict[_Key, P4Entity] = {(kind, name, index): kind(name, index=index) for index in indices}
        await self._need(wanted)
        return {key[2]: self._read[key] for key in wanted if key in self._read}

    async def _need(self, wanted: Mapping[_Key, P4Entity]) -> None:
        self._asked.update(wanted)
        new = {key: entity for key, entity in wanted.items() if key not in self._read}
        if new:
            self._next.update(new)
            if self._requesting is None or self._requesting.done():
                self._requesting = asyncio.get_running_loop().create_task(self._request_next())
            await self._requesting

    async def _request_next(self) -> None:
        """Make one request for all who ask in the same turn of the event loop."""
        await asyncio.sleep(0)
        wanted, self._next, self._requesting = self._next, {}, None
        await self._request(wanted)

    async def _request(self, wanted: Mapping[_Key, P4Entity]) -> None:
        if not self._reads_registers:
            wanted = {key: entity for key, entity in wanted.items() if key[0] is not P4RegisterEntry}
        read: dict[_Key, Any] = {key: _KINDS[key[0]][1]() for key in wanted}
        try:
            for entity in await self._client.read_all(list(wanted.values()), self._on_progress):
                kind = cast("type[P4Entity]", type(entity))
                named, empty = _KINDS[kind]
                if kind is P4TableEntry:
                    read[kind, entity.table_id, -1].append(entity)
                else:
                    read[kind, str(getattr(entity, named)), entity.index or 0] = entity.data or empty()
        except P4ClientError as ex:
            if ex.code != GRPCStatusCode.UNIMPLEMENTED or all(key[0] is not P4RegisterEntry for key in wanted):
                raise translate(ex, str(self._client.endpoint)) from None
            self._reads_registers = False
            await self._request(wanted)
        else:
            self._read |= read

    def _on_progress(self) -> None:
        self.progress += 1


async def read_cells(client: SwitchClient, kind: Any, name: str, indices: Iterable[int]) -> dict[int, Any]:
    """Read cells once. A `BatchReading` asks a turn of the event loop later, which moves a run in virtual time.

    Args:
        client: The connection to the switch.
        kind: `P4CounterEntry` or `P4RegisterEntry`.
        name: The counter or register.
        indices: Its cells.

    Returns:
        The values by their indices; None for one that is 0.
    """
    read: list[Any] = await client.read_entities([kind(name, index=index) for index in indices])
    return {cell.index or 0: cell.data for cell in read}


class RateBook:
    """The values of all counters in the last reading. `begin(now_s)` opens a reading; what was not asked for in it is forgotten."""

    def __init__(self) -> None:
        self._before: dict[Hashable, float] = {}
        self._now: dict[Hashable, float] = {}
        self._now_s: float | None = None
        self.interval_s: float | None = None
        "Between this reading and the one before; None for the first."

    def begin(self, now_s: float) -> None:
        """Begin a new reading.

        Args:
            now_s: The time of a monotonic clock, in seconds.
        """
        self._before, self._now = self._now, {}
        self.interval_s = None if self._now_s is None else now_s - self._now_s
        self._now_s = now_s

    def forget(self) -> None:
        """The switch is another one, or was away: the next reading is the first."""
        self.__init__()

    def per_s(self, key: Hashable, value: float | None) -> float | None:
        """The rate of a counter since the reading before.

        Args:
            key: The counter.
            value: Its value now; None: not known.

        Returns:
            The rate in 1/s; None when there was no reading before, no time has passed, or the counter was reset.
        """
        if value is None:
            return None
        self._now[key] = value
        before = self._before.get(key)
        if before is None or not self.interval_s or self.interval_s < 0 or value < before:
            return None
        return (value - before) / self.interval_s
