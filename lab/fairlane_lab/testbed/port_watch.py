# SPDX-License-Identifier: Apache-2.0
"""Samples one run: bytes that left each managed port, its drops, what waits. One thread with one event loop serves all watches of a batch."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.switch.client import SwitchClient
from fairlane_controller.switch.shared import COUNTER_PASSED
from fairlane_switch.port_control import PortControlError, PortCounts, read_ports
from finsy import P4ClientError

from fairlane_lab.programs.part import program_drops, read_ports_of
from fairlane_lab.testbed.bed import Bed, ManagedPort
from fairlane_lab.testbed.standstill import PERIOD_S, Standstills

READ_MAX_S = 0.01
"""A reading of the counters that takes longer has no instant and does not count."""
END_TIMEOUT_S = 15.0
VALUES_EVERY_S = 1.0

PortKey = tuple[str, int]
FlowAddress = tuple[str, int, int]
"""Source address, source port, destination port."""


@dataclass
class Samples:
    """Everything sampled in a run; times are CLOCK_MONOTONIC seconds."""

    tx_bytes: dict[PortKey, list[tuple[float, float]]] = field(default_factory=dict[PortKey, list[tuple[float, float]]])
    tx_packets: dict[PortKey, list[tuple[float, float]]] = field(
        default_factory=dict[PortKey, list[tuple[float, float]]]
    )
    """Where frames take other than their bytes on the line."""
    of_program: dict[str, list[tuple[float, Any]]] = field(default_factory=dict[str, list[tuple[float, Any]]])
    """What the program's own watch reads of each switch."""
    drops: dict[PortKey, list[tuple[float, float]]] = field(default_factory=dict[PortKey, list[tuple[float, float]]])
    waiting: dict[PortKey, list[tuple[float, float]]] = field(default_factory=dict[PortKey, list[tuple[float, float]]])
    flows: dict[FlowAddress, list[tuple[float, float]]] = field(
        default_factory=dict[FlowAddress, list[tuple[float, float]]]
    )
    measured: dict[PortKey, list[tuple[float, dict[str, float | None]]]] = field(
        default_factory=dict[PortKey, list[tuple[float, dict[str, "float | None"]]]]
    )
    standstills: list[tuple[float, str, float]] = field(default_factory=list[tuple[float, str, float]])
    """(instant, process, seconds) of processes of the run that waited for a processor."""
    problems: list[str] = field(default_factory=list[str])
    """What could not be sampled."""


class WatchLoop:
    """The thread behind the watches; a context manager around a batch."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> WatchLoop:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(timeout=END_TIMEOUT_S)

    def watch(self, bed: Bed, period_s: float, flows: bool, sink_ports: Sequence[int]) -> PortWatch:
        """A watch over a bed's managed ports; a context manager around one run. `flows`: also each flow's queue."""
        watch = bed.part.watch() or QueueWatch
        return watch(self._loop, bed, period_s, flows, frozenset(sink_ports))


class PortWatch:
    """Samples from entering it to leaving it."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, bed: Bed, period_s: float, flows: bool, sink_ports: frozenset[int]
    ) -> None:
        self._loop = loop
        self._bed = bed
        self._period_s = period_s
        self._flows = flows
        self._sink_ports = sink_ports
        self._stop = threading.Event()
        self.samples = Samples()

    def __enter__(self) -> PortWatch:
        self._work = asyncio.run_coroutine_threadsafe(self._run_all(), self._loop)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        with contextlib.suppress(TimeoutError, asyncio.CancelledError):
            self._work.result(timeout=END_TIMEOUT_S)
        self._work.cancel()

    async def _run_all(self) -> None:
        drops = (
            self._guard(self._watch_drops(name)) for name in dict.fromkeys(port.switch for port in self._bed.ports)
        )
        await asyncio.gather(self._run(), self._watch_processes(), *drops)

    async def _run(self) -> None:
        """Sample until the end."""
        raise NotImplementedError

    async def _watch_drops(self, name: str) -> None:
        async with SwitchClient(self._bed.endpoint(name)) as client:
            async for _ in self._ticks(self._period_s):
                await self._read_drops(client, name)

    async def _read_drops(self, client: SwitchClient, name: str) -> None:
        """What the program of a switch has refused at its managed ports, and the queues behind it (BMv2 does not tell of those)."""
        numbers = [port.port for port in self._bed.ports if port.switch == name]
        now_s = time.monotonic()
        drops = await program_drops(client, self._bed.part.part, numbers)
        for port in self._queues_of(name) if self._bed.target == "embedded" else ():
            if port.port in drops:
                drops[port.port] += sum(port.drops.values())
        took_s = time.monotonic() - now_s
        if took_s <= READ_MAX_S:  # else nobody knows when in that time the switch read its counters
            for number, packets in drops.items():
                self.samples.drops.setdefault((name, number), []).append((now_s + took_s / 2, float(packets)))

    def _queues_of(self, name: str) -> list[PortCounts]:
        try:
            return read_ports(self._bed.network.switches[name].options.control)
        except PortControlError as error:
            raise FairlaneError(ErrorCode.SWITCH_UNREACHABLE, str(error)) from None

    async def _watch_processes(self) -> None:
        standstills = Standstills()
        async for now_s in self._ticks(PERIOD_S):
            self.samples.standstills += standstills.read(now_s, self._bed.processes())

    async def _guard(self, job: Any) -> None:
        """A switch that is gone or cannot be read leaves a series short; the run's own checks judge the run."""
        try:
            await job
        except (FairlaneError, P4ClientError, OSError) as error:
            self.samples.problems.append(str(error))

    async def _ticks(self, period_s: float) -> AsyncIterator[float]:
        due = time.monotonic()
        while not self._stop.is_set():
            yield time.monotonic()
            due = max(due + period_s, time.monotonic())
            while not self._stop.is_set() and (left := due - time.monotonic()) > 0:
                await asyncio.sleep(min(left, 0.1))


class QueueWatch(PortWatch):
    """A `PortWatch` of the queues themselves, for programs that admit everything. BMv2 tells of no queue: there it is what the
    program sent to the port, and not what waits."""

    async def _run(self) -> None:
        switches = dict.fromkeys(port.switch for port in self._bed.ports)
        watch = self._watch_queues if self._bed.target == "embedded" else self._watch_counters
        jobs = [self._guard(watch(name)) for name in switches]
        if self._bed.part.part.measured:
            jobs += [self._guard(self._watch_values(name)) for name in switches]
        await asyncio.gather(*jobs)

    async def _watch_values(self, name: str) -> None:
        """What the program shows of its ports, once a second."""
        async with SwitchClient(self._bed.endpoint(name)) as client:
            async for now_s in self._ticks(VALUES_EVERY_S):
                values = await read_ports_of(client, self._bed.part.part.program)
                self.samples.of_program.setdefault(name, []).append((now_s, values))

    def _ports_of(self, name: str) -> list[ManagedPort]:
        return [port for port in self._bed.ports if port.switch == name]

    async def _watch_queues(self, name: str) -> None:
        numbers = {port.port for port in self._ports_of(name)}
        samples = self.samples
        async for now_s in self._ticks(self._period_s):
            ports = self._queues_of(name)
            took_s = time.monotonic() - now_s
            if took_s > READ_MAX_S:
                continue  # nobody knows when in that time the switch read its counters
            for port in ports:
                if port.port in numbers:
                    key, at_s = (name, port.port), now_s + took_s / 2
                    samples.tx_bytes.setdefault(key, []).append((at_s, float(port.tx_bytes)))
                    samples.waiting.setdefault(key, []).append((at_s, float(port.waiting_packets)))

    async def _watch_counters(self, name: str) -> None:
        numbers: list[Any] = [port.port for port in self._ports_of(name)]
        async with SwitchClient(self._bed.endpoint(name)) as client:
            async for now_s in self._ticks(self._period_s):
                cells = await client.read_counters(COUNTER_PASSED, numbers)
                took_s = time.monotonic() - now_s
                if took_s <= READ_MAX_S:
                    for number, cell in cells.items():
                        points = self.samples.tx_bytes.setdefault((name, number), [])
                        points.append((now_s + took_s / 2, float(cell.byte_count)))
