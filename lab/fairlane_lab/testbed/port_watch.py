# SPDX-License-Identifier: Apache-2.0
"""Samples one run: bytes that left each managed port, its drops, what waits. One thread with one event loop serves all watches of a batch."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, cast

from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.switch.client import SwitchClient
from fairlane_controller.switch.shared import COUNTER_PASSED
from fairlane_switch.port_control import PortControlError, PortCounts, read_ports
from finsy import P4ClientError, P4CounterData, P4RegisterEntry

from fairlane_lab.programs.part import program_drops, read_ports_of
from fairlane_lab.testbed.bed import Bed
from fairlane_lab.testbed.standstill import PERIOD_S, Standstills

READ_MAX_S = 0.01
"""A reading of the counters that takes longer has no instant and does not count."""
END_TIMEOUT_S = 15.0
VALUES_EVERY_S = 1.0

PortKey = tuple[str, int]
Look = Callable[[SwitchClient, str], Awaitable[None]]
"""Reads a switch, by its name, through its client."""
FlowAddress = tuple[str, int, int]
"""Source address, source port, destination port."""


def _lists() -> Any:
    return defaultdict[Any, list[Any]](list)


@dataclass
class Samples:
    """Everything sampled in a run: (instant, value), by port or flow or switch; times are CLOCK_MONOTONIC seconds."""

    tx_bytes: dict[PortKey, list[tuple[float, float]]] = field(default_factory=_lists)
    tx_packets: dict[PortKey, list[tuple[float, float]]] = field(default_factory=_lists)
    """Where frames take other than their bytes on the line."""
    of_program: dict[str, list[tuple[float, Any]]] = field(default_factory=_lists)
    """What the program's own watch reads of each switch."""
    drops: dict[PortKey, list[tuple[float, float]]] = field(default_factory=_lists)
    waiting: dict[PortKey, list[tuple[float, float]]] = field(default_factory=_lists)
    flows: dict[FlowAddress, list[tuple[float, float]]] = field(default_factory=_lists)
    measured: dict[PortKey, list[tuple[float, dict[str, float | None]]]] = field(default_factory=_lists)
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
        switches = dict.fromkeys(port.switch for port in self._bed.ports)
        looks = [(self._read_drops, self._period_s), *self._looks()]
        await asyncio.gather(
            self._watch_processes(),
            self._watch_loop(),
            *(self._repeat(*look, name) for name in switches for look in looks),
        )

    def _looks(self) -> Sequence[tuple[Look, float]]:
        """What is read of each switch, and every how many seconds."""
        raise NotImplementedError

    async def _watch_loop(self) -> None:
        """What is read of the control loop, until the end."""

    async def _repeat(self, look: Look, period_s: float, switch: str) -> None:
        """Read until the end. A switch that is gone or cannot be read leaves a series short; the run's own checks judge the run."""
        with self._noting_problems():
            async with SwitchClient(self._bed.endpoint(switch)) as client:
                async for _ in self._ticks(period_s):
                    await look(client, switch)

    @contextlib.contextmanager
    def _noting_problems(self) -> Generator[None]:
        try:
            yield
        except (FairlaneError, P4ClientError, OSError) as error:
            self.samples.problems.append(str(error))

    def _numbers(self, switch: str) -> list[int]:
        """The managed ports of a switch."""
        return [port.port for port in self._bed.ports if port.switch == switch]

    @staticmethod
    def _instant(began_s: float) -> float | None:
        """When a reading was made that began then and is over now; None: it took so long that nobody knows when the switch read its counters."""
        took_s = time.monotonic() - began_s
        return began_s + took_s / 2 if took_s <= READ_MAX_S else None

    async def _read_at_once(
        self, client: SwitchClient, entities: Sequence[Any]
    ) -> tuple[float | None, dict[tuple[str, int], Any]]:
        """Cells of counters and registers in one request: (instant, (name, index) → its data)."""
        began_s = time.monotonic()
        found: dict[tuple[str, int], Any] = {}
        async for one in cast("AsyncIterator[Any]", client.switch.read(entities)):
            if isinstance(one, P4RegisterEntry):
                found[one.register_id, cast("int", one.index)] = one.data
            else:
                found[one.counter_id, one.index] = one.data or P4CounterData()
        return self._instant(began_s), found

    async def _read_drops(self, client: SwitchClient, name: str) -> None:
        """What the program of a switch has refused at its managed ports, and the queues behind it (BMv2 does not tell of those)."""
        now_s = time.monotonic()
        drops = await program_drops(client, self._bed.part.part, self._numbers(name))
        for port in self._queues_of(name) if self._bed.target == "embedded" else ():
            if port.port in drops:
                drops[port.port] += sum(port.drops.values())
        if (at_s := self._instant(now_s)) is not None:
            for number, packets in drops.items():
                self.samples.drops[name, number].append((at_s, float(packets)))

    def _queues_of(self, name: str) -> list[PortCounts]:
        try:
            return read_ports(self._bed.network.switches[name].options.control)
        except PortControlError as error:
            raise FairlaneError(ErrorCode.SWITCH_UNREACHABLE, str(error)) from None

    async def _watch_processes(self) -> None:
        standstills = Standstills()
        async for now_s in self._ticks(PERIOD_S):
            self.samples.standstills += standstills.read(now_s, self._bed.processes())

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

    def _looks(self) -> Sequence[tuple[Look, float]]:
        queues = self._read_queues if self._bed.target == "embedded" else self._read_counters
        values = [(self._read_values, VALUES_EVERY_S)] if self._bed.part.part.measured else []
        return [(queues, self._period_s), *values]

    async def _read_values(self, client: SwitchClient, name: str) -> None:
        """What the program shows of its ports."""
        now_s = time.monotonic()
        self.samples.of_program[name].append((now_s, await read_ports_of(client, self._bed.part.part.program)))

    async def _read_queues(self, client: SwitchClient, name: str) -> None:
        del client
        now_s = time.monotonic()
        ports = self._queues_of(name)
        if (at_s := self._instant(now_s)) is not None:
            for port in ports:
                if port.port in self._numbers(name):
                    self.samples.tx_bytes[name, port.port].append((at_s, float(port.tx_bytes)))
                    self.samples.waiting[name, port.port].append((at_s, float(port.waiting_packets)))

    async def _read_counters(self, client: SwitchClient, name: str) -> None:
        now_s = time.monotonic()
        cells = await client.read_counters(COUNTER_PASSED, self._numbers(name))
        if (at_s := self._instant(now_s)) is not None:
            for number, cell in cells.items():
                self.samples.tx_bytes[name, number].append((at_s, float(cell.byte_count)))
