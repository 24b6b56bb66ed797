# SPDX-License-Identifier: Apache-2.0
"""One long-lived connection to one switch: read as a reader again and again, made anew in the background when it breaks."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from finsy import P4ClientError

from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.live.model import SwitchRow
from fairlane_controller.live.queues import with_queues
from fairlane_controller.live.view import Place, Sample, read_sample
from fairlane_controller.program.contract import Program
from fairlane_controller.program.rates import RateBook
from fairlane_controller.program.reading import BatchReading
from fairlane_controller.program.registry import find_program
from fairlane_controller.switch.client import Endpoint, SwitchClient
from fairlane_controller.switch.faults import translate

if TYPE_CHECKING:  # with it comes all of gNMI
    from fairlane_controller.gnmi.queues import GnmiQueues

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
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.endpoint = endpoint
        self._options = options
        self._queues_of = queues_of
        self._client_factory = client_factory
        self._clock = clock
        self._client: SwitchClient | None = None
        self.program: Program | None = None
        "What the switch runs; None: nothing that has a contract."
        self._tables: tuple[str, ...] = ()
        "Of the program that the switch ran at the last reading."
        self._reading: BatchReading | None = None
        self._queues: GnmiQueues | None = None
        self._queue_rates = RateBook()
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
        await self._look_after()
        if self._client is None:
            self._connect_in_background()
            if wait and self._connecting is not None:
                await asyncio.wait([self._connecting])
        client = self._client
        if client is None or not client.has_pipeline:
            return self._row(client), Sample()
        started_s = self._clock()
        reading = self._reading_of(client, place)
        sample = await self._read_in_time(client, reading, place, started_s)
        if isinstance(sample, FairlaneError):
            await self._drop(sample)  # also after a refusal: another program may be there now
            return self._row(None), Sample()
        return self._row(client, 1e3 * (self._clock() - started_s)), sample

    def _reading_of(self, client: SwitchClient, place: Place) -> BatchReading:
        """The reading of this connection; a new one when the client knows of another program, which it may learn after it has connected."""
        tables = tuple(client.table_names())
        if self._reading is None or tables != self._tables:
            self._rates.forget()
            self.program, self._tables = find_program(tables, place.program), tables
            self._reading = BatchReading(client, per_s=self._rates.per_s)
        self._reading.folder, self._reading.loop = place.folder, place.loop
        return self._reading

    async def _look_after(self) -> None:
        """Let a connection go that is lost, or was made when the switch had no program and now has one."""
        client = self._client
        if client is None:
            return
        if client.disconnected.is_set():
            await self._drop(FairlaneError(ErrorCode.SWITCH_UNREACHABLE, f"{self.endpoint} closed the connection"))
        elif not client.has_pipeline:
            try:
                if await asyncio.wait_for(client.cookie(), self._options.read_timeout_s) is not None:
                    await self._drop(None)
            except FairlaneError as ex:
                await self._drop(ex)
            except (TimeoutError, asyncio.TimeoutError):
                await self._drop(
                    FairlaneError(
                        ErrorCode.SWITCH_UNREACHABLE,
                        f"{self.endpoint} does not answer: it accepts the connection, and sends nothing",
                    )
                )

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
            limit = f"within {self._options.read_timeout_s:g} s"
            return FairlaneError(ErrorCode.SWITCH_UNREACHABLE, f"{self.endpoint} did not answer a read {limit}")
        if reading.cancelled():
            return FairlaneError(
                ErrorCode.SWITCH_UNREACHABLE, f"{self.endpoint} does not answer: the connection was lost"
            )
        problem = reading.exception()
        if problem is None:
            return reading.result()
        if isinstance(problem, FairlaneError):
            return problem
        raise problem

    async def _read(self, client: SwitchClient, batch: BatchReading, place: Place, now_s: float) -> Sample:
        self._rates.begin(now_s)
        try:
            counters = {counter.alias for counter in client.switch.p4info.counters}
            sample = await read_sample(self.program, batch, place, counters)
        except P4ClientError as ex:
            raise translate(ex, str(self.endpoint)) from None
        except (ValueError, KeyError) as ex:
            raise FairlaneError(ErrorCode.REFUSED, f"{self.endpoint}: unexpected answer: {ex}") from None
        if self._queues is None:
            return sample
        try:
            ports = await self._queues.read()
        except FairlaneError as ex:
            if ex.code is ErrorCode.SWITCH_UNREACHABLE:
                raise
            ports = None
        if ports is None:
            return sample
        self._queue_rates.begin(now_s)
        return with_queues(place.name, sample, ports, self._queue_rates)

    def _row(self, client: SwitchClient | None, read_ms: float | None = None) -> SwitchRow:
        error = self._error
        return SwitchRow(
            self.endpoint.name,
            self.endpoint.grpc,
            self.endpoint.device_id,
            reachable=self._reached,
            program=self._name(client) if client is not None and client.has_pipeline else None,
            error=error.to_json() if error is not None else None,
            read_ms=read_ms,
        )

    def _name(self, client: SwitchClient) -> str:
        """Of ours by their contract (the P4Info need not have a name), others by their name."""
        return self.program.name if self.program is not None else client.program

    def _connect_in_background(self) -> None:
        if self._connecting is not None and not self._connecting.done():
            return
        if self._clock() - self._tried_s < self._options.retry_s:
            return
        self._tried_s = self._clock()
        self._connecting = asyncio.get_running_loop().create_task(self._connect())

    async def _connect(self) -> None:
        client = self._client_factory(self.endpoint, timeout_s=self._options.connect_timeout_s)
        try:
            await client.__aenter__()
        except FairlaneError as ex:
            self._error, self._reached = ex, ex.code not in NOT_REACHED
            return
        self._rates.forget()
        self._queue_rates.forget()
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
