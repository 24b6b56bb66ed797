# SPDX-License-Identifier: Apache-2.0
"""Counters to rates: differences to the reading before, per key; a counter that went back was reset and gives no rate."""

from __future__ import annotations

from collections.abc import Hashable


class RateBook:
    """Remembers every counter's last reading. `begin(now_s)` opens a reading; what was not asked for in it is forgotten."""

    def __init__(self) -> None:
        self._before: dict[Hashable, float] = {}
        self._now: dict[Hashable, float] = {}
        self._before_s: float | None = None
        self._now_s: float | None = None

    @property
    def interval_s(self) -> float | None:
        """Between this reading and the one before; None for the first."""
        if self._before_s is None or self._now_s is None:
            return None
        return self._now_s - self._before_s

    def begin(self, now_s: float) -> None:
        """A new reading, at `now_s` of a monotonic clock."""
        self._before, self._now = self._now, {}
        self._before_s, self._now_s = self._now_s, now_s

    def forget(self) -> None:
        """The switch is another one, or was away: the next reading is the first."""
        self.__init__()

    def per_s(self, key: Hashable, value: float | None) -> float | None:
        """The counter's rate since the reading before; None when there was none, no time has passed, or it was reset."""
        if value is None:
            return None
        self._now[key] = value
        before, interval_s = self._before.get(key), self.interval_s
        if before is None or not interval_s or interval_s <= 0 or value < before:
            return None
        return (value - before) / interval_s
