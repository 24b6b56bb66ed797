# SPDX-License-Identifier: Apache-2.0
"""Samples one run: bytes that left each managed port, its drops, what waits. One thread with one event loop serves all watches of a batch."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.state.ask import ask
from fairlane_controller.switch.client import SwitchClient
from fairlane_switch.port_control import PortControlError, PortCounts, read_ports
from finsy import P4ClientError, P4CounterData, P4CounterEntry, P4RegisterEntry

from fairlane_lab.programs.part import LOOK_PERIOD_S, program_drops
from fairlane_lab.testbed.bed import Bed
from fairlane_lab.testbed.standstill import PERIOD_S, Standstills

READ_MAX_S = 0.01
"""A reading of the counters that takes longer has no instant and does not count."""
END_TIMEOUT_S = 15.0
VALUES_EVERY_S = 1.0
FIND_FLOWS_EVERY_S = 1.0
FLOWS_WATCHED_MAX = 256

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
    """What the program's part reads of each switch (`RunPart.read`)."""
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
        return PortWatch(self._loop, bed, period_s, flows, frozenset(sink_ports))


class PortWatch:
    """Samples from entering it to leaving it: the queues, what the program counts and shows, and what its loop measures. BMv2 tells of no queue:
    there it is what the program sent to the port, and not what waits."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, bed: Bed, period_s: float, flows: bool, sink_ports: frozenset[int]
    ) -> None:
        self._loop = loop
        self._bed = bed
        self._period_s = period_s
        self._flows = flows
        self._sink_ports = sink_ports
        self._stop = threading.Event()
        self._slots: dict[str, dict[int, FlowAddress]] = {}
        "By switch: the flows that are watched."
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
        embedded, part = self._bed.target == "embedded", self._bed.part.part
        looks: list[tuple[Look, float]] = [(self._read_values, VALUES_EVERY_S)]
        looks.append((self._read_ports if embedded else self._read_counters, self._period_s))
        if embedded and self._flows and part.flow_register:
            looks += [(self._find_flows, FIND_FLOWS_EVERY_S), (self._read_flows, self._period_s)]
        await asyncio.gather(
            self._watch_processes(),
            self._watch_loop(),
            *(self._repeat(*look, name) for name in switches for look in looks),
        )

    async def _watch_loop(self) -> None:
        """What the control loop has measured, until the end."""
        part = self._bed.part.part
        if not part.loop_values:
            return
        with self._noting_problems():
            async for now_s in self._ticks(LOOK_PERIOD_S):
                for row in await ask(self._bed.state, {"op": "measure"}):
                    self.samples.measured[row["switch"], row["port"]].append((now_s, part.loop_row(row)))

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

    async def _read_at_once(self, client: SwitchClient, entities: Sequence[Any]) -> tuple[float | None, list[Any]]:
        """Cells of counters or registers in one request, and its instant."""
        began_s = time.monotonic()
        found: list[Any] = await client.read_all(entities)
        return self._instant(began_s), found

    async def _find_flows(self, client: SwitchClient, name: str) -> None:
        """The flows whose queues are watched."""
        found = await self._bed.part.find_flows(client)
        mine = [(slot, flow) for slot, flow in found.items() if flow[2] in self._sink_ports]
        self._slots[name] = dict(mine[:FLOWS_WATCHED_MAX])

    async def _read_flows(self, client: SwitchClient, name: str) -> None:
        slots, register = self._slots.get(name, {}), self._bed.part.part.flow_register
        at_s, found = await self._read_at_once(client, [P4RegisterEntry(register, index=slot) for slot in slots])
        if at_s is not None:
            for one in found:
                self.samples.flows[slots[one.index]].append((at_s, float(one.data)))

    async def _read_values(self, client: SwitchClient, name: str) -> None:
        """What the program's part in the lab reads."""
        now_s = time.monotonic()
        self.samples.of_program[name].append((now_s, await self._bed.part.read(client)))

    async def _read_ports(self, client: SwitchClient, name: str) -> None:
        """What left the managed ports, what waits there, and what was refused, by the queues and by the program."""
        began_s, numbers = time.monotonic(), self._numbers(name)
        ports = [port for port in self._queues_of(name) if port.port in numbers]
        if (at_s := self._instant(began_s)) is not None:
            for port in ports:
                self.samples.tx_bytes[name, port.port].append((at_s, float(port.tx_bytes)))
                self.samples.tx_packets[name, port.port].append((at_s, float(port.tx_packets)))
                self.samples.waiting[name, port.port].append((at_s, float(port.waiting_packets)))
        await self._read_drops(client, name, {port.port: sum(port.drops.values()) for port in ports})

    async def _read_counters(self, client: SwitchClient, name: str) -> None:
        """What the program sent to each port."""
        for number in self._numbers(name):
            cells = self._bed.part.part.sent_cells(number)
            at_s, found = await self._read_at_once(client, [P4CounterEntry(each, index=index) for each, index in cells])
            if at_s is not None:
                sent = [one.data or P4CounterData() for one in found]
                self.samples.tx_bytes[name, number].append((at_s, float(sum(one.byte_count for one in sent))))
                self.samples.tx_packets[name, number].append((at_s, float(sum(one.packet_count for one in sent))))

        await self._read_drops(client, name, {})

    async def _read_drops(self, client: SwitchClient, name: str, of_queues: Mapping[int, int]) -> None:
        """What the program of a switch has refused at its managed ports, and the queues behind it (BMv2 does not tell of those)."""
        began_s = time.monotonic()
        drops = await program_drops(client, self._bed.part.part, self._numbers(name))
        if (at_s := self._instant(began_s)) is not None:
            for number, packets in drops.items():
                self.samples.drops[name, number].append((at_s, float(packets + of_queues.get(number, 0))))

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
