# SPDX-License-Identifier: Apache-2.0
"""Whether an experiment's expectations were met: each bound with what was measured."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean, median
from typing import Any

from fairlane_lab.definition.judging import Expectation
from fairlane_lab.definition.metric import parse_metric
from fairlane_lab.definition.names import SENDER_PARAMETERS, SWITCH_PARAMETERS
from fairlane_lab.definition.strict import holds, matches
from fairlane_lab.results.rows import Row

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
    met: bool | None
    """None when there is no run to judge by."""

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


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
        if not groups:
            verdicts.append(_verdict(expectation, {}, [], None, None))
        for key, group in groups.items():
            per = dict(zip(expectation.per, key, strict=True))
            verdicts.append(
                _judge_picked_point(reference, per, group) if expectation.over else _all(reference, per, group)
            )
    return verdicts


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

    def value(self, text: str, point: PointRuns) -> float | None:
        """A metric of a point, divided by the reference's where the expectation is relative; None where either is missing."""
        value = _value(self.expectation, text, point)
        if not self.expectation.relative_to or text != self.expectation.metric:
            return value
        other = self._points.get(beside(point, self.expectation.relative_to))
        below = _value(self.expectation, text, other) if other else None
        return value / below if value is not None and below else None


def beside(point: PointRuns, relative_to: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    """What must be the same at the point that `point` is relative to: all but what the switch does, or what the sender is."""
    apart = SENDER_PARAMETERS if "sender" in relative_to else SWITCH_PARAMETERS
    return tuple((name, value) for name, value in sorted(point.params.items()) if name not in apart)


def _all(reference: _References, per: dict[str, Any], group: Sequence[PointRuns]) -> Verdict:
    expectation = reference.expectation
    values = [value for point in group if (value := reference.value(expectation.metric, point)) is not None]
    names = [point.point for point in group]
    if not values:
        return _verdict(expectation, per, names, None, None)
    worst = min(values, key=lambda value: _margin(expectation, value))
    return _verdict(expectation, per, names, worst, _margin(expectation, worst) >= 0)


def _judge_picked_point(reference: _References, per: dict[str, Any], group: Sequence[PointRuns]) -> Verdict:
    expectation = reference.expectation
    over = expectation.over or ""
    candidates: list[tuple[PointRuns, float]] = []
    for point in group:
        measured = {name: _value(expectation, name, point) for name in expectation.given}
        bounds = expectation.given.items()
        if not all(measured[name] is not None and holds(bound, measured[name]) for name, bound in bounds):
            continue
        value = point.params[over] if expectation.metric == over else reference.value(expectation.metric, point)
        if value is not None:
            candidates.append((point, float(value)))
    if not candidates:
        return _verdict(expectation, per, [point.point for point in group], None, False)
    if expectation.pick == "mean":
        value = fmean(each[1] for each in candidates)
        names = [point.point for point, _ in candidates]
        return _verdict(expectation, per, names, value, _margin(expectation, value) >= 0)
    if expectation.pick in ("highest", "lowest"):
        chosen, value = (max if expectation.pick == "highest" else min)(candidates, key=lambda each: each[1])
    else:
        chosen, value = (min if expectation.pick == "first" else max)(candidates, key=lambda each: each[0].params[over])
    met = _margin(expectation, value) >= 0
    return _verdict(expectation, {**per, over: chosen.params[over]}, [chosen.point], value, met)


def _margin(expectation: Expectation, value: float) -> float:
    low = value - expectation.min if expectation.min is not None else math.inf
    high = expectation.max - value if expectation.max is not None else math.inf
    return min(low, high)


def _value(expectation: Expectation, text: str, point: PointRuns) -> float | None:
    values = [value for row in point.rows if (value := metric_value(text, row)) is not None]
    return _STATISTICS[expectation.statistic](values) if values else None


def metric_value(text: str, row: Row) -> float | None:
    """A metric or a quotient of two, of one run; None where it was not measured."""
    metric, divisor = parse_metric(text)
    value = row.get(str(metric))
    if divisor is None:
        return None if value is None else float(value)
    below = row.get(str(divisor))
    return float(value) / float(below) if value is not None and below else None


def _verdict(
    expectation: Expectation, per: dict[str, Any], points: list[str], value: float | None, met: bool | None
) -> Verdict:
    return Verdict(
        expectation.text,
        expectation.metric,
        expectation.min,
        expectation.max,
        expectation.relative_to,
        per,
        points,
        value,
        met,
    )
