# SPDX-License-Identifier: Apache-2.0
"""Samples the packets that each flow has waiting at a port, by reading registers over P4Runtime (embedded switch only).

BMv2 does not read registers through P4Runtime: there `available` is False and the series stay empty.
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


class QueueSampler:
    """A thread with a P4Runtime reader of its own; a context manager around one run."""

    def __init__(self, endpoint: Endpoint, sink_port: int) -> None:
        self._endpoint = endpoint
        self._sink_port = sink_port
        self._samples: dict[int, list[tuple[float, int]]] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.available = True

    def __enter__(self) -> QueueSampler:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join(timeout=10)

    def series(self, source_port: int, zero_s: float) -> list[tuple[float, int]]:
        """(s after `zero_s` of CLOCK_MONOTONIC, packets waiting) of the flow from that TCP port."""
        return [(round(t - zero_s, 3), packets) for t, packets in self._samples.get(source_port, [])]

    def _run(self) -> None:
        with contextlib.suppress(FairlaneError):
            asyncio.run(self._sample())

    async def _sample(self) -> None:
        slots: dict[int, int] = {}
        found_at = 0.0
        async with SwitchClient(self._endpoint) as client:
            while not self._stop.is_set():
                if time.monotonic() - found_at > FIND_FLOWS_EVERY_S:
                    rows = await read_flows(Targets((self._endpoint,)), 0.0)
                    slots = {row["src_port"]: row["slot"] for row in rows if row["dst_port"] == self._sink_port}
                    found_at = time.monotonic()
                for source_port, slot in slots.items():
                    try:
                        entries = cast(
                            "AsyncIterator[P4RegisterEntry]",
                            client.switch.read([P4RegisterEntry(REGISTER, index=slot)]),
                        )
                        async for entry in entries:
                            self._samples.setdefault(source_port, []).append(
                                (time.monotonic(), int(cast("int", entry.data)))
                            )
                    except P4ClientError:
                        self.available = False
                        return
                await asyncio.sleep(INTERVAL_S)
