# SPDX-License-Identifier: Apache-2.0
"""What only the whole file can tell: every point can be built, every name that judges or draws exists."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter, ValidationError

from fairlane_lab.definition.claims import ClaimBound
from fairlane_lab.definition.expansion import Selection, overrides, resolve_point, with_drawn
from fairlane_lab.definition.extend import shown
from fairlane_lab.definition.metric import MetricText
from fairlane_lab.definition.names import PARAMETERS, SET_BY_THE_LAB
from fairlane_lab.definition.points import make_points, point_problems, twice_problems
from fairlane_lab.definition.schema import Selected
from fairlane_lab.definition.strict import Known, Strict, matches
from fairlane_lab.paths import CLAIMS
from fairlane_lab.problems import Problem, place, pydantic_problems, unknown

if TYPE_CHECKING:
    from fairlane_lab.definition.loading import Definition

SHARED = ("paper_numbers", "plots", "notes")
"""Their conditions may be of points that other experiments of the same base have."""


def problems_of(definition: Definition) -> list[Problem]:
    """Everything that is wrong although each part of the file is well-formed."""
    experiment = definition.experiment
    split = {name: spread for spread in experiment.drawn.values() for name in spread.split}
    tables = {"params": experiment.params, "drawn": {**experiment.drawn, **split}, "sets": experiment.sets}
    problems = list(point_problems(experiment, tables, _name_problem))
    if problems:
        return problems
    points = [with_drawn(definition, point) for point in make_points(experiment)]
    problems += twice_problems(points)
    groups: dict[str, None] = {}
    values: dict[str, list[Any]] = {}
    for point in points:
        resolution, found = resolve_point(definition, point)
        told = {(each.path, each.message.split(" (at ")[0]) for each in problems}
        at = "" if point is points[0] else f" (at {point.name})"
        problems += [
            replace(each, message=each.message + at) for each in found if (each.path, each.message) not in told
        ]
        if resolution is not None:
            groups |= dict.fromkeys([flow.group for flow in resolution.body.flows])
            groups |= dict.fromkeys([vc.name for vc in resolution.body.vcs])
            for name, value in resolution.columns().items():
                values.setdefault(name, []).append(value)
    if problems:
        return list(dict.fromkeys(problems))
    return [*_layers(definition), *_unknown_names(definition, Known(values, list(groups)))]


def _name_problem(name: str) -> str:
    if name in SET_BY_THE_LAB:
        return "is set by the lab itself"
    return "" if name in PARAMETERS else unknown("parameter", name, [n for n in PARAMETERS if n not in SET_BY_THE_LAB])


def _layers(definition: Definition) -> Iterator[Problem]:
    experiment = definition.experiment
    points = [with_drawn(definition, point) for point in make_points(experiment)]
    known = {key for point in points for key in point.params}
    for section in ("sim", "kernel", "mininet", "quick"):
        layer: Selected = getattr(experiment, section)
        for name in layer.only.keys() - known:
            yield Problem(place((section, "only", name)), unknown("parameter", name, sorted(known)))
        if not any(matches(layer.only, point.params) for point in points):
            yield Problem(place((section, "only")), "leaves no point")
    for runtime in experiment.runtimes:
        for quick in (False, True):
            layers = overrides(definition, Selection(runtime=runtime, quick=quick))
            _, found = resolve_point(definition, points[0], layers)
            yield from (Problem("quick" if quick else runtime, f"with it, {problem}") for problem in found)


def _unknown_names(definition: Definition, known: Known) -> Iterator[Problem]:
    """Parts that name what no point has."""
    experiment, source = definition.experiment, definition.source
    for section in (*SHARED, "expect", "relative"):
        written = len(source.document.get(section, ()))
        for index, entry in enumerate(getattr(experiment, section)):
            at = place((section, index))
            of_base = section in SHARED and (index >= written or source.is_of_base(at))
            found = _checked(entry, replace(known, of_base=of_base), (section, index))
            if isinstance(entry, ClaimBound):
                found = [replace(each, path=entry.claim + each.path.removeprefix(at), file=shown(CLAIMS)) for each in found]  # fmt: skip
            yield from found
    try:
        TypeAdapter(list[MetricText]).validate_python(list(experiment.main_metrics), context=known)
    except ValidationError as error:
        yield from pydantic_problems(error, type(experiment), ("main_metrics",))


def _checked(entry: Strict, known: Known, around: tuple[str | int, ...]) -> Sequence[Problem]:
    try:
        type(entry).model_validate(entry.model_dump(by_alias=True), context=known)
    except ValidationError as error:
        return pydantic_problems(error, type(entry), around)
    return ()
