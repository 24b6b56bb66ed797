# SPDX-License-Identifier: Apache-2.0
"""The endpoint `/metrics`: a scrape takes a snapshot of each topology; rates are over the time since the scrape before."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from aiohttp import web
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder

from fairlane_controller.errors import FairlaneError
from fairlane_controller.live.events import EventTail
from fairlane_controller.live.model import Snapshot
from fairlane_controller.live.source import LiveSource, LiveTargets
from fairlane_controller.logs import ROOT, RateLimitedLog
from fairlane_controller.metrics.collect import EventCounts, Picture, PictureCollector
from fairlane_controller.state.events import EVENTS_FILE
from fairlane_controller.web.listen import Listen
from fairlane_controller.web.server import guard, served

FRESH_S = 0.9
"""Scrapes closer than this get the same snapshot: rates over less say little."""
FIRST_INTERVAL_S = 0.5
"""Before the first scrape's second snapshot, so that it has rates."""
MAX_LOG_READ_BYTES = 32 * 1024 * 1024
"""How much of an event log is counted when the exporter starts."""

Finder = Callable[[], dict[str, LiveTargets]]


class _Topology:
    def __init__(self, name: str, targets: LiveTargets, event_log: Path | None) -> None:
        folder = targets.run.folder if targets.run else None
        path = event_log or (folder / EVENTS_FILE if folder else None)
        self.name = name
        self.source = LiveSource(targets)
        self._tail = EventTail(path, first=1 << 30, first_bytes=MAX_LOG_READ_BYTES)
        self._counts = EventCounts()
        self._latest: Snapshot | None = None
        self.problem: FairlaneError | None = None
        "Why there is no snapshot now."
        self._at_s = -1e9
        self._asking = asyncio.Lock()

    async def picture(self) -> Picture:
        async with self._asking:
            if time.monotonic() - self._at_s > FRESH_S:
                try:
                    if self._latest is None:
                        await self.source.snapshot()
                        await asyncio.sleep(FIRST_INTERVAL_S)
                    self._latest = await self.source.snapshot()
                    self._at_s, self.problem = time.monotonic(), None
                except FairlaneError as ex:
                    self._latest, self.problem = None, ex  # it is not `up`, and what was is not now
            while events := await asyncio.to_thread(self._tail.new):
                self._counts.take(events)
            return Picture(self.name, self._latest, self._counts)


class Exporter:
    """`find` gives the topologies by name as they are now; one that ended is scraped no more."""

    def __init__(self, find: Finder, listen: Listen, event_log: Path | None = None) -> None:
        """`event_log`: where the loop writes, if not into the run-state folder."""
        self._find = find
        self._event_log = event_log
        self._listen = listen
        self._warn = RateLimitedLog(logging.getLogger(f"{ROOT}.metrics"))
        self._topologies: dict[str, _Topology] = {}

    def app(self) -> web.Application:
        """What aiohttp runs."""
        app = web.Application(middlewares=[guard(self._listen)])
        app.router.add_get("/", self._index)
        app.router.add_get("/metrics", self._metrics)

        async def end(_: web.Application) -> None:
            await self.close()

        app.on_cleanup.append(end)
        return app

    async def _index(self, _request: web.Request) -> web.StreamResponse:
        return web.Response(text="fairlane: the metrics are at /metrics\n")

    async def _metrics(self, request: web.Request) -> web.StreamResponse:
        pictures = await self.pictures()
        registry = CollectorRegistry()
        registry.register(PictureCollector(pictures))
        encode, content_type = choose_encoder(request.headers.get("Accept", ""))
        body = await asyncio.to_thread(
            encode, registry
        )  # thousands of series take a while, and the loop goes on meanwhile
        return web.Response(body=body, headers={"Content-Type": content_type})

    async def pictures(self) -> list[Picture]:
        """All topologies now."""
        there = self._find()
        ended = [self._topologies.pop(name) for name in list(self._topologies) if name not in there]
        for name, targets in there.items():
            if name not in self._topologies:
                self._topologies[name] = _Topology(name, targets, self._event_log)
        chosen = [self._topologies[name] for name in sorted(there)]  # before another scrape may see another list
        for topology in ended:
            await topology.source.close()
        pictures = list(await asyncio.gather(*(topology.picture() for topology in chosen)))
        for topology in chosen:
            if topology.problem is not None:
                self._warn(topology.name, f"topology {topology.name}: {topology.problem.message}")
        return pictures

    async def close(self) -> None:
        """End all connections."""
        ended, self._topologies = list(self._topologies.values()), {}
        await asyncio.gather(*(topology.source.close() for topology in ended))


async def beside(
    work: Coroutine[Any, Any, None], find: Finder, listen: Listen | None, event_log: Path | None = None
) -> None:
    """Do `work` with the endpoint beside it; without `listen` the work alone. Raises BAD_INPUT, with nothing begun, when the address cannot be had."""
    if listen is None:
        await work
        return
    try:
        async with served(Exporter(find, listen, event_log).app(), listen):
            await work
    finally:
        work.close()
