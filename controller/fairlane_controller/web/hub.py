# SPDX-License-Identifier: Apache-2.0
"""What the page shows of a topology: one sampler and one event log, shared by all viewers."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import AsyncGenerator, Iterator
from typing import Any

from fairlane_controller.errors import ErrorCode
from fairlane_controller.live.events import EventTail, place_of, sentence_of
from fairlane_controller.live.model import PortRow, Snapshot
from fairlane_controller.live.sampler import Sampler
from fairlane_controller.live.shown import BAD, facts_of, loop_in_words, object_table, troubles
from fairlane_controller.live.source import LiveSource, LiveTargets
from fairlane_controller.program.rows import CONTROL, DROPS, GOODPUT, QUEUE
from fairlane_controller.state.events import log_of

OBJECTS_A_PORT = 12
"""Lines of objects of a kind (flows, VCs) that a port's charts show: those that send the largest rates."""
OBJECTS_IN_TABLES = 200
"""Rows of the tables of all ports together, but at least OBJECTS_A_PORT each."""
EVENTS_MAX = 500


def point_of(snapshot: Snapshot) -> dict[str, Any]:
    """The values of the charts at one time.

    Returns:
        `{"t": Unix time, "ports": {"s1:3": {chart: {line: value}}}}` of the managed ports; None is a gap.
    """
    ports: dict[str, dict[str, dict[str, float | None]]] = {}
    for row in snapshot.managed_ports:
        charts = ports[row.name] = {chart: {} for chart in (QUEUE, GOODPUT, CONTROL, DROPS)}
        for chart, name, value, _ in _lines(snapshot, row):
            charts[chart][name] = None if value is None else round(value, 2)
    return {"t": round(snapshot.time_s, 3), "ports": ports}


def _lines(snapshot: Snapshot, row: PortRow) -> Iterator[tuple[str, str, float | None, bool]]:
    """Chart, name, value of each line of a port, and whether it is a reference: a limit of others, or of a class."""
    yield QUEUE, "all", snapshot.queue_of(row)[0], False
    yield from ((QUEUE, name, level, True) for name, level in snapshot.marks_of(row).items())
    yield GOODPUT, "sent", row.tx_bps, False
    yield GOODPUT, "line", row.rate_bps or row.estimate("bw_bps").get("value"), True
    drops: dict[str, float] = {}
    for drop in snapshot.drops:
        if drop.place == row.place and drop.per_s:
            drops[drop.reason] = drops.get(drop.reason, 0.0) + drop.per_s
    yield from ((DROPS, reason, per_s, False) for reason, per_s in drops.items())
    for kind in snapshot.kinds_at(row):
        for one in snapshot.objects_of(row, kind)[:OBJECTS_A_PORT]:
            name = (f"{kind.short} " if kind.brief else "") + snapshot.named(one.key)
            for chart in (QUEUE, GOODPUT, CONTROL):
                columns = [column for column in kind.columns if column.plot == chart]
                for column in columns:
                    line = f"{name} {column.title}" if len(columns) > 1 else name
                    yield chart, line, one[column.name], kind.brief


def picture_of(snapshot: Snapshot) -> dict[str, Any]:
    """What the page shows of the newest snapshot, in words: the page knows no program and no unit."""
    loop = loop_in_words(snapshot)
    return {
        "loop": loop,
        "problems": [*troubles(snapshot), *([loop] if loop[0] == BAD else [])],
        "ports": {
            row.name: {
                "tiles": facts_of(snapshot, row),
                "objects": _objects(snapshot, row),
                "charts": _charts(snapshot, row),
                "references": [name for _, name, _, is_reference in _lines(snapshot, row) if is_reference],
            }
            for row in snapshot.managed_ports
        },
    }


def _charts(snapshot: Snapshot, row: PortRow) -> dict[str, tuple[str, str]]:
    """Title and unit of each chart."""
    controls = [c for kind in snapshot.kinds_at(row) for c in kind.columns if c.plot == CONTROL]
    return {
        QUEUE: ("Queue", snapshot.queue_of(row)[2]),
        GOODPUT: ("Goodput", "bit/s"),
        CONTROL: (" and ".join({c.title: None for c in controls}), controls[0].unit if controls else ""),
        DROPS: ("Drops by reason", "packets/s"),
    }


def _objects(snapshot: Snapshot, row: PortRow) -> dict[str, Any] | None:
    """The table of the first kind that has objects at the port; None: the program has no kind of which there are many."""
    kinds = [(kind, snapshot.objects_of(row, kind)) for kind in snapshot.kinds_at(row) if not kind.brief]
    if not kinds:
        return None
    kind, found = next((one for one in kinds if one[1]), kinds[0])
    room = max(OBJECTS_A_PORT, OBJECTS_IN_TABLES // len(snapshot.managed_ports))
    headings, lines = object_table(snapshot, kind, found[:room])
    more = f", those that send most of {len(found)}" if len(found) > room else ""
    return {
        "title": f"{kind.many} ({len(lines)}{more})" if found else f"{kind.many}: none has an entry here",
        "head": [kind.name, *headings],
        "rows": [vars(line) for line in lines],
    }


class Feed:
    """Samples one topology while it has viewers, and gives each viewer what is new.

    Args:
        targets: the topology.
        period_s: between two samples.
        history_s: what a new viewer gets.
        max_viewers: at the same time.
    """

    def __init__(
        self, targets: LiveTargets, period_s: float = 0.5, history_s: float = 600.0, max_viewers: int = 64
    ) -> None:
        self.sampler = Sampler(LiveSource(targets), self._shorten, period_s, history_s)
        self._picture: dict[str, Any] | None = None
        self._tail = EventTail(log_of(targets.run), EVENTS_MAX)
        self._events: deque[dict[str, Any]] = deque(maxlen=EVENTS_MAX)
        self._event_count = 0
        self._history_s = history_s
        self._max_viewers = max_viewers
        self.viewers = 0

    def _shorten(self, snapshot: Snapshot) -> dict[str, Any]:
        """The point of a sample; its picture is made here too, once for all viewers."""
        self._picture = picture_of(snapshot)
        return point_of(snapshot)

    async def messages(self) -> AsyncGenerator[str]:
        """JSON for one viewer: all that is known, then with each sample what has been added.

        Raises:
            FairlaneError: REFUSED with too many viewers.
        """
        if self.viewers >= self._max_viewers:
            raise ErrorCode.REFUSED(f"the page has {self.viewers} viewers, no more are allowed")
        self.viewers += 1
        try:
            seen_s, seen_events = 0.0, 0
            async for _ in self.sampler.follow():
                self._read_events()
                yield json.dumps(self._news(seen_s, seen_events))
                seen_s = self.sampler.history[-1][0] if self.sampler.history else 0.0
                seen_events = self._event_count
        finally:
            self.viewers -= 1

    def _read_events(self) -> None:
        for event in self._tail.new():
            if event["event"] != "tuned":  # one a second: they would push the others out
                line = {key: event.get(key) for key in ("time", "event", "dry_run")}
                self._events.append({**line, "place": place_of(event), "why": sentence_of(event)})
                self._event_count += 1

    def _news(self, seen_s: float, seen_events: int) -> dict[str, Any]:
        """What came after a time and so many events, and the present state."""
        latest, problem = self.sampler.latest, self.sampler.problem
        new_events = min(self._event_count - seen_events, len(self._events))
        return {
            "topology": f"{latest.title} ({latest.topology})"
            if latest and latest.title
            else latest and latest.topology,
            "history_s": self._history_s,
            "points": [point for time_s, point in self.sampler.history if time_s > seen_s],
            "events": list(self._events)[len(self._events) - new_events :],
            "picture": self._picture,
            "problem": problem.message if problem else None,
        }
