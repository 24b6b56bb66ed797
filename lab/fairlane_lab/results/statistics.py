# SPDX-License-Identifier: Apache-2.0
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportMissingTypeStubs=false
"""Middle and confidence of a metric over the repeats of a point, and tests of a middle against a bound."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import fmean, median, stdev
from typing import Literal

CONFIDENCE = 0.95
Statistic = Literal["median", "mean"]


@dataclass(frozen=True)
class Aggregate:
    """A metric over repeats; `lo` and `hi` bound its middle with 95 % confidence, as far as the number of runs allows."""

    value: float
    lo: float
    hi: float
    min: float
    max: float
    runs: int


def aggregate(values: Sequence[float], statistic: Statistic = "median") -> Aggregate:
    """Middle, confidence interval and range. Raises ValueError when there are no values.

    Median: the order statistics whose coverage is at least 95 % whatever the distribution (binomial); below 6 values there are
    none, then the range (`coverage` tells its confidence). Mean: Student's t.
    """
    if not values:
        raise ValueError("no values")
    ordered = sorted(values)
    count = len(ordered)
    if statistic == "mean":
        middle = fmean(ordered)
        half = _t_factor(count) * stdev(ordered) / math.sqrt(count) if count > 1 else 0.0
        return Aggregate(middle, middle - half, middle + half, ordered[0], ordered[-1], count)
    rank = _rank(count)
    return Aggregate(median(ordered), ordered[rank], ordered[count - 1 - rank], ordered[0], ordered[-1], count)


@lru_cache(maxsize=4096)
def _rank(count: int) -> int:
    """How many values may be cut off at each end so that the rest covers the median with 95 % confidence; 0 for fewer than 6."""
    rank = 0
    while coverage(count, rank + 1) >= CONFIDENCE:
        rank += 1
    return rank


@lru_cache(maxsize=4096)
def coverage(count: int, rank: int | None = None) -> float:
    """Confidence with which the interval of `aggregate` holds the median: 0.5 for 2 values, 0.75 for 3, 0.979 for 10."""
    cut = _rank(count) if rank is None else rank
    outside = sum(math.comb(count, below) for below in range(cut + 1))  # binomial, p = 1/2
    return 1 - 2 * outside / 2**count


def p_above(values: Sequence[float], bound: float, statistic: Statistic) -> float:
    """How likely values at least as far above `bound` are while the middle is not above it; small: the middle is above.

    Median: the sign test, where values on the bound count half. Mean: Student's t test. One-sided; 1 without values.
    """
    from scipy import stats

    count = len(values)
    if statistic == "mean" and count > 1:
        spread = stdev(values)
        distance = fmean(values) - bound
        if spread == 0:
            return 0.0 if distance > 0 else 1.0
        return float(stats.t.sf(distance * math.sqrt(count) / spread, count - 1))
    if statistic == "mean":
        return 1.0
    above = sum(value > bound for value in values) + sum(value == bound for value in values) // 2
    return float(stats.binom.sf(above - 1, count, 0.5)) if count else 1.0


def p_below(values: Sequence[float], bound: float, statistic: Statistic) -> float:
    """The same for a middle below `bound`."""
    return p_above([-value for value in values], -bound, statistic)


def holm(p_values: Sequence[float]) -> list[float]:
    """The p values of a family, each made larger so that the chance of any wrong claim is that of one (Holm 1979)."""
    order = sorted(range(len(p_values)), key=lambda place: p_values[place])
    adjusted = [0.0] * len(p_values)
    highest = 0.0
    for rank, place in enumerate(order):
        highest = max(highest, min(1.0, p_values[place] * (len(p_values) - rank)))
        adjusted[place] = highest
    return adjusted


def runs_needed(values: Sequence[float], bound: float, statistic: Statistic, level: float) -> int | None:
    """About how many runs with this middle and spread would show on which side of `bound` the middle is, at a one-sided `level`.

    None when the middle is on the bound: no number would.
    """
    from scipy import stats

    least = math.ceil(math.log2(1 / level)) if statistic == "median" else 2
    distance = abs((median if statistic == "median" else fmean)(values) - bound)
    if distance == 0:
        return None
    if len(values) < 2:
        return max(least, len(values) + 1)
    efficiency = math.pi / 2 if statistic == "median" else 1.0
    wanted = efficiency * (float(stats.norm.isf(level)) * stdev(values) / distance) ** 2
    return max(least, len(values) + 1, math.ceil(wanted))


@lru_cache(maxsize=4096)
def _t_factor(count: int) -> float:
    from scipy import stats  # here: importing it takes longer than all the rest

    return float(stats.t.ppf(1 - (1 - CONFIDENCE) / 2, count - 1))
