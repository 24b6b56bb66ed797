# SPDX-License-Identifier: Apache-2.0
"""The endpoint `/metrics`: a scrape takes a snapshot of the topology; rates are over the time since the scrape before."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Coroutine, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from aiohttp import web
from prometheus_client import generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from fairlane_controller.live.model import PORT_COLUMNS, PortRow, Snapshot
from fairlane_controller.live.source import LiveSource, LiveTargets
from fairlane_controller.program.contract import Program, reasons_of
from fairlane_controller.program.rows import GOODPUT, Column
from fairlane_controller.web.server import Listen, make_app, served

OBJECTS_MAX = 50
"""Objects of a kind (flows) with series of their own, the fastest: a database never forgets a label."""

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
    "fairlane_loop_flows": (("switch",), "Flow entries that the loop maintains."),
    "fairlane_loop_flows_missed_total": (("switch",), "New flows that found no free slot."),
}
"""Labels after `topology`, which all have, and meaning."""


def metrics_of(programs: Iterable[Program]) -> dict[str, Metric]:
    """A family without samples for each metric: the core's, and those of ports' and programs' columns; a counter's name ends in `_total`."""
    found = dict(CORE_METRICS)

    def add(columns: Iterable[Column], kind: str, labels: tuple[str, ...]) -> None:
        for column in columns:
            text, name = column.doc or column.title, column.metric_name(kind)
            if name is not None:
                found.setdefault(name, (labels, f"{text[:1].upper()}{text[1:].removesuffix('.')}."))

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


Labels = tuple[object, ...]


@dataclass(frozen=True)
class Scrape(Collector):
    """What prometheus_client asks for the families of one scrape."""

    snapshot: Snapshot

    def collect(self) -> Iterator[Metric]:
        """Every family that has a series."""
        families: dict[str, Any] = {**metrics_of(self.snapshot.programs.values())}
        topology = self.snapshot.topology or "-"
        for name, labels, value in samples(self.snapshot):
            if value is not None:
                texts = ("" if label is None else str(label) for label in (topology, *labels))
                families[name].add_metric(tuple(texts), float(value))
        yield from (family for family in families.values() if family.samples)


Sample = tuple[str, Labels, "float | None"]


def samples(snapshot: Snapshot) -> Iterator[Sample]:
    """(metric, labels after the topology, value); None is a value that is not known, and has no series."""
    for row in snapshot.switches:
        yield "fairlane_up", (row.switch,), row.reachable and row.error is None
        yield "fairlane_switch_info", (row.switch, row.program, snapshot.target, row.grpc), 1
        yield "fairlane_read_seconds", (row.switch,), None if row.read_ms is None else row.read_ms / 1e3
    for port in snapshot.ports:
        yield from _port(snapshot, port)
    yield from _drops(snapshot)
    for kind in snapshot.kinds:
        rows, goodput = snapshot.objects_of_kind(kind.name), kind.plotted(GOODPUT)
        for place, number in Counter(row.place for row in rows).items() if not kind.brief else ():
            yield f"fairlane_{kind.many}", place, number
        if goodput is not None:
            rows = sorted(rows, key=lambda row, name=goodput.name: -(row[name] or 0.0))[:OBJECTS_MAX]
        for row in rows:
            yield from _columns(kind.name, kind.columns, (*row.place, row.key), row.values)
    yield "fairlane_loop_up", (), snapshot.loop is not None
    for row in snapshot.loop or ():
        yield "fairlane_loop_primary", (row.switch,), row.connected and row.error is None
        yield "fairlane_loop_flows", (row.switch,), row.details.get("flows")
        yield "fairlane_loop_flows_missed_total", (row.switch,), row.details.get("flows_missed")


def _columns(kind: str, columns: Iterable[Column], labels: Labels, values: Mapping[str, Any]) -> Iterator[Sample]:
    for column in columns:
        if (name := column.metric_name(kind)) is not None:
            yield name, labels, values.get(column.name)


def _drops(snapshot: Snapshot) -> Iterator[Sample]:
    """By reason, whatever object they were of; reasons of the queue from 0 on, so that the first drop is an increase."""
    counts = Counter[Labels]()
    for port in snapshot.managed_ports:
        for reason in reasons_of(snapshot.program_of(port.switch)).values():
            if reason.in_queue:
                counts[(*port.place, reason.name, "program")] = 0
    for drop in snapshot.drops:
        counts[(*drop.place, drop.reason, drop.by)] += drop.packets
    for labels, packets in counts.items():
        yield "fairlane_drops_total", labels, packets


def _port(snapshot: Snapshot, port: PortRow) -> Iterator[Sample]:
    program = snapshot.program_of(port.switch)
    yield from _columns("port", (*PORT_COLUMNS, *program.columns), port.place, {**vars(port), **port.values})
    for column in program.measured:
        if (got := port.estimate(column.name)) and column.metric:
            yield column.metric, port.place, got["value"]
            yield "fairlane_measurement_age_seconds", (*port.place, column.quantity), got.get("age_s")
            yield "fairlane_measurement_uncertainty", (*port.place, column.quantity), got.get("uncertainty")


FIRST_INTERVAL_S = 0.5
"""Before the first scrape's second snapshot, so that it has rates."""


class Exporter:
    """Serves the metrics of a topology."""

    def __init__(self, targets: LiveTargets, listen: Listen) -> None:
        self._listen = listen
        self._source = LiveSource(targets)
        self._has_rates = False
        self._scraping = asyncio.Lock()

    def app(self) -> web.Application:
        """What aiohttp runs."""
        return make_app(self._listen, {"/metrics": self._metrics}, self._source.close)

    async def _metrics(self, request: web.Request) -> web.StreamResponse:
        encode, content_type = choose_encoder(request.headers.get("Accept", ""))
        # Thousands of series take a while, and the loop goes on meanwhile.
        body = await asyncio.to_thread(encode, await self._scrape())
        return web.Response(body=body, headers={"Content-Type": content_type})

    async def scrape(self) -> bytes:
        """One scrape, after which all connections end."""
        try:
            return generate_latest(await self._scrape())
        finally:
            await self._source.close()

    async def _scrape(self) -> Scrape:
        async with self._scraping:
            if not self._has_rates:
                await self._source.snapshot()
                await asyncio.sleep(FIRST_INTERVAL_S)
                self._has_rates = True
            return Scrape(await self._source.snapshot())


async def beside(work: Coroutine[Any, Any, None], targets: LiveTargets, listen: Listen | None) -> None:
    """Do `work` with the endpoint beside it; without `listen` the work alone.

    Raises:
        FairlaneError: BAD_INPUT, with nothing begun: the address cannot be had.
    """
    if listen is None:
        await work
        return
    try:
        async with served(Exporter(targets, listen).app(), listen):
            await work
    finally:
        work.close()
