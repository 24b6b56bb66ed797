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
    resets: int = 0
    "How often a shift was seen."
    shifted_from: float | None = None
    "The estimate before the last shift."
    _samples: deque[_Sample] = field(default_factory=lambda: deque[_Sample]())
    _ordered: _Ordered | None = None
    "The samples by value, as long as they are the same."

    def add(self, time_s: float, value: float, weight: float = 1.0) -> None:
        """One observation; `weight` > 0 (busy time, packets). Not finite or not positive weights raise ValueError."""
        if not (math.isfinite(value) and math.isfinite(weight) and weight > 0):
            raise ValueError(f"observation {value} with weight {weight} is not usable")
        self._samples.append(_Sample(time_s, value, weight))
        while len(self._samples) > self.max_samples:
            self._samples.popleft()
        self._expire(time_s)
        self._forget_before_shift()

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
        """1 when `value` lies more than `shift_ratio` above what was observed before `before_s`, -1 below, else 0.

        None when fewer than three were: nothing to compare with.
        """
        held = self._samples
        if held and held[-1].time_s >= before_s:
            held = [sample for sample in held if sample.time_s < before_s]
        if len(held) < 3:
            return None
        ordered = self._by_value() if held is self._samples else _Ordered(held)
        middle, usual = ordered.value_at_quantile(0.5), ordered.value_at_quantile(self.quantile)
        if value > max(middle, usual) * (1.0 + self.shift_ratio):
            return 1
        return -1 if value < min(middle, usual) * (1.0 - self.shift_ratio) else 0

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

    def _forget_before_shift(self) -> None:
        if len(self._samples) < 2 * self.shift_count:
            return
        samples = list(self._samples)
        old, new = samples[: -self.shift_count], samples[-self.shift_count :]
        values = [sample.value for sample in old]
        lowest, highest = min(sample.value for sample in new), max(sample.value for sample in new)
        if lowest <= min(values) * (1.0 + self.shift_ratio) and highest >= max(values) * (1.0 - self.shift_ratio):
            return  # within what was observed; the quantiles need not be known for that
        low, high = self._usual(old)
        beyond = all(s.value > high for s in new) or all(s.value < low for s in new)
        if beyond and self._is_settled(old, new):
            self.shifted_from = _Ordered(old).value_at_quantile(self.quantile)
            self._samples = deque(new)
            self.resets += 1

    def _is_settled(self, old: list[_Sample], new: list[_Sample]) -> bool:
        """Whether new observations agree with each other."""
        if new[-1].time_s - new[0].time_s < self.shift_span_s:
            return False
        values = sorted(sample.value for sample in new)
        moved = abs(values[len(values) // 2] - _Ordered(old).value_at_quantile(self.quantile))
        return values[-1] - values[0] <= self.shift_spread * moved

    def _usual(self, held: Iterable[_Sample]) -> tuple[float, float]:
        """Below and above which a value is beyond what was observed; `held` has one sample at least."""
        ordered = _Ordered(held)
        # Upwards it is not enough to lie above a low quantile: a new one must lie above the old median as well.
        usual = ordered.value_at_quantile(self.quantile)
        most, least = (
            max(ordered.value_at_quantile(self.shift_quantile), usual),
            min(ordered.value_at_quantile(1.0 - self.shift_quantile), usual),
        )
        ratio, floor = self.shift_ratio, self.shift_floor
        return min(least * (1.0 - ratio), least - floor), max(most * (1.0 + ratio), most + floor)

    def is_outlier(self, value: float) -> bool:
        """Whether a new value lies outside the range of the samples; False with fewer than three samples."""
        if len(self._samples) < 3:
            return False
        low, high = self._usual(self._samples)
        return not low <= value <= high


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
