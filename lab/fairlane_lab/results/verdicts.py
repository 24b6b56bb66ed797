# SPDX-License-Identifier: Apache-2.0
"""Whether an experiment's expectations were met: each bound with what was measured.

A verdict is `met` or `not met` when the runs show it, at 95 % for all verdicts of a page together (Holm): those of an experiment in a
runtime. Else it is `undecided`, or `too few by design` where so many runs could not decide it although all agreed.
Where a value is relative, it is the ratio of two middles, and runs of the same repeat are pairs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from statistics import NormalDist, fmean
from typing import Any, Literal

from fairlane_lab.definition.judging import Expectation, Relative
from fairlane_lab.definition.metric import parse_metric, range_of
from fairlane_lab.definition.names import SENDER_PARAMETERS, SWITCH_PARAMETERS, column_kind
from fairlane_lab.definition.strict import holds, matches
from fairlane_lab.known import finite_or_none
from fairlane_lab.results.rows import Row
from fairlane_lab.results.statistics import (
    LEAST_RUNS,
    LEVEL,
    MIDDLES,
    Aggregate,
    OfMost,
    Statistic,
    aggregate,
    aggregate_ratio,
    holm,
    of_most,
    p_most,
    runs_needed,
)

State = Literal["met", "not met", "undecided", "too few by design", "no data"]
_STATISTICS: dict[str, Callable[[Sequence[float]], float]] = {**MIDDLES, "min": min, "max": max}


@dataclass(frozen=True)
class PointRuns:
    """The runs of one point: its parameters (with `scheme`, `threshold`, …) and a row of metrics each."""

    point: str
    params: Mapping[str, Any]
    rows: Sequence[Row]


@dataclass(frozen=True)
class Verdict:
    """One bound and what was measured."""

    text: str
    metric: str
    min: float | None
    max: float | None
    relative_to: dict[str, Any]
    """What the value is divided by, when it is: the same metric at the point with these values."""
    per: dict[str, Any]
    """The parameters for which it is, such as `{"case": "2M-2ms"}`."""
    points: list[str]
    """What it rests on; with `over`, the picked point."""
    value: float | None
    """The worst of `points` (farthest outside, or nearest to a bound); None when nothing was measured or nothing qualified."""
    within: bool | None
    """Whether `value` is within the bound; None when there is no run to judge by."""
    state: State = "no data"
    """What the runs show."""
    lo: float | None = None
    hi: float | None = None
    """95 % interval of `value`; None where there is none, or its end is not known."""
    runs: int = 0
    runs_needed: int | None = None
    """About so many runs would decide an undecided one, if they are like these, or one with too few; None: no number would."""
    same: str = ""
    """Of an interval without a width: why."""

    @property
    def met(self) -> bool | None:
        """Whether the runs show that the bound holds (True), or that it does not (False); None while neither is shown."""
        return {"met": True, "not met": False}.get(self.state)

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "met": self.met}


@dataclass(frozen=True)
class _Sample:
    """The values of a point, one a run, and where they are relative those of the same repeats that they are divided by."""

    expectation: Expectation
    point: str
    values: Sequence[float]
    below: Sequence[float] | None = None
    missing: int = 0
    """Runs in which nothing qualified: outside of any bound."""
    share: float = 1.0
    """Of all runs; the others picked the point."""

    @property
    def runs(self) -> int:
        return len(self.values) + self.missing

    @cached_property
    def aggregate(self) -> Aggregate | None:
        """None where the value is not known."""
        statistic: Statistic = "mean" if self.expectation.statistic == "mean" else "median"
        if not self.values or 2 * self.missing >= self.runs:
            return None
        if self.below is not None:
            return aggregate_ratio(self.values, self.below, statistic)
        return aggregate(self.values, statistic)

    @cached_property
    def of_most(self) -> OfMost | None:
        """With `statistic` most: what that share of the runs reach."""
        asked = self.expectation
        if asked.statistic != "most" or not self.values:
            return None
        if asked.min is not None:
            return of_most([*self.values, *[-math.inf] * self.missing], asked.share, asked.min, is_low=True)
        return of_most([*self.values, *[math.inf] * self.missing], asked.share, asked.max or 0.0, is_low=False)

    @cached_property
    def value(self) -> float | None:
        if self.of_most is not None:
            return self.of_most.value
        if self._is_of_all and self.values and not self.missing:
            return _STATISTICS[self.expectation.statistic](self._each)
        return None if self.aggregate is None else self.aggregate.value

    @property
    def _is_of_all(self) -> bool:
        """Whether it is about every run, not about the middle one."""
        return self.expectation.statistic in ("min", "max")

    @property
    def _each(self) -> list[float]:
        below = self.below or [1.0] * len(self.values)
        return [value / under for value, under in zip(self.values, below, strict=True) if under] or [math.inf]

    def inside(self) -> list[list[float]]:
        """How far inside of each bound the runs are: of pairs without a division, so that a bound of 0 below does no harm."""
        below = self.below or [1.0] * len(self.values)
        pairs = list(zip(self.values, below, strict=True))
        low, high = self.expectation.min, self.expectation.max
        found = [] if low is None else [[value - low * under for value, under in pairs]]
        return found if high is None else [*found, [high * under - value for value, under in pairs]]

    @cached_property
    def p(self) -> tuple[float, float]:
        """How likely the sample is while its middle is outside of the bound, and while it is within."""
        if self.runs < LEAST_RUNS or (self.value is None and not self.missing):
            return 1.0, 1.0
        if self.of_most is not None:
            return self.of_most.p_within, self.of_most.p_beyond
        margins, runs = self.inside(), self.runs
        outside = [sum(each < 0 for each in margin) + self.missing for margin in margins]
        if self._is_of_all:
            return (1.0, 0.0) if any(outside) else (self.floors[0], 1.0)
        within = max(p_most(runs - count, runs) for count in outside)
        beyond = min(1.0, len(margins) * min(p_most(count, runs) for count in outside))
        if self.below is None and self.expectation.statistic == "median":
            return within, beyond
        return (within if within > LEVEL or self._shows(True) else 1.0, beyond if beyond > LEVEL or self._shows(False) else 1.0)  # fmt: skip

    def _shows(self, within: bool) -> bool:
        """Whether all of the interval is on that side; signs of runs say nothing of a mean, nor of a ratio of middles."""
        low = -math.inf if self.expectation.min is None else self.expectation.min
        high = math.inf if self.expectation.max is None else self.expectation.max
        found = self.aggregate
        if found is None:
            return False
        return low <= found.lo and found.hi <= high if within else found.hi < low or high < found.lo

    @property
    def floors(self) -> tuple[float, float]:
        """The least that `p` can be with so many runs: all agree."""
        if self.runs < LEAST_RUNS:
            return 1.0, 1.0
        share = self.expectation.share
        if self.expectation.statistic == "most":
            return share**self.runs, (1 - share) ** self.runs
        if self._is_of_all:
            return share**self.runs, 0.0
        return p_most(self.runs, self.runs), min(1.0, len(self.inside()) * p_most(self.runs, self.runs))

    def needed(self, level: float, too_few: bool) -> int | None:
        """Runs that would decide it, for the nearer bound, at a one-sided level."""
        share = self.expectation.share
        if self._is_of_all or (too_few and self.expectation.statistic == "most"):
            least = math.ceil(math.log(level) / math.log(share))
        elif self.expectation.statistic == "most":
            within = sum(each >= 0 for each in self.inside()[0]) / self.runs
            spread = share * (1 - share) * NormalDist().inv_cdf(1 - level) ** 2
            least = None if within == share else max(self.runs + 1, math.ceil(spread / (within - share) ** 2))
        elif too_few:
            least = max(LEAST_RUNS, math.ceil(math.log2(1 / level)))
        else:
            nearest = min(self.inside(), key=lambda margin: abs(MIDDLES["median"](margin)))
            least = runs_needed(nearest, level)
        return None if least is None else math.ceil(least / self.share)

    def same(self, fixed: str) -> str:
        """Why an interval has no width; empty where it has one. `fixed`: why nothing is drawn, as the experiment says."""
        found = self.aggregate
        if found is None or self.runs < 2 or found.lo < found.hi or self._is_of_all or self.of_most:
            return ""
        each = self._each
        of = (
            "every run"
            if found.min == found.max and not self.missing
            else f"{each.count(found.value)} of {self.runs} runs"
        )
        if fixed:
            return f"the same in {of}, because {fixed}"
        metric = self.expectation.metric
        least, most = range_of(metric) if self.below is None else (0.0, math.inf)
        whole = self.below is None and all(value == round(value) for value in each)
        if metric == self.expectation.over:
            why = "it is one of the values that were tried"
        elif found.value == least:
            why = "it cannot be less"
        elif found.value == most:
            why = "it cannot be more"
        elif self.below is not None and found.value == 1:
            why = "both runs of a pair are alike in it"
        elif whole or column_kind(metric) is int:
            why = "it counts whole things, and what is drawn moves it by less than one"
        elif found.min < found.max:
            why = "what is drawn hardly moves it"
        else:
            why = "nothing that is drawn reaches it"
        return f"the same in {of}, because {why}"


@dataclass(frozen=True)
class _Claim:
    """What one verdict is about: all of its samples have to be within the bound."""

    expectation: Expectation
    per: dict[str, Any]
    points: list[str]
    samples: Sequence[_Sample] = ()
    unfit: Sequence[tuple[int, int]] = ()
    """Where no point qualifies: of each, in how many runs it does not, and of how many."""

    @property
    def p(self) -> tuple[float, float]:
        """Within: all samples are. Outside: one at least is, so the number of samples counts."""
        if self.unfit:
            return 1.0, max(p_most(*each) if each[1] >= LEAST_RUNS else 1.0 for each in self.unfit)
        if not self.samples:
            return 1.0, 1.0
        return max(each.p[0] for each in self.samples), min(1.0, len(self.samples) * min(each.p[1] for each in self.samples))  # fmt: skip

    @property
    def floors(self) -> tuple[float, float]:
        if self.unfit:
            return 1.0, max(p_most(runs, runs) if runs >= LEAST_RUNS else 1.0 for _, runs in self.unfit)
        within, outside = zip(*(each.floors for each in self.samples), strict=True)
        return max(within), min(1.0, len(self.samples) * min(outside))


def judge(
    expectations: Sequence[Expectation],
    points: Sequence[PointRuns],
    runtime: str,
    relative: Sequence[Relative] = (),
    fixed: str = "",
) -> list[Verdict]:
    """A verdict for each expectation that holds in this runtime, and each value of its `per`; all are one family.

    `relative`: what metrics of that name are ratios of. `fixed`: why nothing is drawn from run to run, where that is so.
    """
    claims: list[_Claim] = []
    for expectation in expectations:
        if runtime not in expectation.runtimes:
            continue
        reference = _References(expectation, points, relative)
        groups: dict[tuple[Any, ...], list[PointRuns]] = {}
        for point in points:
            if matches(expectation.where, point.params) and point.rows:
                groups.setdefault(_key(expectation, point), []).append(point)
        if not groups:
            claims.append(_Claim(expectation, {}, []))
        for key, group in groups.items():
            per = dict(zip(expectation.per, key, strict=True))
            claims.append(_picked(reference, per, group) if expectation.over else _all(reference, per, group))
    return _decide(claims, fixed)


def _decide(claims: Sequence[_Claim], fixed: str) -> list[Verdict]:
    """A verdict for each claim; they are one family, of which each side may be wrong in half of 5 %."""
    judged = [claim for claim in claims if claim.samples or claim.unfit]
    within, outside = (holm([claim.p[side] for claim in judged]) for side in (0, 1))
    least = [
        min(both) for both in zip(*(holm([claim.floors[side] for claim in judged]) for side in (0, 1)), strict=True)
    ]
    states: dict[int, State] = {}
    for claim, inside, beyond, floor in zip(judged, within, outside, least, strict=True):
        undecided: State = "too few by design" if floor > LEVEL else "undecided"
        states[id(claim)] = "met" if inside <= LEVEL else "not met" if beyond <= LEVEL else undecided
    level = LEVEL / max(1, len(judged))
    return [_verdict(claim, states.get(id(claim), "no data"), level, fixed) for claim in claims]


def _key(expectation: Expectation, point: PointRuns) -> tuple[Any, ...]:
    return tuple(point.point if name == "point" else point.params.get(name) for name in expectation.per)


class _References:
    """An expectation with the points that its values may be relative to."""

    def __init__(self, expectation: Expectation, points: Sequence[PointRuns], named: Sequence[Relative]) -> None:
        self.expectation = expectation
        of = None  # a relative column that is itself relative to another point: the column is a metric as any other
        if not expectation.relative_to:
            of = next((each for each in named if each.name == expectation.metric), None)
        self._metric = of.metric if of else expectation.metric
        self._to = of.to if of else expectation.relative_to
        self._points = {
            beside(each, self._to): each for each in points if self._to and matches(dict(self._to), each.params)
        }

    def sample(self, point: PointRuns, runs: Iterable[int] | None = None, share: float = 1.0) -> _Sample | None:
        """A point's runs (some of them), where they and what they are relative to were measured; None without any."""
        measured = _values(self._metric, point)
        chosen = [each for each in measured if runs is None or each in runs]
        below: list[float] | None = None
        if self._to:
            other = self._points.get(beside(point, self._to))
            under = _values(self._metric, other) if other else {}
            chosen = [each for each in chosen if each in under]
            below = [under[each] for each in chosen]
        if not chosen:
            return None
        return _Sample(self.expectation, point.point, [measured[each] for each in chosen], below, share=share)


def beside(point: PointRuns, relative_to: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    """What must be the same at the point that `point` is relative to: all but what is compared; with a parameter of the switch, all
    that the switch does; with `sender`, all that the sender is."""
    apart = set(relative_to)
    apart |= SENDER_PARAMETERS if "sender" in apart else SWITCH_PARAMETERS if apart & SWITCH_PARAMETERS else set()
    return tuple((name, value) for name, value in sorted(point.params.items()) if name not in apart)


def _all(reference: _References, per: dict[str, Any], group: Sequence[PointRuns]) -> _Claim:
    found = [reference.sample(point) for point in group]
    samples = [each for each in found if each is not None and each.value is not None]
    return _Claim(reference.expectation, per, [point.point for point in group], samples)


def _picked(reference: _References, per: dict[str, Any], group: Sequence[PointRuns]) -> _Claim:
    """One point of a group: picked by the runs of even repeats, judged by the others, so that it is not its luck that is judged.

    A bound on the parameter itself is judged by what each run alone would pick.
    """
    expectation = reference.expectation
    over = expectation.over or ""
    if expectation.metric == over:
        return _picks(expectation, per, group)
    repeats = sorted({repeat for point in group for repeat in _values(expectation.metric, point)} or _repeats(group))
    first, second = [each for each in repeats if each % 2 == 0], [each for each in repeats if each % 2]
    chooses = expectation.pick != "mean" or bool(expectation.given)
    if not chooses or not first or not second:
        first = second = repeats
    share = 0.5 if chooses else 1.0
    fit = [point for point in group if _qualifies(expectation, point, first)]
    if not fit:
        unfit = [_count_unfit(expectation, point, second) for point in group]
        return _Claim(expectation, per, [point.point for point in group], unfit=unfit)
    if expectation.pick == "mean":
        means = _mean_sample(expectation, [each for point in fit if (each := reference.sample(point, second, share))])
        return _Claim(expectation, per, [point.point for point in fit], [means] if means else [])
    tried = {point.point: value for point in fit if (value := _tried(reference, point, first)) is not None}
    fit = [point for point in fit if point.point in tried]
    if not fit:
        return _Claim(expectation, per, [point.point for point in group])
    best = max if expectation.pick in ("highest", "last") else min
    by_metric = expectation.pick in ("highest", "lowest")
    chosen = best(fit, key=lambda point: tried[point.point] if by_metric else point.params[over])
    sample = reference.sample(chosen, second, share)
    usable = [sample] if sample is not None and sample.value is not None else []
    return _Claim(expectation, {**per, over: chosen.params[over]}, [chosen.point], usable)


def _picks(expectation: Expectation, per: dict[str, Any], group: Sequence[PointRuns]) -> _Claim:
    """Of each run the parameter that it alone would pick."""
    found: list[float] = []
    repeats = _repeats(group)
    for repeat in repeats:
        fit = [each for each in group if _qualifies(expectation, each, [repeat])]
        measured = {each.point: _values(expectation.by, each).get(repeat) for each in fit} if expectation.by else {}
        tried = [(measured.get(each.point, 0.0), float(each.params[expectation.metric])) for each in fit]
        tried = [each for each in tried if each[0] is not None]
        if tried:
            found.append((max(tried) if expectation.pick in ("highest", "last") else min(tried))[1])
    names = [point.point for point in group]
    if not found:
        return _Claim(expectation, per, names, unfit=[(len(repeats), len(repeats))])
    return _Claim(expectation, per, names, [_Sample(expectation, "", found, missing=len(repeats) - len(found))])


def _repeats(group: Sequence[PointRuns]) -> list[int]:
    return sorted({int(row.get("repeat", place)) for point in group for place, row in enumerate(point.rows)})


def _qualifies(expectation: Expectation, point: PointRuns, runs: Sequence[int]) -> bool:
    """Whether the middle of some runs of a point satisfies each condition of `given`."""
    for name, condition in expectation.given.items():
        values = [value for repeat, value in _values(name, point).items() if repeat in runs]
        if not values or not holds(condition, _STATISTICS[expectation.statistic](values)):
            return False
    return True


def _count_unfit(expectation: Expectation, point: PointRuns, runs: Sequence[int]) -> tuple[int, int]:
    """In how many of some runs a point does not qualify, and of how many."""
    return sum(not _qualifies(expectation, point, [repeat]) for repeat in runs), len(runs)


def _mean_sample(expectation: Expectation, samples: Sequence[_Sample]) -> _Sample | None:
    """The mean over points, run by run: relative ones in units of what they are relative to, so that each point counts alike."""
    values: list[Sequence[float]] = []
    below: list[Sequence[float]] = []
    for each in samples:
        unit = 1.0 if each.below is None else MIDDLES["median"](each.below)
        if unit:
            values.append([value / unit for value in each.values])
            below.append([value / unit for value in each.below or ()])
    if not values:
        return None
    means, under = ([fmean(run) for run in zip(*columns, strict=False)] for columns in (values, below))
    found = _Sample(expectation, "", means, under or None, share=samples[0].share)
    return found if found.value is not None else None


def _tried(reference: _References, point: PointRuns, runs: Sequence[int]) -> float | None:
    """What some runs of a point are picked by: the middle of the metric `by`, or else of what is judged."""
    expectation = reference.expectation
    if expectation.by:
        values = [value for repeat, value in _values(expectation.by, point).items() if repeat in runs]
        return _STATISTICS[expectation.statistic](values) if values else None
    sample = reference.sample(point, runs)
    return sample.value if sample else None


def _margin(expectation: Expectation, value: float) -> float:
    low = value - expectation.min if expectation.min is not None else math.inf
    high = expectation.max - value if expectation.max is not None else math.inf
    return min(low, high)


def _values(text: str, point: PointRuns) -> dict[int, float]:
    """A metric by repeat, of the runs that measured it."""
    found = {int(row.get("repeat", place)): metric_value(text, row) for place, row in enumerate(point.rows)}
    return {repeat: value for repeat, value in found.items() if value is not None}


def metric_value(text: str, row: Row) -> float | None:
    """A metric or a quotient of two, of one run; None where it was not measured."""
    metric, divisor = parse_metric(text)
    value = row.get(str(metric))
    if divisor is None:
        return None if value is None else float(value)
    below = row.get(str(divisor))
    return float(value) / float(below) if value is not None and below else None


def _verdict(claim: _Claim, state: State, level: float, fixed: str) -> Verdict:
    """`level` is what a verdict has to reach at the latest, one-sided."""
    expectation = claim.expectation
    verdict = Verdict(
        expectation.text,
        expectation.metric,
        expectation.min,
        expectation.max,
        expectation.relative_to,
        claim.per,
        claim.points,
        None,
        False if claim.unfit else None,
        state,
        runs=max((runs for _, runs in claim.unfit), default=0),
    )
    if not claim.samples:
        return verdict
    worst = min(claim.samples, key=lambda each: -math.inf if each.value is None else _margin(expectation, each.value))
    open_ones = (
        [each for each in claim.samples if min(each.p) > level] if state in ("undecided", "too few by design") else []
    )
    needed = [each.needed(level / len(claim.samples), state == "too few by design") for each in open_ones]
    middle = None if expectation.statistic in ("min", "max") else worst.of_most or worst.aggregate
    return replace(
        verdict,
        value=worst.value,
        within=worst.value is not None and _margin(expectation, worst.value) >= 0,
        lo=None if middle is None else finite_or_none(middle.lo),
        hi=None if middle is None else finite_or_none(middle.hi),
        runs=worst.runs,
        runs_needed=None if not needed or None in needed else max(each for each in needed if each is not None),
        same=worst.same(fixed),
    )
