# SPDX-License-Identifier: Apache-2.0
"""Samples a run with program `ena`: what left each managed port, what its queue dropped, what waits there."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.switch.client import SwitchClient
from fairlane_controller.switch.shared import COUNTER_PASSED
from fairlane_switch.port_control import PortControlError, read_ports

from fairlane_lab.testbed.bed import ManagedPort
from fairlane_lab.testbed.port_watch import READ_MAX_S, PortWatch


class EnaPortWatch(PortWatch):
    """A `PortWatch` of the queues themselves: ena.p4 admits everything. BMv2 tells of no queue: there it is what the program
    sent to the port, and neither drops nor what waits."""

    async def _run(self) -> None:
        switches = dict.fromkeys(port.switch for port in self._bed.ports)
        watch = self._watch_queues if self._bed.target == "embedded" else self._watch_counters
        await asyncio.gather(*(self._guard(watch(name)) for name in switches))

    def _of(self, name: str) -> list[ManagedPort]:
        return [port for port in self._bed.ports if port.switch == name]

    async def _watch_queues(self, name: str) -> None:
        control = self._bed.network.switches[name].options.control
        numbers = {port.port for port in self._of(name)}
        samples = self.samples
        async for now_s in self._ticks(self._period_s):
            try:
                ports = read_ports(control)
            except PortControlError as error:
                raise FairlaneError(ErrorCode.SWITCH_UNREACHABLE, str(error)) from None
            took_s = time.monotonic() - now_s
            if took_s > READ_MAX_S:
                continue  # nobody knows when in that time the switch read its counters
            for port in ports:
                if port.port in numbers:
                    key, at_s = (name, port.port), now_s + took_s / 2
                    samples.tx_bytes.setdefault(key, []).append((at_s, float(port.tx_bytes)))
                    samples.drops.setdefault(key, []).append((at_s, float(sum(port.drops.values()))))
                    samples.waiting.setdefault(key, []).append((at_s, float(port.waiting_packets)))

    async def _watch_counters(self, name: str) -> None:
        numbers: list[Any] = [port.port for port in self._of(name)]
        async with SwitchClient(self._bed.endpoint(name)) as client:
            async for now_s in self._ticks(self._period_s):
                cells = await client.read_counters(COUNTER_PASSED, numbers)
                took_s = time.monotonic() - now_s
                if took_s <= READ_MAX_S:
                    for number, cell in cells.items():
                        points = self.samples.tx_bytes.setdefault((name, number), [])
                        points.append((now_s + took_s / 2, float(cell.byte_count)))
