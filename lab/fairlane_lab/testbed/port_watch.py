# SPDX-License-Identifier: Apache-2.0
"""Samples one run: bytes that left each managed port, its drops, what waits (in all and of each flow), and what the controller measured.

Bytes that left are those that the program admitted less those that wait: exact in any kernel, which an interface's
own counters are not. Occupancies come from registers: BMv2 does not read those over P4Runtime, so there the series of
the queue stay empty and what waits counts as gone. One thread with one event loop serves all watches of a batch.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, cast

from fairlane_controller.errors import FairlaneError
from fairlane_controller.loop.control import ask
from fairlane_controller.programs.gfr import names as gfr_program
from fairlane_controller.programs.qthresh import names as program
from fairlane_controller.programs.qthresh.flow_keeper import flow_of
from fairlane_controller.switch.client import SwitchClient
from fairlane_controller.switch.shared import COUNTER_ADMITTED, COUNTER_DROPS, drops_index
from finsy import P4ClientError, P4CounterData, P4CounterEntry, P4RegisterEntry

from fairlane_lab.testbed.bed import Bed, ManagedPort

FLOW_REGISTER = "flow_occupancy"
PORT_REGISTER = "port_occupancy"
PORT_BYTES_REGISTER = "port_occupancy_bytes"
FIND_FLOWS_EVERY_S = 1.0
MEASURE_EVERY_S = 1.0
READ_MAX_S = 0.01
"""A reading of the counters that takes longer has no instant and does not count."""
IDLE_NS = 1_000_000_000
FLOWS_WATCHED_MAX = 256
END_TIMEOUT_S = 15.0
DROP_REASONS = (program.DropReason.QTHRESH, program.DropReason.PORT_FULL)

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
    """With program `gfr` only, as `refusals`."""
    refusals: dict[str, list[tuple[float, dict[str, dict[str, int]]]]] = field(
        default_factory=dict[str, list[tuple[float, dict[str, dict[str, int]]]]]
    )
    """Of each switch: the VCs' refused frames by verdict."""
    drops: dict[PortKey, list[tuple[float, float]]] = field(default_factory=dict[PortKey, list[tuple[float, float]]])
    waiting: dict[PortKey, list[tuple[float, float]]] = field(default_factory=dict[PortKey, list[tuple[float, float]]])
    flows: dict[FlowAddress, list[tuple[float, float]]] = field(
        default_factory=dict[FlowAddress, list[tuple[float, float]]]
    )
    measured: dict[PortKey, list[tuple[float, dict[str, float | None]]]] = field(
        default_factory=dict[PortKey, list[tuple[float, dict[str, "float | None"]]]]
    )
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
        from fairlane_lab.testbed.ena_watch import EnaPortWatch
        from fairlane_lab.testbed.gfr_watch import GfrPortWatch

        kinds = {gfr_program.PROGRAM: GfrPortWatch, "ena": EnaPortWatch}
        kind = kinds.get(bed.program, PortWatch)
        return kind(self._loop, bed, period_s, flows, frozenset(sink_ports))


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
        self._work = asyncio.run_coroutine_threadsafe(self._run(), self._loop)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        with contextlib.suppress(TimeoutError, asyncio.CancelledError):
            self._work.result(timeout=END_TIMEOUT_S)
        self._work.cancel()

    async def _run(self) -> None:
        switches = dict.fromkeys(port.switch for port in self._bed.ports)
        jobs = [self._guard(self._measure())]
        jobs += [self._guard(self._switch(name, [p for p in self._bed.ports if p.switch == name])) for name in switches]
        await asyncio.gather(*jobs)

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

    async def _measure(self) -> None:
        async for now_s in self._ticks(MEASURE_EVERY_S):
            for row in await ask(self._bed.state, {"op": "measure"}):
                values = {
                    name: (row[name]["value"] if row.get(name) else None)
                    for name in ("bw_bps", "t_res_s", "l_d_bytes", "n_c")
                }
                self.samples.measured.setdefault((row["switch"], row["port"]), []).append((now_s, values))

    async def _switch(self, name: str, ports: list[ManagedPort]) -> None:
        endpoint = self._bed.endpoint(name)
        slots: dict[int, FlowAddress] = {}
        found_at = -FIND_FLOWS_EVERY_S
        async with SwitchClient(endpoint) as client:
            async for now_s in self._ticks(self._period_s):
                if self._flows and now_s - found_at > FIND_FLOWS_EVERY_S:
                    slots = await self._find_flows(client)
                    found_at = now_s
                await self._read(client, ports, slots)

    async def _read(self, client: SwitchClient, ports: list[ManagedPort], slots: dict[int, FlowAddress]) -> None:
        """One request for everything: a single instant."""
        numbers = [port.port for port in ports]
        entities: list[Any] = []
        for number in numbers:
            indices = [program.admitted_index(number, each) for each in range(program.CLASSES)]
            entities += [P4CounterEntry(COUNTER_ADMITTED, index=index) for index in indices]
            indices = [drops_index(number, reason) for reason in DROP_REASONS]
            entities += [P4CounterEntry(COUNTER_DROPS, index=index) for index in indices]
        if self._bed.target == "embedded":
            entities += [
                P4RegisterEntry(name, index=n) for n in numbers for name in (PORT_REGISTER, PORT_BYTES_REGISTER)
            ]
            entities += [P4RegisterEntry(FLOW_REGISTER, index=slot) for slot in slots]
        now_s = time.monotonic()
        admitted, drops, waiting = dict.fromkeys(numbers, 0), dict.fromkeys(numbers, 0), dict.fromkeys(numbers, 0)
        samples, switch = self.samples, ports[0].switch
        answers = cast("AsyncIterator[P4CounterEntry | P4RegisterEntry]", client.switch.read(entities))
        async for entry in answers:
            index = cast("int", entry.index)
            if isinstance(entry, P4CounterEntry):
                data = entry.data or P4CounterData()
                if entry.counter_id == COUNTER_ADMITTED:
                    admitted[index >> 3] += data.byte_count
                else:
                    drops[index >> 4] += data.packet_count
            elif entry.register_id == PORT_REGISTER:
                samples.waiting.setdefault((switch, index), []).append((now_s, float(cast("int", entry.data))))
            elif entry.register_id == PORT_BYTES_REGISTER:
                waiting[index] = cast("int", entry.data)
            else:
                samples.flows.setdefault(slots[index], []).append((now_s, float(cast("int", entry.data))))
        took_s = time.monotonic() - now_s
        if took_s > READ_MAX_S:
            return  # nobody knows when in that time the switch read its counters
        now_s += took_s / 2
        for number in numbers:
            left = float(admitted[number] - waiting[number])
            samples.tx_bytes.setdefault((switch, number), []).append((now_s, left))
            samples.drops.setdefault((switch, number), []).append((now_s, float(drops[number])))

    async def _find_flows(self, client: SwitchClient) -> dict[int, FlowAddress]:
        found: dict[int, FlowAddress] = {}
        for table in program.TABLE_FLOW.values():
            for entry in await client.read_table(table, idle=True):
                key, slot = flow_of(entry)
                if key.dst_port in self._sink_ports and (entry.time_since_last_hit or 0) < IDLE_NS:
                    found[slot] = (str(key.src), key.src_port, key.dst_port)
        return dict(list(found.items())[:FLOWS_WATCHED_MAX])
