# SPDX-License-Identifier: Apache-2.0
"""One switch with any program, read many times: a connection that is renewed by itself, and the rows of a reading."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Coroutine, Hashable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.live.model import DropRow, ObjectRow, PortRow, SwitchRow
from fairlane_controller.program.contract import Program, reasons_of
from fairlane_controller.program.registry import find_program
from fairlane_controller.program.setup import complete_rows
from fairlane_controller.state.run_state import PortState, RunState
from fairlane_controller.switch.client import Endpoint, SwitchClient
from fairlane_controller.switch.reading import BatchReading, RateBook
from fairlane_controller.switch.shared import COUNTER_DROPS, COUNTER_PASSED, drops_index

if TYPE_CHECKING:
    from fairlane_controller.gnmi.embedded import GnmiPorts
    from fairlane_controller.gnmi.ports import PortInfo

_PORT_TOTALS = (
    "waiting_packets", "waiting_bytes", "capacity_packets", "sent_packets", "sent_bytes", "dropped_packets"
)  # fmt: skip
"""Values that a program may give in place of the core's."""
_AT_INTERFACE = {"transmit_failed": "send_errors", "not_received": "receive_losses"}
"""A reason of a drop behind the queue or before the program, and the line's counter of it."""
_LINK = ("port_down", *_AT_INTERFACE)
"""Drops of the link."""
PerSecond = Callable[[Hashable, "float | None"], "float | None"]
Measured = Mapping[int, Mapping[str, Any]]
"""What the loop measures, by port."""


Sample = tuple[list[PortRow], list[ObjectRow], list[DropRow]]
"""The rows of one reading of one switch."""


async def read_sample(
    program: Program | None,
    reading: BatchReading,
    run: RunState | None,
    measured: Measured,
    counters: set[str],
    lines: Iterable[PortInfo],
) -> Sample:
    """One reading of a switch.

    Args:
        program: What it runs; None: nothing that has a contract.
        reading: How to ask it.
        run: The topology.
        measured: What the loop measures at its ports.
        counters: Names of the counters that its P4 program has.
        lines: What its traffic manager reports of ports.

    Raises:
        FairlaneError: What the switch answered.
    """
    await reading.begin()
    switch, per_s = reading.switch, reading.per_s
    state = next((one for one in run.switches if one.name == switch), None) if run is not None else None
    rows = await complete_rows(program, reading, state) if program is not None else []
    own = {row.port: row.values for row in rows if not row.kind and row.port is not None}
    states = {port.port: port for port in state.ports} if state is not None else {}
    line_of = {line.port: line for line in lines}
    ports = sorted({*states, *own, *line_of})
    drops, sent = await asyncio.gather(
        _drops(program, reading, ports if COUNTER_DROPS in counters else []),
        reading.counters(COUNTER_PASSED, ports if COUNTER_PASSED in counters else []),
    )
    knows_drops = any(reason.in_queue for reason in reasons_of(program).values())
    found: list[PortRow] = []
    for port in ports:
        core: dict[str, Any] = {}
        if knows_drops:
            core["dropped_packets"] = sum(row.packets for row in drops if row.port == port and row.in_queue)
        if cell := sent.get(port):
            core |= {"sent_packets": cell.packet_count, "sent_bytes": cell.byte_count}
        known = states.get(port), line_of.get(port), measured.get(port)
        found.append(port_row(switch, port, *known, core | dict(own.get(port, {})), port in own, per_s))
    for line in lines:
        drops += line_drops(switch, line, per_s)
    objects = [one for one in rows if one.kind]
    return found, [ObjectRow(switch, one.port, one.kind, one.key, one.values) for one in objects], drops


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
    """A port, of each value the first that is known.

    The program's own counts come first, because thresholds are compared with them; of what was sent those of the line; what
    the loop measures comes last. `values` are the program's columns, and those of all ports that it knows better.
    """
    own = {name: values.pop(name, None) for name in _PORT_TOTALS}
    of_line = {name: getattr(line, name, None) for name in ("interface", "rate_bps", *_PORT_TOTALS)}
    sent_bytes = _first(of_line["sent_bytes"], own["sent_bytes"])
    # Two counters have two rates: that of the line also counts what the program does not see.
    sent_per_s = per_s(("sent_bytes", of_line["sent_bytes"] is None, port), sent_bytes)
    tx_bps = None if sent_per_s is None else 8 * sent_per_s
    rate_bps = _first(of_line["rate_bps"], state.rate_bps if state else None) or None
    bw: Any = (measured or {}).get("bw_bps")
    line_bps: float | None = rate_bps or (bw["value"] if bw else None)
    dropped = own["dropped_packets"]
    if line is not None:
        dropped = (dropped or 0) + sum(line.drops.values())
    return PortRow(
        switch,
        port,
        of_line["interface"] or (state.interface if state else None) or None,
        managed,
        rate_bps,
        tx_bps,
        utilisation=tx_bps / line_bps if tx_bps is not None and line_bps else None,
        waiting_packets=_first(
            own["waiting_packets"], of_line["waiting_packets"], (measured or {}).get("waiting_packets")
        ),
        waiting_bytes=_first(own["waiting_bytes"], of_line["waiting_bytes"]),
        capacity_packets=own["capacity_packets"]
        or getattr(line, "queue_packets", None)
        or (state.queue_packets if state else None)
        or None,
        drops_per_s=per_s(("dropped_packets", port), dropped),
        dropped_packets=dropped,
        sent_packets=_first(of_line["sent_packets"], own["sent_packets"]),
        sent_bytes=sent_bytes,
        values=values,
        measured=measured,
    )


def _first(*values: Any) -> Any:
    """The first that is known."""
    return next((value for value in values if value is not None), None)


def line_drops(switch: str, line: PortInfo, per_s: PerSecond) -> Iterator[DropRow]:
    """What the queue and the link dropped, by reason."""
    at_interface = {reason: getattr(line, counter) or 0 for reason, counter in _AT_INTERFACE.items()}
    for reason, packets in (*line.drops.items(), *at_interface.items()):
        by = "link" if reason in _LINK else "queue"
        rate = per_s((by, line.port, reason), packets)
        if packets:
            yield DropRow(switch, line.port, reason, packets, rate, by, in_queue=reason not in _AT_INTERFACE)


async def _drops(program: Program | None, reading: BatchReading, ports: list[int]) -> list[DropRow]:
    """A row a (port, reason) that has dropped anything, by the counter `drops`."""
    reasons = reasons_of(program)
    places = {drops_index(port, number): (port, one) for port in ports for number, one in reasons.items()}
    rows: list[DropRow] = []
    for index, cell in sorted((await reading.counters(COUNTER_DROPS, places)).items()):
        (port, one), packets = places[index], cell.packet_count
        rate = reading.per_s((COUNTER_DROPS, index), packets)
        if packets:
            rows.append(DropRow(reading.switch, port, one.name, packets, rate, in_queue=one.in_queue))
    return rows


NOT_REACHED = (ErrorCode.SWITCH_UNREACHABLE, ErrorCode.TIMED_OUT, ErrorCode.TLS_FAILED, ErrorCode.BAD_FILE)
"""Nothing was asked of the switch: it does not answer, TLS fails, or a file of TLS is none."""


CONNECT_TIMEOUT_S = 2.0
READ_TIMEOUT_S = 2.0
"""Without any piece of an answer; a table of many flows may take longer."""
RETRY_S = 0.5
"""Between two connections to a switch."""


class SwitchReader:
    """Reads one switch; a task of its own connects and reconnects. It gets no digests: they go to the primary."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self.program: Program | None = None
        "What the switch runs; None: nothing that has a contract."
        self._error: FairlaneError | None = None
        self._client: SwitchClient | None = None
        self._ports: GnmiPorts | None = None
        self._tables: tuple[str, ...] = ()
        "Those of the program that the switch ran at the last reading."
        self._reading: BatchReading | None = None
        self._rates = RateBook()
        self._connecting: asyncio.Task[None] | None = None
        self._tried, self._failed = asyncio.Event(), asyncio.Event()

    @property
    def interval_s(self) -> float | None:
        """Between the last two readings."""
        return self._rates.interval_s

    async def read(
        self, run: RunState | None, details: Mapping[str, Any] | None, measured: Measured, *, wait: bool
    ) -> tuple[SwitchRow, Sample]:
        """The switch now; a fault is in its row, and nothing is raised.

        Args:
            run: The topology.
            details: What the control loop's status reports of the switch.
            measured: What the loop measures at its ports.
            wait: Where it is not connected, wait for the first attempt, which has a time limit; else return a row with the error at once.
        """
        if self._connecting is None or self._connecting.done():
            self._tried.clear()
            self._connecting = asyncio.get_running_loop().create_task(self._stay_connected())
        if wait:
            await self._tried.wait()
        client = self._client
        if client is None or not client.has_pipeline:
            return self._row(client), ([], [], [])
        started_s = time.monotonic()
        try:
            if client.disconnected.is_set():
                raise self.endpoint.unreachable("closed the connection")
            reading = self._reading_of(client, run)
            reading.loop = details
            self._rates.begin(started_s)
            counters = {counter.alias for counter in client.switch.p4info.counters}

            async def read() -> Sample:
                return await read_sample(self.program, reading, run, measured, counters, await self._lines(run))

            sample = await self._in_time(read(), reading)
        except Exception as ex:
            # Also after a refusal a new connection is made: another program may be there now.
            self._error, self._client = self._error_of(ex), None
            self._failed.set()
            return self._row(None), ([], [], [])
        return self._row(client, 1e3 * (time.monotonic() - started_s)), sample

    async def _lines(self, run: RunState | None) -> Iterable[PortInfo]:
        """What the traffic manager reports of ports."""
        if run is None or run.target != "bmv2":
            from fairlane_controller.gnmi.embedded import GnmiPorts  # with all of gRPC

            self._ports = self._ports or GnmiPorts(self.endpoint)
            with contextlib.suppress(FairlaneError):  # where it serves no gNMI
                await self._ports.open()
                return await self._ports.ports()
        return ()

    def _reading_of(self, client: SwitchClient, run: RunState | None) -> BatchReading:
        """The reading of this connection; a new one when the client knows of another program, which it may learn after it has connected."""
        tables = tuple(client.table_names())
        if self._reading is None or tables != self._tables:
            self._rates.forget()
            self.program, self._tables = find_program(tables, run.program if run is not None else ""), tables
            self._reading = BatchReading(client, per_s=self._rates.per_s)
        self._reading.folder = run.folder if run is not None else None
        return self._reading

    def _error_of(self, ex: Exception) -> FairlaneError:
        text = f"{self.endpoint}: unexpected answer: {type(ex).__name__}: {ex}"
        return ex if isinstance(ex, FairlaneError) else ErrorCode.REFUSED(text)

    async def _in_time(self, work: Coroutine[Any, Any, Sample], reading: BatchReading) -> Sample:
        """In a task of its own: a connection that breaks cancels the call on it, which must not be taken for a cancellation of ours."""
        task, progress = asyncio.get_running_loop().create_task(work), -1
        try:
            while progress != reading.progress:
                progress = reading.progress
                if (await asyncio.wait([task], timeout=READ_TIMEOUT_S))[0]:
                    if task.cancelled():
                        raise self.endpoint.unreachable("lost the connection")
                    return task.result()
            raise self.endpoint.unreachable(f"did not answer a read within {READ_TIMEOUT_S:g} s")
        finally:
            task.cancel()

    def _row(self, client: SwitchClient | None, read_ms: float | None = None) -> SwitchRow:
        error, program = self._error, None
        if client is not None and client.has_pipeline:
            # Ours by their contract (the P4Info need not have a name), others by their name.
            program = self.program.name if self.program is not None else client.program
        return SwitchRow(
            self.endpoint.name,
            self.endpoint.grpc,
            self.endpoint.device_id,
            error is None or error.code not in NOT_REACHED,
            program,
            error.to_json() if error is not None else None,
            read_ms,
        )

    async def _stay_connected(self) -> None:
        """Connect, and reconnect when a reading has failed, or to find a program where there was none."""
        while True:
            client = SwitchClient(self.endpoint, timeout_s=CONNECT_TIMEOUT_S)
            self._failed.clear()
            try:
                await client.__aenter__()
                self._reading, self._client, self._error = None, client, None
                self._tried.set()
                if client.has_pipeline:
                    await self._failed.wait()
            except Exception as ex:
                self._error = self._error_of(ex)
            finally:
                self._tried.set()
                ports, self._client, self._ports = self._ports, None, None
                for each in (ports, client):
                    # A connection that is broken may not close in order: what counts is that it ends.
                    with contextlib.suppress(Exception):
                        if each is not None:
                            await asyncio.wait_for(each.close(), CONNECT_TIMEOUT_S)
            await asyncio.sleep(RETRY_S)

    async def close(self) -> None:
        """End the connection and the attempt to make one."""
        task, self._connecting = self._connecting, None
        if task is not None:
            task.cancel()
            await asyncio.wait([task], timeout=2 * CONNECT_TIMEOUT_S)
