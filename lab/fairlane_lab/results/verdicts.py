# SPDX-License-Identifier: Apache-2.0
"""Whether an experiment's expectations were met: each bound with what was measured.

A verdict is `met` or `not met` when the runs show it, at 95 % for all verdicts of a page together (Holm): those of an experiment in a
runtime. Else it is `undecided`, or `too few by design` where so many runs could not decide it although all agreed.
Where a value is relative, it is the ratio of two middles, and runs of the same repeat are pairs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from operator import itemgetter
from statistics import fmean
from typing import Any, Literal

from pydantic import FiniteFloat
from pydantic.dataclasses import dataclass as checked_dataclass

from fairlane_lab.definition.judging import Expectation, Relative
from fairlane_lab.definition.names import beside, split_quotient
from fairlane_lab.definition.strict import holds, matches
from fairlane_lab.measures import finite_or_none
from fairlane_lab.results.rows import Row, values_of
from fairlane_lab.results.statistics import (
    LEAST_RUNS,
    LEVEL,
    MIDDLES,
    Spread,
    Statistic,
    aggregate,
    aggregate_ratio,
    aggregate_share,
    holm,
    p_share,
    quotients,
)

State = Literal["met", "not met", "undecided", "too few by design", "no data"]
Sides = tuple[float, float]
"""Of a bound: within and outside."""
_STATISTICS: dict[str, Callable[[Sequence[float]], float]] = {**MIDDLES, "min": min, "max": max}


@dataclass(frozen=True)
class PointRuns:
    """The runs of one point: its parameters (with `scheme`, `threshold`, …) and a row of metrics each."""

    point: str
    params: Mapping[str, Any]
    rows: Sequence[Row]


@checked_dataclass(frozen=True)
class Verdict:
    """One bound and what was measured."""

    text: str
    metric: str
    min: FiniteFloat | None
    max: FiniteFloat | None
    relative_to: dict[str, Any]
    """What the value is divided by, when it is: the same metric at the point with these values."""
    per: dict[str, Any]
    """The parameters for which it is, such as `{"case": "2M-2ms"}`."""
    points: list[str]
    """What it rests on; with `over`, the picked point."""
    value: FiniteFloat | None
    """The worst of `points` (farthest outside, or nearest to a bound); None when nothing was measured or nothing qualified, or it is infinite."""
    within: bool | None
    """Whether `value` is within the bound; None when there is no run to judge by, or not of each point."""
    state: State = "no data"
    """What the runs show."""
    lo: FiniteFloat | None = None
    hi: FiniteFloat | None = None
    """95 % interval of `value`; None where there is none, or its end is not known."""
    runs: int = 0
    never: int = 0
    """Of the runs, those in which what is measured never came, or what it is divided by."""

    @property
    def met(self) -> bool | None:
        """Whether the runs show that the bound holds (True), or that it does not (False); None while neither is shown."""
        return {"met": True, "not met": False}.get(self.state)

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "met": self.met}


@dataclass(frozen=True)
class _Sample:
    """The values of a point, one a run, and where they are relative those of the same repeats that they are divided by.

    Every kind of bound says what share of all runs is within: half of them (a median or a mean), `share`, or every one (min and max).
    """

    expectation: Expectation
    values: Sequence[float]
    below: Sequence[float] | None = None
    missing: int = 0
    """Runs in which nothing qualified: outside of any bound. What never came is infinite, and a quotient of two such is not known."""

    @property
    def runs(self) -> int:
        return len(self.values) + self.missing

    @property
    def of_all(self) -> bool:
        """Whether it is about every run: one outside refutes it."""
        return self.expectation.statistic in ("min", "max")

    @property
    def share(self) -> float:
        """Of all runs, what has to be within."""
        return 0.5 if self.expectation.statistic in MIDDLES else self.expectation.share

    @property
    def _pairs(self) -> list[tuple[float, float]]:
        return list(zip(self.values, self.below or [1.0] * len(self.values), strict=True))

    @property
    def never(self) -> int:
        """Runs in which it never came, or what it is divided by."""
        return sum(math.isinf(value + under) for value, under in self._pairs)

    @cached_property
    def each(self) -> list[float]:
        """The value of each run that knows it; infinite where none does."""
        known = quotients(self.values, self.below or [1.0] * len(self.values))
        return [value for value in known if not math.isnan(value)] or [math.inf]

    @cached_property
    def middle(self) -> Spread | None:
        """What is judged and its interval, for min and max the middle; None where it is not known."""
        asked = self.expectation
        if asked.statistic == "most" and self.values:
            outside = -math.inf if asked.max is None else math.inf
            return aggregate_share([*self.values, *[outside] * self.missing], asked.share, is_low=asked.max is None)
        if not self.values or 2 * self.missing >= self.runs:
            return None
        statistic: Statistic = "mean" if asked.statistic == "mean" else "median"
        if self.below is not None:
            return aggregate_ratio(self.values, self.below, statistic)
        return aggregate(self.values, statistic)

    @cached_property
    def value(self) -> float | None:
        if self.of_all and self.values and not self.missing:
            asked = self.expectation
            return min(self.each, key=lambda value: min(margins(asked.min, asked.max, value)))
        return None if self.middle is None else self.middle.value

    @cached_property
    def margins(self) -> list[list[float]]:
        """Of each end of the bound, how far inside of it each run is."""
        ends = self.expectation.min, self.expectation.max
        return [list(each) for each in zip(*(margins(*ends, *pair) for pair in self._pairs), strict=True)]

    @cached_property
    def p(self) -> Sides:
        """How likely the sample is while too few of all runs are within, and while enough are."""
        if self.runs < LEAST_RUNS or (self.value is None and not self.missing):
            return 1.0, 1.0
        outside = [sum(each < 0 for each in margin) + self.missing for margin in self.margins]
        unknown = sum(math.isnan(each) for each in self.margins[0])
        if self.of_all and (unknown or any(outside)):
            return 1.0, 0.0 if any(outside) else 1.0
        within = max(p_share(count + unknown, self.runs, self.share)[0] for count in outside)
        beyond = min(1.0, len(outside) * min(p_share(count, self.runs, self.share)[1] for count in outside))
        if self.below is None and self.expectation.statistic != "mean":
            return within, beyond
        return (within if self._shows(True) else 1.0, beyond if self._shows(False) else 1.0)

    def _shows(self, within: bool) -> bool:
        """Whether all of the interval is on that side; signs of runs say nothing of a mean, nor of a ratio of middles."""
        if self.of_all:
            return True
        asked, found = self.expectation, self.middle
        if found is None:
            return False
        ends = zip(*(margins(asked.min, asked.max, end) for end in (found.lo, found.hi)), strict=True)
        return all(min(end) >= 0 for end in ends) if within else any(max(end) < 0 for end in ends)

    @property
    def floors(self) -> Sides:
        """The least that `p` can be with so many runs: all agree."""
        if self.runs < LEAST_RUNS:
            return 1.0, 1.0
        return self.share**self.runs, 0.0 if self.of_all else min(
            1.0, len(self.margins) * (1 - self.share) ** self.runs
        )


@dataclass(frozen=True)
class _Claim:
    """What one verdict is about: all of its samples have to be within the bound."""

    expectation: Expectation
    per: dict[str, Any]
    points: list[str]
    samples: Sequence[_Sample] = ()
    unfit: Sequence[tuple[int, int]] = ()
    """Where no point qualifies: of each, in how many runs it does not, and of how many."""
    is_part: bool = False
    """Whether some of its points have no data: then the others can refute it, and not show it."""

    @property
    def p(self) -> Sides:
        within, outside = self._together([each.p for each in self.samples], self.unfit)
        return 1.0 if self.is_part else within, outside

    @property
    def floors(self) -> Sides:
        return self._together([each.floors for each in self.samples], [(runs, runs) for _, runs in self.unfit])

    @staticmethod
    def _together(samples: Sequence[Sides], unfit: Sequence[tuple[int, int]]) -> Sides:
        """Within: all samples are. Outside: one at least is, so the number of samples counts; of points that do not qualify, none does."""
        if unfit:
            return 1.0, max(p_share(count, runs, 0.5)[1] if runs >= LEAST_RUNS else 1.0 for count, runs in unfit)
        within, outside = zip(*samples, strict=True)
        return max(within), min(1.0, len(samples) * min(outside))


def judge(
    expectations: Sequence[Expectation],
    points: Sequence[PointRuns],
    runtime: str,
    relative: Sequence[Relative] = (),
) -> list[Verdict]:
    """A verdict for each expectation that holds in this runtime, and each value of its `per`; all are one family.

    Args:
        expectations: What is asked.
        points: The runs.
        runtime: Where they were made.
        relative: What metrics of that name are ratios of.

    """
    claims: list[_Claim] = []
    for expectation in expectations:
        if runtime not in expectation.runtimes:
            continue
        asked = _Asked(expectation, points, relative)
        groups: dict[tuple[Any, ...], list[PointRuns]] = {}
        for point in points:
            if matches(expectation.where, point.params) and point.rows:
                key = [point.point if name == "point" else point.params.get(name) for name in expectation.per]
                groups.setdefault(tuple(key), []).append(point)
        if not groups:
            claims.append(_Claim(expectation, {}, []))
        for key, group in groups.items():
            claims.append(asked.claim(dict(zip(expectation.per, key, strict=True)), group))
    judged = [claim for claim in claims if claim.samples or claim.unfit]
    within, outside = (holm(tuple(claim.p[side] for claim in judged)) for side in (0, 1))
    floors = [holm(tuple(claim.floors[side] for claim in judged)) for side in (0, 1)]
    states: dict[int, State] = {}
    for claim, inside, beyond, *least in zip(judged, within, outside, *floors, strict=True):
        undecided: State = "too few by design" if min(least) > LEVEL else "undecided"
        undecided = "no data" if claim.is_part else undecided
        states[id(claim)] = "met" if inside <= LEVEL else "not met" if beyond <= LEVEL else undecided
    return [_verdict(claim, states.get(id(claim), "no data")) for claim in claims]


class _Asked:
    """An expectation, and the points that its values may be relative to."""

    def __init__(self, expectation: Expectation, points: Sequence[PointRuns], named: Sequence[Relative]) -> None:
        self._expectation = expectation
        of = None  # a relative column that is itself relative to another point: the column is a metric as any other
        if not expectation.relative_to:
            of = next((each for each in named if each.name == expectation.metric), None)
        self._metric = of.metric if of else expectation.metric
        self._to = of.to if of else expectation.relative_to
        self._points = points

    @cached_property
    def _pairs(self) -> dict[int, dict[int, tuple[float, float]]]:
        found = paired(self._points, self._metric, self._to)
        return {id(point): pairs for point, pairs in zip(self._points, found, strict=True)}

    def claim(self, per: dict[str, Any], group: Sequence[PointRuns]) -> _Claim:
        """What is claimed of all points of a group; with `over` of the one that is picked.

        It is picked by the runs of even repeats and judged by the others, so that it is not its luck that is judged. A bound on the
        parameter itself is judged by what each run alone would pick.
        """
        asked = self._expectation
        names = [point.point for point in group]
        if asked.over is None:
            known = _known([self._sample(point) for point in group])
            return _Claim(asked, per, names, known, is_part=len(known) < len(group))
        repeats = sorted({int(row.get("repeat", place)) for point in group for place, row in enumerate(point.rows)})
        if asked.metric == asked.over:
            picks = [self._pick(group, {repeat}) for repeat in repeats]
            found = [float(pick.params[asked.over]) for pick in picks if pick]
            sample = _Sample(asked, found, missing=len(repeats) - len(found))
            return _Claim(asked, per, names, [sample] if found else [], [] if found else [(len(repeats), len(repeats))])
        repeats = sorted({repeat for point in group for repeat in _values(asked.metric, point)}) or repeats
        chooses = asked.pick != "mean" or bool(asked.given)
        halves = [[each for each in repeats if each % 2 == half] for half in (0, 1)]
        first, second = halves if chooses and all(halves) else (repeats, repeats)
        fit = [point for point in group if self._qualifies(point, first)]
        if not fit:
            unfit = [(sum(not self._qualifies(point, {one}) for one in second), len(second)) for point in group]
            return _Claim(asked, per, names, unfit=unfit)
        if asked.pick == "mean":
            means = self._mean(fit, second)
            return _Claim(asked, per, [point.point for point in fit], _known([means]))
        chosen = self._pick(fit, first)
        if chosen is None:
            return _Claim(asked, per, names)
        sample = _known([self._sample(chosen, second)])
        return _Claim(asked, {**per, asked.over: chosen.params[asked.over]}, [chosen.point], sample)

    def _sample(self, point: PointRuns, runs: Container[int] | None = None) -> _Sample | None:
        """A point's runs (some of them), where they and what they are relative to were measured; None without any."""
        chosen = [pair for run, pair in self._pairs[id(point)].items() if runs is None or run in runs]
        if not chosen:
            return None
        values, below = zip(*chosen, strict=True)
        return _Sample(self._expectation, values, below if self._to else None)

    def _middle(self, metric: str, point: PointRuns, runs: Container[int]) -> float | None:
        """A metric over some runs of a point, as the expectation takes the repeats."""
        values = [value for repeat, value in _values(metric, point).items() if repeat in runs]
        return _STATISTICS[self._expectation.statistic](values) if values else None

    def _qualifies(self, point: PointRuns, runs: Container[int]) -> bool:
        """Whether some runs of a point satisfy each condition of `given`."""
        given = self._expectation.given.items()
        return all(holds(condition, self._middle(name, point, runs)) for name, condition in given)

    def _pick(self, group: Sequence[PointRuns], runs: Container[int]) -> PointRuns | None:
        """The point that some runs pick among those that qualify; the first of those that are alike."""
        asked = self._expectation
        tried: list[tuple[Any, PointRuns]] = []
        for point in group:
            param = point.params[asked.over or ""]
            if asked.by:
                value = self._middle(asked.by, point, runs)
            elif asked.metric == asked.over:
                value = param
            else:
                sample = self._sample(point, runs)
                value = sample.value if sample else None
            if value is not None and self._qualifies(point, runs):
                tried.append((value if asked.pick in ("highest", "lowest") else param, point))
        best = max if asked.pick in ("highest", "last") else min
        return best(tried, key=lambda each: each[0])[1] if tried else None

    def _mean(self, points: Sequence[PointRuns], runs: Container[int]) -> _Sample | None:
        """The mean over points of each run that all of them have: relative ones in units of what they are relative to, so that each point
        counts alike. None where one of them has no data."""
        scaled: list[dict[int, tuple[float, float]]] = []
        for point in points:
            pairs = {run: pair for run, pair in self._pairs[id(point)].items() if run in runs}
            unit = _unit([below for _, below in pairs.values()]) if self._to else 1.0
            if not pairs or not unit:
                return None
            scaled.append({run: (value / unit, below / unit) for run, (value, below) in pairs.items()})
        shared = [run for run in scaled[0] if all(run in each for each in scaled)]
        if not shared:
            return None
        means, under = ([fmean(each[run][side] for each in scaled) for run in shared] for side in (0, 1))
        return _Sample(self._expectation, means, under if self._to else None)


def _unit(below: Sequence[float]) -> float:
    """The middle of those that are finite; 1 without any."""
    return MIDDLES["median"]([each for each in below if math.isfinite(each)] or [1.0])


def _known(samples: Sequence[_Sample | None]) -> list[_Sample]:
    """Those that there are and whose value is known, or would be if all came."""
    return [each for each in samples if each is not None and (each.value is not None or each.never)]


def paired(points: Sequence[PointRuns], metric: str, to: Mapping[str, Any]) -> list[dict[int, tuple[float, float]]]:
    """Of each point, by repeat, a metric and what it is divided by: itself at the one point with the values `to`; 1 without any."""
    others = {beside(each.params, to): each for each in points if to and matches(dict(to), each.params)}
    found: list[dict[int, tuple[float, float]]] = []
    for point in points:
        values, other = _values(metric, point), others.get(beside(point.params, to))
        below = dict.fromkeys(values, 1.0) if not to else _values(metric, other) if other else {}
        found.append({repeat: (value, below[repeat]) for repeat, value in values.items() if repeat in below})
    return found


def _values(text: str, point: PointRuns) -> dict[int, float]:
    """A metric or a quotient of two by repeat, of the runs that measured it; infinite in those in which it never came."""
    metric, divisor = split_quotient(text)
    above = values_of(point.rows, metric)
    under: list[Any] = values_of(point.rows, divisor) if divisor else [1.0] * len(point.rows)
    found: dict[int, float] = {}
    for place, (row, value, below) in enumerate(zip(point.rows, above, under, strict=True)):
        if value is not None and below:
            found[int(row.get("repeat", place))] = float(value) / float(below)
    return found


def margins(low: float | None, high: float | None, value: float | None, under: float = 1.0) -> list[float]:
    """How far inside of each end of a bound a value is, or a quotient of two (times what is `under` it, so that a 0 there does no harm)."""
    if value is None:
        return [-math.inf]
    return [*(() if low is None else (value - low * under,)), *(() if high is None else (high * under - value,))]


def _verdict(claim: _Claim, state: State) -> Verdict:
    asked = claim.expectation
    measured: dict[str, Any] = {"value": None, "within": False if claim.unfit else None}
    measured["runs"] = max((runs for _, runs in claim.unfit), default=0)
    if claim.samples:
        nearest, worst = min(
            ((min(margins(asked.min, asked.max, each.value)), each) for each in claim.samples), key=itemgetter(0)
        )
        middle = None if worst.of_all else worst.middle
        measured = {
            "value": finite_or_none(worst.value),
            "within": None if worst.value is None or (claim.is_part and nearest >= 0) else nearest >= 0,
            "lo": None if middle is None else finite_or_none(middle.lo),
            "hi": None if middle is None else finite_or_none(middle.hi),
            "runs": worst.runs,
            "never": worst.never,
        }
    bound = (asked.text, asked.metric, asked.min, asked.max, asked.relative_to)
    return Verdict(*bound, claim.per, claim.points, state=state, **measured)
