# SPDX-License-Identifier: Apache-2.0
"""One reading of one switch, whatever its program: rows of the program, packets sent and dropped."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from finsy import P4ClientError

from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.live.model import DropRow, ObjectRow, PortRow, SwitchRow
from fairlane_controller.program.contract import Program
from fairlane_controller.program.rates import RateBook
from fairlane_controller.program.reading import BatchReading
from fairlane_controller.program.reasons import reasons_of
from fairlane_controller.program.registry import find_program
from fairlane_controller.program.rows import DROP_KIND
from fairlane_controller.program.setup import complete_rows
from fairlane_controller.state.run_state import PortState, SwitchState
from fairlane_controller.switch.client import Endpoint, SwitchClient
from fairlane_controller.switch.faults import translate
from fairlane_controller.switch.shared import COUNTER_DROPS, COUNTER_PASSED, drops_index

if TYPE_CHECKING:
    from fairlane_controller.gnmi.ports import PortInfo
    from fairlane_controller.gnmi.queues import GnmiQueues

_PORT_TOTALS = (
    "waiting_packets", "waiting_bytes", "capacity_packets", "sent_packets", "sent_bytes", "dropped_packets"
)  # fmt: skip
"""Values that a program may give in place of the core's."""
_NOT_SENT = "transmit_failed"
"""It had left the queue."""
_LINK = ("port_down", _NOT_SENT)
"""Drops of the link."""
PerSecond = Callable[[Hashable, "float | None"], "float | None"]


@dataclass(frozen=True)
class Place:
    """One switch as the run state knows it."""

    name: str
    state: SwitchState | None = None
    folder: Path | None = None
    loop: Mapping[str, Any] | None = None
    "What the control loop's status says of it."
    measured: Mapping[int, Mapping[str, Any]] = field(default_factory=dict[int, Mapping[str, Any]])
    "What the loop measures at its ports."
    program: str = ""
    "What its topology names."


@dataclass(frozen=True)
class Sample:
    """One reading of one switch."""

    ports: tuple[PortRow, ...] = ()
    objects: tuple[ObjectRow, ...] = ()
    drops: tuple[DropRow, ...] = ()


async def read_sample(
    program: Program | None, reading: BatchReading, place: Place, counters: set[str], lines: Iterable[PortInfo] = ()
) -> Sample:
    """One reading of a switch that has these counters; None: an unknown program; `lines`: what its traffic manager says. Raises FairlaneError."""
    await reading.begin()
    rows = await complete_rows(program, reading, place.state) if program is not None else []
    own = {row.port: row.values for row in rows if not row.kind and row.port is not None}
    states = {port.port: port for port in place.state.ports} if place.state else {}
    ports, line_of = sorted({*states, *own}), {line.port: line for line in lines}
    drops, sent = await asyncio.gather(
        _drops(program, reading, place.name, ports if COUNTER_DROPS in counters else []),
        reading.counters(COUNTER_PASSED, ports if COUNTER_PASSED in counters else []),
    )
    for row in rows:
        if row.kind == DROP_KIND and row.values["packets"]:
            reason, packets, whose = (row.values[key] for key in ("reason", "packets", "object"))
            per_s = reading.per_s((DROP_KIND, row.port, row.key), packets)
            drops.append(DropRow(place.name, row.port, reason, packets, per_s, "program", whose, in_queue=True))
    knows_drops = any(reason.in_queue for reason in reasons_of(program).values())
    found: list[PortRow] = []
    for port in ports:
        core: dict[str, Any] = {}
        if knows_drops:
            core["dropped_packets"] = sum(row.packets for row in drops if row.port == port and row.in_queue)
        if cell := sent.get(port):
            core |= {"sent_packets": cell.packet_count, "sent_bytes": cell.byte_count}
        values = core | dict(own.get(port, {}))
        known = states.get(port), line_of.get(port), place.measured.get(port)
        found.append(port_row(place.name, port, *known, values, port in own, reading.per_s))
    for port in line_of.keys() & set(ports):
        drops += line_drops(place.name, line_of[port], reading.per_s)
    objects = [
        ObjectRow(place.name, row.port, row.kind, row.key, row.values)
        for row in rows
        if row.kind and row.kind != DROP_KIND
    ]
    return Sample(tuple(found), tuple(objects), tuple(drops))


def port_row(
    switch: str,
    port: int,
    state: PortState | None,
    line: PortInfo | None,
    measured: Mapping[str, Any] | None,
    values: dict[str, Any],
    managed: bool,
    per_s: PerSecond,
) -> PortRow:
    """A port: what its program, the run state, the traffic manager and the loop say.

    Counters of the line itself replace the program's estimate; what the loop measures stands where the others do not know.
    """
    core: dict[str, Any] = dict.fromkeys(_PORT_TOTALS)
    core["capacity_packets"] = state.queue_packets or None if state else None
    core |= {name: values.pop(name) for name in _PORT_TOTALS if name in values}
    interface, rate_bps = (state.interface or None, state.rate_bps or None) if state else (None, None)
    counted = "program"
    if line is not None:
        interface = line.interface or interface
        rate_bps = rate_bps if line.rate_bps is None else line.rate_bps or None
        core["dropped_packets"] = (core["dropped_packets"] or 0) + sum(line.drops.values())
        for name in ("waiting_packets", "waiting_bytes"):
            core[name] = core[name] if managed and core[name] is not None else getattr(line, name)
        if not managed:
            core["capacity_packets"] = line.queue_packets or core["capacity_packets"]
        if line.sent_packets is not None:
            core["sent_packets"] = line.sent_packets
        if line.sent_bytes is not None:
            core["sent_bytes"], counted = line.sent_bytes, "line"
    if core["waiting_packets"] is None and measured is not None:
        core["waiting_packets"] = measured.get("waiting_packets")
    sent_per_s = per_s((counted, "sent_bytes", port), core["sent_bytes"])
    tx_bps = None if sent_per_s is None else 8 * sent_per_s
    bw: Any = measured.get("bw_bps") if measured is not None else None
    line_bps: float | None = rate_bps or (bw["value"] if bw else None)
    return PortRow(
        switch,
        port,
        interface,
        managed,
        rate_bps,
        tx_bps,
        utilisation=tx_bps / line_bps if tx_bps is not None and line_bps else None,
        drops_per_s=per_s(("dropped_packets", port), core["dropped_packets"]),
        values=values,
        measured=measured,
        **core,
    )


def line_drops(switch: str, line: PortInfo, per_s: PerSecond) -> Iterator[DropRow]:
    """What the queue and the link dropped, by reason."""
    for reason, packets in (*line.drops.items(), (_NOT_SENT, line.send_errors or 0)):
        by = "link" if reason in _LINK else "queue"
        rate = per_s((by, line.port, reason), packets)
        if packets:
            yield DropRow(switch, line.port, reason, packets, rate, by, in_queue=reason != _NOT_SENT)


async def _drops(program: Program | None, reading: BatchReading, switch: str, ports: list[int]) -> list[DropRow]:
    """A row a (port, reason) that has dropped anything, by the counter `drops`."""
    reasons = {number: one for number, one in reasons_of(program).items() if not one.in_rows}
    places = {drops_index(port, number): (port, one) for port in ports for number, one in reasons.items()}
    rows: list[DropRow] = []
    for index, cell in sorted((await reading.counters(COUNTER_DROPS, places)).items()):
        per_s = reading.per_s((COUNTER_DROPS, index), cell.packet_count)
        if cell.packet_count:
            port, one = places[index]
            rows.append(DropRow(switch, port, one.name, cell.packet_count, per_s, "program", in_queue=one.in_queue))
    return rows


NOT_REACHED = (ErrorCode.SWITCH_UNREACHABLE, ErrorCode.TIMED_OUT, ErrorCode.TLS_FAILED, ErrorCode.BAD_FILE)
"""Nothing was asked of the switch: it does not answer, TLS fails, or a file of TLS is none."""


@dataclass(frozen=True)
class ReaderOptions:
    """How long a switch may take."""

    connect_timeout_s: float = 2.0
    read_timeout_s: float = 2.0
    "Without any piece of an answer; a table of many flows may take longer."
    retry_s: float = 0.5
    "Between two attempts to reach a switch that does not answer, and two looks at one without a program."


class SwitchReader:
    """`read` never raises for what the switch does: its row says what is wrong. Digests are not its business: they go to the primary."""

    def __init__(
        self,
        endpoint: Endpoint,
        options: ReaderOptions,
        queues_of: Callable[[Endpoint], GnmiQueues] | None = None,
        client_factory: Callable[..., SwitchClient] = SwitchClient,
    ) -> None:
        self.endpoint = endpoint
        self._options = options
        self._queues_of = queues_of
        self._client_factory = client_factory
        self._client: SwitchClient | None = None
        self.program: Program | None = None
        "What the switch runs; None: nothing that has a contract."
        self._tables: tuple[str, ...] = ()
        "Of the program that the switch ran at the last reading."
        self._reading: BatchReading | None = None
        self._queues: GnmiQueues | None = None
        self._rates = RateBook()
        self._error: FairlaneError | None = None
        self._reached = False
        self._connecting: asyncio.Task[None] | None = None
        self._tried_s = -1e9

    @property
    def interval_s(self) -> float | None:
        """Between the last two readings."""
        return self._rates.interval_s

    async def read(self, place: Place, *, wait: bool) -> tuple[SwitchRow, Sample]:
        """The switch now. Where it is not connected, `wait` waits for the attempt (for its time limit); else the row says so at once."""
        await self._reconnect()
        if self._client is None:
            self._connect_in_background()
            if wait and self._connecting is not None:
                await asyncio.wait([self._connecting])
        client = self._client
        if client is None or not client.has_pipeline:
            return self._row(client), Sample()
        started_s = time.monotonic()
        reading = self._reading_of(client, place)
        sample = await self._read_in_time(client, reading, place, started_s)
        if isinstance(sample, FairlaneError):
            await self._drop(sample)  # also after a refusal: another program may be there now
            return self._row(None), Sample()
        return self._row(client, 1e3 * (time.monotonic() - started_s)), sample

    def _reading_of(self, client: SwitchClient, place: Place) -> BatchReading:
        """The reading of this connection; a new one when the client knows of another program, which it may learn after it has connected."""
        tables = tuple(client.table_names())
        if self._reading is None or tables != self._tables:
            self._rates.forget()
            self.program, self._tables = find_program(tables, place.program), tables
            self._reading = BatchReading(client, per_s=self._rates.per_s)
        self._reading.folder, self._reading.loop = place.folder, place.loop
        return self._reading

    def _unreachable(self, text: str) -> FairlaneError:
        return FairlaneError(ErrorCode.SWITCH_UNREACHABLE, f"{self.endpoint} {text}")

    async def _reconnect(self) -> None:
        """Let a connection go that is lost, or was made when the switch had no program and now has one."""
        client = self._client
        if client is not None and client.disconnected.is_set():
            await self._drop(self._unreachable("closed the connection"))
        elif client is not None and not client.has_pipeline:
            try:
                if await asyncio.wait_for(client.cookie(), self._options.read_timeout_s) is not None:
                    await self._drop(None)
            except FairlaneError as ex:
                await self._drop(ex)
            except (TimeoutError, asyncio.TimeoutError):
                text = "does not answer: it accepts the connection, and sends nothing"
                await self._drop(self._unreachable(text))

    async def _read_in_time(
        self, client: SwitchClient, batch: BatchReading, place: Place, now_s: float
    ) -> Sample | FairlaneError:
        """In a task of its own: a connection that breaks cancels the call on it, which must not look as if we were cancelled."""
        reading = asyncio.get_running_loop().create_task(self._read(client, batch, place, now_s))
        done, progress = set[asyncio.Task[Sample]](), -1
        try:
            while not done and progress != batch.progress:
                progress = batch.progress
                done, _ = await asyncio.wait([reading], timeout=self._options.read_timeout_s)
        finally:
            reading.cancel()
        if not done:
            return self._unreachable(f"did not answer a read within {self._options.read_timeout_s:g} s")
        if reading.cancelled():
            return self._unreachable("does not answer: the connection was lost")
        try:
            return reading.result()
        except FairlaneError as ex:
            return ex

    async def _read(self, client: SwitchClient, batch: BatchReading, place: Place, now_s: float) -> Sample:
        self._rates.begin(now_s)
        try:
            counters = {counter.alias for counter in client.switch.p4info.counters}
            return await read_sample(self.program, batch, place, counters, await self._lines())
        except P4ClientError as ex:
            raise translate(ex, str(self.endpoint)) from None
        except (ValueError, KeyError) as ex:
            raise FairlaneError(ErrorCode.REFUSED, f"{self.endpoint}: unexpected answer: {ex}") from None

    async def _lines(self) -> Iterable[PortInfo]:
        """What the traffic manager says of its ports; nothing where it does not serve gNMI."""
        try:
            return await self._queues.read() or () if self._queues is not None else ()
        except FairlaneError as ex:
            if ex.code is ErrorCode.SWITCH_UNREACHABLE:
                raise
            return ()

    def _row(self, client: SwitchClient | None, read_ms: float | None = None) -> SwitchRow:
        endpoint, error, program = self.endpoint, self._error, None
        if client is not None and client.has_pipeline:
            # Of ours by their contract (the P4Info need not have a name), others by their name.
            program = self.program.name if self.program is not None else client.program
        problem = error.to_json() if error is not None else None
        return SwitchRow(endpoint.name, endpoint.grpc, endpoint.device_id, self._reached, program, problem, read_ms)

    def _connect_in_background(self) -> None:
        is_trying = self._connecting is not None and not self._connecting.done()
        if not is_trying and time.monotonic() - self._tried_s >= self._options.retry_s:
            self._tried_s = time.monotonic()
            self._connecting = asyncio.get_running_loop().create_task(self._connect())

    async def _connect(self) -> None:
        client = self._client_factory(self.endpoint, timeout_s=self._options.connect_timeout_s)
        try:
            await client.__aenter__()
        except FairlaneError as ex:
            self._error, self._reached = ex, ex.code not in NOT_REACHED
            return
        self._rates.forget()
        self._reading = None
        self._queues = self._queues_of(self.endpoint) if self._queues_of else None
        self._client, self._error, self._reached = client, None, True

    async def _drop(self, error: FairlaneError | None) -> None:
        self._error = error or self._error
        if error is not None:
            self._reached = error.code not in NOT_REACHED
        client, self._client = self._client, None
        queues, self._queues = self._queues, None
        for each in (queues, client):
            if each is not None:
                # A connection that is broken may not close in order: what counts is that it ends.
                with contextlib.suppress(Exception):
                    await asyncio.wait_for(each.close(), self._options.connect_timeout_s)

    async def close(self) -> None:
        """End the connection and the attempt to make one."""
        if self._connecting is not None:
            self._connecting.cancel()
            await asyncio.gather(self._connecting, return_exceptions=True)
        await self._drop(None)
