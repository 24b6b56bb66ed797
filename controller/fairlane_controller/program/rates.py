# SPDX-License-Identifier: Apache-2.0
"""Counters to rates: differences to the reading before, per key; a counter that went back was reset and gives no rate."""

from __future__ import annotations

from collections.abc import Hashable


class RateBook:
    """The values of all counters in the last reading. `begin(now_s)` opens a reading; what was not asked for in it is forgotten."""

    def __init__(self) -> None:
        self._before: dict[Hashable, float] = {}
        self._now: dict[Hashable, float] = {}
        self._now_s: float | None = None
        self.interval_s: float | None = None
        "Between this reading and the one before; None for the first."

    def begin(self, now_s: float) -> None:
        """Begin a new reading.

        Args:
            now_s: The time of a monotonic clock, in seconds.
        """
        self._before, self._now = self._now, {}
        self.interval_s = None if self._now_s is None else now_s - self._now_s
        self._now_s = now_s

    def forget(self) -> None:
        """The switch is another one, or was away: the next reading is the first."""
        self.__init__()

    def per_s(self, key: Hashable, value: float | None) -> float | None:
        """The rate of a counter since the reading before.

        Args:
            key: The counter.
            value: Its value now; None: not known.

        Returns:
            The rate in 1/s; None when there was no reading before, no time has passed, or the counter was reset.
        """
        if value is None:
            return None
        self._now[key] = value
        before = self._before.get(key)
        if before is None or not self.interval_s or self.interval_s < 0 or value < before:
            return None
        return (value - before) / self.interval_s
