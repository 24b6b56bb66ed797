# SPDX-License-Identifier: Apache-2.0
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportMissingTypeStubs=false
"""Middle and confidence of a metric over the repeats of a point."""

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


@lru_cache(maxsize=4096)
def _t_factor(count: int) -> float:
    from scipy import stats  # here: importing it takes longer than all the rest

    return float(stats.t.ppf(1 - (1 - CONFIDENCE) / 2, count - 1))
