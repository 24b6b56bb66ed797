# SPDX-License-Identifier: Apache-2.0
"""What only the whole file can tell: every point can be built, every name that judges or draws exists."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from fairlane_lab.definition.claims import ClaimBound
from fairlane_lab.definition.expansion import Selection, overrides, resolve_point, with_drawn
from fairlane_lab.definition.extend import shown
from fairlane_lab.definition.names import PARAMETERS, SET_BY_THE_LAB
from fairlane_lab.definition.points import make_points, point_problems, twice_problems
from fairlane_lab.definition.schema import Experiment
from fairlane_lab.definition.strict import Known, matches
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
    for section in ("sim", "kernel", "mininet", "quick"):
        if not any(matches(getattr(experiment, section).only, point.params) for point in points):
            yield Problem(place((section, "only")), "leaves no point")
    for runtime in experiment.runtimes:
        for quick in (False, True):
            layers = overrides(definition, Selection(runtime=runtime, quick=quick))
            _, found = resolve_point(definition, points[0], layers)
            yield from (Problem("quick" if quick else runtime, f"with it, {problem}") for problem in found)


def _unknown_names(definition: Definition, known: Known) -> Iterator[Problem]:
    """Parts that name what no point has."""
    for of_base in (False, True):
        try:
            written = definition.experiment.model_dump(by_alias=True, exclude={"paper_figures"})
            Experiment.model_validate(written, context=replace(known, of_base=of_base))
        except ValidationError as error:
            for problem in pydantic_problems(error, Experiment):
                if _may_be_of_others(definition, problem.path) == of_base:
                    yield _of_claim(definition.experiment, problem)


def _entry(path: str) -> tuple[str, int]:
    """Section and number of the entry in which a path is."""
    found = re.match(r"(\w+)(?:\[(\d+)\])?", path)
    return (found[1], int(found[2] or 0)) if found else (path, 0)


def _may_be_of_others(definition: Definition, path: str) -> bool:
    """Whether its conditions may name values that only other experiments of the same base have."""
    section, index = _entry(path)
    at_base = index >= len(definition.document.get(section, ())) or definition.source.is_of_base(path)
    return section in ("sim", "kernel", "mininet", "quick") or (section in SHARED and at_base)


def _of_claim(experiment: Experiment, problem: Problem) -> Problem:
    """A problem of a bound that stands in the file of the claims, with its place there."""
    section, index = _entry(problem.path)
    bound = experiment.expect[index] if section == "expect" else None
    if not isinstance(bound, ClaimBound):
        return problem
    return replace(problem, path=bound.claim + problem.path.removeprefix(f"expect[{index}]"), file=shown(CLAIMS))
