# SPDX-License-Identifier: Apache-2.0
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportMissingTypeStubs=false
"""Middle and confidence of a metric over the repeats of a point, and tests of a middle against a bound.

The tests are of order statistics: exact for any distribution of the median. A mean has no such test; its verdicts also ask the interval.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import fmean, median, stdev
from typing import Any, Literal

import numpy as np

CONFIDENCE = 0.95
LEVEL = (1 - CONFIDENCE) / 2
"""Of one side."""
LEAST_RUNS = 6
"""Fewer decide nothing: no order statistics of theirs cover the median at 95 %."""
RESAMPLES = 1999
SEED = 1
"""Of the bootstrap: the same data give the same interval."""
Statistic = Literal["median", "mean"]
MIDDLES: Mapping[str, Callable[[Sequence[float]], float]] = {"median": median, "mean": fmean}


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

    Below 6 values the interval is their range (`coverage` tells its confidence). Median: the order statistics whose coverage is at
    least 95 % whatever the distribution (binomial). Mean: BCa bootstrap. Neither leaves the range of the values.
    """
    return aggregate_all({"": values}, statistic)[""]


def aggregate_all(columns: Mapping[str, Sequence[float]], statistic: Statistic = "median") -> dict[str, Aggregate]:
    """`aggregate` of each column; those of equal length share their resamples."""
    found: dict[str, Aggregate] = {}
    drawn: dict[int, list[str]] = {}
    for name, values in columns.items():
        if not values:
            raise ValueError("no values")
        ordered = sorted(values)
        count, rank = len(ordered), _rank(len(ordered))
        lo, hi = ordered[rank], ordered[count - 1 - rank]
        if statistic == "mean" and count >= LEAST_RUNS:
            lo, hi = ordered[0], ordered[-1]
            if lo < hi:
                drawn.setdefault(count, []).append(name)
        found[name] = Aggregate(MIDDLES[statistic](ordered), lo, hi, ordered[0], ordered[-1], count)
    for names in drawn.values():
        ends = _bca(np.mean, np.array([columns[name] for name in names]))
        for name, lo, hi in zip(names, *ends, strict=True):
            each = found[name]
            found[name] = Aggregate(each.value, float(lo), float(hi), each.min, each.max, each.runs)
    return found


def aggregate_ratio(values: Sequence[float], below: Sequence[float], statistic: Statistic = "median") -> Aggregate | None:  # fmt: skip
    """The ratio of two middles over paired runs; its interval resamples pairs (BCa). None where it is not known: a middle of 0 below.

    `min` and `max` are of the pairs' own ratios. An end that is not known is infinite.
    """
    middle = MIDDLES[statistic](below)
    if not middle:
        return None
    pairs = [value / under for value, under in zip(values, below, strict=True) if under]
    value, least, most, count = MIDDLES[statistic](values) / middle, min(pairs), max(pairs), len(values)
    lo, hi = min(least, value), max(most, value)
    if least == most and len(pairs) == count:
        lo = hi = value = least
    elif count >= LEAST_RUNS:
        of = np.median if statistic == "median" else np.mean

        def ratio(above: Any, under: Any, axis: int) -> Any:
            top, bottom = of(above, axis=axis), of(under, axis=axis)
            return np.divide(top, bottom, out=np.full(np.shape(top), math.inf), where=bottom != 0)

        lo, hi = (float(end) for end in _bca(ratio, np.array(values), np.array(below)))
    return Aggregate(value, lo, hi, least, most, count)


def _bca(statistic: Callable[..., Any], *data: Any) -> tuple[Any, Any]:
    """Both ends of the BCa interval along the last axis. Where all resamples agree, or its acceleration is not known, the percentiles."""
    from scipy import stats

    def ends(method: Literal["BCa", "percentile"], earlier: Any = None) -> Any:
        more: Any = {"paired": len(data) > 1, "confidence_level": CONFIDENCE, "method": method, "axis": -1}
        return stats.bootstrap(
            data, statistic, n_resamples=0 if earlier else RESAMPLES, bootstrap_result=earlier, rng=SEED, **more
        )

    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        first = ends("BCa")
        lo, hi = first.confidence_interval
        if np.isnan(lo).any() or np.isnan(hi).any():
            plain = ends("percentile", first).confidence_interval
            lo, hi = np.where(np.isnan(lo), plain.low, lo), np.where(np.isnan(hi), plain.high, hi)
        return np.where(np.isnan(lo), -math.inf, lo), np.where(np.isnan(hi), math.inf, hi)


@lru_cache(maxsize=4096)
def _rank(count: int) -> int:
    """How many values may be cut off at each end so that the rest covers the median with 95 % confidence; 0 for fewer than 6."""
    from scipy import stats

    rank = int(stats.binom.ppf(LEVEL, count, 0.5))  # the least with at least LEVEL up to it
    return max(0, rank if stats.binom.cdf(rank, count, 0.5) <= LEVEL else rank - 1)


@lru_cache(maxsize=4096)
def coverage(count: int) -> float:
    """Confidence with which the interval of `aggregate` holds the median: 0.5 for 2 values, 0.75 for 3, 0.979 for 10."""
    from scipy import stats

    return float(1 - 2 * stats.binom.cdf(_rank(count), count, 0.5))


@lru_cache(maxsize=65536)
def p_most(there: int, count: int) -> float:
    """How likely at least `there` of `count` runs are on a side where at most half of all runs are (the sign test, exact); 1 without runs."""
    from scipy import stats

    return float(stats.binom.sf(there - 1, count, 0.5)) if count else 1.0


@dataclass(frozen=True)
class OfMost:
    """What `share` of all runs reach at least (`is_low`) or at most, and how likely the runs are if that is not within a bound, and if it is."""

    value: float
    lo: float
    hi: float
    """Exact 95 % interval of that quantile; NaN where the number of runs gives none."""
    p_within: float
    p_beyond: float


def of_most(values: Sequence[float], share: float, bound: float, *, is_low: bool) -> OfMost:
    """The quantile that `share` of the runs are on the good side of, beside a bound. Raises ValueError without values."""
    from scipy import stats

    ordered = sorted(values, reverse=is_low)
    value = ordered[math.ceil(round(share * len(ordered), 9)) - 1]

    def test(alternative: Literal["two-sided", "less", "greater"]) -> Any:
        return stats.quantile_test(ordered, q=bound, p=1 - share if is_low else share, alternative=alternative)  # pyright: ignore[reportArgumentType]

    within, beyond = (test("greater"), test("less")) if is_low else (test("less"), test("greater"))
    found = test("two-sided").confidence_interval(CONFIDENCE)
    lo, hi = (float(found.low), float(found.high)) if math.isfinite(found.low + found.high) else (math.nan, math.nan)
    return OfMost(value, lo, hi, float(within.pvalue), float(beyond.pvalue))


def holm(p_values: Sequence[float]) -> list[float]:
    """The p values of a family, each made larger so that the chance of any wrong claim is that of one (Holm 1979)."""
    return list(_holm(tuple(p_values)))


@lru_cache(maxsize=1024)
def _holm(p_values: tuple[float, ...]) -> tuple[float, ...]:
    from statsmodels.stats.multitest import multipletests

    adjusted: Any = multipletests(p_values, method="holm")[1] if p_values else ()
    return tuple(float(p) for p in adjusted)


def runs_needed(differences: Sequence[float], level: float) -> int | None:
    """About how many runs with this middle and spread would show on which side of 0 the median is, at a one-sided `level`.

    None when the middle is 0: no number would.
    """
    from scipy import stats

    least = max(LEAST_RUNS, math.ceil(math.log2(1 / level)))
    distance = abs(median(differences))
    if distance == 0:
        return None
    if len(differences) < 2:
        return max(least, len(differences) + 1)
    wanted = math.pi / 2 * (float(stats.norm.isf(level)) * stdev(differences) / distance) ** 2
    return max(least, len(differences) + 1, math.ceil(wanted))
