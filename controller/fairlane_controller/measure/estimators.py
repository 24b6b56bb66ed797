# SPDX-License-Identifier: Apache-2.0
"""Robust estimators over a sliding window of time; the time is an argument, so they run in any clock."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from operator import itemgetter
from typing import NamedTuple


@dataclass(frozen=True)
class Estimate:
    """A measured value and how much to trust it."""

    value: float
    count: int
    "Observations in the window."
    age_s: float
    "Time since the last observation."
    uncertainty: float
    "Half the width of the 95 % interval, in the unit of `value`; infinite below three observations."


@dataclass(frozen=True)
class Shift:
    """The thing itself has changed: its estimate before and after, the first observation that says so, and how many do."""

    before: float
    after: float
    since_s: float
    count: int


class _Sample(NamedTuple):
    time_s: float
    value: float
    weight: float


@dataclass
class QuantileWindow:
    """A weighted quantile of what was observed in the last `window_s` seconds.

    When the last `shift_count` observations all lie more than `shift_ratio` above the estimate, or all below it,
    the thing itself has changed: what is older is forgotten, so that a hand-over shows at once and not after half
    a window. A quantile, not a mean, because the errors are one-sided: a delayed ACK or a late thread only adds.
    """

    quantile: float
    "0..1; 0.5 is the median."
    window_s: float
    max_samples: int = 512
    shift_count: int = 4
    shift_ratio: float = 0.15
    shift_quantile: float = 0.5
    "Beyond this quantile of the old ones, upwards, or its mirror downwards, the new ones must lie as well."
    shift_floor: float = 0.0
    "A smaller difference, in the unit of the values, is no shift."
    shift_spread: float = math.inf
    "The new ones lie this near together, as a part of how far their median is from the old estimate: what only disturbs scatters."
    shift_span_s: float = 0.0
    "The new ones were observed over this time at least: what comes at once was held back at once."
    _samples: deque[_Sample] = field(default_factory=lambda: deque[_Sample]())
    _ordered: _Ordered | None = None
    "The samples by value, as long as they are the same."

    def add(self, time_s: float, value: float, weight: float = 1.0) -> Shift | None:
        """One observation; `weight` > 0 (busy time, packets). Returns the shift that it makes sure.

        Raises:
            ValueError: the value is not finite, or the weight not positive.
        """
        if not (math.isfinite(value) and math.isfinite(weight) and weight > 0):
            raise ValueError(f"observation {value} with weight {weight} is not usable")
        self._samples.append(_Sample(time_s, value, weight))
        while len(self._samples) > self.max_samples:
            self._samples.popleft()
        self._expire(time_s)
        return self._forget_before_shift()

    def estimate(self, now_s: float) -> Estimate | None:
        """The quantile at `now_s`, or None when the window is empty."""
        if not self._samples:
            return None
        last = self._samples[-1].time_s
        self._expire(now_s)
        if not self._samples:
            return None
        ordered = self._by_value()
        value, count = ordered.value_at_quantile(self.quantile), len(self._samples)
        # 95 % interval of a quantile from order statistics: ranks n·q ± 1.96·sqrt(n·q·(1-q)).
        spread = 1.96 * math.sqrt(self.quantile * (1.0 - self.quantile) / count)
        low, high = (
            ordered.value_at_quantile(max(0.0, self.quantile - spread)),
            ordered.value_at_quantile(min(1.0, self.quantile + spread)),
        )
        uncertainty = math.inf if count < 3 else (high - low) / 2.0
        return Estimate(value=value, count=count, age_s=max(0.0, now_s - last), uncertainty=uncertainty)

    def value(self, now_s: float) -> float | None:
        """The value of `estimate` alone."""
        self._expire(now_s)
        return self._by_value().value_at_quantile(self.quantile) if self._samples else None

    @property
    def count(self) -> int:
        """Observations that count."""
        return len(self._samples)

    @property
    def last_s(self) -> float:
        """Time of the newest observation; there is one."""
        return self._samples[-1].time_s

    def _by_value(self) -> _Ordered:
        if self._ordered is None or not self._ordered.is_of(self._samples):
            self._ordered = _Ordered(self._samples)
        return self._ordered

    @property
    def since_s(self) -> float | None:
        """Time of the oldest observation that counts; None when the window is empty."""
        return self._samples[0].time_s if self._samples else None

    def side(self, value: float, before_s: float = math.inf) -> int | None:
        """1 when `value` lies beyond what was observed before `before_s`, -1 below, else 0.

        None when fewer than three were: nothing to compare with.
        """
        known = self._samples
        if known and known[-1].time_s >= before_s:
            known = [sample for sample in known if sample.time_s < before_s]
        if len(known) < 3:
            return None
        low, high = self._usual(self._by_value() if known is self._samples else _Ordered(known))
        return 1 if value > high else -1 if value < low else 0

    def forget_before(self, time_s: float) -> None:
        """Only what was observed at `time_s` or later counts."""
        while self._samples and self._samples[0].time_s < time_s:
            self._samples.popleft()

    def forget_since(self, time_s: float) -> None:
        """What was observed at `time_s` or later does not count."""
        while self._samples and self._samples[-1].time_s >= time_s:
            self._samples.pop()

    def clear(self) -> None:
        """Forget everything."""
        self._samples.clear()

    def _expire(self, now_s: float) -> None:
        while self._samples and self._samples[0].time_s < now_s - self.window_s:
            self._samples.popleft()

    def _forget_before_shift(self) -> Shift | None:
        count, ratio = self.shift_count, self.shift_ratio
        if len(self._samples) < 2 * count:
            return None
        samples = list(self._samples)
        old, new = samples[:-count], samples[-count:]
        values, known = sorted(sample.value for sample in new), [sample.value for sample in old]
        if values[0] <= min(known) * (1.0 + ratio) and values[-1] >= max(known) * (1.0 - ratio):
            return None  # within what was observed; the quantiles need not be known for that
        ordered = _Ordered(old)
        low, high = self._usual(ordered)
        lasted_s = new[-1].time_s - new[0].time_s
        if (low <= values[-1] and values[0] <= high) or lasted_s < self.shift_span_s:
            return None
        before = ordered.value_at_quantile(self.quantile)
        if values[-1] - values[0] > self.shift_spread * abs(values[count // 2] - before):
            return None  # they do not agree with each other
        self._samples = deque(new)
        return Shift(before, self._by_value().value_at_quantile(self.quantile), new[0].time_s, count)

    def _usual(self, ordered: _Ordered) -> tuple[float, float]:
        """Below and above which a value is beyond what was observed."""
        # Upwards it is not enough to lie above a low quantile: a new one must lie above the old median as well.
        usual = ordered.value_at_quantile(self.quantile)
        most = max(ordered.value_at_quantile(self.shift_quantile), usual)
        least = min(ordered.value_at_quantile(1.0 - self.shift_quantile), usual)
        ratio, floor = self.shift_ratio, self.shift_floor
        return min(least * (1.0 - ratio), least - floor), max(most * (1.0 + ratio), most + floor)


class _Ordered:
    """Samples by value, for quantiles of their weight; at least one."""

    def __init__(self, samples: Iterable[_Sample]) -> None:
        held = list(samples)
        self._ends = held[0], held[-1]
        self._samples = sorted(held, key=itemgetter(1))
        self._reached = list(accumulate(map(itemgetter(2), self._samples)))

    def is_of(self, samples: Sequence[_Sample]) -> bool:
        """Whether it is of just these."""
        first, last = self._ends
        return bool(samples) and samples[0] is first and samples[-1] is last and len(samples) == len(self._samples)

    def value_at_quantile(self, quantile: float) -> float:
        """The smallest value below which at least `quantile` of the weight lies."""
        place = bisect_left(self._reached, quantile * self._reached[-1] - 1e-12)
        return self._samples[min(place, len(self._samples) - 1)].value
