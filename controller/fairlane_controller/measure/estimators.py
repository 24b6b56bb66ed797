# SPDX-License-Identifier: Apache-2.0
"""A robust estimator over a sliding window of time, and the changes that it finds; the time is an argument, so it runs in any clock."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import accumulate
from operator import itemgetter
from typing import Any, Literal, NamedTuple

from fairlane_controller.units import format_rate, format_time


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
    """The quantity itself has changed: its estimate before and after, the first observation of the new value, and how many there are."""

    before: float
    after: float
    since_s: float
    count: int


What = Literal["rate", "delay", "path"]
"""`rate`: BW, of the port's reports; `delay`: τ, of its probes; `path`: T_res, of TCP's ACKs, link and all behind it."""

_SYMBOLS = {"rate": "BW", "delay": "τ", "path": "T_res"}


@dataclass(frozen=True)
class LinkChange(Shift):
    """A shift of BW (bit/s), τ or T_res (seconds)."""

    what: What

    @property
    def why(self) -> str:
        """One sentence for the event log."""
        is_rate = self.what == "rate"
        before, after = (
            format_rate(value) if is_rate else format_time(round(value, 6)) for value in (self.before, self.after)
        )
        return f"{_SYMBOLS[self.what]} was {before} and is {after}: {self.count} observations in a row say so"

    def to_json(self) -> dict[str, Any]:
        """For the event log; the unit is in the names."""
        unit = "bps" if self.what == "rate" else "s"
        return {"what": self.what, f"before_{unit}": self.before, f"after_{unit}": self.after, "count": self.count}


class _Sample(NamedTuple):
    time_s: float
    value: float
    weight: float


@dataclass
class QuantileWindow:
    """A weighted quantile of what was observed in the last `window_s` seconds.

    When the last `shift_count` observations all lie more than `shift_ratio` above the estimate, or all below it,
    the quantity itself has changed: older ones are forgotten, so that a hand-over shows at once and not after half
    a window. A quantile, not a mean, because the errors are one-sided: a delayed ACK or a late thread only adds.
    """

    quantile: float
    "0..1; 0.5 is the median."
    window_s: float
    max_samples: int = 512
    shift_count: int = 4
    "0: shifts are not searched."
    shift_ratio: float = 0.15
    shift_quantile: float = 0.5
    "New observations must also lie above this quantile of the old ones, or below its mirror."
    shift_floor: float = 0.0
    "A smaller difference, in the unit of the values, is no shift."
    shift_spread: float = math.inf
    "Max range of the new ones, as a part of the distance from their median to the old estimate: disturbances scatter."
    shift_span_s: float = 0.0
    "Min time from the first to the last of the new ones: what arrives at once was delayed by one cause."
    _samples: deque[_Sample] = field(default_factory=deque[_Sample])
    _quantiles: Callable[[float], float] | None = None
    "Of the current samples; None: not computed yet."

    def add(self, time_s: float, value: float, weight: float = 1.0) -> Shift | None:
        """Add an observation.

        Args:
            time_s: when it was made; not before the last one.
            value: finite.
            weight: busy time or packets; more than 0.

        Returns:
            The shift that this observation confirms.

        Raises:
            ValueError: the value is not finite, or the weight not positive.
        """
        if not (math.isfinite(value) and math.isfinite(weight) and weight > 0):
            raise ValueError(f"observation {value} with weight {weight} is not usable")
        self._samples.append(_Sample(time_s, value, weight))
        if len(self._samples) > self.max_samples:
            self._samples.popleft()
        self._quantiles = None
        self._expire(time_s)
        return self._find_shift()

    def estimate(self, now_s: float) -> Estimate | None:
        """The quantile at `now_s`, or None when the window is empty."""
        value = self.value(now_s)
        if value is None:
            return None
        # 95 % interval of a quantile from order statistics: ranks n·q ± 1.96·sqrt(n·q·(1-q)).
        quantile, count, value_at = self.quantile, len(self._samples), self._value_at()
        spread = 1.96 * math.sqrt(quantile * (1.0 - quantile) / count)
        width = value_at(min(1.0, quantile + spread)) - value_at(max(0.0, quantile - spread))
        return Estimate(value, count, max(0.0, now_s - self.last_s), math.inf if count < 3 else width / 2.0)

    def value(self, now_s: float) -> float | None:
        """The value of `estimate` alone."""
        self._expire(now_s)
        return self._value_at()(self.quantile) if self._samples else None

    @property
    def count(self) -> int:
        """Observations in the window."""
        return len(self._samples)

    @property
    def last_s(self) -> float:
        """Time of the newest observation; there must be one."""
        return self._samples[-1].time_s

    def side(self, value: float, before_s: float = math.inf) -> int | None:
        """Compare a value with what was observed before `before_s`.

        Returns:
            1 above the usual range, -1 below, 0 within; None with fewer than three observations.
        """
        known = self._samples
        if known and self.last_s >= before_s:
            known = [sample for sample in known if sample.time_s < before_s]
        if len(known) < 3:
            return None
        low, high = self._usual(self._value_at() if known is self._samples else _quantiles_of(known))
        return 1 if value > high else -1 if value < low else 0

    def forget_before(self, time_s: float) -> None:
        """Remove what was observed before `time_s`."""
        while self._samples and self._samples[0].time_s < time_s:
            self._samples.popleft()
            self._quantiles = None

    def forget_since(self, time_s: float) -> None:
        """Remove what was observed at `time_s` or later."""
        while self._samples and self._samples[-1].time_s >= time_s:
            self._samples.pop()
            self._quantiles = None

    def _expire(self, now_s: float) -> None:
        self.forget_before(now_s - self.window_s)

    def _value_at(self) -> Callable[[float], float]:
        if self._quantiles is None:
            self._quantiles = _quantiles_of(self._samples)
        return self._quantiles

    def _find_shift(self) -> Shift | None:
        count, ratio = self.shift_count, self.shift_ratio
        if not count or len(self._samples) < 2 * count:
            return None
        samples = list(self._samples)
        old, new = samples[:-count], samples[-count:]
        values, known = sorted(sample.value for sample in new), [sample.value for sample in old]
        if values[0] <= min(known) * (1.0 + ratio) and values[-1] >= max(known) * (1.0 - ratio):
            return None  # within the old values: no need to sort them
        value_at = _quantiles_of(old)
        low, high = self._usual(value_at)
        if (low <= values[-1] and values[0] <= high) or new[-1].time_s - new[0].time_s < self.shift_span_s:
            return None
        before = value_at(self.quantile)
        if values[-1] - values[0] > self.shift_spread * abs(values[count // 2] - before):
            return None
        self._samples, self._quantiles = deque(new), None
        return Shift(before, self._value_at()(self.quantile), new[0].time_s, count)

    def _usual(self, value_at: Callable[[float], float]) -> tuple[float, float]:
        """Below and above which a value is beyond what was observed."""
        # Upwards it is not enough to lie above a low quantile: a new one must lie above the old median as well.
        usual = value_at(self.quantile)
        low, high = min(value_at(1.0 - self.shift_quantile), usual), max(value_at(self.shift_quantile), usual)
        ratio, floor = self.shift_ratio, self.shift_floor
        return min(low * (1.0 - ratio), low - floor), max(high * (1.0 + ratio), high + floor)


def _quantiles_of(samples: Iterable[_Sample]) -> Callable[[float], float]:
    """A function from a quantile to the smallest value below which at least that part of the weight lies."""
    ordered = sorted(samples, key=itemgetter(1))
    reached = list(accumulate(map(itemgetter(2), ordered)))

    def value_at(quantile: float) -> float:
        place = bisect_left(reached, quantile * reached[-1] - 1e-12)
        return ordered[min(place, len(ordered) - 1)].value

    return value_at
