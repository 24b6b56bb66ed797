# SPDX-License-Identifier: Apache-2.0
"""Samples one run: bytes that left each managed port, its drops, what waits. One thread with one event loop serves all watches of a batch.
Processes of the run that waited for a processor are noted too: those that stood still say nothing of the network.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.state.ask import ask
from fairlane_controller.switch.client import SwitchClient
from fairlane_controller.switch.reading import BatchReading
from fairlane_switch.control import ControlError
from fairlane_switch.port_control import read_ports
from fairlane_topology.topology import PortKey

from fairlane_lab.programs.part import LOOK_PERIOD_S, program_drops
from fairlane_lab.testbed.bed import Bed

PERIOD_S = 0.25
STANDSTILL_S = 0.1
"""A thread that waited so long within a period stood still."""


class Standstills:
    """Reads, each PERIOD_S, how long each thread was ready to run and did not (proc(5), /proc/PID/task/TID/schedstat)."""

    def __init__(self) -> None:
        self._waited_s: dict[int, float] = {}
        self._last_s: float | None = None

    def read(self, now_s: float, processes: Mapping[int, str]) -> list[tuple[float, str, float]]:
        """(instant, what it is, seconds) of each that stood still since the reading before; `processes` says by pid what they are.

        A reading that is late itself means that the whole machine stood still. Without /proc/PID/task/TID/schedstat only that is seen.
        """
        found: list[tuple[float, str, float]] = []
        if self._last_s is not None and (late_s := now_s - self._last_s - PERIOD_S) > STANDSTILL_S:
            found.append((now_s, "this machine", late_s))
        self._last_s = now_s
        for pid, what in processes.items():
            for thread, waited_s in _waits(pid):
                new_s = waited_s - self._waited_s.get(thread, waited_s)
                self._waited_s[thread] = waited_s
                if new_s > STANDSTILL_S:
                    found.append((now_s, what, new_s))
        return found


def _waits(pid: int) -> list[tuple[int, float]]:
    """(thread, seconds) of a process; nothing of one that has ended."""
    found: list[tuple[int, float]] = []
    try:
        for task in Path(f"/proc/{pid}/task").iterdir():
            found.append((int(task.name), int((task / "schedstat").read_text().split()[1]) / 1e9))
    except (OSError, IndexError):
        pass
    return found


READ_MAX_S = 0.01
"""A reading of the counters that takes longer has no instant and does not count."""
END_TIMEOUT_S = 15.0
VALUES_EVERY_S = 1.0
FIND_FLOWS_EVERY_S = 1.0
FLOWS_WATCHED_MAX = 256

FlowAddress = tuple[str, int, int]
"""Source address, source port, destination port."""
Points = dict[Any, list[tuple[float, float]]]


def _lists() -> Any:
    return defaultdict[Any, list[Any]](list)


@dataclass
class Watched:
    """Everything sampled in a run: (instant, value), by port or flow or switch; times are CLOCK_MONOTONIC seconds."""

    tx_bytes: Points = field(default_factory=_lists)
    tx_packets: Points = field(default_factory=_lists)
    drops: Points = field(default_factory=_lists)
    waiting: Points = field(default_factory=_lists)
    flows: Points = field(default_factory=_lists)
    """Packets that each flow has waiting."""
    of_program: dict[str, list[tuple[float, Any]]] = field(default_factory=_lists)
    """What the program's part reads of each switch (`LabPart.read`)."""
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

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(timeout=END_TIMEOUT_S)
        if not (self._thread.is_alive() or asyncio.all_tasks(self._loop)):  # gRPC may have answers for what still waits
            self._loop.close()

    @contextlib.contextmanager
    def watch(self, bed: Bed, period_s: float, flows: bool, sink_ports: Sequence[int]) -> Any:
        """A watch over a bed's managed ports around one run. `flows`: also each flow's queue."""
        watch = PortWatch(bed, period_s, flows, sink_ports)
        work = asyncio.run_coroutine_threadsafe(watch.run(), self._loop)
        try:
            yield watch
        finally:
            watch.stop.set()
            with contextlib.suppress(TimeoutError, asyncio.CancelledError):
                work.result(timeout=END_TIMEOUT_S)
            work.cancel()


class PortWatch:
    """Samples the queues, what the program counts and shows, and what its loop measures. BMv2 tells of no queue: there it is what the program sent to
    the port, and not what waits."""

    def __init__(self, bed: Bed, period_s: float, flows: bool, sink_ports: Sequence[int]) -> None:
        self._bed = bed
        self._period_s = period_s
        self._flows = flows
        self._sink_ports = sink_ports
        self._slots: dict[str, dict[int, FlowAddress]] = {}
        "By switch: the flows that are watched."
        self.stop = threading.Event()
        self.samples = Watched()

    async def run(self) -> None:
        """Until it is stopped. A switch that is gone or cannot be read leaves a series short; the run's own checks judge the run."""
        switches = dict.fromkeys(switch for switch, _ in self._bed.ports)
        embedded = self._bed.target == "embedded"
        reads = [(self.read_values, VALUES_EVERY_S)]
        reads.append((self.read_ports if embedded else self.read_counters, self._period_s))
        if embedded and self._flows and self._bed.part.flow_register:
            reads += [(self.find_flows, FIND_FLOWS_EVERY_S), (self.read_flows, self._period_s)]
        jobs = [self._repeat(name, *read) for name in switches for read in reads]
        if self._bed.part.loop_values:
            jobs.append(self._watch_loop())
        await asyncio.gather(self._watch_processes(), *jobs)

    async def _repeat(self, switch: str, read: Callable[[SwitchClient], Awaitable[None]], period_s: float) -> None:
        with self._noting_problems():
            async with SwitchClient(self._bed.endpoint(switch)) as client:
                async for _ in self._ticks(period_s):
                    await read(client)

    async def _watch_loop(self) -> None:
        """What the control loop has measured."""
        with self._noting_problems():
            async for now_s in self._ticks(LOOK_PERIOD_S):
                for row in await ask(self._bed.state, {"op": "measure"}):
                    polls = self.samples.measured[row["switch"], row["port"]]
                    polls.append((now_s, self._bed.part.loop_row(row)))

    async def _watch_processes(self) -> None:
        standstills = Standstills()
        async for now_s in self._ticks(PERIOD_S):
            self.samples.standstills += standstills.read(now_s, self._bed.processes())

    async def _ticks(self, period_s: float) -> AsyncIterator[float]:
        due = time.monotonic()
        while not self.stop.is_set():
            yield time.monotonic()
            due = max(due + period_s, time.monotonic())
            while not self.stop.is_set() and (left := due - time.monotonic()) > 0:
                await asyncio.sleep(min(left, 0.1))

    @contextlib.contextmanager
    def _noting_problems(self) -> Any:
        try:
            yield
        except (FairlaneError, OSError) as error:
            self.samples.problems.append(str(error))

    # ---- what is read of one switch ------------------------------------------------------------------------------

    async def read_values(self, client: SwitchClient) -> None:
        """What the program's part in the lab reads."""
        now_s, name = time.monotonic(), client.endpoint.name
        values = await self._bed.part.read(client, list(self._bed.ports), self._bed.plans)
        self.samples.of_program[name].append((now_s, values))

    async def read_ports(self, client: SwitchClient) -> None:
        """What left the managed ports, what waits there, and what was refused, by the queues and by the program."""
        name, began_s = client.endpoint.name, time.monotonic()
        try:
            ports = read_ports(self._bed.network.switches[name].control)
        except ControlError as error:
            raise ErrorCode.SWITCH_UNREACHABLE(str(error)) from None
        at_s = self._instant(began_s)
        for port in ports:
            self._add(self.samples.tx_bytes, (name, port.port), at_s, port.tx_bytes)
            self._add(self.samples.tx_packets, (name, port.port), at_s, port.tx_packets)
            self._add(self.samples.waiting, (name, port.port), at_s, port.waiting_packets)
        await self._read_drops(client, {port.port: sum(port.drops.values()) for port in ports})

    async def read_counters(self, client: SwitchClient) -> None:
        """What the program sent to each port."""
        name = client.endpoint.name
        for number in self._numbers(name):
            began_s = time.monotonic()
            cells = (await BatchReading(client).counters(*self._bed.part.sent_cells(number))).values()
            at_s = self._instant(began_s)
            self._add(self.samples.tx_bytes, (name, number), at_s, sum(cell.byte_count for cell in cells))
            self._add(self.samples.tx_packets, (name, number), at_s, sum(cell.packet_count for cell in cells))
        await self._read_drops(client, {})

    async def _read_drops(self, client: SwitchClient, of_queues: dict[int, int]) -> None:
        """What the program has refused at the managed ports, and the queues behind it (BMv2 does not report those)."""
        name, began_s = client.endpoint.name, time.monotonic()
        drops = await program_drops(client, self._bed.part, self._numbers(name))
        at_s = self._instant(began_s)
        for number, packets in drops.items():
            self._add(self.samples.drops, (name, number), at_s, packets + of_queues.get(number, 0))

    async def find_flows(self, client: SwitchClient) -> None:
        """The flows whose queues are watched."""
        found = await self._bed.part.find_flows(client)
        mine = [(slot, flow) for slot, flow in found.items() if flow[2] in self._sink_ports]
        self._slots[client.endpoint.name] = dict(mine[:FLOWS_WATCHED_MAX])

    async def read_flows(self, client: SwitchClient) -> None:
        """Their queues."""
        slots, began_s = self._slots.get(client.endpoint.name, {}), time.monotonic()
        found = await BatchReading(client).registers(self._bed.part.flow_register, slots) or {}
        at_s = self._instant(began_s)
        for slot, packets in found.items():
            self._add(self.samples.flows, slots[slot], at_s, packets)

    def _numbers(self, switch: str) -> list[int]:
        """The managed ports of a switch."""
        return [port for name, port in self._bed.ports if name == switch]

    @staticmethod
    def _instant(began_s: float) -> float | None:
        """When a reading was made that began then and is over now; None: it took so long that nobody knows when the switch read its counters."""
        took_s = time.monotonic() - began_s
        return began_s + took_s / 2 if took_s <= READ_MAX_S else None

    def _add(self, points: Points, key: Any, at_s: float | None, value: float) -> None:
        if at_s is not None:
            points[key].append((at_s, float(value)))
