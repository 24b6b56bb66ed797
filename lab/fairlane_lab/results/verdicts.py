# SPDX-License-Identifier: Apache-2.0
"""Whether an experiment's expectations were met: each bound with what was measured.

A verdict is `met` or `not met` when the runs show it, at 95 % for all points of an expectation together (Holm); else it is `undecided`.
Where a value is relative, it is the ratio of two runs of the same repeat.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from statistics import fmean, median
from typing import Any, Literal

from fairlane_lab.definition.judging import Expectation
from fairlane_lab.definition.metric import parse_metric
from fairlane_lab.definition.names import SENDER_PARAMETERS, SWITCH_PARAMETERS
from fairlane_lab.definition.strict import holds, matches
from fairlane_lab.results.rows import Row
from fairlane_lab.results.statistics import CONFIDENCE, Statistic, aggregate, holm, p_above, p_below, runs_needed

State = Literal["met", "not met", "undecided", "no data"]
LEVEL = (1 - CONFIDENCE) / 2
"""Of one side."""
_STATISTICS: dict[str, Callable[[Sequence[float]], float]] = {"median": median, "mean": fmean, "min": min, "max": max}


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
    """95 % interval of `value`."""
    runs: int = 0
    runs_needed: int | None = None
    """Of an undecided one: about so many runs would decide it, if they are like these; None: no number would."""

    @property
    def met(self) -> bool | None:
        """Whether the runs show that the bound holds (True), or that it does not (False); None while neither is shown."""
        return {"met": True, "not met": False}.get(self.state)

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "met": self.met}


@dataclass(frozen=True)
class _Sample:
    """The values of a point, one a run; what does not come from chance (a parameter, the least of all runs) has no test."""

    point: str
    values: Sequence[float]
    value: float
    statistic: Statistic | None


@dataclass(frozen=True)
class _Claim:
    """What one verdict is about: all of its samples have to be within the bound."""

    per: dict[str, Any]
    points: list[str]
    samples: Sequence[_Sample]
    met: bool | None = None
    """Where there is no sample."""


def judge(expectations: Sequence[Expectation], points: Sequence[PointRuns], runtime: str) -> list[Verdict]:
    """A verdict for each expectation that holds in this runtime, and each value of its `per`."""
    verdicts: list[Verdict] = []
    for expectation in expectations:
        if runtime not in expectation.runtimes:
            continue
        reference = _References(expectation, points)
        groups: dict[tuple[Any, ...], list[PointRuns]] = {}
        for point in points:
            if matches(expectation.where, point.params) and point.rows:
                groups.setdefault(_key(expectation, point), []).append(point)
        claims = [] if groups else [_Claim({}, [], [])]
        for key, group in groups.items():
            per = dict(zip(expectation.per, key, strict=True))
            claims.append(
                _judge_picked_point(reference, per, group) if expectation.over else _all(reference, per, group)
            )
        verdicts += _decide(expectation, claims)
    return verdicts


def _decide(expectation: Expectation, claims: Sequence[_Claim]) -> list[Verdict]:
    """A verdict for each claim; all samples are one family."""
    samples = [sample for claim in claims for sample in claim.samples]
    tests = [_p_values(expectation, sample) for sample in samples]
    within, outside = (holm([test[side] for test in tests]) for side in (0, 1))
    level = LEVEL / max(1, len(samples))
    states: dict[int, State] = {}
    for sample, inside, out in zip(samples, within, outside, strict=True):
        states[id(sample)] = "met" if inside <= LEVEL else "not met" if out <= LEVEL else "undecided"
    return [_verdict(expectation, claim, [states[id(sample)] for sample in claim.samples], level) for claim in claims]


def _p_values(expectation: Expectation, sample: _Sample) -> tuple[float, float]:
    """How likely the sample is while its middle is outside of the bound, and while it is within."""
    if sample.statistic is None:
        return (0.0, 1.0) if _margin(expectation, sample.value) >= 0 else (1.0, 0.0)
    values, statistic = sample.values, sample.statistic
    within, outside = [0.0], [1.0]
    if expectation.min is not None:
        within.append(p_above(values, expectation.min, statistic))
        outside.append(p_below(values, expectation.min, statistic))
    if expectation.max is not None:
        within.append(p_below(values, expectation.max, statistic))
        outside.append(p_above(values, expectation.max, statistic))
    return max(within), min(outside)


def _key(expectation: Expectation, point: PointRuns) -> tuple[Any, ...]:
    return tuple(point.point if name == "point" else point.params.get(name) for name in expectation.per)


class _References:
    """An expectation with the points that its values may be relative to."""

    def __init__(self, expectation: Expectation, points: Sequence[PointRuns]) -> None:
        self.expectation = expectation
        relative = expectation.relative_to
        self._points = {
            beside(point, relative): point for point in points if relative and matches(dict(relative), point.params)
        }

    def values(self, text: str, point: PointRuns) -> list[float]:
        """A metric of a point's runs; of a relative expectation over the same repeat's at the reference, where both were measured."""
        measured = _values(text, point)
        if not self.expectation.relative_to or text != self.expectation.metric:
            return list(measured.values())
        other = self._points.get(beside(point, self.expectation.relative_to))
        below = _values(text, other) if other else {}
        return [value / below[repeat] for repeat, value in measured.items() if below.get(repeat)]


def beside(point: PointRuns, relative_to: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    """What must be the same at the point that `point` is relative to: all but what is compared; with a parameter of the switch, all
    that the switch does; with `sender`, all that the sender is."""
    apart = set(relative_to)
    apart |= SENDER_PARAMETERS if "sender" in apart else SWITCH_PARAMETERS if apart & SWITCH_PARAMETERS else set()
    return tuple((name, value) for name, value in sorted(point.params.items()) if name not in apart)


def _sample(reference: _References, point: PointRuns) -> _Sample | None:
    expectation = reference.expectation
    if expectation.metric == expectation.over:
        value = float(point.params[expectation.metric])
        return _Sample(point.point, [value], value, None)
    values = reference.values(expectation.metric, point)
    return _sample_of(expectation, point.point, values) if values else None


def _sample_of(expectation: Expectation, point: str, values: Sequence[float]) -> _Sample:
    statistic: Statistic | None = None
    if expectation.statistic == "median" or expectation.statistic == "mean":
        statistic = expectation.statistic
    return _Sample(point, values, _STATISTICS[expectation.statistic](values), statistic)


def _all(reference: _References, per: dict[str, Any], group: Sequence[PointRuns]) -> _Claim:
    samples = [sample for point in group if (sample := _sample(reference, point)) is not None]
    return _Claim(per, [point.point for point in group], samples)


def _judge_picked_point(reference: _References, per: dict[str, Any], group: Sequence[PointRuns]) -> _Claim:
    expectation = reference.expectation
    over = expectation.over or ""
    candidates: list[tuple[PointRuns, _Sample]] = []
    for point in group:
        measured = {name: _value(expectation, name, point) for name in expectation.given}
        bounds = expectation.given.items()
        if not all(measured[name] is not None and holds(bound, measured[name]) for name, bound in bounds):
            continue
        sample = _sample(reference, point)
        if sample is not None:
            candidates.append((point, sample))
    if not candidates:
        return _Claim(per, [point.point for point in group], [], met=False if expectation.given else None)
    if expectation.pick == "mean":
        runs = zip(*(sample.values for _, sample in candidates), strict=False)  # the same repeat of each point
        names = [point.point for point, _ in candidates]
        return _Claim(per, names, [_sample_of(expectation, "", [fmean(run) for run in runs])])
    if expectation.pick in ("highest", "lowest"):
        by = expectation.by
        chosen, sample = (max if expectation.pick == "highest" else min)(
            candidates, key=lambda each: (_value(expectation, by, each[0]) or 0.0) if by else each[1].value
        )
    else:
        chosen, sample = (min if expectation.pick == "first" else max)(
            candidates, key=lambda each: each[0].params[over]
        )
    return _Claim({**per, over: chosen.params[over]}, [chosen.point], [sample])


def _margin(expectation: Expectation, value: float) -> float:
    low = value - expectation.min if expectation.min is not None else math.inf
    high = expectation.max - value if expectation.max is not None else math.inf
    return min(low, high)


def _value(expectation: Expectation, text: str, point: PointRuns) -> float | None:
    values = list(_values(text, point).values())
    return _STATISTICS[expectation.statistic](values) if values else None


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


def _verdict(expectation: Expectation, claim: _Claim, states: Sequence[State], level: float) -> Verdict:
    """`level` is what an undecided sample has to reach, one-sided."""
    verdict = Verdict(
        expectation.text,
        expectation.metric,
        expectation.min,
        expectation.max,
        expectation.relative_to,
        claim.per,
        claim.points,
        None,
        claim.met,
        "no data" if claim.met is None else "not met",
    )
    if not claim.samples:
        return verdict
    worst = min(claim.samples, key=lambda sample: _margin(expectation, sample.value))
    state: State = "not met" if "not met" in states else "undecided" if "undecided" in states else "met"
    middle = aggregate(worst.values, worst.statistic or "median")
    needed = [
        _runs_needed(expectation, sample, level)
        for sample, found in zip(claim.samples, states, strict=True)
        if found == "undecided"
    ]
    return replace(
        verdict,
        value=worst.value,
        within=_margin(expectation, worst.value) >= 0,
        state=state,
        lo=middle.lo,
        hi=middle.hi,
        runs=len(worst.values),
        runs_needed=None
        if state != "undecided" or None in needed
        else max(each for each in needed if each is not None),
    )


def _runs_needed(expectation: Expectation, sample: _Sample, level: float) -> int | None:
    """Runs that would decide a sample: for the nearer bound."""
    bounds = [bound for bound in (expectation.min, expectation.max) if bound is not None]
    nearest = min(bounds, key=lambda bound: abs(sample.value - bound))
    return runs_needed(sample.values, nearest, sample.statistic or "median", level)
