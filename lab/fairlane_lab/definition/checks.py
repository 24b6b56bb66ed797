# SPDX-License-Identifier: Apache-2.0
"""What only the whole file can tell: every point can be built, every name that judges or draws exists, no parameter is useless."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from fairlane_lab.definition.claims import ClaimBound
from fairlane_lab.definition.expansion import overrides, resolve_point, with_drawn
from fairlane_lab.definition.extend import shown
from fairlane_lab.definition.judging import Expectation
from fairlane_lab.definition.metric import Metric, parse_metric
from fairlane_lab.definition.names import (
    GROUP_METRICS,
    PARAMETERS,
    RUNTIMES,
    SERIES_METRICS,
    SET_BY_THE_LAB,
    TRANSFER_METRICS,
)
from fairlane_lab.definition.plots import Bars, Cdf, Heat, Lines, Plot, Series
from fairlane_lab.definition.points import Point, make_points
from fairlane_lab.definition.schema import Experiment, Selected
from fairlane_lab.definition.strict import Between, Steps, Where, matches
from fairlane_lab.paths import CLAIMS
from fairlane_lab.problems import Problem, place, unknown

if TYPE_CHECKING:
    from fairlane_lab.definition.loading import Definition


def check_points(experiment: Experiment) -> list[Problem]:
    """What is wrong with the names and labels of params, cases and sweep."""
    problems: list[Problem] = []
    for name in experiment.params:
        problems += _check_name(name, ("params", name))
    for name, spread in experiment.drawn.items():
        problems += [problem for each in (name, *spread.split) for problem in _check_name(each, ("drawn", name))]
    labels: set[str] = set()
    keys = [set(case) for case in experiment.cases]
    for index, case in enumerate(experiment.cases):
        label = case.get("label")
        if not isinstance(label, str) or not label or "/" in label:
            problems.append(
                Problem(place(("cases", index, "label")), f"got {label!r}; each case has a label without /")
            )
        elif label in labels:
            problems.append(Problem(place(("cases", index, "label")), f"{label!r} is the label of an earlier case"))
        else:
            labels.add(label)
        for name, value in case.items():
            if name == "label":
                continue
            problems += _check_name(name, ("cases", index, name))
            if not isinstance(value, bool | int | float | str):
                problems.append(
                    Problem(
                        place(("cases", index, name)), f"got {value!r}; a parameter is a number, text or truth value"
                    )
                )
        missing = sorted(set[str]().union(*keys) - keys[index] - {"label", *experiment.params})
        if missing:
            problems.append(Problem(place(("cases", index)), f"has no {', '.join(missing)}, which other cases have"))
    for name, axis in experiment.sweep.items():
        if isinstance(axis, Steps):
            problems += _check_name(name, ("sweep", name))
            continue
        tables = [value for value in axis if isinstance(value, dict)]
        if len(tables) not in (0, len(axis)):
            problems.append(Problem(place(("sweep", name)), "mixes values and tables: give one or the other"))
        if not tables:
            problems += _check_name(name, ("sweep", name))
        for index, table in enumerate(tables):
            for key in table:
                if key != "label":
                    problems += _check_name(key, ("sweep", name, index, key))
    if not problems:
        names = [point.name for point in make_points(experiment)]
        for name in dict.fromkeys(name for name in names if names.count(name) > 1):
            problems.append(Problem("sweep", f"gives the point {name!r} twice"))
    return problems


def _check_name(name: str, path: tuple[str | int, ...]) -> list[Problem]:
    if name in SET_BY_THE_LAB:
        return [Problem(place(path), "is set by the lab itself")]
    if name not in PARAMETERS:
        return [Problem(place(path), unknown("parameter", name, (n for n in PARAMETERS if n not in SET_BY_THE_LAB)))]
    return []


def semantic_problems(definition: Definition, points: Sequence[Point]) -> list[Problem]:
    """Everything that is wrong although each part of the file is well-formed."""
    used: set[str] = set()
    problems: list[Problem] = []
    groups: list[str] = []
    values: dict[str, list[Any]] = {}
    points = [with_drawn(definition, point) for point in points]
    for point in points:
        resolution, found = resolve_point(definition, point, (), used)
        problems += _placed(found, point, problems, point is not points[0])
        if resolution is None:
            continue
        groups += [spec.flow.group for spec in resolution.body.flows]
        groups += [vc.name for vc in resolution.body.vcs]
        for name, value in resolution.columns().items():
            values.setdefault(name, []).append(value)
    if problems:
        return list(dict.fromkeys(problems))
    problems += _unused(definition, used)
    problems += _layers(definition, points)
    names = _Names(values, list(dict.fromkeys(groups)))
    problems += names.judging(definition)
    for index, plot in enumerate(definition.experiment.plots):
        problems += names.plot(plot, ("plots", index), definition.source.is_of_base(place(("plots", index))))
    titles = [plot.name for plot in definition.experiment.plots]
    problems += [
        Problem(place(("plots", index, "name")), f"{name!r} is the name of an earlier plot")
        for index, name in enumerate(titles)
        if name in titles[:index]
    ]
    return problems


def _placed(found: Sequence[Problem], point: Point, earlier: Sequence[Problem], tell: bool) -> Iterable[Problem]:
    """`found` with the first point where each occurs."""
    for problem in found:
        if not any(each.path == problem.path and each.message.startswith(problem.message) for each in earlier):
            yield Problem(problem.path, f"{problem.message} (at {point.name})") if tell else problem


def _unused(definition: Definition, used: set[str]) -> Iterable[Problem]:
    experiment = definition.experiment
    places: dict[str, tuple[str | int, ...]] = {name: ("params", name) for name in experiment.params}
    for index, case in enumerate(experiment.cases):
        places |= {name: ("cases", index, name) for name in case if name != "label" and name not in places}
    for name, spread in experiment.drawn.items():
        places |= dict.fromkeys(spread.split or (name,), ("drawn", name))
    for name, axis in experiment.sweep.items():
        tables = [item for item in axis if isinstance(item, dict)] if isinstance(axis, list) else []
        keys = {key for table in tables for key in table if key != "label"} or {name}
        places |= {key: ("sweep", name) for key in keys if key not in places}
    for name, path in places.items():
        if name not in used:
            yield Problem(place(path), f'nothing refers to it: write "${name}" where it belongs')


def _layers(definition: Definition, points: Sequence[Point]) -> Iterable[Problem]:
    from fairlane_lab.definition.expansion import Selection

    experiment = definition.experiment
    for section in ("sim", "kernel", "mininet", "quick"):
        layer: Selected = getattr(experiment, section)
        for name in layer.only:
            known = {key for point in points for key in point.params}
            if name not in known:
                yield Problem(place((section, "only", name)), unknown("parameter", name, sorted(known)))
        if not any(matches(layer.only, point.params) for point in points):
            yield Problem(place((section, "only")), "leaves no point")
    for runtime in experiment.runtimes:
        for quick in (False, True):
            layers = overrides(definition, Selection(runtime=runtime, quick=quick))
            for point in points[:1]:
                _, found = resolve_point(definition, point, layers)
                section = "quick" if quick else runtime
                yield from (Problem(section, f"with it, {problem}") for problem in found)


class _Names:
    """The names and values that conditions, metrics and axes may use."""

    def __init__(self, values: dict[str, list[Any]], groups: list[str]) -> None:
        self._values = values
        self._groups = groups

    def judging(self, definition: Definition) -> Iterable[Problem]:
        experiment = definition.experiment
        for index, numbers in enumerate(experiment.paper_numbers):
            written = index < len(definition.document.get("paper_numbers", []))
            shared = not written or definition.source.is_of_base(place(("paper_numbers", index)))
            yield from self._check_where(numbers.where, ("paper_numbers", index, "where"), shared=shared)
            for name in numbers.values:
                yield from self._metric(name, ("paper_numbers", index, "values", name), False)
        for index, expectation in enumerate(experiment.expect):
            if isinstance(expectation, ClaimBound):
                found = self._expectation(expectation, (expectation.claim,))
                yield from (replace(problem, file=shown(CLAIMS)) for problem in found)
            else:
                yield from self._expectation(expectation, ("expect", index))
        for index, note in enumerate(experiment.notes):
            shared = definition.source.is_of_base(place(("notes", index)))
            yield from self._check_where(note.where, ("notes", index, "where"), ("runtime",), shared)
            if note.share is not None and note.is_remark:
                text = "needs both min and max: a note that explains any difference explains none"
                yield Problem(place(("notes", index, "share")), text)
            for number, name in enumerate(note.metrics):
                yield from self._metric(name, ("notes", index, "metrics", number), False)
        for index, relative in enumerate(experiment.relative):
            yield from self._metric(relative.metric, ("relative", index, "metric"), False)
            yield from self._check_where(dict(relative.to), ("relative", index, "to"))
        for index, name in enumerate(experiment.main_metrics):
            yield from self._metric(name, ("main_metrics", index), True)

    def _expectation(self, expectation: Expectation, path: tuple[str | int, ...]) -> Iterable[Problem]:
        yield from self._check_where(expectation.where, (*path, "where"))
        if not (expectation.over and expectation.metric in self._values):
            yield from self._metric(expectation.metric, (*path, "metric"), True)
        for number, name in enumerate(expectation.per):
            if name != "point":
                yield from self._parameter(name, (*path, "per", number))
        if expectation.over:
            yield from self._parameter(expectation.over, (*path, "over"))
        yield from self._check_where(dict(expectation.relative_to), (*path, "relative_to"))
        for name in expectation.given:
            yield from self._metric(name, (*path, "given", name), True)
        if expectation.by:
            yield from self._metric(expectation.by, (*path, "by"), True)

    def plot(self, plot: Plot, path: tuple[str | int, ...], shared: bool) -> Iterable[Problem]:
        yield from self._check_where(plot.where, (*path, "where"), shared=shared)
        axes: list[tuple[str, str | None, tuple[str, ...]]] = []
        metrics: list[tuple[str, str | list[str]]] = []
        if isinstance(plot, Bars):
            axes = [("x", plot.x, ()), ("by", plot.by, ("group",)), ("panel", plot.panel, ())]
            if plot.by == "group":
                if plot.metric not in GROUP_METRICS:
                    text = unknown("metric of groups", plot.metric, sorted(GROUP_METRICS))
                    yield Problem(place((*path, "metric")), text)
            else:
                metrics = [("metric", plot.metric)]
        elif isinstance(plot, Lines):
            axes = [("x", plot.x, ()), ("by", plot.by, ("group",)), ("panel", plot.panel, ())]
            metrics = [("y", plot.y)]
        elif isinstance(plot, Heat):
            axes = [("x", plot.x, ()), ("y", plot.y, ()), ("panel", plot.panel, ())]
            metrics = [("metric", plot.metric)]
        elif isinstance(plot, Cdf):
            axes = [("by", plot.by, ("group",)), ("panel", plot.panel, ("group",))]
            metrics = [] if plot.metric in TRANSFER_METRICS else [("metric", plot.metric)]
        else:
            yield from self._series(plot, path)
        for key, name, extra in axes:
            if name is not None and name not in extra:
                yield from self._parameter(name, (*path, key), extra)
        for key, names in metrics:
            for number, name in enumerate([names] if isinstance(names, str) else names):
                place_of = (*path, key) if isinstance(names, str) else (*path, key, number)
                yield from self._metric(name, place_of, True)

    def _series(self, plot: Series, path: tuple[str | int, ...]) -> Iterable[Problem]:
        for name in [plot.metric] if isinstance(plot.metric, str) else plot.metric:
            if name not in SERIES_METRICS:
                yield Problem(place((*path, "metric")), unknown("metric of series", name, SERIES_METRICS))
        if plot.panel is not None:
            yield from self._parameter(plot.panel, (*path, "panel"))

    def _check_where(
        self, where: Where, path: tuple[str | int, ...], extra: Sequence[str] = (), shared: bool = False
    ) -> Iterable[Problem]:
        """`extra`: further names. `shared`: of a base that several experiments have, with values that this one need not have."""
        for name, condition in where.items():
            if name == "runtime" and name in extra:
                there: list[Any] = list(RUNTIMES)
            elif name in self._values:
                there = list(dict.fromkeys(self._values[name]))
            else:
                yield from self._parameter(name, (*path, name), extra)
                continue
            if shared:
                continue
            if isinstance(condition, Between):
                if not any(matches({name: condition}, {name: value}) for value in there):
                    yield Problem(place((*path, name)), f"no point lies in that range; there are: {_list(there)}")
                continue
            for value in condition if isinstance(condition, list) else [condition]:
                if value not in there:
                    yield Problem(place((*path, name)), unknown("value", value, there))

    def _parameter(self, name: str, path: tuple[str | int, ...], extra: Sequence[str] = ()) -> Iterable[Problem]:
        if name not in self._values:
            yield Problem(place(path), unknown("parameter", name, [*sorted(self._values), *extra]))

    def _metric(self, text: str, path: tuple[str | int, ...], quotient: bool) -> Iterable[Problem]:
        try:
            parsed = parse_metric(text)
        except ValueError as error:
            yield Problem(place(path), str(error))
            return
        parts: list[Metric] = [parsed[0]] if parsed[1] is None else [parsed[0], parsed[1]]
        if len(parts) > 1 and not quotient:
            yield Problem(place(path), f"got {text!r}; one metric, not a quotient, belongs here")
        for part in parts:
            if part.group is not None and part.group not in self._groups:
                yield Problem(place(path), unknown("group of flows", part.group, self._groups))


def _list(values: Sequence[Any]) -> str:
    return ", ".join(str(value) for value in values)
