# SPDX-License-Identifier: Apache-2.0
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportMissingTypeStubs=false
"""Middle and confidence of a metric over the repeats of a point, and tests of a share of all runs against a bound.

The tests and intervals are of order statistics (binomial): exact for any distribution. A mean and a ratio have BCa intervals.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from statistics import fmean, median
from typing import Any, Literal

import numpy as np

LEVEL = 0.025
"""Of one side: intervals are of 95 %."""
LEAST_RUNS = 6
"""Fewer decide nothing: no order statistics of theirs cover the median at 95 %."""
RESAMPLES = 1999
SEED = 1
"""Of the bootstrap: the same data give the same interval."""
Statistic = Literal["median", "mean"]
MIDDLES: Mapping[str, Callable[[Sequence[float]], float]] = {"median": median, "mean": fmean}


@dataclass(frozen=True)
class Spread:
    """A metric over the repeats of a point, in the metric's own unit."""

    value: float
    """Median, or mean."""
    lo: float
    hi: float
    """Bounds of the middle with 95 % confidence, or as much as the number of runs allows; equal to the middle with one run."""
    min: float = math.nan
    max: float = math.nan
    """Range of the runs; NaN where it is not known."""
    runs: int = 1
    never: int = 0
    """Of the runs, those in which it never came: as values they are infinite."""

    @property
    def is_range(self) -> bool:
        """Whether the bounds are the range of the runs, because too few runs give no 95 %."""
        return self.runs > 1 and (self.lo, self.hi) == (self.min, self.max)

    def scaled(self, factor: float) -> Spread:
        """The same spread in another unit."""
        ends = (self.lo * factor, self.hi * factor, self.min * factor, self.max * factor)
        return Spread(self.value * factor, *ends, self.runs, self.never)

    def minus(self, other: Spread) -> Spread:
        """The difference of two middles; its interval from theirs (MOVER: Zou and Donner 2008). Of infinite ones their ends."""
        apart = self.value - other.value
        if not math.isfinite(apart):
            return Spread(apart, self.lo - other.hi, self.hi - other.lo, runs=min(self.runs, other.runs))
        low = math.hypot(self.value - self.lo, other.hi - other.value)
        high = math.hypot(self.hi - self.value, other.value - other.lo)
        return Spread(apart, apart - low, apart + high, runs=min(self.runs, other.runs))

    def over(self, other: Spread) -> Spread:
        """The quotient of two middles above 0; its interval from theirs, as of a difference of logarithms."""
        value, runs = self.value / other.value, min(self.runs, other.runs)
        if min(self.lo, other.lo) <= 0:
            return Spread(
                value, max(0.0, self.lo / other.hi), self.hi / other.lo if other.lo > 0 else value, runs=self.runs
            )
        apart = self._logarithm.minus(other._logarithm)
        return Spread(value, math.exp(apart.lo), math.exp(apart.hi), runs=runs)

    @property
    def _logarithm(self) -> Spread:
        return Spread(*map(math.log, (self.value, self.lo, self.hi)), runs=self.runs)


def aggregate(values: Sequence[float], statistic: Statistic = "median") -> Spread:
    """Middle, confidence interval and range of some values.

    Below 6 values the interval is their range. Median: the order statistics that cover it with 95 % at least, whatever the
    distribution. Mean: BCa bootstrap (Efron 1987); one infinite value makes it infinite. Neither leaves the range of the values.

    Raises:
        ValueError: There are no values.

    """
    return aggregate_all({"": values}, statistic)[""]


def aggregate_all(columns: Mapping[str, Sequence[float]], statistic: Statistic = "median") -> dict[str, Spread]:
    """`aggregate` of each column; the bootstrap of all columns of a length is one call."""
    found: dict[str, Spread] = {}
    drawn: dict[int, list[str]] = {}
    for name, values in columns.items():
        if not values:
            raise ValueError("no values")
        ordered, count = sorted(values), len(values)
        low, high = _ranks(count, 0.5) if statistic == "median" else (0, count - 1)
        value, lo, hi = MIDDLES[statistic](ordered), ordered[max(0, low)], ordered[min(count - 1, high)]
        if statistic == "mean" and math.isinf(value):
            lo = hi = value
        found[name] = Spread(value, lo, hi, ordered[0], ordered[-1], count, ordered.count(math.inf))
        if statistic == "mean" and count >= LEAST_RUNS and lo < hi:
            drawn.setdefault(count, []).append(name)
    for names in drawn.values():
        ends = _bca(np.mean, np.array([columns[name] for name in names]))
        for name, lo, hi in zip(names, *ends, strict=True):
            found[name] = replace(found[name], lo=float(lo), hi=float(hi))
    return found


def aggregate_ratio(values: Sequence[float], below: Sequence[float], statistic: Statistic = "median") -> Spread | None:  # fmt: skip
    """The ratio of two middles over paired runs; its interval resamples pairs (BCa).

    Returns:
        `min` and `max` are of the pairs' own ratios, an end that is not known is infinite. None where the middle below is 0,
        or where both are infinite.

    """
    top, bottom = MIDDLES[statistic](values), MIDDLES[statistic](below)
    if not bottom or (math.isinf(top) and math.isinf(bottom)):
        return None
    pairs = [ratio for ratio in quotients(values, below) if not math.isnan(ratio)]
    value, least, most, count = top / bottom, min(pairs), max(pairs), len(values)
    lo, hi = min(least, value), max(most, value)
    if least == most and len(pairs) == count:
        lo = hi = value = least
    elif statistic == "mean" and math.isinf(top + bottom):
        lo = hi = value
    elif count >= LEAST_RUNS:
        middle: Any = np.median if statistic == "median" else np.mean

        def ratio(above: Any, under: Any, axis: int) -> Any:
            top, bottom = middle(above, axis=axis), middle(under, axis=axis)
            return np.divide(top, bottom, out=np.full(np.shape(top), math.inf), where=bottom != 0)

        lo, hi = (float(end) for end in _bca(ratio, np.array(values), np.array(below)))
    never = sum(math.isinf(value + under) for value, under in zip(values, below, strict=True))
    return Spread(value, lo, hi, least, most, count, never)


def quotients(values: Sequence[float], below: Sequence[float]) -> list[float]:
    """Of each pair its quotient; NaN where it is not known, because what is below is 0 or both are infinite."""
    return [value / under if under else math.nan for value, under in zip(values, below, strict=True)]


def aggregate_share(values: Sequence[float], share: float, *, is_low: bool) -> Spread:
    """What `share` of the runs reach, at least (`is_low`) or at most, and the exact interval of that quantile; its ends may be NaN."""
    ordered, count = sorted(values), len(values)
    good = math.ceil(round(share * count, 9))
    low, high = _ranks(count, 1 - share if is_low else share)
    lo, hi = (ordered[low], ordered[high]) if low >= 0 and high < count else (math.nan, math.nan)
    value = ordered[-good if is_low else good - 1]
    return Spread(value, lo, hi, ordered[0], ordered[-1], count, ordered.count(math.inf))


def _bca(statistic: Callable[..., Any], *data: Any) -> tuple[Any, Any]:
    """Both ends of the BCa interval along the last axis. Where all resamples agree, or its acceleration is not known, the percentiles.

    As much wider than the normal distribution's as Student's is: resamples of a few values vary too little (Hesterberg 2015).
    """
    from scipy import stats

    runs = data[0].shape[-1]
    level = 1 - 2 * float(stats.norm.sf(math.sqrt(runs / (runs - 1)) * stats.t.isf(LEVEL, runs - 1)))

    def ends(method: Literal["BCa", "percentile"], earlier: Any = None) -> Any:
        more: Any = {"paired": len(data) > 1, "confidence_level": level, "method": method, "axis": -1}
        return stats.bootstrap(
            data, statistic, n_resamples=0 if earlier else RESAMPLES, bootstrap_result=earlier, rng=SEED, **more
        )

    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        first = ends("BCa")
        lo, hi = first.confidence_interval
        plain = ends("percentile", first).confidence_interval
        lo, hi = np.where(np.isnan(lo), plain.low, lo), np.where(np.isnan(hi), plain.high, hi)
        # Between infinite resamples nothing is interpolated; one that is not known may be anything.
        drawn, tail = first.bootstrap_distribution, int((1 - level) / 2 * RESAMPLES)
        least = np.sort(np.where(np.isnan(drawn), -math.inf, drawn))[..., tail]
        most = np.sort(np.where(np.isnan(drawn), math.inf, drawn))[..., -1 - tail]
        return np.where(np.isnan(lo), least, lo), np.where(np.isnan(hi), most, hi)


@lru_cache(maxsize=4096)
def _ranks(count: int, share: float) -> tuple[int, int]:
    """The places of the order statistics that bound the quantile `share` with 95 % confidence; outside of the values where these are too few."""
    from scipy import stats

    return int(stats.binom.ppf(LEVEL, count, share)) - 1, int(stats.binom.isf(LEVEL, count, share))


@lru_cache(maxsize=65536)
def p_share(outside: int, runs: int, share: float) -> tuple[float, float]:
    """How likely so few runs are outside of a bound where `share` of all runs at most are within, and so many where at least are (exact binomial)."""
    from scipy import stats

    return float(stats.binom.cdf(outside, runs, 1 - share)), float(stats.binom.sf(outside - 1, runs, 1 - share))


@lru_cache(maxsize=1024)
def holm(p_values: tuple[float, ...]) -> tuple[float, ...]:
    """The p values of a family, each made larger so that the chance of any wrong claim is that of one (Holm 1979)."""
    from statsmodels.stats.multitest import multipletests

    adjusted: Any = multipletests(p_values, method="holm")[1] if p_values else ()
    return tuple(float(p) for p in adjusted)
