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
from fairlane_controller.live.sampler import Sampler
from fairlane_controller.live.source import LiveSource, LiveTargets
from fairlane_controller.state.events import EVENTS_FILE
from fairlane_controller.state.store import STATE_FILE
from fairlane_controller.web.points import picture_of, point_of

EVENTS_KEPT = 500
STEPS_KEPT = 120
"""Events `tuned`, which come every second: they do not push the others out."""
EVENTS_AT_FIRST = 1000
LONELY = "-"
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
        """(event, JSON) for one viewer: first `hello` with the history, then a `frame` a sample."""
        with self._sampler.watching():
            await self._sampler.wait_for_first(10.0)
            self._take_events()
            last_s, last_event = self._newest_s(), self._told
            yield "hello", self._hello()
            async for _ in self._sampler.follow():
                self._take_events()
                since = (last_s, last_event)
                last_s, last_event = self._newest_s(), self._told
                yield "frame", self._frame(since)

    def _newest_s(self) -> float:
        return self._sampler.history[-1][0] if self._sampler.history else 0.0

    def _take_events(self) -> None:
        for event in self._tail.new():
            self._told += 1
            (self._steps if event.get("event") == "tuned" else self._others).append((self._told, _plain(event)))

    def _events(self, since: int = 0) -> list[dict[str, Any]]:
        both = sorted((*self._steps, *self._others), key=lambda item: item[0])
        return [event for number, event in both if number > since]

    def _hello(self) -> str:
        return json.dumps(
            {
                "topology": self.name,
                "period_s": self.options.period_s,
                "history_s": self.options.history_s,
                "points": [point for _, point in self._sampler.history],
                "events": self._events(),
                **self._now(),
            }
        )

    def _frame(self, since: tuple[float, int]) -> str:
        """Encoded once for all viewers who have seen the same."""
        key = (since, self._sampler.count, self._told)
        if self._encoded[0] != key:
            news = {
                "points": [point for time_s, point in self._sampler.history if time_s > since[0]],
                "events": self._events(since[1]),
                **self._now(),
            }
            self._encoded = (key, json.dumps(news))
        return self._encoded[1]

    def _now(self) -> dict[str, Any]:
        latest, problem = self._sampler.latest, self._sampler.problem
        return {
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


def _plain(event: dict[str, Any]) -> dict[str, Any]:
    """What the page shows of an event."""
    return {
        "time": event.get("time"),
        "event": event.get("event"),
        "place": place_of(event),
        "switch": event.get("switch"),
        "port": event.get("port"),
        "why": sentence_of(event),
        "dry_run": bool(event.get("dry_run")),
    }
