# SPDX-License-Identifier: Apache-2.0
"""The topologies that the page shows: one sampler and one event log each, shared by all who look."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from typing import Any

from fairlane_controller.errors import ErrorCode, FairlaneError, unknown_name
from fairlane_controller.live.events import EventTail, place_of, sentence_of
from fairlane_controller.live.model import PortRow, Snapshot, SwitchRow
from fairlane_controller.live.sampler import Sampler
from fairlane_controller.live.shown import (
    BAD,
    STALE_S,
    age,
    brief_objects,
    count,
    known,
    live_text,
    loop_in_words,
    measurements,
    object_table,
    per_second,
    percent,
    rate,
    troubles,
    with_unit,
)  # fmt: skip
from fairlane_controller.live.source import LiveSource, LiveTargets
from fairlane_controller.program.rows import CAPACITY, CONTROL, DROPS, GOODPUT, QUEUE, plotted
from fairlane_controller.state.events import EVENTS_FILE
from fairlane_controller.state.store import STATE_FILE

OBJECTS_A_PORT = 12
"""Lines of objects of a kind (flows, VCs) that a port's charts show: those that send most."""
OBJECTS_IN_TABLES = 200
"""Rows of the tables of all ports together, but for OBJECTS_A_PORT each."""
OBJECTS_IN_TILES = 4
"""Objects of a kind of which a port has few."""
_CHARTS = (QUEUE, GOODPUT, CONTROL, DROPS)


def point_of(snapshot: Snapshot) -> dict[str, Any]:
    """`{"t", "ports": {"s1:3": {…}}}` of the managed ports; None is a gap."""
    return {
        "t": round(snapshot.time_s, 3),
        "ports": {row.name: _port(snapshot, row) for row in snapshot.managed_ports},
    }


def _port(snapshot: Snapshot, row: PortRow) -> dict[str, Any]:
    drops: dict[str, float] = {}
    for drop in snapshot.drops:
        if drop.place == row.place and drop.per_s is not None:
            drops[drop.reason] = round(drops.get(drop.reason, 0.0) + drop.per_s, 2)
    return {
        "waiting": snapshot.queue_of(row)[0],
        "tx": _round_value(row.tx_bps),
        "rate": _round_value(row.rate_bps),
        "bw": _round_value(row.estimate("bw_bps").get("value")),
        "marks": snapshot.marks_of(row),
        "drops": drops,
        # kind: {object: values of its columns that are drawn, in their order}
        "objects": {
            kind.name: {
                snapshot.named(one.key): [_short(one[c.name]) for c in kind.columns if c.plot in _CHARTS]
                for one in snapshot.objects_of(row, kind)[:OBJECTS_A_PORT]
            }
            for kind in snapshot.kinds_at(row)
        },
    }


def picture_of(snapshot: Snapshot) -> dict[str, Any]:
    """What the page shows of the newest snapshot, in words: it knows no program and no unit."""
    loop, problems = loop_in_words(snapshot), troubles(snapshot)
    return {
        "loop": loop,
        "problems": [*problems, *([loop] if loop[0] == BAD else [])],
        "foot": " · ".join(map(_switch, snapshot.switches)),
        "ports": {
            row.name: {
                "tiles": _tiles(snapshot, row),
                "objects": _objects(snapshot, row),
                "unit": snapshot.queue_of(row)[2],
                # The columns that are drawn, in the order of the values of a point.
                "kinds": {
                    kind.name: {
                        "label": f"{kind.short} " if kind.brief else "",
                        "brief": kind.brief,
                        "columns": [c.to_json() for c in kind.columns if c.plot in _CHARTS],
                    }
                    for kind in snapshot.kinds_at(row)
                },
            }
            for row in snapshot.managed_ports
        },
    }


def _switch(row: SwitchRow) -> str:
    took = "" if row.read_ms is None else f", read in {row.read_ms:.1f} ms"
    return f"{row.switch} {row.grpc} {row.program or 'no program'}{took}"


def _tiles(snapshot: Snapshot, row: PortRow) -> list[tuple[str, str, str, bool]]:
    """Title, value, note, and whether the value is old."""
    program, line_bps = snapshot.program_of(row.switch), row.rate_bps or row.estimate("bw_bps").get("value")
    waiting, room, unit = snapshot.queue_of(row)
    part = "" if row.utilisation is None else f"{percent(min(1.0, row.utilisation))} of {rate(line_bps)}"
    tiles = [("sent", rate(row.tx_bps), part, False)]
    tiles.append(("waiting", count(waiting) + (f" {unit}" if waiting is not None else ""), f"of {count(room)}", False))
    brief = [(kind, one) for kind, found in brief_objects(snapshot, row) for one in found[:OBJECTS_IN_TILES]]
    for kind, one in brief:
        columns = known(kind.columns, one.values)
        main = plotted(columns, CONTROL) or next(iter(columns), None)
        if main is not None:
            whose = f", {kind.short} {one.key}" if len(brief) > 1 else ""
            rest = [f"{c.title} {live_text(c, one[c.name])}" for c in columns if c is not main]
            tiles.append((main.title + whose, with_unit(main, one[main.name]), ", ".join(rest), False))
    for column in program.columns if program is not None and not brief else ():
        if not column.wide and column.plot not in (QUEUE, CAPACITY):
            tiles.append((column.title, with_unit(column, row.values.get(column.name)), "", False))
    tiles.append(("drops", f"{per_second(row.drops_per_s)} /s", f"{count(row.dropped_packets)} in all", False))
    for column, value, old in measurements(snapshot, row):
        note = "not measured" if value is None else "" if old is None else f"{age(old)} ago"
        tiles.append((column.title, live_text(column, value), note, (old or 0.0) > STALE_S))
    return tiles


def _objects(snapshot: Snapshot, row: PortRow) -> dict[str, Any] | None:
    """The table of the first kind that has objects at the port; None: the program has no kind of which there are many."""
    kinds = [kind for kind in snapshot.kinds_at(row) if not kind.brief]
    kind = next((one for one in kinds if snapshot.objects_of(row, one)), kinds[0] if kinds else None)
    if kind is None:
        return None
    found = snapshot.objects_of(row, kind)
    room = max(OBJECTS_A_PORT, OBJECTS_IN_TABLES // len(snapshot.managed_ports))
    table = object_table(snapshot, kind, found[:room])
    more = f", those that send most of {len(found)}" if len(found) > room else ""
    return {
        "title": f"{kind.many} ({len(table.lines)}{more})" if found else f"{kind.many}: none has an entry here",
        "head": [kind.name, *([table.bar] if table.bar else []), *table.headings],
        "bar": table.bar,
        "full": table.full,
        "rows": [vars(line) for line in table.lines],
    }


def _round_value(value: float | None) -> int | None:
    return None if value is None else round(value)


def _short(value: float | None) -> float | None:
    return None if value is None else round(value) if value >= 1000 else round(value, 2)


EVENTS_KEPT = 500
STEPS_KEPT = 120
"""Events `tuned`, which come every second: they do not push the others out."""
EVENTS_AT_FIRST = 1000
UNNAMED = "-"
"""The name of switches that belong to no topology."""


@dataclass(frozen=True)
class HubOptions:
    """How often and for how long."""

    period_s: float = 0.5
    history_s: float = 600.0
    max_viewers: int = 64


class Feed:
    """One topology: samples, keeps, and tells each viewer what is new."""

    def __init__(self, name: str, targets: LiveTargets, options: HubOptions) -> None:
        self.name = name
        self._folder = targets.run.folder if targets.run else None
        source = LiveSource(targets)
        self._sampler: Sampler[dict[str, Any]] = Sampler(source, point_of, options.period_s, options.history_s)
        self._tail = EventTail(self._folder / EVENTS_FILE if self._folder else None, EVENTS_AT_FIRST)
        self._steps: deque[tuple[int, dict[str, Any]]] = deque(maxlen=STEPS_KEPT)
        self._others: deque[tuple[int, dict[str, Any]]] = deque(maxlen=EVENTS_KEPT)
        self._told = 0
        self._encoded: tuple[Any, str] = (None, "")
        self.options = options
        self.viewers = 0
        "Who looks at it now."

    async def start(self) -> None:
        """Begin to sample."""
        await self._sampler.__aenter__()

    async def close(self) -> None:
        """End."""
        await self._sampler.__aexit__()

    @property
    def title(self) -> str:
        """What its file calls it."""
        latest = self._sampler.latest
        return latest.title if latest is not None else ""

    @property
    def is_there(self) -> bool:
        """Whether the topology still has its run state."""
        return self._folder is None or (self._folder / STATE_FILE).is_file()

    async def messages(self) -> AsyncGenerator[tuple[str, str]]:
        """(event, JSON) for one viewer: first `hello` with the history, then a `frame` a sample with what is new."""
        with self._sampler.watching():
            await self._sampler.wait_for_first(10.0)
            seen = (0.0, 0)
            about = {"topology": self.name, "period_s": self.options.period_s, "history_s": self.options.history_s}
            self._take_events()
            yield "hello", json.dumps({**about, **self._news(seen)})
            seen = self._newest()
            async for _ in self._sampler.follow():
                self._take_events()
                key = (seen, self._sampler.count, self._told)
                if self._encoded[0] != key:  # once for all viewers who have seen the same
                    self._encoded = (key, json.dumps(self._news(seen)))
                seen = self._newest()
                yield "frame", self._encoded[1]

    def _newest(self) -> tuple[float, int]:
        return (self._sampler.history[-1][0] if self._sampler.history else 0.0), self._told

    def _take_events(self) -> None:
        for event in self._tail.new():
            self._told += 1
            line = {key: event.get(key) for key in ("time", "event", "dry_run")}
            line |= {"place": place_of(event), "why": sentence_of(event)}
            (self._steps if event["event"] == "tuned" else self._others).append((self._told, line))

    def _news(self, seen: tuple[float, int]) -> dict[str, Any]:
        """What came after a time and an event, and how all is now."""
        latest, problem = self._sampler.latest, self._sampler.problem
        events = sorted((*self._steps, *self._others), key=lambda item: item[0])
        return {
            "points": [point for time_s, point in self._sampler.history if time_s > seen[0]],
            "events": [line for number, line in events if number > seen[1]],
            "picture": picture_of(latest) if latest else None,
            "problem": problem.message if problem else None,
            "ended": not self.is_there,
        }


class Hub:
    """`find` gives the topologies by name, as they are now; each is sampled while somebody looks at it."""

    def __init__(self, find: Callable[[], dict[str, LiveTargets]], options: HubOptions | None = None) -> None:
        self._find = find
        self.options = options or HubOptions()
        self._feeds: dict[str, Feed] = {}
        self._starting = asyncio.Lock()
        self.viewers = 0

    def names(self) -> list[str]:
        """Those that run, and those that are looked at."""
        return sorted({*self._find(), *(name for name, feed in self._feeds.items() if feed.is_there)})

    def titles(self) -> dict[str, str]:
        """What the files of those that run call them; of one that is looked at as its run state says now."""
        found = {name: targets.run.title if targets.run else "" for name, targets in self._find().items()}
        found |= {name: feed.title for name, feed in self._feeds.items()}
        return {name: title for name, title in found.items() if title}

    async def feed(self, name: str | None) -> Feed:
        """The topology's feed, started if it was not; `None` the first one. Raises UNKNOWN_NAME or NO_TOPOLOGY."""
        async with self._starting:
            for ended in [name for name, feed in self._feeds.items() if not feed.is_there and not feed.viewers]:
                await self._feeds.pop(ended).close()
            there = self._find()
            if name is None:
                if not there:
                    raise FairlaneError(ErrorCode.NO_TOPOLOGY, "no topology is running")
                name = sorted(there)[0]
            feed = self._feeds.get(name)
            if feed is None:
                if name not in there:
                    raise unknown_name("topology", name, there)
                feed = self._feeds[name] = Feed(name, there[name], self.options)
                await feed.start()
            return feed

    async def close(self) -> None:
        """End all."""
        await asyncio.gather(*(feed.close() for feed in self._feeds.values()))
        self._feeds.clear()
