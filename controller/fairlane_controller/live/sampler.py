# SPDX-License-Identifier: Apache-2.0
"""One source for many viewers: it samples at a period, has a bounded history, and never takes more than its part of a core."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from typing import Generic, TypeVar

from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.live.model import Snapshot
from fairlane_controller.live.source import LiveSource

CPU_SHARE = 0.08
"""The maximum share of one core that this process takes: where snapshots and their drawing are expensive, there are fewer."""

LINGER_S = 10.0
"""A viewer who reloads the page should see no gap."""

Point = TypeVar("Point")


def pause_s(period_s: float, cpu_s: float, elapsed_s: float) -> float:
    """Seconds to sleep after a cycle that took `cpu_s` of a core and `elapsed_s` in all: at CPU_SHARE of a core at most, at a period else."""
    return max(0.0, max(period_s, cpu_s / CPU_SHARE) - elapsed_s)


class Sampler(Generic[Point]):
    """`async with Sampler(source, shorten) as sampler:`.

    It samples while it has callers of `follow`, and for `LINGER_S` after the last one; then it closes its connections until the next caller.
    """

    def __init__(
        self,
        source: LiveSource,
        shorten: Callable[[Snapshot], Point],
        period_s: float = 0.5,
        history_s: float = 600.0,
    ) -> None:
        """`shorten` makes of a snapshot its point of the history, which has `history_s` seconds."""
        self._source = source
        self._shorten = shorten
        self._period_s = period_s
        self._history_s = history_s
        self._changed = asyncio.Condition()
        self._task: asyncio.Task[None] | None = None
        self.history: deque[tuple[float, Point]] = deque(maxlen=max(2, int(history_s / period_s) + 1))
        "(Unix time, point), the oldest first."
        self.latest: Snapshot | None = None
        self.problem: FairlaneError | None = None
        "Why the last sample failed."
        self.count = 0
        "Samples so far."
        self._watchers = 0
        self._left_s = 0.0
        self._watched = asyncio.Event()

    async def __aenter__(self) -> Sampler[Point]:
        self._task = asyncio.get_running_loop().create_task(self._forever())
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        await self._source.close()

    async def _forever(self) -> None:
        cpu_s = time.process_time()
        while True:
            if self._watchers == 0 and time.monotonic() - self._left_s >= LINGER_S:
                self._watched.clear()
                await self._source.close()
                await self._watched.wait()
                cpu_s = time.process_time()
            began_s = time.monotonic()
            await self.sample()
            before_s, cpu_s = cpu_s, time.process_time()  # with what the viewers did since the sample before
            await asyncio.sleep(pause_s(self._period_s, cpu_s - before_s, time.monotonic() - began_s))

    async def sample(self) -> None:
        """One snapshot now, into the history and to whoever waits."""
        try:
            snapshot = await self._source.snapshot()
            point = self._shorten(snapshot)
        except Exception as ex:  # a fault of ours: the viewers get the error, and the next sample may succeed
            text = f"a fault of ours: {type(ex).__name__}: {ex}"
            self.problem = ex if isinstance(ex, FairlaneError) else ErrorCode.INTERNAL(text)
        else:
            self.problem, self.latest = None, snapshot
            self.history.append((snapshot.time_s, point))
            while self.history[0][0] < snapshot.time_s - self._history_s:
                self.history.popleft()
        self.count += 1
        async with self._changed:
            self._changed.notify_all()

    async def follow(self) -> AsyncIterator[int]:
        """The number of the newest sample, each time there is a newer one; a slow viewer misses some and never delays the others."""
        seen = 0
        self._watchers += 1
        self._watched.set()
        try:
            while True:
                async with self._changed:
                    await self._changed.wait_for(lambda: self.count > seen)  # noqa: B023 (called before it changes)
                    seen = self.count
                yield seen
        finally:
            self._watchers -= 1
            self._left_s = time.monotonic()
