# SPDX-License-Identifier: Apache-2.0
"""The endpoint `/metrics`: a scrape takes a snapshot of each topology; rates are over the time since the scrape before."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aiohttp import web
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from fairlane_controller.errors import FairlaneError
from fairlane_controller.live.events import EventTail
from fairlane_controller.live.model import PORT_COLUMNS, PortRow, Snapshot
from fairlane_controller.live.source import LiveSource, LiveTargets
from fairlane_controller.logs import ROOT, RateLimitedLog
from fairlane_controller.program.contract import Program
from fairlane_controller.program.reasons import reasons_of
from fairlane_controller.program.rows import GOODPUT, Column
from fairlane_controller.state.events import EVENTS_FILE
from fairlane_controller.web.server import Listen, make_app, served

OBJECTS_MAX = 50
"""Objects of a kind (flows) with series of their own, those that send most: labels are kept for ever by who stores them."""

_PORT = ("switch", "port")
CORE_METRICS: dict[str, tuple[tuple[str, ...], str]] = {
    "fairlane_up": (("switch",), "1 when the switch answers a read, else 0."),
    "fairlane_switch_info": (("switch", "program", "target", "grpc"), "Always 1; what runs where."),
    "fairlane_read_seconds": (("switch",), "How long the last reading of the switch took."),
    "fairlane_drops_total": ((*_PORT, "reason", "by"), "Packets dropped, by reason and by whom: program, queue, link."),
    "fairlane_measurement_age_seconds": ((*_PORT, "quantity"), "Since the newest observation of the quantity."),
    "fairlane_measurement_uncertainty": ((*_PORT, "quantity"), "95 % half-width, in the quantity's unit."),
    "fairlane_loop_up": ((), "1 when a control loop runs for the topology."),
    "fairlane_loop_primary": (("switch",), "1 when the loop is connected to the switch as its primary."),
    "fairlane_loop_dry_run": ((), "1 when the loop writes nothing."),
    "fairlane_loop_flows": (("switch",), "Flow entries that the loop keeps."),
    "fairlane_loop_flows_missed_total": (("switch",), "New flows that found no free slot."),
    "fairlane_loop_writes_total": (_PORT, "Thresholds and weights that the loop has written, by its event log."),
    "fairlane_loop_events_total": (("event",), "Lines of the loop's event log: decisions, changes, faults."),
}
"""Labels after `topology`, which all have, and meaning."""


def metrics_of(programs: Iterable[Program]) -> dict[str, Metric]:
    """A family without samples for each metric: the core's, and those of ports' and programs' columns; a counter's name ends in `_total`."""
    found = dict(CORE_METRICS)

    def add(columns: Iterable[Column], kind: str, labels: tuple[str, ...]) -> None:
        for column in columns:
            text, name = column.doc or column.title, column.metric_name(kind)
            if name is not None:
                start = text[:1] if text[1:2] == "_" else text[:1].upper()
                found.setdefault(name, (labels, f"{start}{text[1:].removesuffix('.')}."))

    add(PORT_COLUMNS, "port", _PORT)
    for program in programs:
        add((*program.columns, *program.measured), "port", _PORT)
        for kind in program.kinds:
            if not kind.brief:
                found.setdefault(f"fairlane_{kind.many}", (_PORT, f"Rows of the kind {kind.name} at the port."))
            add(kind.columns, kind.name, (*_PORT, kind.short))
    return {
        name: (CounterMetricFamily if name.endswith("_total") else GaugeMetricFamily)(
            name.removesuffix("_total"), text, labels=("topology", *labels)
        )
        for name, (labels, text) in found.items()
    }


@dataclass
class EventCounts:
    """What the event log has told so far."""

    events: Counter[str] = field(default_factory=Counter[str])
    writes: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])
    "(switch, port) → writes."

    def take(self, events: Iterable[Mapping[str, Any]]) -> None:
        """Count them; what a dry run only would have written is no write."""
        for event in events:
            name = str(event.get("event"))
            self.events[name] += 1
            if event.get("dry_run"):
                continue
            place = str(event.get("switch", "")), str(event.get("port", ""))
            if name == "threshold":
                self.writes[place] += 1
            elif name == "tuned":
                written = event.get("written")
                self.writes[place] += written if isinstance(written, int) else 1


@dataclass(frozen=True)
class Picture:
    """One topology at a scrape; without a snapshot it could not be read."""

    topology: str
    snapshot: Snapshot | None
    counts: EventCounts


class PictureCollector(Collector):
    """What prometheus_client asks for the families of one scrape."""

    def __init__(self, pictures: Sequence[Picture], objects_max: int = OBJECTS_MAX) -> None:
        self._pictures = pictures
        self._objects_max = objects_max

    def collect(self) -> Iterator[Metric]:
        """Every family that has a series."""
        programs = [one for picture in self._pictures if picture.snapshot for one in picture.snapshot.programs.values()]
        families: dict[str, Any] = {**metrics_of(programs)}
        for picture in self._pictures:
            for name, labels, value in samples(picture, self._objects_max):
                if value is not None:
                    families[name].add_metric((picture.topology, *map(str, labels)), float(value))
        yield from (family for family in families.values() if family.samples)


Sample = tuple[str, tuple[object, ...], "float | None"]


def samples(picture: Picture, objects_max: int = OBJECTS_MAX) -> Iterator[Sample]:
    """(metric, labels after the topology, value); a value of None is left out by who asks."""
    for event, count in sorted(picture.counts.events.items()):
        yield "fairlane_loop_events_total", (event,), count
    for place, count in sorted(picture.counts.writes.items()):
        yield "fairlane_loop_writes_total", place, count
    snapshot = picture.snapshot
    if snapshot is None:
        return
    for row in snapshot.switches:
        yield "fairlane_up", (row.switch,), float(row.reachable and row.error is None)
        info = (row.switch, row.program or "", snapshot.target or "", row.grpc)
        yield "fairlane_switch_info", info, 1.0
        yield "fairlane_read_seconds", (row.switch,), None if row.read_ms is None else row.read_ms / 1e3
    for port in snapshot.ports:
        yield from _port(snapshot, port)
    yield from _drops(snapshot)
    for kind in snapshot.kinds:
        rows, goodput = snapshot.objects_of_kind(kind.name), kind.plotted(GOODPUT)
        for place, number in Counter((row.switch, row.port) for row in rows).items() if not kind.brief else ():
            yield f"fairlane_{kind.many}", (place[0], _label(place[1])), number
        if goodput is not None:
            rows = sorted(rows, key=lambda row, name=goodput.name: -(row[name] or 0.0))[:objects_max]
        for row in rows:
            yield from _columns(kind.name, kind.columns, (row.switch, _label(row.port), row.key), row.values)
    yield "fairlane_loop_up", (), float(snapshot.loop is not None)
    if snapshot.loop is not None:
        yield "fairlane_loop_dry_run", (), float(any(row.details.get("dry_run") for row in snapshot.loop))
    for row in snapshot.loop or ():
        yield "fairlane_loop_primary", (row.switch,), float(row.connected and row.error is None)
        yield "fairlane_loop_flows", (row.switch,), row.flows
        yield "fairlane_loop_flows_missed_total", (row.switch,), row.flows_missed


def _label(port: int | None) -> object:
    return "" if port is None else port


def _columns(
    kind: str, columns: Iterable[Column], labels: tuple[object, ...], values: Mapping[str, Any]
) -> Iterator[Sample]:
    for column in columns:
        name, value = column.metric_name(kind), values.get(column.name)
        if name is not None and value is not None:
            yield name, labels, float(value)


def _drops(snapshot: Snapshot) -> Iterator[Sample]:
    """By reason, whatever object they were of; reasons of the queue from 0 on, so that the first drop is an increase."""
    counts: Counter[tuple[object, ...]] = Counter()
    for port in snapshot.managed_ports:
        for reason in reasons_of(snapshot.program_of(port.switch)).values():
            if reason.in_queue and not reason.in_rows:
                counts[(port.switch, port.port, reason.name, "program")] = 0
    for drop in snapshot.drops:
        counts[(drop.switch, _label(drop.port), drop.reason, drop.by)] += drop.packets
    for labels, packets in counts.items():
        yield "fairlane_drops_total", labels, packets


def _port(snapshot: Snapshot, port: PortRow) -> Iterator[Sample]:
    place = port.place
    program = snapshot.program_of(port.switch)
    columns = (*PORT_COLUMNS, *(program.columns if program is not None else ()))
    yield from _columns("port", columns, place, {**vars(port), **port.values})
    for column in program.measured if program is not None else ():
        if (got := port.estimate(column.name)) and column.metric:
            yield column.metric, place, got["value"]
            yield "fairlane_measurement_age_seconds", (*place, column.quantity), got.get("age_s")
            yield "fairlane_measurement_uncertainty", (*place, column.quantity), got.get("uncertainty")


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
        return make_app(self._listen, {"/": self._index, "/metrics": self._metrics}, self.close)

    async def _index(self, _request: web.Request) -> web.StreamResponse:
        return web.Response(text="fairlane: the metrics are at /metrics\n")

    async def _metrics(self, request: web.Request) -> web.StreamResponse:
        encode, content_type = choose_encoder(request.headers.get("Accept", ""))
        registry = await self._registry()
        # Thousands of series take a while, and the loop goes on meanwhile.
        return web.Response(body=await asyncio.to_thread(encode, registry), headers={"Content-Type": content_type})

    async def _registry(self) -> CollectorRegistry:
        registry = CollectorRegistry()
        registry.register(PictureCollector(await self.pictures()))
        return registry

    async def scrape(self) -> bytes:
        """One scrape, after which all connections end."""
        try:
            return generate_latest(await self._registry())
        finally:
            await self.close()

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
