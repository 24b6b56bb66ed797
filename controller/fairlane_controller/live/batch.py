# SPDX-License-Identifier: Apache-2.0
"""Many cells and whole tables of a switch in one read; registers only where the target reads them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from finsy import GRPCStatusCode, P4ClientError, P4CounterData, P4CounterEntry, P4RegisterEntry, P4TableEntry
from finsy.p4entity import P4Entity

from fairlane_controller.switch.client import SwitchClient
from fairlane_controller.switch.faults import translate

CELLS_A_READ = 4096

Counter = tuple[str, int]
"""(counter, index)."""
Register = tuple[str, int]
"""(register, index)."""


@dataclass
class Reading:
    """What one or more reads returned."""

    entries: dict[str, list[P4TableEntry]] = field(default_factory=dict[str, list[P4TableEntry]])
    counters: dict[Counter, P4CounterData] = field(default_factory=dict[Counter, P4CounterData])
    registers: dict[Register, int] = field(default_factory=dict[Register, int])

    def packets(self, name: str, index: int) -> int:
        """Packets of a cell that was asked for."""
        cell = self.counters.get((name, index))
        return cell.packet_count if cell else 0

    def bytes(self, name: str, index: int) -> int:
        """Bytes of a cell that was asked for."""
        cell = self.counters.get((name, index))
        return cell.byte_count if cell else 0


def table(name: str, *, counted: bool = False, idle: bool = False) -> P4TableEntry:
    """The pattern of all entries of a table."""
    return P4TableEntry(
        name, counter_data=P4CounterData() if counted else None, time_since_last_hit=0 if idle else None
    )


class BatchReader:
    """Reads through one client; remembers whether its target reads registers."""

    def __init__(self) -> None:
        self.has_registers = True
        "Until the target says otherwise (BMv2)."
        self.progress = 0
        "Grows with each piece of an answer: a long table is no silent switch."

    async def read(
        self,
        client: SwitchClient,
        tables: Sequence[P4TableEntry],
        counters: Iterable[Counter] = (),
        registers: Iterable[Register] = (),
        into: Reading | None = None,
    ) -> Reading:
        """Everything with one request (each 4,096 cells one more); raises FairlaneError."""
        reading = into or Reading()
        for pattern in tables:
            reading.entries.setdefault(pattern.table_id, [])
        cells: list[P4Entity] = [P4CounterEntry(name, index=index) for name, index in counters]
        first_register = len(cells)
        if self.has_registers:
            cells += [P4RegisterEntry(name, index=index) for name, index in registers]
        try:
            for start in range(0, max(1, len(cells)), CELLS_A_READ):
                piece = cells[start : start + CELLS_A_READ]
                await self._read(client, [*(tables if start == 0 else ()), *piece], reading)
        except P4ClientError as ex:
            if ex.code != GRPCStatusCode.UNIMPLEMENTED or not self.has_registers:
                raise translate(ex, str(client.endpoint)) from None
            self.has_registers = False
            for pattern in tables:
                reading.entries[pattern.table_id] = []
            return await self.read(client, tables, [_key(cell) for cell in cells[:first_register]], (), reading)
        return reading

    def _on_progress(self) -> None:
        self.progress += 1

    async def _read(self, client: SwitchClient, entities: Sequence[P4Entity], into: Reading) -> None:
        if not entities:
            return
        for entity in await client.read_all(entities, self._on_progress):
            if isinstance(entity, P4TableEntry):
                into.entries.setdefault(entity.table_id, []).append(entity)
            elif isinstance(entity, P4CounterEntry):
                into.counters[_key(entity)] = entity.data or P4CounterData()
            elif isinstance(entity, P4RegisterEntry):
                into.registers[_key(entity)] = int(cast("int", entity.data or 0))


def _key(cell: Any) -> tuple[str, int]:
    name = cell.counter_id if isinstance(cell, P4CounterEntry) else cell.register_id
    return str(name), int(cell.index or 0)


def action_args(entry: P4TableEntry) -> tuple[str | None, Mapping[str, Any]]:
    """An entry's action and its arguments; (None, {}) for one without."""
    action = entry.action
    name = getattr(action, "name", None)
    return (name, cast("Any", action).args) if isinstance(name, str) else (None, {})
