# SPDX-License-Identifier: Apache-2.0
"""Samples a run with program `gfr`: what left each managed port, what waits there, and once a second what each VC has lost."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any, cast

from fairlane_controller.programs.gfr import names as gfr_program
from fairlane_controller.programs.gfr.store import GfrStore
from fairlane_controller.switch.client import SwitchClient
from fairlane_controller.switch.shared import COUNTER_ADMITTED, COUNTER_DROPS
from finsy import P4CounterData, P4CounterEntry, P4RegisterEntry

from fairlane_lab.gfr.counters import DROP_REASONS, read_refusals
from fairlane_lab.gfr.line import atm_cells
from fairlane_lab.testbed.bed import ManagedPort
from fairlane_lab.testbed.port_watch import READ_MAX_S, PortWatch

REFUSALS_EVERY_S = 1.0


class GfrPortWatch(PortWatch):
    """A `PortWatch` of gfr.p4's counters: `admitted` by port, `drops`, `vc_verdicts`; the register QT where it can be read."""

    async def _run(self) -> None:
        switches = dict.fromkeys(port.switch for port in self._bed.ports)
        jobs = [self._guard(self._watch_ports(name)) for name in switches]
        jobs += [self._guard(self._watch_vcs(name)) for name in switches]
        await asyncio.gather(*jobs)

    async def _watch_ports(self, name: str) -> None:
        ports = [port for port in self._bed.ports if port.switch == name]
        async with SwitchClient(self._bed.endpoint(name)) as client:
            async for _ in self._ticks(self._period_s):
                await self._read_ports(client, ports)

    async def _watch_vcs(self, name: str) -> None:
        allocation = GfrStore(self._bed.state).state.allocation
        async with SwitchClient(self._bed.endpoint(name)) as client:
            async for now_s in self._ticks(REFUSALS_EVERY_S):
                counts = await read_refusals(client, allocation)
                self.samples.refusals.setdefault(name, []).append((now_s, counts))

    async def _read_ports(self, client: SwitchClient, ports: list[ManagedPort]) -> None:
        """One request for everything: a single instant."""
        numbers = [port.port for port in ports]
        entities: list[Any] = [P4CounterEntry(COUNTER_ADMITTED, index=number) for number in numbers]
        entities += [P4CounterEntry(COUNTER_DROPS, index=n << 4 | reason) for n in numbers for reason in DROP_REASONS]
        if self._bed.target == "embedded":
            entities += [P4RegisterEntry(gfr_program.REGISTER_PORT_CELLS, index=number) for number in numbers]
        admitted = dict.fromkeys(numbers, P4CounterData())
        drops, cells = dict.fromkeys(numbers, 0), dict.fromkeys(numbers, 0)
        now_s = time.monotonic()
        answers = cast("AsyncIterator[P4CounterEntry | P4RegisterEntry]", client.switch.read(entities))
        async for entry in answers:
            index = cast("int", entry.index)
            if isinstance(entry, P4RegisterEntry):
                cells[index] = cast("int", entry.data)
            elif entry.counter_id == COUNTER_ADMITTED:
                admitted[index] = entry.data or P4CounterData()
            else:
                drops[index >> 4] += (entry.data or P4CounterData()).packet_count
        took_s = time.monotonic() - now_s
        if took_s > READ_MAX_S:
            return  # nobody knows when in that time the switch read its counters
        at_s = now_s + took_s / 2
        for port in ports:
            key, data = (port.switch, port.port), admitted[port.port]
            share = cells[port.port] / max(1.0, atm_cells(data.packet_count, data.byte_count))
            waiting = share * data.packet_count  # frames of the mean length so far
            self._add(self.samples.waiting, key, at_s, waiting)
            self._add(self.samples.tx_packets, key, at_s, data.packet_count - waiting)
            self._add(self.samples.tx_bytes, key, at_s, data.byte_count - share * data.byte_count)
            self._add(self.samples.drops, key, at_s, float(drops[port.port]))

    def _add(
        self, table: dict[tuple[str, int], list[tuple[float, float]]], key: tuple[str, int], at_s: float, value: float
    ) -> None:
        table.setdefault(key, []).append((at_s, value))
