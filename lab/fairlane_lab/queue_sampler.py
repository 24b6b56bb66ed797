# SPDX-License-Identifier: Apache-2.0
"""Samples the packets that each flow has waiting at a port, by reading registers over P4Runtime (embedded switch only).

BMv2 does not read registers through P4Runtime: there the series stay empty. One thread with one event loop serves all
samplers of an experiment.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import AsyncIterator
from types import TracebackType
from typing import cast

from fairlane_controller.cli.reads import read_flows
from fairlane_controller.cli.targets import Targets
from fairlane_controller.errors import FairlaneError
from fairlane_controller.switch.client import Endpoint, SwitchClient
from finsy import P4ClientError, P4RegisterEntry

REGISTER = "flow_occupancy"
INTERVAL_S = 0.1
FIND_FLOWS_EVERY_S = 1.0
END_TIMEOUT_S = 10.0


class SamplerLoop:
    """The thread behind the samplers; a context manager around the experiment."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> SamplerLoop:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(timeout=END_TIMEOUT_S)

    def sample(self, endpoint: Endpoint, sink_port: int) -> QueueSampler:
        """A sampler of the flows to `sink_port` through a switch; a context manager around one run."""
        return QueueSampler(self._loop, endpoint, sink_port)


class QueueSampler:
    """The queue of one run, flow by flow."""

    def __init__(self, loop: asyncio.AbstractEventLoop, endpoint: Endpoint, sink_port: int) -> None:
        self._loop = loop
        self._endpoint = endpoint
        self._sink_port = sink_port
        self._samples: dict[int, list[tuple[float, int]]] = {}
        self._stop = threading.Event()

    def __enter__(self) -> QueueSampler:
        self._work = asyncio.run_coroutine_threadsafe(self._run(), self._loop)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._work.result(timeout=END_TIMEOUT_S)

    def series(self, source_port: int, zero_s: float) -> list[tuple[float, int]]:
        """(s after `zero_s` of CLOCK_MONOTONIC, packets waiting) of the flow from that TCP port."""
        return [(round(t - zero_s, 3), packets) for t, packets in self._samples.get(source_port, [])]

    async def _run(self) -> None:
        # A switch that is gone or has no registers leaves the series short; the run's own checks judge the run.
        with contextlib.suppress(FairlaneError, P4ClientError):
            async with SwitchClient(self._endpoint) as client:
                await self._sample(client)

    async def _sample(self, client: SwitchClient) -> None:
        slots: dict[int, int] = {}
        found_at = 0.0
        while not self._stop.is_set():
            if len(slots) < 2 and time.monotonic() - found_at > FIND_FLOWS_EVERY_S:
                rows = await read_flows(Targets((self._endpoint,)), 0.0)
                slots = {
                    row["src_port"]: row["slot"]
                    for row in rows
                    if row["dst_port"] == self._sink_port and row["idle_s"] < 1
                }
                found_at = time.monotonic()
            for source_port, slot in slots.items():
                entity = P4RegisterEntry(REGISTER, index=slot)
                async for entry in cast("AsyncIterator[P4RegisterEntry]", client.switch.read([entity])):
                    self._samples.setdefault(source_port, []).append((time.monotonic(), int(cast("int", entry.data))))
            await asyncio.sleep(INTERVAL_S)
